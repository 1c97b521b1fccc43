#include <treadle/graph/scalar/query_granule.hpp>

#include <algorithm>
#include <numeric>

namespace treadle::scalar {

namespace {

using Kind = QueryPart::Kind;

QueryPart known(std::int64_t value) { return {Kind::known, value, 0}; }
/// Numbers so large that the sum may wrap around are no bounds.
QueryPart query_plus(std::int64_t value) {
  constexpr std::int64_t large = std::int64_t{1} << 40;
  return {-large < value && value < large ? Kind::query_plus : Kind::other, value, 1};
}

/// The condition changes at this query, if that is one.
QueryPart changes_at(std::int64_t query, std::int64_t q_len) {
  return {Kind::other, 0, query > 0 && query < q_len ? query : 0};
}

/// a < b, or a ≤ b, of q + o and a known number, in either order.
QueryPart bound(const QueryPart& a, const QueryPart& b, bool or_equal, std::int64_t q_len) {
  if (a.kind == Kind::query_plus) return changes_at(wrap_add(wrap_sub(b.value, a.value), or_equal ? 1 : 0), q_len);
  return changes_at(wrap_add(wrap_sub(a.value, b.value), or_equal ? 0 : 1), q_len);
}

QueryPart part(const TileProgram& program, const Node& n, const std::vector<QueryPart>& parts) {
  if (n.op == Op::q) return query_plus(0);
  if (n.op == Op::q_len) return known(program.extents.q_len);
  if (n.op == Op::k_len) return known(program.extents.k_len);
  if (n.is_constant()) return n.type == Type::integer ? known(n.integer()) : QueryPart{};
  QueryPart operands[3];
  std::int64_t granule = 0;
  for (int i = 0; i < 3; ++i) {
    if (n.child(i) < 0) continue;
    operands[i] = parts[static_cast<std::size_t>(n.child(i))];
    granule = std::gcd(granule, operands[i].granule);
  }
  const QueryPart &a = operands[0], &b = operands[1];
  const bool both = a.kind == Kind::known && b.kind == Kind::known,
             of_query = (a.kind == Kind::query_plus && b.kind == Kind::known) ||
                        (a.kind == Kind::known && b.kind == Kind::query_plus);
  const std::int64_t q_len = program.extents.q_len;
  switch (n.op) {
    case Op::add:
      if (both) return known(wrap_add(a.value, b.value));
      if (of_query) return query_plus(wrap_add(a.value, b.value));
      break;
    case Op::sub:
      if (both) return known(wrap_sub(a.value, b.value));
      if (of_query && a.kind == Kind::query_plus) return query_plus(wrap_sub(a.value, b.value));
      break;
    case Op::mul:
      if (both) return known(wrap_mul(a.value, b.value));
      break;
    case Op::min:
      if (both) return known(std::min(a.value, b.value));
      break;
    case Op::max:
      if (both) return known(std::max(a.value, b.value));
      break;
    case Op::floor_div:
      if (both) return known(floor_div(a.value, b.value));
      if (of_query && a.kind == Kind::query_plus && b.value > 0) return {Kind::other, 0, std::gcd(a.value, b.value)};
      break;
    case Op::less:
      if (of_query) return bound(a, b, false, q_len);
      break;
    case Op::less_equal:
      if (of_query) return bound(a, b, true, q_len);
      break;
    default: break;
  }
  return {Kind::other, 0, granule};
}

}  // namespace

std::int64_t query_granule(const TileProgram& program, std::vector<QueryPart>& parts) {
  parts.resize(program.nodes.size());
  for (std::size_t i = 0; i < program.nodes.size(); ++i) parts[i] = part(program, program.nodes[i], parts);
  return parts.back().granule;
}

}  // namespace treadle::scalar
