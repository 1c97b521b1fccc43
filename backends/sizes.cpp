#include <treadle/backends/dim_values.hpp>
#include <treadle/backends/error.hpp>
#include <treadle/backends/sizes.hpp>

#include <algorithm>

namespace treadle::plan {

std::int64_t checked_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  if (__builtin_mul_overflow(a, b, &r))
    throw Error("the lengths are too large: a tensor's size does not fit into 64 bits");
  return r;
}
std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  if (__builtin_add_overflow(a, b, &r))
    throw Error("the lengths are too large: a tensor's size does not fit into 64 bits");
  return r;
}

Sizes::Sizes(GraphView graph, const std::map<std::string, std::int64_t>& values)
    : graph_(graph), values_(graph.dims.atoms.size(), 0), bound_(graph.dims.atoms.size(), 0) {
  const std::vector<std::string> names = dim_names(graph);
  for (const auto& [name, value] : values) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      std::string there;
      for (const std::string& n : names) there += (there.empty() ? "" : ", ") + n;
      throw Error("the model has no dim '" + name + "'; it has " + (there.empty() ? "none" : there));
    }
    if (value < 0) throw Error("dim '" + name + "' is " + std::to_string(value) + "; a length is at least 0");
  }
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (graph.dims.atoms[i].kind != AtomKind::symbol) continue;
    const auto found = values.find(std::string(graph.strings[graph.dims.atoms[i].name]));
    if (found == values.end()) continue;
    values_[i] = found->second;
    bound_[i] = 1;
  }
}

std::int64_t Sizes::atom(int index) const {
  const auto i = static_cast<std::size_t>(index);
  const DimAtom& x = graph_.dims.atoms[i];
  if (x.kind == AtomKind::symbol) {
    const std::string name(graph_.strings[x.name]);
    if (bound_[i] == 0)
      throw Error("dim '" + name + "' has no value; give it one with bind_dims({{\"" + name + "\", …}})");
    return values_[i];
  }
  const std::int64_t a = evaluate(x.a), b = evaluate(x.b);
  if (x.kind == AtomKind::min) return std::min(a, b);
  if (x.kind == AtomKind::max) return std::max(a, b);
  return b == 0 ? 0 : checked_add(a, b - 1) / b;
}

std::int64_t Sizes::evaluate(Dim d) const {
  std::int64_t sum = 0;
  for (const DimTerm& t : graph_.dims.terms_of(d)) {
    std::int64_t product = t.coefficient;
    for (const int a : t.atoms)
      if (a >= 0) product = checked_multiply(product, atom(a));
    sum = checked_add(sum, product);
  }
  return sum;
}

std::int64_t Sizes::operator()(Dim d) const {
  const std::int64_t n = evaluate(d);
  if (n < 0) throw Error("a length comes out as " + std::to_string(n) + " with these dims; it is at least 0");
  return n;
}

std::vector<std::int64_t> Sizes::operator()(std::span<const Dim> shape) const {
  std::vector<std::int64_t> out;
  for (const Dim d : shape) out.push_back((*this)(d));
  return out;
}

std::int64_t Sizes::attribute(std::int32_t node, key k, std::int64_t otherwise) const {
  const Attribute* a = graph_.find(node, k);
  if (a == nullptr) return otherwise;
  return a->kind == AttributeKind::dim ? (*this)(static_cast<Dim>(a->integer)) : a->integer;
}

}  // namespace treadle::plan
