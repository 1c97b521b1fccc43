// The property of attention: whatever the shape, the mask and the score function, the vector kernels give what the
// float64 formula gives, which is built from the same expressions. TREADLE_RANDOM_ROUNDS sets how many there are.

#include "support.hpp"

#include <rounds.hpp>

#include <treadle/graph/scalar/parse.hpp>
#include <treadle/graph/scalar/print.hpp>
#include <treadle/ops/rules.hpp>

#include <random>

using namespace treadle;
using namespace treadle::test;

namespace {

class Maker {
 public:
  explicit Maker(unsigned seed) : random_(seed) {}

  int pick(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }

  /// Text of a number: what people write into score functions, nested.
  std::string number(int depth) {
    if (depth == 0) {
      static constexpr const char* leaves[] = {"score",
                                               "score",
                                               "score",
                                               "0.5",
                                               "-0.25",
                                               "number(q - k)",
                                               "number(h)",
                                               "lookup(\"slopes\", h)",
                                               "lookup(\"table\", h, k)",
                                               "sum(q[i] * k[i])"};
      return leaves[pick(sums_ ? 10 : 9)];
    }
    const std::string a = number(depth - 1);
    switch (pick(13)) {
      case 0: return "2.0 * tanh(" + a + " / 2.0)";
      case 1: return "min(" + a + ", 3.0)";
      case 2: return "max(" + a + ", " + number(depth - 1) + ")";
      case 3: return "where(" + condition() + ", " + a + ", " + number(depth - 1) + ")";
      case 4: return "sigmoid(" + a + ")";
      case 5: return "log(abs(" + a + ") + 1.0)";
      case 6: return "sqrt(abs(" + a + ") + 0.25)";
      case 7: return "exp(min(" + a + ", 1.0))";
      case 8: return "(" + a + " - 0.1 * abs(q - k))";
      case 9: return "(" + a + " - lookup(\"slopes\", h) * abs(q - k))";
      case 10: return sums_ ? sum() : "floor(4.0 * number(q) / 3.0) * 0.125";
      default: return "(" + a + " + " + number(depth - 1) + " * 0.5)";
    }
  }

  Mask mask(int depth) {
    if (depth > 0) {
      const Mask a = mask(depth - 1);
      switch (pick(4)) {
        case 0: return !a;
        case 1: return a | mask(depth - 1);
        default: return a & mask(depth - 1);
      }
    }
    const auto alignment = pick(2) ? top_left : bottom_right;
    switch (pick(11)) {
      case 0: return causal(alignment);
      case 1: return window(pick(12) - 1, pick(12) - 1, alignment);
      case 2: return strided(1 + pick(4), alignment);
      case 3: return prefix(pick(20));
      case 4: return documents("ids");
      case 5: return key_lengths("lengths");
      case 6: return block_window(1 + pick(9), pick(3) - 1, pick(3) - 1, alignment);
      case 7: return global_tokens({0, pick(30)}, pick(2) != 0);
      case 8: return cumulative_lengths("bounds");
      case 9: return mask_mod([](auto, auto h, auto q, auto k) { return (q + k) % (h + 2) == 0; });
      default: return global_prefix(pick(9), pick(2) != 0);
    }
  }

  /// Not of the score: a float32 and a float64 number may lie on either side of a threshold.
  std::string condition() {
    static constexpr const char* conditions[] = {"k <= q", "(q - k) % 2 == 0", "h == 0 | k < 5", "!(q < k) & b == 0",
                                                 "abs(q - k) < 7"};
    return conditions[pick(5)];
  }

  void allow_sums(bool yes) { sums_ = yes; }

 private:
  std::string sum() {
    static constexpr const char* sums[] = {"sum(lookup(\"weights\", i) * tanh(q[i] + k[i]))",
                                           "sum(abs(q[i] - k[i])) * -0.5", "sum(where(i % 2 == 0, q[i] * k[i], 0.0))",
                                           "sum(max(q[i], k[i])) * 0.25", "sum(k[i] * k[i]) * 0.125"};
    return sums[pick(5)];
  }
  std::mt19937 random_;
  bool sums_ = false;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(attention_properties)

BOOST_AUTO_TEST_CASE(random_masks_and_scores_agree_with_the_dense_formula) {
  const std::vector<std::string> all = isas();
  for (int round = 0; round < random_rounds(2000); ++round) {
    Maker make(static_cast<unsigned>(round));
    const std::int64_t kv_heads = 1 + make.pick(2), heads = kv_heads * (1 + make.pick(2)), width = 1 + make.pick(9),
                       value_dim = 1 + make.pick(9), q_len = make.pick(24),
                       k_len = make.pick(4) ? q_len + make.pick(17) : make.pick(40);
    Builder g;
    const Node q = g.input("q", f32, {2, heads, q_len, width}), k = g.input("k", f32, {2, kv_heads, k_len, width}),
               v = g.input("v", f32, {2, kv_heads, k_len, value_dim});
    g.input("slopes", f32, {heads});
    g.input("table", f32, {heads, k_len});
    g.input("weights", f32, {width});
    g.input("ids", i32, {k_len});
    g.input("lengths", i32, {2});
    g.input("bounds", i32, {5});
    AttentionOptions options;
    if (make.pick(4) != 0) options.mask = make.mask(make.pick(3));
    make.allow_sums(make.pick(2) != 0);
    std::string text = "none";
    if (make.pick(5) != 0) {
      scalar::Pool pool;
      text = make.number(make.pick(4));
      if (make.pick(6) == 0) text = "where(" + make.condition() + ", " + text + ", -inf)";
      const scalar::Parsed parsed = scalar::parse(pool, text, scalar::Type::number);
      BOOST_REQUIRE_MESSAGE(parsed, text << ": " << parsed.error.what);
      scalar::Pool small;
      const int root = scalar::import(small, pool, parsed.root);
      if (root >= scalar::Function::max_nodes) continue;
      options.score = scalar::Function(small, root);
    }
    if (make.pick(3) == 0) options.scale = 0.3;
    if (make.pick(3) == 0) options.bias = g.input("bias", f32, {2, 1, q_len, k_len});
    const Node y = attention(q, k, v, options);
    g.output("y", y);
    g.output("lse", attention_logsumexp(y));
    const Graph graph = g.finish();
    BOOST_REQUIRE_MESSAGE(!graph.error, text);

    Tensors given = inputs_of(graph, {}, static_cast<std::uint64_t>(round));
    auto* bounds = given.at("bounds").view.as<std::int32_t>();
    for (int i = 0; i < 5; ++i) bounds[i] = i == 0 ? 0 : bounds[i - 1] + make.pick(12);
    const auto compute = [&](const BindOptions& how, DType type) {
      BoundModel model(graph, {}, how);
      const Tensors results = outputs_of(graph, {}, false, type);
      model.run(named(given), named(results));
      return values(results);
    };
    const Results want = compute({.backend = "reference", .float64 = true}, f64);
    const std::string& isa = all[static_cast<std::size_t>(round) % all.size()];
    const Results got = compute({.backend = "simd", .isa = isa}, f32);
    for (const char* name : {"y", "lse"}) {
      const std::vector<double>&a = got.at(name), &b = want.at(name);
      for (std::size_t i = 0; i < a.size(); ++i)
        BOOST_REQUIRE_MESSAGE(
            a[i] == b[i] || std::fabs(a[i] - b[i]) <= 1e-4 * (1 + std::fabs(b[i])),
            "round " << round << ", " << isa << ", " << name << " " << i << ": " << a[i] << ", not " << b[i]
                     << "; score " << text << "; mask "
                     << (options.mask ? scalar::print(options.mask->view(), options.mask->root()) : "none"));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
