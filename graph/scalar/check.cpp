#include <treadle/graph/scalar/check.hpp>

#include <treadle/graph/scalar/evaluate.hpp>
#include <treadle/graph/scalar/interval.hpp>
#include <treadle/graph/scalar/print.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>
#include <string>

namespace treadle::scalar {

namespace {

/// The nodes that are computed at every point: what the root reaches other than through a branch of where().
std::vector<char> unguarded(const TileProgram& program) {
  std::vector<char> reached(program.nodes.size(), 0);
  reached.back() = 1;
  for (std::size_t i = reached.size(); i-- > 0;) {
    if (reached[i] == 0) continue;
    const Node& n = program.nodes[i];
    for (int j = 0; j < (n.op == Op::where ? 1 : 3); ++j)
      if (n.child(j) >= 0) reached[static_cast<std::size_t>(n.child(j))] = 1;
  }
  return reached;
}

/// Looks for points where an integer leaves [0, size), in rectangles that intervals do not clear.
class Search {
 public:
  Search(const TileProgram& program, int index, std::int64_t size)
      : program_(program), index_(index), size_(size), evaluate_(program.view(), index) {}

  /// The furthest value outside that was found.
  std::optional<std::int64_t> run() {
    const Extents& e = program_.extents;
    std::vector<Box> boxes{{0, e.batch, 0, e.heads, 0, e.q_len, 0, e.k_len}};
    std::vector<Interval> values(program_.nodes.size());
    for (int steps = 0; steps < 200 && !boxes.empty(); ++steps) {
      const Box box = boxes.back();
      boxes.pop_back();
      intervals_of_queries(program_, box, values.data());
      intervals_of_keys(program_, box, values.data());
      const Interval& range = values[static_cast<std::size_t>(index_)];
      if (range.lo >= 0 && range.hi < size_) continue;
      corners(box);
      if (found_) return found_;
      split(box, boxes);
    }
    return found_;
  }

 private:
  void corners(const Box& x) {
    for (int which = 0; which < 16; ++which) {
      Bindings at{.b = which & 1 ? x.b1 - 1 : x.b0,
                  .h = which & 2 ? x.h1 - 1 : x.h0,
                  .q = which & 4 ? x.q1 - 1 : x.q0,
                  .k = which & 8 ? x.k1 - 1 : x.k0,
                  .q_len = program_.extents.q_len,
                  .k_len = program_.extents.k_len,
                  .iteration = program_.extents.iteration};
      const auto v = static_cast<std::int64_t>(std::clamp(evaluate_(at), -9e18, 9e18));
      if (v >= 0 && v < size_) continue;
      if (!found_ || (*found_ >= 0 && (v < 0 || v > *found_))) found_ = v;
    }
  }

  static void split(const Box& x, std::vector<Box>& boxes) {
    const std::array<std::int64_t, 4> sizes{x.b1 - x.b0, x.h1 - x.h0, x.q1 - x.q0, x.k1 - x.k0};
    const auto widest = std::max_element(sizes.begin(), sizes.end());
    if (*widest < 2) return;
    Box low = x, high = x;
    switch (widest - sizes.begin()) {
      case 0: low.b1 = high.b0 = x.b0 + *widest / 2; break;
      case 1: low.h1 = high.h0 = x.h0 + *widest / 2; break;
      case 2: low.q1 = high.q0 = x.q0 + *widest / 2; break;
      default: low.k1 = high.k0 = x.k0 + *widest / 2; break;
    }
    boxes.push_back(low);
    boxes.push_back(high);
  }

  const TileProgram& program_;
  int index_;
  std::int64_t size_;
  Evaluator evaluate_;
  std::optional<std::int64_t> found_;
};

[[noreturn]] void refuse(const TileProgram& program, int lookup, int axis, std::int64_t size, std::int64_t at) {
  const Node& n = program.nodes[static_cast<std::size_t>(lookup)];
  const char* what = n.b < 0 ? " entries" : axis == 0 ? " rows" : " columns";
  const std::string name = "table '" + std::string(program.view().name(n)) + "' has " + std::to_string(size) + what,
                    index = "index `" + print(program.view(), n.child(axis)) + "` of its lookup";
  if (at < 0)
    throw std::invalid_argument(name + "; the " + index + " reaches " + std::to_string(at) + ", and 0 is the first");
  throw std::invalid_argument(name + "; the " + index + " reaches " + std::to_string(at) + ", so " +
                              std::to_string(at + 1) + " are needed");
}

}  // namespace

void check_lookups(View view, int root, const Extents& extents, std::span<const Table> tables) {
  if (extents.batch < 1 || extents.heads < 1 || extents.q_len < 1 || extents.k_len < 1) return;
  // The shapes alone: every entry reads 0, of the type that the lookup wants.
  alignas(8) static constexpr std::int64_t zero = 0;
  std::vector<Table> shapes(tables.begin(), tables.end());
  for (Table& t : shapes) {
    t.view.data = const_cast<std::int64_t*>(&zero);
    t.view.strides.fill(0);
    t.view.dtype = f32;
    for (int i = 0; i <= root; ++i)
      if (reads_table(view[i].op) && view[i].type == Type::integer && view.name(view[i]) == t.name) t.view.dtype = i32;
  }
  const TileProgram program = compile(view, root, extents, shapes);
  const std::vector<char> always = unguarded(program);
  for (int i = 0; i <= program.root(); ++i) {
    const Node& n = program.nodes[static_cast<std::size_t>(i)];
    if (always[static_cast<std::size_t>(i)] == 0 || !reads_table(n.op)) continue;
    const TensorView& table =
        program.slots[static_cast<std::size_t>(program.tables[static_cast<std::size_t>(i)])].table.view;
    // What searchsorted looks for may be any integer; its row may not.
    for (int axis = 0; axis < (n.op == Op::searchsorted ? table.rank - 1 : table.rank); ++axis) {
      const int index = n.child(axis);
      const Node& at = program.nodes[static_cast<std::size_t>(index)];
      const std::int64_t size = table.shape[static_cast<std::size_t>(axis)];
      if (at.op == Op::feature && size < extents.features) refuse(program, i, axis, size, extents.features - 1);
      if ((at.uses & (uses_table | uses_feature)) != 0) continue;
      if (const auto outside = Search(program, index, size).run()) refuse(program, i, axis, size, *outside);
    }
  }
}

}  // namespace treadle::scalar
