// Attention of every ISA against plain loops in float64.

#include "support.hpp"

#include <treadle/graph/mask/tiles.hpp>
#include <treadle/graph/scalar/parse.hpp>

#include <functional>

using namespace kernel_test;

namespace {

struct Case {
  Index batch, heads, kv_heads, q_len, k_len, dim, values;
  Index gap = 0;
};

struct Problem {
  explicit Problem(const Case& c, unsigned seed = 1)
      : score(),
        shape(c),
        q({c.batch, c.heads, c.q_len, c.dim}, c.gap),
        k({c.batch, c.kv_heads, c.k_len, c.dim}, c.gap),
        v({c.batch, c.kv_heads, c.k_len, c.values}, c.gap),
        out({c.batch, c.heads, c.q_len, c.values}, c.gap),
        lse({c.batch, c.heads, c.q_len}) {
    q.normal(seed);
    k.normal(seed + 1);
    v.normal(seed + 2);
    out.fill(quiet_nan);
    lse.fill(quiet_nan);
    arguments.q = q.view;
    arguments.k = k.view;
    arguments.v = v.view;
    arguments.out = out.view;
    arguments.lse = lse.view;
    arguments.scale = 1.0f / std::sqrt(static_cast<float>(std::max<Index>(c.dim, 1)));
  }

  using Allowed = std::function<bool(Index b, Index h, Index i, Index j)>;
  void expect(const Allowed& allowed, std::vector<double>& outs, std::vector<double>& lses) {
    const Case& c = shape;
    for (Index b = 0; b < c.batch; ++b)
      for (Index h = 0; h < c.heads; ++h)
        for (Index i = 0; i < c.q_len; ++i) {
          const Index g = h / (c.heads / c.kv_heads);
          std::vector<double> s(static_cast<std::size_t>(c.k_len), -INFINITY),
              o(static_cast<std::size_t>(c.values), 0.0);
          double top = -INFINITY, sum = 0;
          for (Index j = 0; j < c.k_len; ++j) {
            if (!allowed(b, h, i, j)) continue;
            double x = 0;
            for (Index d = 0; d < c.dim; ++d)
              x += static_cast<double>(q.at({b, h, i, d})) * static_cast<double>(k.at({b, g, j, d}));
            x *= static_cast<double>(arguments.scale);
            if (arguments.bias) {
              const auto& t = arguments.bias.strides;
              x += static_cast<double>(arguments.bias.as<float>()[b * t[0] + h * t[1] + i * t[2] + j * t[3]]);
            }
            if (score) x = score(x, h, i, j);
            s[static_cast<std::size_t>(j)] = x;
            top = std::max(top, x);
          }
          for (Index j = 0; j < c.k_len && top > -INFINITY; ++j) {
            const double p = std::exp(s[static_cast<std::size_t>(j)] - top);
            if (p == 0) continue;
            sum += p;
            for (Index e = 0; e < c.values; ++e)
              o[static_cast<std::size_t>(e)] += p * static_cast<double>(v.at({b, g, j, e}));
          }
          const double denominator =
              sum + (arguments.sink ? std::exp(static_cast<double>(arguments.sink.as<float>()[h]) - top) : 0.0);
          for (double x : o) outs.push_back(sum == 0 ? 0 : x / denominator);
          lses.push_back(sum == 0 ? -INFINITY : top + std::log(sum));
        }
  }

  std::function<double(double score, Index h, Index i, Index j)> score;
  Case shape;
  Tensor q, k, v, out, lse;
  kernel::Attention arguments;
};

bool everything(Index, Index, Index, Index) { return true; }

void check(Problem& p, const Problem::Allowed& allowed, double tolerance = 2e-6) {
  std::vector<double> outs, lses;
  p.expect(allowed, outs, lses);
  for (const Table* t : tables()) {
    BOOST_TEST_CONTEXT(t->isa << " q " << p.shape.q_len << " k " << p.shape.k_len << " d " << p.shape.dim << " v "
                              << p.shape.values) {
      for (const auto& form : {t->attention, t->attention_few}) {
        if (form.run == t->attention_few.run && (p.shape.q_len > 4 || p.arguments.bias || p.arguments.score)) continue;
        BOOST_TEST_CONTEXT(form.name) {
          p.out.fill(quiet_nan);
          p.lse.fill(quiet_nan);
          run(form, p.arguments);
          BOOST_TEST(distance(p.out.values(), outs) <= tolerance);
          BOOST_TEST(distance(p.lse.values(), lses) <= 2 * tolerance);
          BOOST_TEST(p.out.intact());
          BOOST_TEST(p.lse.intact());
          const auto whole = p.out.values();
          p.out.fill(quiet_nan);
          run(form, p.arguments, 1);
          BOOST_TEST(same_bits(whole, p.out.values()));
        }
      }
    }
  }
}

/// A mask given as booleans, for all heads.
struct DenseMask {
  std::unique_ptr<bool[]> keep;
  mask::Tiles tiles;

  DenseMask(const Case& c, const std::function<bool(Index, Index)>& f)
      : keep(new bool[static_cast<std::size_t>(c.q_len * c.k_len) + 1]) {
    for (Index i = 0; i < c.q_len; ++i)
      for (Index j = 0; j < c.k_len; ++j) keep[static_cast<std::size_t>(i * c.k_len + j)] = f(i, j);
    const Index shape[] = {1, 1, c.q_len, c.k_len};
    scalar::Extents e;
    e.batch = c.batch;
    e.heads = c.heads;
    e.q_len = c.q_len;
    e.k_len = c.k_len;
    tiles = mask::Tiles({}, -1, e, {}, dense_view(keep.get(), boolean, shape));
  }
};

void check_masked(const Case& c, const std::function<bool(Index, Index)>& f) {
  Problem p(c);
  const DenseMask m(c, f);
  p.arguments.mask = &m.tiles;
  check(p, [&](Index, Index, Index i, Index j) { return f(i, j); });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(attention)

BOOST_AUTO_TEST_CASE(lengths) {
  for (Index n : {0, 1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33, 47, 48, 49, 100})
    for (Index m : {0, 1, 2, 8, 17, 130, 193}) {
      Problem p({1, 2, 1, n, m, 16, 16});
      check(p, everything);
    }
}
BOOST_AUTO_TEST_CASE(sizes) {
  for (Index n : {2, 20})
    for (Index d : {1, 2, 3, 8, 15, 31, 64, 80, 128, 513})
      for (Index e : {1, 5, 64, 129}) {
        Problem p({1, 1, 1, n, 37, d, e, 3});
        check(p, everything);
      }
}
BOOST_AUTO_TEST_CASE(batches_and_groups) {
  for (Index n : {1, 3, 50}) {
    Problem p({2, 6, 2, n, 70, 24, 40, 5});
    check(p, everything);
  }
  Problem none({0, 2, 1, 5, 5, 4, 4});
  check(none, everything);
  Problem no_values({1, 2, 1, 5, 5, 4, 0});
  check(no_values, everything);
}
BOOST_AUTO_TEST_CASE(long_rows) {
  Problem p({1, 1, 1, 64, 2048, 64, 64});
  check(p, everything);
}
BOOST_AUTO_TEST_CASE(masks) {
  for (Index n : {1, 2, 4, 5, 16, 50, 200}) {
    check_masked({1, 2, 1, n, n, 16, 16}, [](Index i, Index j) { return j <= i; });
    check_masked({1, 1, 1, n, n + 7, 16, 16}, [](Index i, Index j) { return j <= i + 7 && j + 20 >= i; });
    check_masked({1, 1, 1, n, n, 16, 16}, [](Index i, Index j) { return (i * 7 + j * 13) % 5 == 0; });
    check_masked({1, 1, 1, n, n, 16, 16}, [](Index i, Index j) { return i % 3 == 0 && j % 2 == 0; });
    check_masked({1, 1, 1, n, n, 16, 16}, [](Index, Index) { return false; });
  }
}
/// Query heads of one key head: with one mask for all, and with one for each.
BOOST_AUTO_TEST_CASE(few_queries_of_many_heads) {
  for (const char* text : {"k <= q + 90 & k % 3 != 1", "(k + h) % 3 != 1 & k > 4 * h"}) {
    const Case c{2, 6, 2, 3, 150, 24, 20};
    Problem p(c);
    scalar::Pool pool;
    scalar::Extents e;
    e.batch = c.batch;
    e.heads = c.heads;
    e.q_len = c.q_len;
    e.k_len = c.k_len;
    const int root = scalar::parse(pool, text).root;  // before the pool is looked at
    const mask::Tiles tiles(pool, root, e);
    p.arguments.mask = &tiles;
    const bool by_head = tiles.depends_on_head();
    for (const Index j : {1, 4})  // seen by none
      for (Index d = 0; d < 20 && !by_head; ++d) p.v.at({0, 0, j, d}) = quiet_nan;
    check(p, [&](Index, Index h, Index i, Index j) {
      return by_head ? (j + h) % 3 != 1 && j > 4 * h : j <= i + 90 && j % 3 != 1;
    });
  }
}
BOOST_AUTO_TEST_CASE(what_is_masked_may_be_anything) {
  const Case c{1, 2, 1, 60, 90, 16, 20};
  Problem p(c);
  const auto causal = [](Index i, Index j) { return j <= i + 1 && j != 7; };
  const DenseMask m(c, causal);
  p.arguments.mask = &m.tiles;
  for (Index d = 0; d < 16; ++d) p.k.at({0, 0, 7, d}) = quiet_nan;
  for (Index e = 0; e < 20; ++e) {
    p.v.at({0, 0, 7, e}) = quiet_nan;
    for (Index j = 61; j < 90; ++j) p.v.at({0, 0, j, e}) = j % 2 ? quiet_nan : infinity;
  }
  check(p, [&](Index, Index, Index i, Index j) { return causal(i, j); });
  for (Index e = 0; e < 20; ++e) p.v.at({0, 0, 40, e}) = quiet_nan;  // seen from row 39 on
  for (const Table* t : tables()) {
    run(t->attention, p.arguments);
    for (Index i = 0; i < 60; ++i) BOOST_TEST(std::isnan(p.out.at({0, 1, i, 3})) == (i >= 39));
  }
}
BOOST_AUTO_TEST_CASE(bias_and_sink) {
  const Case c{2, 4, 2, 35, 150, 16, 16};
  Problem p(c);
  Tensor bias({1, 4, 35, 150}, 2), row({2, 1, 1, 150}), sink({4});
  bias.normal(7);
  row.normal(8);
  sink.normal(9, 3.0f);
  for (Index j = 0; j < 150; ++j) bias.at({0, 1, 3, j}) = -infinity;
  for (Index j = 20; j < 150; ++j) bias.at({0, 2, 5, j}) = -infinity;
  p.arguments.bias = bias.view;
  p.arguments.bias.strides[0] = 0;
  check(p, everything);
  p.arguments.sink = sink.view;
  check(p, everything);
  p.arguments.bias = row.view;
  p.arguments.bias.strides[1] = p.arguments.bias.strides[2] = 0;
  check(p, everything);
  p.arguments.bias = {};
  check(p, everything);
  Problem one({2, 4, 2, 1, 150, 16, 16});
  one.arguments.sink = sink.view;
  check(one, everything);
}
BOOST_AUTO_TEST_CASE(score_function) {
  const Case c{2, 2, 1, 70, 140, 16, 16};
  Problem p(c);
  scalar::Pool pool;
  const auto softcap = scalar::parse(pool, "2 * tanh(score / 2) - 0.01 * abs(q - k) * (h + 1)");
  BOOST_REQUIRE_MESSAGE(softcap, softcap.error.what);
  const scalar::TileProgram program = scalar::compile(pool, softcap.root, {2, 2, 70, 140});
  p.arguments.score = &program;
  p.score = [](double s, Index h, Index i, Index j) {
    return 2 * std::tanh(s / 2) - 0.01 * std::fabs(static_cast<double>(i - j)) * static_cast<double>(h + 1);
  };
  check(p, everything);
  const auto causal = [](Index i, Index j) { return j <= i + 70; };
  const DenseMask m(c, causal);
  p.arguments.mask = &m.tiles;
  Tensor bias({2, 2, 70, 140});
  bias.normal(4);
  p.arguments.bias = bias.view;
  check(p, [&](Index, Index, Index i, Index j) { return causal(i, j); });
}
BOOST_AUTO_TEST_CASE(strides_of_any_layout) {
  // [batch, length, heads, dim] memory seen as [batch, heads, length, dim].
  const Case c{2, 3, 3, 20, 20, 8, 8};
  Problem p(c), turned(c);
  const auto swap = [](TensorView& v) { std::swap(v.shape[1], v.shape[2]), std::swap(v.strides[1], v.strides[2]); };
  Tensor q({2, 20, 3, 8}), out({2, 20, 3, 8});
  swap(q.view);
  swap(out.view);
  for (Index b = 0; b < 2; ++b)
    for (Index h = 0; h < 3; ++h)
      for (Index i = 0; i < 20; ++i)
        for (Index d = 0; d < 8; ++d) q.at({b, h, i, d}) = p.q.at({b, h, i, d});
  for (const Table* t : tables()) {
    run(t->attention, p.arguments);
    turned.arguments = p.arguments;
    turned.arguments.q = q.view;
    turned.arguments.out = out.view;
    run(t->attention, turned.arguments);
    BOOST_TEST(same_bits(p.out.values(), out.values()));
  }
}
BOOST_AUTO_TEST_CASE(score_function_with_a_logarithm) {
  Problem p({1, 2, 1, 37, 70, 16, 16});
  scalar::Pool pool;
  const auto parsed = scalar::parse(pool, "log(score * score + 0.5) - 0.1 * log(abs(q - k) + 1)");
  BOOST_REQUIRE(parsed);
  const scalar::TileProgram program = scalar::compile(pool, parsed.root, {1, 2, 37, 70, 0});
  p.arguments.score = &program;
  p.score = [](double s, Index, Index i, Index j) {
    return std::log(s * s + 0.5) - 0.1 * std::log(std::fabs(static_cast<double>(i - j)) + 1);
  };
  check(p, everything);
}
BOOST_AUTO_TEST_CASE(large_scores) {
  Problem p({1, 1, 1, 40, 300, 32, 32});
  p.q.normal(3, 30.0f);
  check(p, everything, 2e-4);
}

BOOST_AUTO_TEST_SUITE_END()
