// Probes of attention's weights, against plain loops in float64: awkward sizes, gaps in memory, any division of the
// work.

#include "support.hpp"

#include <treadle/graph/mask/tiles.hpp>

using namespace kernel_test;

namespace {

/// Causal attention of the last q_len positions to k_len keys, with a sink, and its log-sum-exp computed here.
struct Problem {
  static constexpr Index batch = 1, heads = 2, dim = 8;
  Index q_len, k_len;
  Tensor q, k, lse, sink, weights, entropy, received;
  std::vector<double> p;  // weights
  std::unique_ptr<bool[]> keep;
  mask::Tiles tiles;

  Problem(Index n, Index m, Index gap)
      : q_len(n),
        k_len(m),
        q({batch, heads, n, dim}, gap),
        k({batch, 1, m, dim}, gap),
        lse({batch, heads, n}),
        sink({heads}),
        weights({batch, heads, n, m}, gap),
        entropy({batch, heads, n}),
        received({batch, heads, m}, gap),
        keep(new bool[static_cast<std::size_t>(n * m) + 1]) {
    q.normal(1);
    k.normal(2);
    sink.normal(3);
    for (Index h = 0; h < heads; ++h)
      for (Index i = 0; i < n; ++i) {
        double sum = 0;
        std::vector<double> s(static_cast<std::size_t>(m), -INFINITY);
        for (Index j = 0; j < m; ++j) {
          keep[static_cast<std::size_t>(i * m + j)] = j <= i + m - n;
          if (j > i + m - n) continue;
          double x = 0;
          for (Index d = 0; d < dim; ++d)
            x += static_cast<double>(q.at({0, h, i, d})) * static_cast<double>(k.at({0, 0, j, d}));
          s[static_cast<std::size_t>(j)] = 0.3 * x;
          sum += std::exp(0.3 * x);
        }
        lse.at({0, h, i}) = static_cast<float>(std::log(sum));
        for (const double x : s)
          p.push_back(sum == 0 ? 0 : std::exp(x) / (sum + std::exp(static_cast<double>(sink.at({h})))));
      }
    const Index shape[] = {1, 1, n, m};
    scalar::Extents e;
    e.batch = batch;
    e.heads = heads;
    e.q_len = n;
    e.k_len = m;
    tiles = mask::Tiles({}, -1, e, {}, dense_view(keep.get(), boolean, shape));
  }

  kernel::AttentionProbe arguments() const {
    kernel::AttentionProbe a;
    a.scores.q = q.view;
    a.scores.k = k.view;
    a.scores.lse = lse.view;
    a.scores.sink = sink.view;
    a.scores.scale = 0.3f;
    a.scores.mask = &tiles;
    return a;
  }
};

void check(const kernel::Kernel<kernel::AttentionProbe>& kernel, const kernel::AttentionProbe& a, Tensor& out,
           const std::vector<double>& want) {
  out.fill(quiet_nan);
  run(kernel, a);
  const auto whole = out.values();
  BOOST_TEST(distance(whole, want) <= 2e-6 * static_cast<double>(1 + a.scores.q.shape[2]));
  BOOST_TEST(out.intact());
  out.fill(quiet_nan);
  run(kernel, a, 1);
  BOOST_TEST(same_bits(whole, out.values()));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(attention_probe)

BOOST_AUTO_TEST_CASE(lengths) {
  for (const Index n : {0, 1, 4, 15, 16, 17, 48, 50})
    for (const Index m : {0, 1, 3, 33, 200}) {
      Problem problem(n, m, n % 3);
      std::vector<double> entropy, received(static_cast<std::size_t>(Problem::heads * m));
      for (Index row = 0; row < Problem::heads * n; ++row) {
        entropy.push_back(0);
        for (Index j = 0; j < m; ++j) {
          const double p = problem.p[static_cast<std::size_t>(row * m + j)];
          if (p > 0) entropy.back() -= p * std::log(p);
          received[static_cast<std::size_t>(row / n * m + j)] += p;
        }
      }
      for (const Table* t : tables()) BOOST_TEST_CONTEXT(t->isa << " q " << n << " k " << m) {
          kernel::AttentionProbe a = problem.arguments();
          a.weights = problem.weights.view;
          check(t->attention_probe, a, problem.weights, problem.p);
          a = problem.arguments();
          a.entropy = problem.entropy.view;
          check(t->attention_probe, a, problem.entropy, entropy);
          a = problem.arguments();
          a.received = problem.received.view;
          check(t->attention_probe, a, problem.received, received);
        }
    }
}

BOOST_AUTO_TEST_CASE(several_at_once) {
  Problem problem(20, 30, 0);
  for (const Table* t : tables()) {
    kernel::AttentionProbe a = problem.arguments();
    a.weights = problem.weights.view;
    a.entropy = problem.entropy.view;
    a.received = problem.received.view;
    run(t->attention_probe, a);
    const auto weights = problem.weights.values(), entropy = problem.entropy.values(),
               received = problem.received.values();
    a = problem.arguments();
    a.entropy = problem.entropy.view;
    run(t->attention_probe, a);
    BOOST_TEST(same_bits(entropy, problem.entropy.values()));
    BOOST_TEST(distance(weights, problem.p) < 1e-5);
    double sum = 0, total = 0;
    for (const float x : weights) sum += static_cast<double>(x);
    for (const float x : received) total += static_cast<double>(x);
    BOOST_TEST(std::fabs(sum - total) < 1e-4);
  }
}

BOOST_AUTO_TEST_SUITE_END()
