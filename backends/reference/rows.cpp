#include <treadle/backends/reference/rows.hpp>

#include <treadle/backends/dim_values.hpp>
#include <treadle/backends/error.hpp>
#include <treadle/backends/random_fill.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

namespace treadle::reference {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

std::string text_of(const TensorView& v) {
  return shape_text(std::span<const std::int64_t>(v.shape.data(), static_cast<std::size_t>(v.rank)));
}

void check(const TensorView& q, const TensorView& k, const TensorView& v) {
  for (const TensorView* t : {&q, &k, &v})
    if (t->rank != 4 || t->dtype != DType::f32)
      throw Error("attention takes f32 tensors [batch, heads, length, dim], not " + std::string(name(t->dtype)) + " " +
                  text_of(*t));
  const bool lengths =
      k.shape[0] == q.shape[0] && v.shape[0] == q.shape[0] && k.shape[1] == v.shape[1] && k.shape[2] == v.shape[2];
  if (!lengths || k.shape[3] != q.shape[3] || k.shape[1] < 1 || q.shape[1] % k.shape[1] != 0)
    throw Error("q " + text_of(q) + ", k " + text_of(k) + " and v " + text_of(v) +
                " do not fit: q [B, H, N, D], k [B, Hkv, M, D], v [B, Hkv, M, Dv] with H a multiple of Hkv");
}

/// Keys (transposed: [D, M], so that the sum over D adds whole rows) and values ([M, Dv]) of one key head, in double.
struct Head {
  std::int64_t batch = -1, head = -1;
  std::vector<double> keys, values;

  void load(const TensorView& k, const TensorView& v, std::int64_t b, std::int64_t h) {
    if (b == batch && h == head) return;
    batch = b;
    head = h;
    const std::int64_t length = k.shape[2], dim = k.shape[3], value_dim = v.shape[3];
    keys.resize(static_cast<std::size_t>(length * dim));
    values.resize(static_cast<std::size_t>(length * value_dim));
    const float* from_k = k.as<const float>() + b * k.strides[0] + h * k.strides[1];
    const float* from_v = v.as<const float>() + b * v.strides[0] + h * v.strides[1];
    for (std::int64_t j = 0; j < length; ++j) {
      for (std::int64_t d = 0; d < dim; ++d)
        keys[static_cast<std::size_t>(d * length + j)] = from_k[j * k.strides[2] + d * k.strides[3]];
      for (std::int64_t d = 0; d < value_dim; ++d)
        values[static_cast<std::size_t>(j * value_dim + d)] = from_v[j * v.strides[2] + d * v.strides[3]];
    }
  }
};

constexpr std::int64_t together = 4;  ///< rows of one head that share each look at the keys
constexpr std::int64_t chunk = 256;   ///< keys whose scores stay in the first-level cache

/// scores[r][j] = scale · q_r·k_j for keys [begin, end) of up to `together` rows of one head.
void score_rows(const TensorView& q, const Head& head, std::int64_t length, double scale, std::span<const Row> rows,
                std::int64_t begin, std::int64_t end, std::vector<double>& scores) {
  const std::int64_t dim = q.shape[3];
  std::array<const float*, together> query{};
  for (std::size_t r = 0; r < static_cast<std::size_t>(together); ++r) {
    const Row& row = rows[std::min(r, rows.size() - 1)];  // missing rows repeat the last one; nobody reads their scores
    query[r] = q.as<const float>() + row.batch * q.strides[0] + row.head * q.strides[1] + row.query * q.strides[2];
  }
  for (std::int64_t j0 = begin; j0 < end; j0 += chunk) {
    const std::int64_t count = std::min(chunk, end - j0);
    double sums[together][chunk] = {};
    for (std::int64_t d = 0; d < dim; ++d) {
      const double* keys = head.keys.data() + d * length + j0;
      const std::int64_t at = d * q.strides[3];
      const double x0 = query[0][at], x1 = query[1][at], x2 = query[2][at], x3 = query[3][at];
      for (std::int64_t j = 0; j < count; ++j) {
        sums[0][j] += x0 * keys[j];
        sums[1][j] += x1 * keys[j];
        sums[2][j] += x2 * keys[j];
        sums[3][j] += x3 * keys[j];
      }
    }
    for (std::int64_t r = 0; r < static_cast<std::int64_t>(rows.size()); ++r)
      for (std::int64_t j = 0; j < count; ++j)
        scores[static_cast<std::size_t>(r * length + j0 + j)] = scale * sums[r][j];
  }
}

/// Softmax of one row's scores (−inf: not kept) times the values.
void finish_row(std::span<const double> scores, std::int64_t begin, std::int64_t end, const Head& head,
                std::span<double> out, double& lse, double& entropy) {
  double largest = -infinity;
  for (std::int64_t j = begin; j < end; ++j) largest = std::max(largest, scores[static_cast<std::size_t>(j)]);
  double sum = 0, weighted = 0;  // Σ e, Σ e·(s − max)
  for (std::int64_t j = begin; j < end; ++j) {
    const double s = scores[static_cast<std::size_t>(j)];
    if (s == -infinity) continue;  // its value is never read: it may be NaN
    const double e = std::exp(s - largest);
    sum += e;
    if (e > 0) weighted += e * (s - largest);
    const double* value = head.values.data() + j * static_cast<std::int64_t>(out.size());
    for (std::size_t d = 0; d < out.size(); ++d) out[d] += e * value[d];
  }
  if (sum == 0) return;
  for (double& x : out) x /= sum;
  lse = largest + std::log(sum);
  // −Σ p ln p with p = e / sum and ln p = (s − max) − ln sum
  entropy = std::log(sum) - weighted / sum;
}

}  // namespace

RowResults attention_rows(const TensorView& q, const TensorView& k, const TensorView& v, const Keep& keep, double scale,
                          std::span<const Row> rows) {
  check(q, k, v);
  for (const Row& row : rows)
    if (row.batch < 0 || row.batch >= q.shape[0] || row.head < 0 || row.head >= q.shape[1] || row.query < 0 ||
        row.query >= q.shape[2])
      throw Error("row (" + std::to_string(row.batch) + ", " + std::to_string(row.head) + ", " +
                  std::to_string(row.query) + ") is outside q " + text_of(q));
  const std::int64_t length = k.shape[2], value_dim = v.shape[3], group = q.shape[1] / k.shape[1];
  RowResults result;
  result.value_dim = value_dim;
  result.out.assign(rows.size() * static_cast<std::size_t>(value_dim), 0.0);
  result.lse.assign(rows.size(), -infinity);
  result.entropy.assign(rows.size(), 0.0);

  Head head;
  std::vector<double> scores(static_cast<std::size_t>(together * length));
  std::vector<char> kept(static_cast<std::size_t>(together * length), 1);
  for (std::size_t first = 0; first < rows.size();) {
    std::size_t last = first + 1;
    while (last < rows.size() && last < first + static_cast<std::size_t>(together) &&
           rows[last].batch == rows[first].batch && rows[last].head == rows[first].head)
      ++last;
    const auto block = rows.subspan(first, last - first);
    // Only the keys from the first to the last that any of the rows keeps are looked at.
    std::int64_t begin = keep ? length : 0, end = keep ? 0 : length;
    for (std::size_t r = 0; keep && r < block.size(); ++r) {
      for (std::int64_t j = 0; j < length; ++j) {
        const bool yes = keep(block[r].batch, block[r].head, block[r].query, j);
        kept[r * static_cast<std::size_t>(length) + static_cast<std::size_t>(j)] = yes;
        if (!yes) continue;
        begin = std::min(begin, j);
        end = std::max(end, j + 1);
      }
    }
    if (begin < end) {
      head.load(k, v, block[0].batch, block[0].head / group);
      score_rows(q, head, length, scale, block, begin, end, scores);
    }
    for (std::size_t r = 0; r < block.size(); ++r) {
      const std::span<double> of_row =
          std::span(scores).subspan(r * static_cast<std::size_t>(length), static_cast<std::size_t>(length));
      for (std::int64_t j = begin; j < end; ++j)
        if (kept[r * static_cast<std::size_t>(length) + static_cast<std::size_t>(j)] == 0)
          of_row[static_cast<std::size_t>(j)] = -infinity;
      const std::span<double> out =
          std::span(result.out)
              .subspan((first + r) * static_cast<std::size_t>(value_dim), static_cast<std::size_t>(value_dim));
      finish_row(of_row, begin, end, head, out, result.lse[first + r], result.entropy[first + r]);
    }
    first = last;
  }
  return result;
}

std::vector<Row> sample_rows(const TensorView& q, std::int64_t per_head, std::uint64_t seed) {
  std::vector<Row> rows;
  const std::int64_t length = q.shape[2];
  std::uint64_t draw = 0;
  for (std::int64_t b = 0; b < q.shape[0]; ++b) {
    for (std::int64_t h = 0; h < q.shape[1]; ++h) {
      // Selection sampling (Knuth, The Art of Computer Programming 2, algorithm S): in order, without repetition.
      std::int64_t needed = std::min(per_head, length);
      for (std::int64_t i = 0; i < length && needed > 0; ++i) {
        const bool take = needed >= length - i ||
                          uniform(seed, draw++) * static_cast<double>(length - i) < static_cast<double>(needed);
        if (!take) continue;
        rows.push_back({b, h, i});
        --needed;
      }
    }
  }
  return rows;
}

}  // namespace treadle::reference
