#include "case_graphs.hpp"

#include "arguments.hpp"

#include <treadle/backends/error.hpp>
#include <treadle/graph/text.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace treadle::cli {

// --------------------------------------------------------------------------------------------- attributes
const nlohmann::json& CallBuilder::take(const std::string& name) {
  taken_.insert(name);
  static const nlohmann::json absent;
  const auto found = call_.attributes.find(name);
  return found == call_.attributes.end() ? absent : *found;
}

namespace {
[[noreturn]] void wrong_type(const std::string& op, const std::string& name, const nlohmann::json& value,
                             const char* needed) {
  throw Error(fmt::format("attribute '{}' of {} is {}: {} is needed", name, op, value.dump().substr(0, 60), needed));
}
[[noreturn]] void absent_attribute(const std::string& op, const std::string& name) {
  throw Error(fmt::format("{} has no attribute '{}', which it needs", op, name));
}
}  // namespace

bool CallBuilder::flag(const std::string& name, bool otherwise) {
  const auto& v = take(name);
  if (v.is_null()) return otherwise;
  if (!v.is_boolean()) wrong_type(call_.op, name, v, "true or false");
  return v.get<bool>();
}
std::int64_t CallBuilder::integer(const std::string& name, std::optional<std::int64_t> otherwise) {
  const auto& v = take(name);
  if (v.is_null() && otherwise) return *otherwise;
  if (v.is_null()) absent_attribute(call_.op, name);
  if (!v.is_number_integer()) wrong_type(call_.op, name, v, "a whole number");
  return v.get<std::int64_t>();
}
double CallBuilder::number(const std::string& name, std::optional<double> otherwise) {
  const auto& v = take(name);
  if (v.is_null() && otherwise) return *otherwise;
  if (v.is_null()) absent_attribute(call_.op, name);
  if (!v.is_number()) wrong_type(call_.op, name, v, "a number");
  return v.get<double>();
}
std::string CallBuilder::text(const std::string& name, std::optional<std::string> otherwise) {
  const auto& v = take(name);
  if (v.is_null() && otherwise) return *otherwise;
  if (v.is_null()) absent_attribute(call_.op, name);
  if (!v.is_string()) wrong_type(call_.op, name, v, "a string");
  return v.get<std::string>();
}
std::vector<std::int64_t> CallBuilder::integers(const std::string& name) {
  const auto& v = take(name);
  if (!v.is_array()) wrong_type(call_.op, name, v, "a list of whole numbers");
  std::vector<std::int64_t> r;
  for (const auto& x : v) {
    if (!x.is_number_integer()) wrong_type(call_.op, name, v, "a list of whole numbers");
    r.push_back(x.get<std::int64_t>());
  }
  return r;
}
void CallBuilder::only(const std::string& name, const nlohmann::json& value) {
  const auto& v = take(name);
  if (!v.is_null() && v != value) throw NotSupported(fmt::format("attribute {} {} of {}", name, v.dump(), call_.op));
}

// ------------------------------------------------------------------------------------------------ tensors
const io::Tensor& CallBuilder::tensor(const std::string& name) const {
  const auto found = call_.inputs.find(name);
  if (found == call_.inputs.end()) throw Error(fmt::format("{} has no input '{}', which it needs", call_.op, name));
  return found->second;
}

std::vector<double> CallBuilder::values(const std::string& name) const {
  const io::Tensor t = io::to_f64(tensor(name));
  const auto numbers = t.as<double>();
  return {numbers.begin(), numbers.end()};
}

Node CallBuilder::input(const std::string& name, DType dtype, std::optional<std::vector<std::int64_t>> shape) {
  Feed f;
  f.name = name;
  f.dtype = dtype;
  f.shape = shape ? *shape : tensor(name).shape;
  f.data = values(name);
  return input(std::move(f));
}

Node CallBuilder::input(Feed f) {
  const auto& s = f.shape;
  Node x;
  switch (s.size()) {
    case 1: x = g.input(f.name, f.dtype, {s[0]}); break;
    case 2: x = g.input(f.name, f.dtype, {s[0], s[1]}); break;
    case 3: x = g.input(f.name, f.dtype, {s[0], s[1], s[2]}); break;
    case 4: x = g.input(f.name, f.dtype, {s[0], s[1], s[2], s[3]}); break;
    default: throw NotSupported(fmt::format("input '{}' of rank {}", f.name, s.size()));
  }
  out_.inputs.push_back(std::move(f));
  return x;
}

Node CallBuilder::parameter(const std::string& name) { return parameter(name, tensor(name).shape, values(name)); }

Node CallBuilder::parameter_transposed(const std::string& name) {
  const auto shape = tensor(name).shape;
  if (shape.size() != 2) throw Error(fmt::format("'{}' has rank {}: a matrix is needed", name, shape.size()));
  const auto from = values(name);
  std::vector<double> data(from.size());
  for (std::int64_t i = 0; i < shape[0]; ++i)
    for (std::int64_t j = 0; j < shape[1]; ++j)
      data[static_cast<std::size_t>(j * shape[0] + i)] = from[static_cast<std::size_t>(i * shape[1] + j)];
  return parameter(name, {shape[1], shape[0]}, std::move(data));
}

Node CallBuilder::parameter(const std::string& name, std::vector<std::int64_t> shape, std::vector<double> data) {
  std::vector<Dim> dims;
  for (const std::int64_t d : shape) dims.push_back(g.dim_number(d));
  out_.parameters.push_back({name, f32, std::move(shape), std::move(data)});
  return g.parameter(name, dims);
}

Node CallBuilder::linear(Node x, Node weight, Node bias) {
  if (bias.builder == nullptr) return linear_with(x, weight);
  return add(linear_with(x, weight), bias);
}

Node CallBuilder::layer_norm(Node x, Node gamma, Node beta, double eps) {
  NodeSpec s = rule::spec(op::layer_norm, "", g, Where::current());
  std::vector<Node> inputs{x};
  if (gamma.builder != nullptr) inputs.push_back(gamma);
  if (beta.builder != nullptr) inputs.push_back(beta);
  s.attributes = {treadle::integer(key::has_weight, gamma.builder != nullptr),
                  treadle::integer(key::has_bias, beta.builder != nullptr), treadle::number(key::eps, eps)};
  return g.add(s, inputs, infer_norm);
}

bool CallBuilder::wants(const std::string& output) const {
  return std::any_of(call_.outputs.begin(), call_.outputs.end(),
                     [&](const io::Expected& e) { return e.name == output; });
}

void CallBuilder::output(const std::string& name, Node x) {
  if (!wants(name)) return;
  g.output(name, x);
  out_.outputs.push_back(name);
}

CallGraph CallBuilder::finish() {
  const bool gradient = flag("gradient");
  for (const auto& [name, value] : call_.attributes.items())
    if (!taken_.contains(name)) throw NotSupported(fmt::format("attribute {} of {}", name, call_.op));
  std::vector<std::string> missing;
  for (const io::Expected& e : call_.outputs) {
    const bool there = std::find(out_.outputs.begin(), out_.outputs.end(), e.name) != out_.outputs.end();
    if (!there && e.required) missing.push_back(e.name);
  }
  if (gradient)
    out_.missing = fmt::format("attribute gradient of {}", call_.op);
  else if (!missing.empty())
    out_.missing = fmt::format("{} {} of {}", missing.size() == 1 ? "output" : "outputs", join(missing), call_.op);
  if (out_.outputs.empty())
    throw NotSupported(out_.missing.empty() ? fmt::format("{} without outputs", call_.op) : out_.missing);
  out_.graph = g.finish();
  if (const ModelError& e = out_.graph.error)
    throw Error(fmt::format("the case does not fit {}: in {} there is {} where {} is needed", call_.op, name(e.op),
                            out_.graph.strings[e.got], out_.graph.strings[e.expected]));
  return std::move(out_);
}

std::vector<std::int64_t> with_front(std::vector<std::int64_t> shape, std::size_t rank) {
  while (shape.size() < rank) shape.insert(shape.begin(), 1);
  return shape;
}

CallGraph graph_of(const io::Call& call) {
  for (const auto* family :
       {&attention_calls(), &elementwise_calls(), &layer_calls(), &recurrent_calls(), &sequence_calls()}) {
    const auto found = family->find(call.op);
    if (found == family->end()) continue;
    CallBuilder b(call);
    found->second(b);
    return b.finish();
  }
  throw NotSupported(fmt::format("op {}", call.op));
}

}  // namespace treadle::cli
