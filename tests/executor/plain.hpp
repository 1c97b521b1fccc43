#pragma once
// Plain formulas in double, by loops over the definition: what composed attentions are compared with.

#include "op_check.hpp"

#include <functional>
#include <limits>

namespace treadle::test {

/// [batch, heads, rows, columns].
struct Cube {
  std::int64_t batch = 0, heads = 0, rows = 0, columns = 0;
  std::vector<double> data;

  Cube() = default;
  Cube(std::int64_t b, std::int64_t h, std::int64_t r, std::int64_t c)
      : batch(b), heads(h), rows(r), columns(c), data(static_cast<std::size_t>(b * h * r * c)) {}
  double& operator()(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) {
    return data[static_cast<std::size_t>(((b * heads + h) * rows + i) * columns + c)];
  }
  double operator()(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) const {
    return data[static_cast<std::size_t>(((b * heads + h) * rows + i) * columns + c)];
  }
};

/// An input of rank 4, as runs with this seed see it.
inline Cube cube_of(const Tensors& inputs, const std::string& name) {
  const TensorView& v = inputs.at(name).view;
  Cube c(v.shape[0], v.shape[1], v.shape[2], v.shape[3]);
  c.data = values(inputs.at(name));
  return c;
}

/// A key that a query sees: where its row and value are, and what is added to its score.
struct Seen {
  const Cube *keys = nullptr, *values = nullptr;
  std::int64_t row = 0;
  double score = 0;
};
/// Softmax over what each query sees, one query at a time; 0 where that is nothing.
inline Cube plain_attention(
    const Cube& q, std::int64_t value_dim, double scale,
    const std::function<std::vector<Seen>(std::int64_t b, std::int64_t h, std::int64_t i)>& seen) {
  Cube out(q.batch, q.heads, q.rows, value_dim);
  for (std::int64_t b = 0; b < q.batch; ++b)
    for (std::int64_t h = 0; h < q.heads; ++h)
      for (std::int64_t i = 0; i < q.rows; ++i) {
        const std::vector<Seen> keys = seen(b, h, i);
        std::vector<double> scores;
        double most = -std::numeric_limits<double>::infinity(), sum = 0;
        for (const Seen& s : keys) {
          const std::int64_t head = h / (q.heads / s.keys->heads);
          double dot = 0;
          for (std::int64_t c = 0; c < q.columns; ++c) dot += q(b, h, i, c) * (*s.keys)(b, head, s.row, c);
          scores.push_back(scale * dot + s.score);
          most = std::max(most, scores.back());
        }
        for (double& s : scores) sum += s = std::exp(s - most);
        for (std::size_t j = 0; j < keys.size(); ++j) {
          const std::int64_t head = h / (q.heads / keys[j].values->heads);
          for (std::int64_t c = 0; c < value_dim; ++c)
            out(b, h, i, c) += scores[j] / sum * (*keys[j].values)(b, head, keys[j].row, c);
        }
      }
  return out;
}
/// The same over the keys that `keep` says.
inline Cube plain_attention(
    const Cube& q, const Cube& k, const Cube& v, double scale,
    const std::function<bool(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j)>& keep) {
  return plain_attention(q, v.columns, scale, [&](std::int64_t b, std::int64_t h, std::int64_t i) {
    std::vector<Seen> s;
    for (std::int64_t j = 0; j < k.rows; ++j)
      if (keep(b, h, i, j)) s.push_back({&k, &v, j, 0});
    return s;
  });
}

/// The mean (or largest) of each run of `each` rows.
inline Cube plain_runs(const Cube& x, std::int64_t each, bool largest = false) {
  Cube out(x.batch, x.heads, (x.rows + each - 1) / each, x.columns);
  for (std::int64_t b = 0; b < x.batch; ++b)
    for (std::int64_t h = 0; h < x.heads; ++h)
      for (std::int64_t r = 0; r < out.rows; ++r)
        for (std::int64_t c = 0; c < x.columns; ++c) {
          const std::int64_t end = std::min(x.rows, (r + 1) * each);
          double value = largest ? -std::numeric_limits<double>::infinity() : 0;
          for (std::int64_t i = r * each; i < end; ++i)
            value = largest ? std::max(value, x(b, h, i, c)) : value + x(b, h, i, c);
          out(b, h, r, c) = largest ? value : value / static_cast<double>(end - r * each);
        }
  return out;
}

/// a · b, matrix by matrix.
inline Cube plain_product(const Cube& a, const Cube& b) {
  Cube out(a.batch, a.heads, a.rows, b.columns);
  for (std::int64_t e = 0; e < a.batch; ++e)
    for (std::int64_t h = 0; h < a.heads; ++h)
      for (std::int64_t i = 0; i < a.rows; ++i)
        for (std::int64_t j = 0; j < a.columns; ++j)
          for (std::int64_t c = 0; c < b.columns; ++c) out(e, h, i, c) += a(e, h, i, j) * b(e, h, j, c);
  return out;
}

/// The graph's one output "y" against the plain formula in float64, and every backend and ISA against float64.
inline void check_plain(const Graph& g, const Lengths& dims, const Cube& want, double tolerance = 1e-5,
                        const Parameters* given = nullptr) {
  BOOST_REQUIRE_MESSAGE(!g.error, "the graph has a mistake");
  const Parameters parameters = given != nullptr ? *given : Parameters::random(g, 5, values_of(dims));
  BOOST_TEST(difference(oracle(g, parameters, dims, 21), {{"y", want.data}}) < 1e-9);
  check(g, dims, tolerance);
}

/// What the first mistake of a graph says: what was got and what would be right.
inline std::string mistake_of(const Graph& g) {
  if (!g.error) return "none";
  return std::string(g.strings[g.error.got]) + "; " + std::string(g.strings[g.error.expected]);
}

}  // namespace treadle::test
