#pragma once
// The score functions of static models as code of one ISA.
//
//   constinit const kernel::ModelTable table = simd::model_table<simd::avx2, MyModel, MyOtherModel>();
//
// cmake/model.cmake generates the file around this line and compiles it with each ISA's flags.

#include <treadle/backends/inlined.hpp>
#include <treadle/backends/model.hpp>
#include <treadle/backends/simd/inlined_score.hpp>

#include <array>
#include <vector>

namespace treadle::simd {

/// The score functions of a graph's attention nodes, each once and as an import into an empty pool gives it; those that
/// have no straight code are left to the tile evaluator.
constexpr std::vector<scalar::Pool> score_functions(GraphView g) {
  std::vector<scalar::Pool> found;
  for (std::int32_t n = 0; n < g.size(); ++n) {
    if (g.nodes[n].op != op::attention) continue;
    if (g.index_of(n, key::expression) < 0) continue;
    scalar::Pool pool;
    scalar::import(pool, g.scalars, static_cast<int>(g.get_integer(n, key::expression)));
    bool known = !inlinable(pool.nodes);
    for (const scalar::Pool& p : found) known = known || p == pool;
    if (!known) found.push_back(pool);
  }
  return found;
}

/// The Index-th of them for model M, as constants: the code's template argument. Of the graph as declared: no pass
/// changes a score function, and the passes need not be evaluated for every ISA.
template <class M, std::size_t Index>
struct FrozenScore {
  static constexpr std::size_t node_count = score_functions(M::source.view())[Index].nodes.size();
  static constexpr std::size_t name_chars = score_functions(M::source.view())[Index].names.size();
  static constexpr auto nodes = [] {
    const scalar::Pool pool = score_functions(M::source.view())[Index];
    std::array<scalar::Node, node_count> a{};
    for (std::size_t i = 0; i < node_count; ++i) a[i] = pool.nodes[i];
    return a;
  }();
  static constexpr auto names = [] {
    const scalar::Pool pool = score_functions(M::source.view())[Index];
    std::array<char, name_chars> a{};
    for (std::size_t i = 0; i < name_chars; ++i) a[i] = pool.names[i];
    return a;
  }();
};

namespace detail {
template <class M>
inline constexpr std::size_t score_count = score_functions(M::source.view()).size();

template <class Isa, class M>
constexpr auto entries_of() {
  return []<std::size_t... I>(std::index_sequence<I...>) {
    return std::array<kernel::InlinedScore, sizeof...(I)>{kernel::InlinedScore{
        FrozenScore<M, I>::nodes, FrozenScore<M, I>::names, inlined_score<Isa, FrozenScore<M, I>>}...};
  }(std::make_index_sequence<score_count<M>>{});
}

template <class Isa, class... Models>
inline constexpr auto entries = [] {
  std::array<kernel::InlinedScore, (score_count<Models> + ... + 0)> all{};
  std::size_t n = 0;
  const auto append = [&](const auto& some) {
    for (const kernel::InlinedScore& e : some) all[n++] = e;
  };
  (append(entries_of<Isa, Models>()), ...);
  return all;
}();
}  // namespace detail

template <class Isa, class... Models>
constexpr kernel::ModelTable model_table() {
  return {Isa::name, detail::entries<Isa, Models...>};
}

}  // namespace treadle::simd
