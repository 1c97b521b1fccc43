// Why scores are divided by √d_k.

#include "chapter.hpp"
#include "dot_product.hpp"

#include <fmt/format.h>

#include <cmath>

namespace textbook {
namespace {

using namespace treadle;

constexpr std::int64_t draws = 200'000, draw_width = 16;

/// One product q·k for each draw.
Graph products() {
  Builder g;
  const Node q = g.input("q", f32, {draws, 1, draw_width}), k = g.input("k", f32, {draws, 1, draw_width});
  const Node p = matmul(q, transpose(k));
  g.output("products", p);
  g.output("scaled", scale(p, 1 / std::sqrt(static_cast<double>(draw_width))));
  return g.finish();
}

struct Moments {
  double mean = 0, variance = 0;
};
Moments moments(const Numbers& numbers) {
  Moments m;
  for (const float x : numbers) m.mean += static_cast<double>(x);
  m.mean /= static_cast<double>(numbers.size());
  for (const float x : numbers) m.variance += std::pow(static_cast<double>(x) - m.mean, 2);
  m.variance /= static_cast<double>(numbers.size() - 1);
  return m;
}

constexpr std::int64_t queries = 64, keys = 256;

/// Means over the rows of the weights.
struct Rows {
  double entropy = 0, largest = 0;
};
Rows rows(const Numbers& weights) {
  Rows r;
  for (std::int64_t i = 0; i < queries; ++i) {
    double most = 0;
    for (const float w : row(weights, i, keys)) {
      const double p = static_cast<double>(w);
      if (p > 0) r.entropy -= p * std::log(p);
      most = std::max(most, p);
    }
    r.largest += most;
  }
  r.entropy /= queries;
  r.largest /= queries;
  return r;
}

void write(Page& page, const Target& target) {
  const std::size_t count = draws * draw_width;
  const Tensors p = run(target, products(), {{"q", normal(count, 11)}, {"k", normal(count, 12)}});
  const Moments raw = moments(p.at("products")), scaled = moments(p.at("scaled"));
  page.close("mean of q·k, d_k = 16", raw.mean, 0, 0.05, 3);
  page.close("variance of q·k, d_k = 16 (2 %)", raw.variance, 16, 0.02 * 16, 3);
  page.close("variance of q·k / √16 (2 %)", scaled.variance, 1, 0.02, 4);

  // Normal scores of variance 1 over n keys have the entropy ln n − 1/2 for large n.
  const double expected = std::log(static_cast<double>(keys)) - 0.5;
  std::string figure = fmt::format("  {:>6}  {:>22}  {:>22}\n  {:>6}  {:>11}{:>11}  {:>11}{:>11}", "", "scores / √d_k",
                                   "scores as they are", "d_k", "entropy", "largest", "entropy", "largest");
  double before = INFINITY, last = 0;
  std::int64_t falls = 0;
  for (const std::int64_t width : {4, 16, 64, 256, 1024}) {
    const Tensors in{{"q", normal(static_cast<std::size_t>(queries * width), 21)},
                     {"k", normal(static_cast<std::size_t>(keys * width), 22)},
                     {"v", Numbers(keys, 0.0f)}};
    const auto weights_with = [&](double factor) {
      return run(target, dot_product({.queries = queries, .keys = keys, .width = width, .scale = factor}), in)
          .at("weights");
    };
    const Rows with = rows(weights_with(1 / std::sqrt(static_cast<double>(width)))), without = rows(weights_with(1));
    figure += fmt::format("\n  {:>6}  {:>11.3f}{:>11.3f}  {:>11.3f}{:>11.3f}", width, with.entropy, with.largest,
                          without.entropy, without.largest);
    page.close(fmt::format("d_k = {}: entropy with the scale", width), with.entropy, expected, 0.15, 3);
    falls += without.entropy < before;
    before = last = without.entropy;
  }
  page.figure("  Rows of softmax over 256 keys, means of 64: entropy in nats (ln 256 = 5.545), largest weight\n" +
              figure);
  page.count("entropies without the scale that fall, of 5", falls, 5);
  page.at_most("d_k = 1024: entropy without the scale", last, 0.5, 3);
  page.note(
      "q·k has variance d_k, so that a softmax without the scale becomes a choice of one key as d_k grows: its\n"
      "entropy and its gradients go to 0. With the scale the entropy stays near ln n − 1/2 at every d_k.");
}

}  // namespace

const Chapter chapter::variance = {
    "variance", "Why scores are divided by √d_k",
    "Var(q·k) = d_k for independent q_i, k_i of mean 0 and variance 1; Var(q·k / √d_k) = 1\n"
    "H(w) = −Σ_j w_j ln w_j; 200,000 seeded normal draws, then 64 queries over 256 keys",
    "Vaswani et al. 2017, §3.2.1 and footnote 4", write};

}  // namespace textbook
