// What a query does not see never reaches its row: for every kind of mask, keys, values and biases that hold NaN or
// infinities where the mask drops them change no bit, through score functions too. Rows that see nothing are 0.

#include "support.hpp"

#include <treadle/graph/mask/conventions.hpp>
#include <treadle/graph/scalar/evaluate.hpp>
#include <treadle/graph/scalar/print.hpp>
#include <treadle/ops/rules.hpp>

using namespace treadle;
using namespace treadle::test;

namespace {

constexpr std::int64_t heads = 2, q_len = 37, k_len = 41, width = 5;

const std::vector<Mask>& masks() {
  static const std::vector<Mask> all = {causal,
                                        causal(top_left),
                                        window(3, 0),
                                        window(2, 4, top_left),
                                        window(-1, 3),
                                        strided(3),
                                        dilated(window(12, 0), 4),
                                        causal | prefix(5),
                                        prefix(9),
                                        block_window(8, 1, 0),
                                        window(1, 1) | global_prefix(3),
                                        window(1, 1) | global_tokens({7, 20}),
                                        window(1, 1) | global_tokens("flags"),
                                        documents("ids"),
                                        causal & documents("ids"),
                                        cumulative_lengths("bounds"),
                                        key_lengths("lengths"),
                                        causal & key_lengths("lengths"),
                                        block_table("blocks", 8),
                                        block_list("list", 8, 2),
                                        conventions::hugging_face_sliding_window(4),
                                        conventions::flash_attention_window(2, 2),
                                        !window(20, 20),
                                        prefix(0),
                                        mask_mod([](auto, auto h, auto q, auto k) { return (q - k) % 5 == h; })};
  return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(masked_values)

BOOST_AUTO_TEST_CASE(never_reach_a_row_that_does_not_see_them) {
  const auto cap = score_mod([](auto s, auto, auto, auto q, auto k) { return 2.0 * tanh(s / 2.0) - 0.1 * abs(q - k); });
  const auto additive = score_mod([](auto, auto, auto, auto q, auto k) {
    return sum(q, [&](auto i) { return lookup("weights", i) * tanh(q[i] + k[i]); });
  });
  int untouched = 0, empty = 0;
  for (const Mask& m : masks())
    for (int kind = 0; kind < 4; ++kind) {  // plain, a score function, a bias, a sum over features
      Builder g;
      const Node q = g.input("q", f32, {1, heads, q_len, width}), k = g.input("k", f32, {1, heads, k_len, width}),
                 v = g.input("v", f32, {1, heads, k_len, width});
      g.input("flags", i32, {k_len});
      g.input("ids", i32, {k_len});
      g.input("lengths", i32, {1});
      g.input("bounds", i32, {4});
      g.input("blocks", i32, {5, 6});
      g.input("list", i32, {5, 2});
      g.input("weights", f32, {width});
      AttentionOptions options{.mask = m};
      if (kind == 1) options.score = cap;
      if (kind == 2) options.bias = g.input("bias", f32, {1, 1, q_len, k_len});
      if (kind == 3) options.score = additive;
      const Node y = attention(q, k, v, options);
      g.output("y", y);
      g.output("lse", attention_logsumexp(y));
      const Graph graph = g.finish();
      BOOST_REQUIRE(!graph.error);

      Tensors in = inputs_of(graph, {}, 3);
      const auto table = [&](const char* name) { return in.at(name).view.as<std::int32_t>(); };
      for (int i = 0; i < 4; ++i) table("bounds")[i] = 11 * i;
      table("lengths")[0] = 17;
      std::vector<scalar::Table> tables;
      for (const auto& [name, t] : in) tables.push_back({name, t.view});
      scalar::Evaluator keeps(m.view(), m.root());
      std::vector<char> sees(static_cast<std::size_t>(heads * q_len * k_len));
      const auto poisoned = [](std::int64_t key) { return key % 7 == 2; };
      std::vector<char> clean(static_cast<std::size_t>(heads * q_len), 1), any(clean.size(), 0);
      for (std::int64_t h = 0; h < heads; ++h)
        for (std::int64_t i = 0; i < q_len; ++i)
          for (std::int64_t j = 0; j < k_len; ++j) {
            const bool kept = keeps.holds({.h = h, .q = i, .k = j, .q_len = q_len, .k_len = k_len, .tables = tables});
            sees[static_cast<std::size_t>((h * q_len + i) * k_len + j)] = kept;
            const auto row = static_cast<std::size_t>(h * q_len + i);
            any[row] = any[row] || kept;
            if (kept && poisoned(j)) clean[row] = 0;
          }
      const float bad[] = {NAN, INFINITY, -INFINITY};
      for (const std::string& isa : isas()) {
        BoundModel model(graph, {}, {.backend = "simd", .isa = isa});
        const auto compute = [&](const Tensors& with) {
          const Tensors out = outputs_of(graph, {});
          model.run(named(with), named(out));
          return values(out);
        };
        const Results before = compute(in);
        Tensors spoilt = inputs_of(graph, {}, 3);
        for (const char* name : {"bounds", "lengths"})
          std::memcpy(spoilt.at(name).view.data, in.at(name).view.data,
                      4 * static_cast<std::size_t>(in.at(name).view.size()));
        for (std::int64_t h = 0; h < heads; ++h)
          for (std::int64_t j = 0; j < k_len; ++j)
            for (std::int64_t d = 0; d < width && poisoned(j); ++d) {
              const std::int64_t at = (h * k_len + j) * width + d;
              spoilt.at("k").view.as<float>()[at] = bad[at % 3];
              spoilt.at("v").view.as<float>()[at] = bad[(at + 1) % 3];
            }
        if (kind == 2)
          for (std::int64_t i = 0; i < q_len * k_len; ++i)
            if (poisoned(i % k_len)) spoilt.at("bias").view.as<float>()[i] = bad[i % 3];
        const Results after = compute(spoilt);
        for (std::size_t row = 0; row < clean.size(); ++row) {
          for (std::size_t d = 0; d < width; ++d) {
            const double y0 = before.at("y")[row * width + d], y1 = after.at("y")[row * width + d];
            if (clean[row])
              BOOST_REQUIRE_MESSAGE(y0 == y1, isa << " row " << row << ": " << y1 << ", not " << y0 << " under "
                                                  << scalar::print(m.view(), m.root()));
            if (!any[row]) BOOST_REQUIRE_EQUAL(y1, 0.0);
          }
          if (clean[row]) BOOST_REQUIRE_EQUAL(before.at("lse")[row], after.at("lse")[row]);
          if (!any[row]) BOOST_REQUIRE_EQUAL(after.at("lse")[row], -INFINITY);
          untouched += clean[row] && any[row];
          empty += !any[row];
        }
      }
    }
  const auto each = static_cast<int>(isas().size());  // sanitizer builds have one
  BOOST_TEST(untouched > 350 * each);
  BOOST_TEST(empty > 35 * each);
}

BOOST_AUTO_TEST_CASE(a_window_over_a_hundred_thousand_tokens_is_planned_in_little_memory) {
  Builder g;
  const Node q = g.input("q", f32, {1, 1, seq, 64});
  g.output("y", attention(q, q, q, {.mask = causal & window(255, 0)}));
  g.output("lse", attention_logsumexp(attention(q, q, q, {.mask = window(64, 64) | global_tokens({0})})));
  const Graph graph = g.finish();
  for (const std::string_view backend : {"simd", "tbb"}) {
    BoundModel model(graph, {}, {.backend = backend, .threads = 2});
    model.bind_dims({{"seq", 100'000}});
    // Beyond inputs and outputs, and the copies of them that bad strides would need.
    BOOST_TEST(model.planned_bytes() + model.workspace_bytes() < 100u << 20);
  }
}

BOOST_AUTO_TEST_SUITE_END()
