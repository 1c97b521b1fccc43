// An output is a mixture of the values: weights that are not negative and sum to 1.

#include "chapter.hpp"
#include "dot_product.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace textbook {
namespace {

using namespace treadle;

constexpr std::int64_t heads_of = 2, length = 33, width = 16;

double largest_distance_of_row_sums_from_one(const Numbers& weights) {
  double largest = 0;
  for (std::int64_t i = 0; i < heads_of * length; ++i) {
    double sum = 0;
    for (const float w : row(weights, i, length)) sum += static_cast<double>(w);
    largest = std::max(largest, std::abs(sum - 1));
  }
  return largest;
}

std::int64_t negative(const Numbers& weights) {
  return std::count_if(weights.begin(), weights.end(), [](float w) { return !(w >= 0); });
}

/// How far a coordinate of the outputs leaves the range of that coordinate over the values of its head.
double largest_excess(const Numbers& out, const Numbers& v) {
  double largest = 0;
  for (std::int64_t h = 0; h < heads_of; ++h) {
    for (std::int64_t d = 0; d < width; ++d) {
      const auto at = [&](const Numbers& numbers, std::int64_t i) {
        return static_cast<double>(numbers[static_cast<std::size_t>((h * length + i) * width + d)]);
      };
      double low = at(v, 0), high = low;
      for (std::int64_t i = 1; i < length; ++i) {
        low = std::min(low, at(v, i));
        high = std::max(high, at(v, i));
      }
      for (std::int64_t i = 0; i < length; ++i) largest = std::max({largest, low - at(out, i), at(out, i) - high});
    }
  }
  return largest;
}

/// Weights above the diagonal of which a bit is set, and weights elsewhere that are 0.
struct Triangle {
  std::int64_t set_above = 0, zero_elsewhere = 0;
};
Triangle triangle(const Numbers& weights) {
  Triangle t;
  for (std::int64_t i = 0; i < heads_of * length; ++i) {
    const auto r = row(weights, i, length);
    for (std::int64_t j = 0; j < length; ++j) {
      const float w = r[static_cast<std::size_t>(j)];
      if (j > i % length)
        t.set_above += std::bit_cast<std::uint32_t>(w) != 0;  // −0 would count too
      else
        t.zero_elsewhere += w == 0;
    }
  }
  return t;
}

void write(Page& page, const Target& target) {
  const std::size_t count = heads_of * length * width;
  Tensors in{{"q", normal(count, 1)}, {"k", normal(count, 2)}, {"v", normal(count, 3)}};
  const DotProduct shape{.heads = heads_of,
                         .queries = length,
                         .keys = length,
                         .width = width,
                         .value_width = width,
                         .scale = 1 / std::sqrt(static_cast<double>(width))};
  // The attention node has no output of weights; over V = I its output is its weights.
  DotProduct over_identity = shape;
  over_identity.value_width = length;
  Tensors in_identity = in;
  in_identity["v"] = identity(length, heads_of);

  const Tensors r = run(target, dot_product(shape), in);
  const Numbers fused = run(target, dot_product(over_identity), in_identity).at("out");
  page.rounding("|row sum of weights − 1|, softmax", largest_distance_of_row_sums_from_one(r.at("weights")), 1e-6);
  page.rounding("|row sum of weights − 1|, attention node", largest_distance_of_row_sums_from_one(fused), 1e-6);
  page.count("weights that are negative, softmax", negative(r.at("weights")), 0);
  page.count("weights that are negative, attention node", negative(fused), 0);
  page.rounding("|weights of the two|", largest_difference(r.at("weights"), fused), 1e-6);
  page.rounding("|output − weights · V|", largest_difference(r.at("out"), r.at("written_out")), 1e-6);
  page.rounding("how far an output leaves the box around V", largest_excess(r.at("out"), in["v"]), 1e-6);

  DotProduct causal_shape = shape;
  causal_shape.causal = over_identity.causal = true;
  const Tensors c = run(target, dot_product(causal_shape), in);
  const Numbers causal_fused = run(target, dot_product(over_identity), in_identity).at("out");
  const Triangle written = triangle(c.at("weights")), node = triangle(causal_fused);
  page.count("causal: weights above the diagonal with a bit set", written.set_above, 0);
  page.count("causal: the same, attention node", node.set_above, 0);
  page.count("causal: weights elsewhere that are 0", written.zero_elsewhere + node.zero_elsewhere, 0);
  page.rounding("causal: |row sum of weights − 1|", largest_distance_of_row_sums_from_one(c.at("weights")), 1e-6);
  page.rounding("causal: how far an output leaves the box", largest_excess(c.at("out"), in["v"]), 1e-6);
  page.note(
      "weights that are not negative and sum to 1, with output = weights · V, are what it means that an output\n"
      "lies in the convex hull of V; the box is what follows for every coordinate alone.");
}

}  // namespace

const Chapter chapter::mixtures = {"mixtures", "Outputs are mixtures of values",
                                   "33 random tokens, 2 heads of width 16\n"
                                   "Σ_j w_ij = 1, w_ij >= 0, output_i = Σ_j w_ij v_j; causal: w_ij = 0 for j > i",
                                   "Vaswani et al. 2017, eq. 1 and §3.2.3", write};

}  // namespace textbook
