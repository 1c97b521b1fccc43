#pragma once
// A traced function compiled for tiles of (query, key): every node is classed as constant, q-only, k-only or both, and
// only the last kind costs per element. What stands inside a sum over features is computed for one feature after the
// other. Compiled once at bind; new lengths and tables are bound without allocation.

#include <treadle/graph/scalar/table.hpp>

#include <array>

namespace treadle::scalar {

/// What a node may be: an integer in [lo, hi], a number in [number_lo, number_hi] (or NaN), a truth value.
struct Interval {
  std::int64_t lo = 0, hi = 0;
  double number_lo = 0, number_hi = 0;
  bool nan = false, can_be_false = false, can_be_true = false;
};

enum class Class : std::uint8_t { constant, q_only, k_only, both };

constexpr Class class_of(const Node& n) {
  if (n.uses & uses_score) return Class::both;
  const bool q = n.uses & uses_q, k = n.uses & uses_k;
  if (q) return k ? Class::both : Class::q_only;
  return k ? Class::k_only : Class::constant;
}

struct TileProgram {
  static constexpr int max_lanes = 64;  ///< queries of a tile, and keys whose k-only nodes are computed together
  static constexpr int max_rows = 16;   ///< keys whose `both` nodes are computed together
  static constexpr int max_unit = 16;   ///< lanes that an evaluator may compute together

  struct Slot {
    std::string_view name(const std::vector<char>& all) const {
      return {all.data() + name_first, static_cast<std::size_t>(name_size)};
    }
    std::int32_t name_first = 0, name_size = 0;
    BoundTable table;
  };

  std::vector<Node> nodes;                  ///< what the root reaches; children precede parents, the root is last
  std::vector<Class> classes;               ///< of each node
  std::vector<std::int32_t> distances;      ///< of each node number(abs(a − b)) of integers, a − b; −1 of others
  std::vector<std::int32_t> steps;          ///< the nodes outside sums, class after class, children first
  std::array<std::int32_t, 5> step_ends{};  ///< of classes, after a 0
  std::vector<std::int32_t>
      offsets;  ///< of each node's values, bytes into the workspace; registers of `both` are reused
  std::vector<std::int32_t> tables;     ///< of each node that reads one, into `slots`; −1 for other nodes
  std::vector<std::int32_t> bodies;     ///< of each sum, the nodes to compute for every feature, children first
  std::vector<std::int32_t> body_ends;  ///< of each node, where its part of `bodies` ends
  std::vector<Slot> slots;
  std::vector<char> names;
  std::size_t value_bytes = 0;  ///< workspace of the evaluator
  bool wide = false;            ///< some integer may leave 32 bits, so lanes are 64 bits wide
  Extents extents;
  std::vector<Interval> scratch;  ///< of rebind

  std::span<const std::int32_t> steps_of(Class c) const {
    const auto first = static_cast<std::size_t>(step_ends[static_cast<std::size_t>(c)]);
    return std::span(steps).subspan(first,
                                    static_cast<std::size_t>(step_ends[static_cast<std::size_t>(c) + 1]) - first);
  }
  int root() const { return static_cast<int>(nodes.size()) - 1; }
  Type type() const { return nodes.back().type; }
  View view() const { return {nodes, names}; }
  bool uses(Uses what) const { return (nodes.back().uses & what) != 0; }
  bool reads_features() const { return !bodies.empty(); }
  std::span<const std::int32_t> body(int sum) const {
    const auto end = static_cast<std::size_t>(body_ends[static_cast<std::size_t>(sum)]);
    const auto first = sum > 0 ? static_cast<std::size_t>(body_ends[static_cast<std::size_t>(sum) - 1]) : 0;
    return std::span(bodies).subspan(first, end - first);
  }
};

/// Compiles and binds. Throws std::invalid_argument with a sentence if a table is missing or does not fit, or a mask
/// holds a sum over features.
TileProgram compile(View view, int root, const Extents& extents, std::span<const Table> tables = {});

/// Binds other lengths and tables. Tables that are not named keep their binding. Allocates nothing while no table
/// grows.
void rebind(TileProgram& program, const Extents& extents, std::span<const Table> tables = {});

}  // namespace treadle::scalar
