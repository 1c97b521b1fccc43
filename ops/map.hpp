#pragma once
// Functions of one number that users write themselves, applied to every element.

#include <treadle/ops/mask.hpp>

namespace treadle {

constexpr Outputs infer_map(Graph&, const NodeSpec& s, const Inputs& in, Failure& f) {
  if (rule::find(s, key::expression) == nullptr)
    return rule::fail(f, error_kind::bad_attribute, "a map without a function", "feature_map(f)");
  return rule::one(in[0].shape, in[0].dtype);
}

/// f(x) for every element: map(x, feature_map([](auto x) { return where(x > 0, x, 0.1 * x); })). The function is traced
/// (docs/03_masks_and_scores.md) and knows the number alone: no positions, no tables.
constexpr Node map(Node x, const scalar::Function& f, Where where = Where::current()) {
  Builder& b = *x.builder;
  if (!b.usable(x)) return {&b, {}};
  NodeSpec s = rule::spec(op::map, "", b, where);
  if (!f) {
    b.fail(op::map, "", {error_kind::bad_attribute, "a map without a function", "feature_map(f)"}, where.line());
    return {&b, {}};
  }
  const auto root = static_cast<std::int32_t>(f.add_to(b.graph().scalars));
  if (!rule::traceable(b, op::map, "", where)) return {&b, {}};
  if ((b.graph().scalars.nodes[static_cast<std::size_t>(root)].uses & ~unsigned{scalar::uses_score}) != 0) {
    b.fail(op::map, "", {error_kind::bad_attribute, "a feature map with a table", "a function of its number alone"},
           where.line());
    return {&b, {}};
  }
  s.attributes.push_back(scalar_attribute(key::expression, root));
  return b.add(s, {x}, infer_map);
}

}  // namespace treadle
