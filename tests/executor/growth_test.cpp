// What plans of sparse, low-rank and hierarchical attention need, from a thousand to a million tokens, without running
// them: memory grows with the length, and so does work where the paper says so.

#include "support.hpp"

#include <treadle/backends/plan.hpp>
#include <treadle/graph/mask/patterns.hpp>
#include <treadle/graph/mask/tiles.hpp>
#include <treadle/ops/hierarchical.hpp>
#include <treadle/ops/linformer.hpp>
#include <treadle/ops/longformer.hpp>
#include <treadle/ops/nystrom.hpp>
#include <treadle/ops/pooled_attention.hpp>
#include <treadle/ops/routing_attention.hpp>

#include <functional>

using namespace treadle;
using namespace treadle::test;

namespace {

constexpr std::int64_t lengths[] = {1'024, 32'768, 1'048'576};
const DimSpec n = dim("n");

struct Cost {
  double bytes = 0, flops = 0;
};

/// Bytes of the arena, and FLOPs with every mask counted; `make` gets the length too.
Cost plan_of(const std::function<Node(Builder&, std::int64_t)>& make, std::int64_t length, bool count = true) {
  Builder b;
  b.output("y", make(b, length));
  const Graph g = b.finish();
  BOOST_REQUIRE(!g.error);
  plan::Constants constants;
  constants.parameters = Parameters::random(g, 1);
  std::vector<plan::StateStorage> states;
  const plan::Plan p = plan::make_plan(g, {{"n", length}}, kernel::best_table(), "simd", constants, states);
  Cost c;
  c.bytes = static_cast<double>(p.arena_bytes);
  for (const plan::Step& s : p.steps) {
    if (!count || s.mask < 0) {
      c.flops += s.flops;
      continue;
    }
    const plan::MaskUse& m = p.masks[static_cast<std::size_t>(s.mask)];
    const scalar::Extents& e = m.extents;
    const double pairs =
        static_cast<double>(e.batch * e.heads) * static_cast<double>(e.q_len) * static_cast<double>(e.k_len);
    const mask::Counts counts = mask::Tiles(g.view().scalars, m.root, e).count_all(64, 256);
    c.flops += s.flops / pairs * static_cast<double>(counts.executed);
  }
  return c;
}

struct Heads {
  Node q, k, v;
};
Heads heads(Builder& b) {
  return {b.input("q", f32, {1, 1, n, 4}), b.input("k", f32, {1, 1, n, 4}), b.input("v", f32, {1, 1, n, 4})};
}

/// value(length) / power(length) stays below 1.3 times what it was.
void bounded(const char* what, const double (&values)[3], double exponent) {
  BOOST_TEST_CONTEXT(what)
  for (int i = 1; i < 3; ++i)
    BOOST_TEST(values[i] / std::pow(static_cast<double>(lengths[i]), exponent) <=
               1.3 * values[i - 1] / std::pow(static_cast<double>(lengths[i - 1]), exponent));
}
void grows(const char* what, const std::function<Node(Builder&, std::int64_t)>& make, double work, bool count = true) {
  double bytes[3], flops[3];
  for (int i = 0; i < 3; ++i) {
    const Cost c = plan_of(make, lengths[i], count);
    bytes[i] = c.bytes;
    flops[i] = c.flops;
  }
  bounded((std::string(what) + ": bytes").c_str(), bytes, 1);
  if (work > 0) bounded((std::string(what) + ": work").c_str(), flops, work);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(growth_of_plans)

BOOST_AUTO_TEST_CASE(linear_ones) {
  grows(
      "linformer",
      [](Builder& b, std::int64_t length) {
        const auto [q, k, v] = heads(b);
        return linformer_attention("l", q, k, v, {.length = 4, .max_length = length});
      },
      1);
  grows(
      "nystrom",
      [](Builder& b, std::int64_t) {
        const auto [q, k, v] = heads(b);
        return nystrom_attention(q, k, v, {.landmarks = 16});
      },
      1);
  grows(
      "longformer",
      [](Builder& b, std::int64_t) {
        return longformer_attention("l", b.input("x", f32, {1, n, 4}), {.heads = 1, .window = 32, .globals = {0, 100}});
      },
      1);
  grows(
      "chunks",
      [](Builder& b, std::int64_t) {
        const auto [q, k, v] = heads(b);
        AttentionOptions o;
        o.mask = causal & local_chunks(64, 1);
        return attention(q, k, v, o);
      },
      1);
}

BOOST_AUTO_TEST_CASE(two_levels_take_the_root) {
  grows(
      "hierarchical",
      [](Builder& b, std::int64_t length) {
        const auto [q, k, v] = heads(b);
        const auto block = static_cast<std::int64_t>(std::sqrt(static_cast<double>(length)));
        return hierarchical_attention(q, k, v, {.block = block, .near = 0, .causal = true});
      },
      1.5);
}

// What these compute follows the square of the length, or the data; their memory does not.
BOOST_AUTO_TEST_CASE(memory_of_the_others) {
  grows(
      "pooled",
      [](Builder& b, std::int64_t) {
        const auto [q, k, v] = heads(b);
        return pooled_attention(q, k, v, {.ratio = 8, .causal = true});
      },
      0, false);
  grows(
      "routing",
      [](Builder& b, std::int64_t) {
        const auto [q, k, v] = heads(b);
        return routing_attention(q, k, v, b.parameter("c", {b.dim_number(1), b.dim_number(8), b.dim_number(4)}),
                                 {.causal = true, .iterations = 1});
      },
      0, false);
}

BOOST_AUTO_TEST_SUITE_END()
