// Rotary positions and learned scores in softmax attention as kernels compute them against N × M weights from the
// definition, over random sizes, scalings, masks and numbers. TREADLE_RANDOM_ROUNDS sets how many rounds there are.

#include "softmax_weights.hpp"

#include <treadle/ops/score_attention.hpp>

#include <complex>

using namespace treadle;
using namespace treadle::test;

namespace {

/// Each pair of channels times e^(iθ), θ = position · frequency.
Cube turned(Cube x, rope_layout layout, std::int64_t offset, const RotaryFrequencies& f) {
  const auto pairs = static_cast<std::int64_t>(f.values.size());
  for (std::int64_t b = 0; b < x.batch; ++b)
    for (std::int64_t h = 0; h < x.heads; ++h)
      for (std::int64_t i = 0; i < x.rows; ++i)
        for (std::int64_t p = 0; p < pairs; ++p) {
          const std::int64_t first = layout == rope_layout::half ? p : 2 * p,
                             second = layout == rope_layout::half ? p + pairs : 2 * p + 1;
          const std::complex<double> z =
              std::complex<double>(x(b, h, i, first), x(b, h, i, second)) *
              std::polar(f.magnitude, static_cast<double>(offset + i) * f.values[static_cast<std::size_t>(p)]);
          x(b, h, i, first) = z.real();
          x(b, h, i, second) = z.imag();
        }
  return x;
}

/// The three parts of the layers with learned scores: queries and keys of any widths, as one head.
Cube one_head(const Tensors& in, const char* name) {
  const TensorView& v = in.at(name).view;
  Cube c(v.shape[0], 1, v.shape[1], v.shape[2]);
  c.data = values(in.at(name));
  return c;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(scores_properties)

BOOST_AUTO_TEST_CASE(rotary_positions_of_any_scaling) {
  property([](Round& r) {
    Heads x(r, {.head_dim = 2 * r.pick(1, 9)});
    DrawnMask mask(r, x.g, x.batch, x.q_len, x.k_len);
    const auto layout = r.note("interleaved", r.maybe()) ? rope_layout::interleaved : rope_layout::half;
    RotaryAngles a{.base = r.note("base", r.maybe() ? 10000.0 : r.real(2, 1000)),
                   .rotary_dim = r.note("rotary_dim", r.maybe() ? x.head_dim : 2 * r.pick(1, x.head_dim / 2))};
    const std::int64_t offset = r.note("offset", r.maybe() ? 0 : r.pick(1, 3000)),
                       original = r.note("original", r.pick(4, 200)), kind = r.note("scaling", r.pick(0, 5));
    const double factor = r.note("factor", r.real(1, 8));
    const RopeScaling scaling = kind == 1   ? linear_scaling(factor)
                                : kind == 2 ? ntk_scaling(factor)
                                : kind == 3 ? dynamic_ntk_scaling(factor, original, 150)
                                : kind == 4 ? yarn_scaling(factor, original)
                                : kind == 5 ? llama3_scaling(factor, original)
                                            : RopeScaling{};
    const auto scale = x.scale(r);
    const RopeOptions o{
        .base = a.base, .layout = layout, .offset = offset, .rotary_dim = a.rotary_dim, .scaling = scaling};
    x.g.output("y", attention(rope(x.q, o), rope(x.k, o), x.v, {.mask = mask.mask, .scale = scale}));
    const Graph g = x.finish(r);
    Tensors in = inputs_of(g, {}, r.seed());
    mask.draw(r, in, x.k_len, {"k", "v"});
    a.scaling = scaling.kind;
    a.factor = scaling.factor;
    a.original_length = scaling.original_length;
    a.low = scaling.low;
    a.high = scaling.high;
    a.magnitude = scaling.magnitude;
    a.length = kind == 3 ? 150 : 0;
    const RotaryFrequencies f = rotary_frequencies(a);
    const Cube q = turned(cube_of(in, "q"), layout, offset, f), k = turned(cube_of(in, "k"), layout, offset, f);
    const double times = scale.value_or(x.usual_scale());
    const Cube w = softmax_weights(q, x.k_len, mask,
                                   [&](auto b, auto h, auto i, auto j) { return times * dot(q, k, b, h, i, j); });
    expect(r, g, {}, in, {{"y", weigh(w, cube_of(in, "v")).data}});
  });
}

BOOST_AUTO_TEST_CASE(learned_scores) {
  property([](Round& r) {
    const bool additive = r.note("additive", r.maybe());
    const std::int64_t batch = r.note("batch", r.pick(1, 2)), q_len = r.note("q_len", r.length()),
                       k_len = r.note("k_len", r.maybe() ? q_len : r.length()), q_width = r.note("query", r.width()),
                       k_width = r.note("key", r.width()), v_width = r.note("value", r.width()),
                       width = r.note("width", r.width());
    const double times = additive ? 1 : r.note("scale", r.real(0.1, 1.5));
    Builder b;
    const Node query = b.input("q", f32, {batch, q_len, q_width}), keys = b.input("k", f32, {batch, k_len, k_width}),
               v = b.input("v", f32, {batch, k_len, v_width});
    DrawnMask mask(r, b, batch, q_len, k_len);
    b.output("y", additive ? additive_attention("a", query, keys, v, {.width = width, .mask = mask.mask})
                           : bilinear_attention("a", query, keys, v, {.mask = mask.mask, .scale = times}));
    const Graph g = b.finish();
    BOOST_REQUIRE_MESSAGE(!g.error, r.notes() << ": " << mistake_of(g));
    const Parameters parameters = Parameters::random(g, r.seed());
    Tensors in = inputs_of(g, {}, r.seed());
    mask.draw(r, in, k_len, {"k", "v"});
    Cube q = one_head(in, "q");
    const Cube k = plain_projection(one_head(in, "k"), parameters, "a.key", 1);
    std::vector<double> weight;
    if (additive) {
      q = plain_projection(q, parameters, "a.query", 1);
      const TensorView t = parameters.find("a.score.weight");
      weight.assign(t.as<const float>(), t.as<const float>() + width);
    }
    const Cube w = softmax_weights(q, k_len, mask, [&](auto e, auto h, auto i, auto j) {
      if (!additive) return times * dot(q, k, e, h, i, j);
      double sum = 0;
      for (std::int64_t c = 0; c < width; ++c)
        sum += weight[static_cast<std::size_t>(c)] * std::tanh(q(e, 0, i, c) + k(e, 0, j, c));
      return sum;
    });
    expect(r, g, parameters, in, {{"y", weigh(w, one_head(in, "v")).data}});
  });
}

BOOST_AUTO_TEST_SUITE_END()
