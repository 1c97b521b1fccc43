#include <treadle/backends/parameters.hpp>

#include <treadle/backends/error.hpp>
#include <treadle/backends/names.hpp>
#include <treadle/backends/random_fill.hpp>

#include <algorithm>

namespace treadle {
namespace {

/// How often each repeat around `region` runs, outermost first.
std::vector<std::int64_t> enclosing_times(GraphView g, std::int32_t region) {
  std::vector<std::int64_t> times;
  for (; region > 0; region = g.regions[static_cast<std::size_t>(region)].parent)
    times.push_back(g.get_integer(g.regions[static_cast<std::size_t>(region)].repeat_node, key::times, 1));
  std::reverse(times.begin(), times.end());
  return times;
}

/// Counts up like an odometer; false after the last.
bool advance(std::vector<std::int64_t>& at, const std::vector<std::int64_t>& times) {
  for (std::size_t i = at.size(); i-- > 0;) {
    if (++at[i] < times[i]) return true;
    at[i] = 0;
  }
  return false;
}

bool is_gain(std::string_view name) {
  const std::string_view leaf = name.substr(name.rfind('.') + 1);
  return leaf == "weight" || leaf == "gamma";
}

}  // namespace

std::vector<ParameterInfo> parameter_names(GraphView graph, const DimValues& dims) {
  const BoundDims bound(graph, dims);
  std::vector<ParameterInfo> out;
  for (std::int32_t n = 0; n < graph.size(); ++n) {
    const NodeData& node = graph.nodes[static_cast<std::size_t>(n)];
    if (node.op != op::parameter) continue;
    const std::vector<std::int64_t> times = enclosing_times(graph, node.region);
    std::vector<std::int64_t> at(times.size(), 0);
    const std::vector<std::int64_t> shape = bound(graph.shape({n, 0}));
    do {
      out.push_back({full_name(graph, n, at), shape, n});
    } while (advance(at, times));
  }
  return out;
}

void Parameters::set(std::string name, const TensorView& tensor) {
  if (tensor.dtype != DType::f32)
    throw Error("parameter '" + name + "' is " + std::string(treadle::name(tensor.dtype)) + "; parameters are f32");
  tensors_.insert_or_assign(std::move(name), Entry{tensor, nullptr});
}

void Parameters::own(std::string name, std::vector<std::int64_t> shape, std::vector<float> data) {
  std::int64_t size = 1;
  for (const std::int64_t d : shape) size *= d;
  if (shape.size() > static_cast<std::size_t>(max_rank) || size != static_cast<std::int64_t>(data.size()))
    throw Error("parameter '" + name + "' has " + std::to_string(data.size()) + " values; its shape " +
                shape_text(shape) + " holds " + std::to_string(size));
  auto storage = std::make_shared<std::vector<float>>(std::move(data));
  // A view of an empty tensor still says "given".
  if (storage->empty()) storage->reserve(1);
  const TensorView view = dense_view(storage->data(), DType::f32, shape);
  tensors_.insert_or_assign(std::move(name), Entry{view, std::move(storage)});
}

TensorView Parameters::find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? TensorView{} : found->second.view;
}

std::vector<std::string> Parameters::names() const {
  std::vector<std::string> out;
  for (const auto& entry : tensors_) out.push_back(entry.first);
  return out;
}

Parameters Parameters::random(GraphView graph, std::uint64_t seed, const DimValues& dims) {
  Parameters out;
  for (const ParameterInfo& p : parameter_names(graph, dims)) {
    std::int64_t size = 1;
    for (const std::int64_t d : p.shape) size *= d;
    std::vector<float> data(static_cast<std::size_t>(size), 1.0f);
    const std::uint64_t own_seed = seed_of(p.name, seed);
    if (p.shape.size() >= 2) {
      fill_normal(data, own_seed, 1.0 / std::sqrt(static_cast<double>(std::max<std::int64_t>(p.shape.back(), 1))));
    } else if (!is_gain(p.name)) {
      fill_normal(data, own_seed, 0.02);
    }
    out.own(p.name, p.shape, std::move(data));
  }
  return out;
}

}  // namespace treadle
