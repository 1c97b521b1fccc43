// Softmax attention with sinks, biases, relative biases and ALiBi, and probes of its weights, as kernels compute them
// against N × M weights from the definition, over random sizes, masks and numbers. TREADLE_RANDOM_ROUNDS sets how many
// rounds there are.

#include "softmax_weights.hpp"

#include <treadle/ops/attention_probe.hpp>
#include <treadle/ops/relative_bias.hpp>

using namespace treadle;
using namespace treadle::test;

BOOST_AUTO_TEST_SUITE(softmax_properties)

BOOST_AUTO_TEST_CASE(sinks_biases_and_probes) {
  property([](Round& r) {
    Heads x(r, {});
    DrawnMask mask(r, x.g, x.batch, x.q_len, x.k_len);
    const bool sink = r.note("sink", r.maybe()), bias = r.note("bias", r.maybe());
    const std::int64_t most = r.note("top", r.pick(1, 6));
    const auto scale = x.scale(r);
    AttentionOptions o{.mask = mask.mask, .scale = scale};
    if (sink) o.sink = x.g.input("sink", f32, {x.heads});
    if (bias) o.bias = x.g.input("bias", f32, {1, x.heads, x.q_len, x.k_len});
    const Node y = attention(x.q, x.k, x.v, o);
    x.g.output("y", y);
    x.g.output("weights", attention_weights(y));
    x.g.output("entropy", attention_entropy(y));
    x.g.output("received", attention_column_sums(y));
    const AttentionTopK top = attention_top_k(y, most);
    x.g.output("indices", top.indices);
    x.g.output("largest", top.weights);
    const Graph g = x.finish(r);
    Tensors in = inputs_of(g, {}, r.seed());
    mask.draw(r, in, x.k_len, {"k", "v"});
    const Cube q = cube_of(in, "q"), k = cube_of(in, "k"), of_bias = bias ? cube_of(in, "bias") : Cube();
    const double factor = scale.value_or(x.usual_scale());
    const Cube w = softmax_weights(
        q, x.k_len, mask,
        [&](auto b, auto h, auto i, auto j) {
          return factor * dot(q, k, b, h, i, j) + (bias ? of_bias(0, h, i, j) : 0);
        },
        sink ? values(in.at("sink")) : std::vector<double>());

    Cube received(x.batch, x.heads, 1, x.k_len), entropy(x.batch, x.heads, x.q_len, 1),
        largest(x.batch, x.heads, x.q_len, most), indices = largest;
    std::vector<bool> close(indices.data.size());
    for (std::int64_t b = 0; b < x.batch; ++b)
      for (std::int64_t h = 0; h < x.heads; ++h)
        for (std::int64_t i = 0; i < x.q_len; ++i) {
          std::vector<std::pair<double, std::int64_t>> order;
          for (std::int64_t j = 0; j < x.k_len; ++j) {
            const double p = w(b, h, i, j);
            received(b, h, 0, j) += p;
            if (p > 0) entropy(b, h, i, 0) -= p * std::log(p);
            if (mask.keep(b, i, j)) order.emplace_back(-p, j);
          }
          std::sort(order.begin(), order.end());
          for (std::size_t at = 0; at < static_cast<std::size_t>(most); ++at) {
            const auto place = static_cast<std::int64_t>(at);
            if (at >= order.size()) {
              indices(b, h, i, place) = -1;
              continue;
            }
            largest(b, h, i, place) = -order[at].first;
            indices(b, h, i, place) = static_cast<double>(order[at].second);
            const auto lead = [&](std::size_t a) {
              return a + 1 < order.size() ? (order[a].first - order[a + 1].first) / order[a].first : INFINITY;
            };
            close[static_cast<std::size_t>(((b * x.heads + h) * x.q_len + i) * most + place)] =
                lead(at) < 1e-5 || (at > 0 && lead(at - 1) < 1e-5);
          }
        }
    const Results got = expect(r, g, {}, in,
                               {{"y", weigh(w, cube_of(in, "v")).data},
                                {"weights", w.data},
                                {"entropy", entropy.data},
                                {"received", received.data},
                                {"largest", largest.data}});
    near(r, "indices", got.at("indices"), indices.data, [&](std::size_t i) { return !close[i]; });
  });
}

BOOST_AUTO_TEST_CASE(biases_of_distances) {
  property([](Round& r) {
    Heads x(r, {});
    DrawnMask mask(r, x.g, x.batch, x.q_len, x.k_len);
    const std::int64_t kind = r.note("kind", r.pick(0, 2));  // T5, ALiBi, ALiBi with slopes of one's own
    const bool both = r.note("bidirectional", r.maybe()), top_left = r.note("top left", r.maybe());
    const std::int64_t buckets = r.note("buckets", 4 * r.pick(1, 8)), far = r.note("far", buckets / 2 + r.pick(1, 60));
    const auto scale = x.scale(r);
    const auto alignment = top_left ? mask::Alignment::top_left : mask::Alignment::bottom_right;
    AttentionOptions o{.mask = mask.mask, .scale = scale};
    Node table;
    if (kind == 0) {
      table = x.g.input("table", f32, {1, 1, buckets, x.heads});
      o.bias = relative_bias(reshape(table, {buckets, x.heads}), x.q_len, x.k_len,
                             {.max_distance = far, .bidirectional = both, .top_left = top_left});
    } else if (kind == 1) {
      o.score = alibi(x.heads, alignment);
    } else {
      x.g.input("slopes", f32, {x.heads});
      o.score = alibi("slopes", alignment);
    }
    x.g.output("y", attention(x.q, x.k, x.v, o));
    const Graph g = x.finish(r);
    Tensors in = inputs_of(g, {}, r.seed());
    mask.draw(r, in, x.k_len, {"k", "v"});
    const Cube q = cube_of(in, "q"), k = cube_of(in, "k"), of_table = kind == 0 ? cube_of(in, "table") : Cube();
    const std::vector<double> slopes = kind == 0   ? std::vector<double>()
                                       : kind == 1 ? alibi_slopes(x.heads)
                                                   : values(in.at("slopes"));
    const std::int64_t shift = top_left ? 0 : x.k_len - x.q_len;
    const double factor = scale.value_or(x.usual_scale());
    const Cube w = softmax_weights(q, x.k_len, mask, [&](auto b, auto h, auto i, auto j) {
      const std::int64_t away = j - i - shift;
      const double added =
          kind == 0
              ? of_table(0, 0,
                         relative_bucket(away, {.num_buckets = buckets, .max_distance = far, .bidirectional = both}), h)
              : -slopes[static_cast<std::size_t>(h)] * static_cast<double>(std::abs(away));
      return factor * dot(q, k, b, h, i, j) + added;
    });
    expect(r, g, {}, in, {{"y", weigh(w, cube_of(in, "v")).data}});
  });
}

BOOST_AUTO_TEST_SUITE_END()
