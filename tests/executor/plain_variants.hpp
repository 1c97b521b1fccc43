#pragma once
// The definitions of attention with fewer keys, over cubes: low rank, two levels, clusters, the largest scores,
// Longformer.

#include "plain.hpp"

#include <utility>

namespace treadle::test {

inline bool sees_everything(std::int64_t, std::int64_t, std::int64_t, std::int64_t) { return true; }

// ------------------------------------------------------------------ low rank

/// softmax(scale · q kᵀ), as many key heads as query heads.
inline Cube plain_weights(const Cube& q, const Cube& k, double scale) {
  Cube w(q.batch, q.heads, q.rows, k.rows);
  for (std::int64_t b = 0; b < q.batch; ++b)
    for (std::int64_t h = 0; h < q.heads; ++h)
      for (std::int64_t i = 0; i < q.rows; ++i) {
        double sum = 0;
        for (std::int64_t j = 0; j < k.rows; ++j) {
          double dot = 0;
          for (std::int64_t c = 0; c < q.columns; ++c) dot += q(b, h, i, c) * k(b, h, j, c);
          sum += w(b, h, i, j) = std::exp(scale * dot);
        }
        for (std::int64_t j = 0; j < k.rows; ++j) w(b, h, i, j) /= sum;
      }
  return w;
}

/// Linformer's projection of a cube's rows: the first columns of a parameter [length, max_length].
inline Cube plain_length_projection(const Parameters& parameters, const std::string& name, const Cube& rows) {
  const TensorView t = parameters.find(name);
  const float* w = t.as<const float>();
  Cube matrix(rows.batch, rows.heads, t.shape[0], rows.rows);
  for (std::int64_t b = 0; b < rows.batch; ++b)
    for (std::int64_t h = 0; h < rows.heads; ++h)
      for (std::int64_t i = 0; i < t.shape[0]; ++i)
        for (std::int64_t j = 0; j < rows.rows; ++j) matrix(b, h, i, j) = static_cast<double>(w[i * t.shape[1] + j]);
  return plain_product(matrix, rows);
}

/// Nyströmformer's pseudo-inverse, as the paper writes it, with the identity.
inline Cube plain_pseudo_inverse(const Cube& a, std::int64_t iterations) {
  Cube z(a.batch, a.heads, a.columns, a.rows);
  for (std::int64_t b = 0; b < a.batch; ++b)
    for (std::int64_t h = 0; h < a.heads; ++h) {
      double norm = 0;
      for (std::int64_t j = 0; j < a.columns; ++j) {
        double sum = 0;
        for (std::int64_t i = 0; i < a.rows; ++i) sum += a(b, h, i, j);
        norm = std::max(norm, sum);
      }
      for (std::int64_t i = 0; i < a.rows; ++i)
        for (std::int64_t j = 0; j < a.columns; ++j) z(b, h, j, i) = a(b, h, i, j) / norm;
    }
  const auto identity_less = [](double factor, Cube p) {
    for (double& e : p.data) e = -e;
    for (std::int64_t b = 0; b < p.batch; ++b)
      for (std::int64_t h = 0; h < p.heads; ++h)
        for (std::int64_t i = 0; i < p.rows; ++i) p(b, h, i, i) += factor;
    return p;
  };
  for (std::int64_t i = 0; i < iterations; ++i) {
    const Cube p = plain_product(a, z);
    const Cube inner = identity_less(15, plain_product(p, identity_less(7, p)));
    z = plain_product(z, identity_less(13, plain_product(p, inner)));
    for (double& e : z.data) e /= 4;
  }
  return z;
}

inline Cube plain_nystrom(const Cube& q, const Cube& k, const Cube& v, std::int64_t landmarks, std::int64_t iterations,
                          double scale) {
  const auto means = [&](const Cube& rows) {
    return plain_runs(rows, std::max<std::int64_t>((rows.rows + landmarks - 1) / landmarks, 1));
  };
  const Cube q_marks = means(q), k_marks = means(k);
  const Cube z = plain_pseudo_inverse(plain_weights(q_marks, k_marks, scale), iterations);
  return plain_product(plain_weights(q, k_marks, scale),
                       plain_product(z, plain_product(plain_weights(q_marks, k, scale), v)));
}

// ------------------------------------------------------------------ two levels

struct PlainLevels {
  std::int64_t block = 1, near = 0;
  bool causal = false, weighted = true;
  double scale = 1;
};
/// The keys of near blocks one by one, the means of all others.
inline Cube plain_hierarchical(const Cube& q, const Cube& k, const Cube& v, const PlainLevels& o) {
  const Cube mean_k = plain_runs(k, o.block), mean_v = plain_runs(v, o.block);
  return plain_attention(q, v.columns, o.scale, [&](std::int64_t, std::int64_t, std::int64_t i) {
    std::vector<Seen> s;
    for (std::int64_t r = 0; r < mean_k.rows; ++r) {
      const std::int64_t first = r * o.block, end = std::min(k.rows, first + o.block), own = i / o.block;
      if (r >= own - o.near && r <= own + o.near) {
        for (std::int64_t j = first; j < end; ++j)
          if (!o.causal || j <= i) s.push_back({&k, &v, j, 0});
      } else if (!o.causal || r < own) {
        s.push_back({&mean_k, &mean_v, r, o.weighted ? std::log(static_cast<double>(end - first)) : 0});
      }
    }
    return s;
  });
}

// ------------------------------------------------------------------ clusters

using Ids = std::vector<std::int64_t>;  // [batch, heads, rows]

inline std::int64_t id_of(const Ids& ids, const Cube& x, std::int64_t b, std::int64_t h, std::int64_t i) {
  return ids[static_cast<std::size_t>((b * x.heads + h) * x.rows + i)];
}

/// The first centroid with the largest dot product; centroids of one batch element, or of all. `margin` falls to the
/// smallest lead of a first over a second.
inline Ids nearest(const Cube& x, const Cube& centroids, double* margin = nullptr) {
  Ids ids;
  for (std::int64_t b = 0; b < x.batch; ++b)
    for (std::int64_t h = 0; h < x.heads; ++h)
      for (std::int64_t i = 0; i < x.rows; ++i) {
        std::int64_t best = 0;
        double most = -INFINITY, second = -INFINITY;
        for (std::int64_t c = 0; c < centroids.rows; ++c) {
          double dot = 0;
          for (std::int64_t d = 0; d < x.columns; ++d)
            dot += x(b, h, i, d) * centroids(centroids.batch == 1 ? 0 : b, h, c, d);
          if (dot > most) best = c;
          second = std::max(second, std::min(most, dot));
          most = std::max(most, dot);
        }
        if (margin != nullptr) *margin = std::min(*margin, most - second);
        ids.push_back(best);
      }
  return ids;
}

/// One round of spherical k-means over queries and keys. `margin` as in nearest; also the length of a sum of tokens.
inline Cube moved_centroids(const Cube& q, const Cube& k, const Cube& centroids, double* margin = nullptr) {
  Cube out(q.batch, q.heads, centroids.rows, q.columns);
  const Ids of_q = nearest(q, centroids, margin), of_k = nearest(k, centroids, margin);
  for (std::int64_t b = 0; b < q.batch; ++b)
    for (std::int64_t h = 0; h < q.heads; ++h)
      for (std::int64_t c = 0; c < centroids.rows; ++c) {
        std::int64_t count = 0;
        const auto gather = [&](const Cube& x, const Ids& ids) {
          for (std::int64_t i = 0; i < x.rows; ++i) {
            if (id_of(ids, x, b, h, i) != c) continue;
            ++count;
            for (std::int64_t d = 0; d < x.columns; ++d) out(b, h, c, d) += x(b, h, i, d);
          }
        };
        gather(q, of_q);
        gather(k, of_k);
        double square = 0;
        for (std::int64_t d = 0; d < q.columns; ++d) {
          if (count == 0) out(b, h, c, d) = centroids(centroids.batch == 1 ? 0 : b, h, c, d);
          square += out(b, h, c, d) * out(b, h, c, d);
        }
        if (margin != nullptr) *margin = std::min(*margin, square);
        for (std::int64_t d = 0; d < q.columns; ++d)
          out(b, h, c, d) /= std::sqrt(square / static_cast<double>(q.columns));
      }
  return out;
}

/// Attention within clusters; causal with the last query at the last key.
inline Cube plain_routing(const Cube& q, const Cube& k, const Cube& v, const Ids& of_q, const Ids& of_k, bool causal,
                          double scale) {
  return plain_attention(q, k, v, scale, [&](auto b, auto h, auto i, auto j) {
    return id_of(of_q, q, b, h, i) == id_of(of_k, k, b, h, j) && (!causal || j <= i + k.rows - q.rows);
  });
}

/// The keys of the own cluster, and the mean of every other that has a key, counted as often as it has keys.
inline Cube plain_clustered(const Cube& q, const Cube& k, const Cube& v, std::int64_t clusters, const Ids& of_q,
                            const Ids& of_k, double scale) {
  Cube mean_k(k.batch, k.heads, clusters, k.columns), mean_v(k.batch, k.heads, clusters, v.columns),
      counts(k.batch, k.heads, clusters, 1);
  for (std::int64_t b = 0; b < k.batch; ++b)
    for (std::int64_t h = 0; h < k.heads; ++h) {
      for (std::int64_t j = 0; j < k.rows; ++j) {
        const std::int64_t r = id_of(of_k, k, b, h, j);
        ++counts(b, h, r, 0);
        for (std::int64_t d = 0; d < k.columns; ++d) mean_k(b, h, r, d) += k(b, h, j, d);
        for (std::int64_t d = 0; d < v.columns; ++d) mean_v(b, h, r, d) += v(b, h, j, d);
      }
      for (std::int64_t r = 0; r < clusters; ++r) {
        for (std::int64_t d = 0; d < k.columns; ++d) mean_k(b, h, r, d) /= std::max(counts(b, h, r, 0), 1.0);
        for (std::int64_t d = 0; d < v.columns; ++d) mean_v(b, h, r, d) /= std::max(counts(b, h, r, 0), 1.0);
      }
    }
  return plain_attention(q, v.columns, scale, [&](std::int64_t b, std::int64_t h, std::int64_t i) {
    std::vector<Seen> s;
    const std::int64_t own = id_of(of_q, q, b, h, i);
    for (std::int64_t j = 0; j < k.rows; ++j)
      if (id_of(of_k, k, b, h, j) == own) s.push_back({&k, &v, j, 0});
    for (std::int64_t r = 0; r < clusters; ++r)
      if (r != own && counts(b, h, r, 0) > 0) s.push_back({&mean_k, &mean_v, r, std::log(counts(b, h, r, 0))});
    return s;
  });
}

// ------------------------------------------------------------------ the largest scores

/// Over the `kept` keys with the largest scores among those that `keep` says. `margin` falls to the smallest lead of
/// the last that is kept over the first that is not.
inline Cube plain_top_k(const Cube& q, const Cube& k, const Cube& v, std::int64_t kept, double scale,
                        const std::function<bool(std::int64_t, std::int64_t, std::int64_t, std::int64_t)>& keep,
                        double* margin = nullptr) {
  return plain_attention(q, v.columns, scale, [&](std::int64_t b, std::int64_t h, std::int64_t i) {
    std::vector<std::pair<double, std::int64_t>> order;
    for (std::int64_t j = 0; j < k.rows; ++j) {
      double dot = 0;
      for (std::int64_t c = 0; c < q.columns; ++c) dot += q(b, h, i, c) * k(b, h, j, c);
      if (keep(b, h, i, j)) order.emplace_back(-scale * dot, j);
    }
    std::sort(order.begin(), order.end());
    const auto count = static_cast<std::size_t>(kept);
    if (margin != nullptr && order.size() > count)
      *margin = std::min(*margin, order[count].first - order[count - 1].first);
    order.resize(std::min(order.size(), count));
    std::vector<Seen> s;
    for (const auto& at : order) s.push_back({&k, &v, at.second, 0});
    return s;
  });
}

// ------------------------------------------------------------------ Longformer

/// x Wᵀ + b of the parameters `name`.weight and .bias (if it is there), split into heads; x [batch, 1, rows, ·].
inline Cube plain_projection(const Cube& x, const Parameters& p, const std::string& name, std::int64_t heads) {
  const TensorView weight = p.find(name + ".weight");
  const auto* w = weight.as<const float>();
  const auto* bias = p.contains(name + ".bias") ? p.find(name + ".bias").as<const float>() : nullptr;
  const std::int64_t width = weight.shape[0] / heads;
  Cube out(x.batch, heads, x.rows, width);
  for (std::int64_t b = 0; b < x.batch; ++b)
    for (std::int64_t i = 0; i < x.rows; ++i)
      for (std::int64_t o = 0; o < weight.shape[0]; ++o) {
        double sum = bias != nullptr ? static_cast<double>(bias[o]) : 0;
        for (std::int64_t c = 0; c < x.columns; ++c) sum += x(b, 0, i, c) * static_cast<double>(w[o * x.columns + c]);
        out(b, o / width, i, o % width) = sum;
      }
  return out;
}

/// [batch, heads, rows, columns] → [batch, 1, rows, heads · columns].
inline Cube plain_merge(const Cube& x) {
  Cube out(x.batch, 1, x.rows, x.heads * x.columns);
  for (std::int64_t b = 0; b < x.batch; ++b)
    for (std::int64_t i = 0; i < x.rows; ++i)
      for (std::int64_t c = 0; c < out.columns; ++c) out(b, 0, i, c) = x(b, c / x.columns, i, c % x.columns);
  return out;
}

/// Longformer's layer `leaf` of x [batch, 1, rows, width]; `shown`: whether key j of a batch element counts.
inline Cube plain_longformer(const Cube& x, const Parameters& p, const std::string& leaf, std::int64_t heads,
                             std::int64_t window, const std::vector<std::int64_t>& globals,
                             const std::function<bool(std::int64_t b, std::int64_t j)>& shown) {
  const auto project = [&](const char* name) { return plain_projection(x, p, leaf + "." + name, heads); };
  const auto is_global = [&](std::int64_t i) { return std::find(globals.begin(), globals.end(), i) != globals.end(); };
  const double scale = 1 / std::sqrt(static_cast<double>(x.columns / heads));
  Cube y = plain_attention(project("q"), project("k"), project("v"), scale, [&](auto b, auto, auto i, auto j) {
    return (std::abs(i - j) <= window / 2 || is_global(j)) && shown(b, j);
  });
  if (!globals.empty()) {
    const Cube other = plain_attention(project("q_global"), project("k_global"), project("v_global"), scale,
                                       [&](auto b, auto, auto, auto j) { return shown(b, j); });
    for (std::int64_t b = 0; b < y.batch; ++b)
      for (std::int64_t h = 0; h < heads; ++h)
        for (const std::int64_t i : globals)
          for (std::int64_t c = 0; c < y.columns; ++c) y(b, h, i, c) = other(b, h, i, c);
  }
  return plain_projection(plain_merge(y), p, leaf + ".out", 1);
}

}  // namespace treadle::test
