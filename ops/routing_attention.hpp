#pragma once
// Attention within clusters of tokens (Roy et al. 2021, Routing Transformer), and over their means.

#include <treadle/ops/gather.hpp>
#include <treadle/ops/norm.hpp>
#include <treadle/ops/partial_attention.hpp>
#include <treadle/ops/sort.hpp>

namespace treadle {

struct RoutingOptions {
  bool causal = false;            ///< a query sees keys of its cluster up to its own position
  std::int64_t iterations = 0;    ///< of k-means in the graph, on this input, from the given centroids
  std::optional<double> scale{};  ///< default 1 / sqrt(head_dim)
};

/// Which cluster each token belongs to, i64 [B, H, N] and [B, H, M], and the centroids that decided it.
struct Clusters {
  Node queries, keys, centroids;
};

namespace rule {

/// [B, H, N] as a table of rank 2, [B, H·N], which functions look up at (b, h·N + position).
constexpr Node per_head_table(Node x, const Where& where) {
  Builder& b = *x.builder;
  if (!b.usable(x)) return x;
  const auto shape = b.shape(x);
  return reshape_to(x, {shape[0], b.graph().dims.multiply(shape[1], shape[2])}, where);
}

/// q, k, v for attention, and centroids [H, C, D] or [B, H, C, D].
constexpr bool fits_clusters(Builder& b, Node q, Node k, Node v, Node centroids, std::string_view leaf,
                             const Where& where) {
  if (!fits_attention(b, q, k, v, leaf, where) || !equal_heads(b, q, k, leaf, where) || !b.usable(centroids))
    return false;
  const auto of_q = b.shape(q), of_c = b.shape(centroids);
  const std::size_t rank = of_c.size();
  const bool fits = (rank == 3 || (rank == 4 && of_c[0] == of_q[0])) && of_c[rank - 3] == of_q[1] &&
                    of_c[rank - 1] == of_q[3] && b.graph().dims.constant(of_c[rank - 2]) != 0;
  if (fits) return true;
  const std::vector<Dim> wanted{of_q[1], of_q[3]};
  b.fail(op::attention, leaf,
         {error_kind::shape_mismatch, Text("centroids ").append(shape_text(b.graph(), of_c).view()),
          Text("[heads, clusters, head_dim] with [heads, head_dim] = ").append(shape_text(b.graph(), wanted).view())},
         where.line());
  return false;
}

/// The mean of each cluster's tokens and values, and the logarithm of how many there are (−inf for none): attention of
/// the clusters over the tokens, with equal scores.
constexpr AttentionPart cluster_means(Node tokens, Node values, Node ids, Node centroids, const Where& where) {
  Builder& b = *tokens.builder;
  AttentionOptions a;
  a.scale = 1;
  a.mask = mask::mask_mod([](auto element, auto h, auto cluster, auto token) {
    return scalar::lookup<i32>("token_cluster", element, h * length(token) + token) == cluster;
  });
  a.tables.add({"token_cluster", per_head_table(ids, where)});
  std::vector<Dim> shape = b.shape(centroids);
  if (shape.size() == 3) shape.insert(shape.begin(), b.shape(tokens)[0]);
  const Node queries = full_of(b, shape, 0, f32, where);  // equal scores
  return part_of(attention(queries, tokens, values, a, where));
}

/// Attention within clusters: queries and keys sorted by cluster, so that a cluster is a range of keys and the tiles
/// between clusters are skipped; the results are put back in order.
constexpr AttentionPart within_clusters(Node q, Node k, Node v, const Clusters& c, const RoutingOptions& o,
                                        const Where& where) {
  const GatherOptions rows{.axis = 2, .batch_dims = 2};
  const Node q_order = argsort(c.queries, where), k_order = argsort(c.keys, where);
  AttentionOptions a;
  a.scale = o.scale;
  a.mask = mask::mask_mod([](auto b, auto h, auto i, auto j) {
    return scalar::lookup<i32>("query_cluster", b, h * length(i) + i) ==
           scalar::lookup<i32>("key_cluster", b, h * length(j) + j);
  });
  a.tables.add({"query_cluster", per_head_table(gather(c.queries, q_order, rows, where), where)});
  a.tables.add({"key_cluster", per_head_table(gather(c.keys, k_order, rows, where), where)});
  if (o.causal) {
    a.mask = *a.mask & mask::mask_mod([](auto b, auto h, auto i, auto j) {
      return scalar::lookup<i32>("key_position", b, h * length(j) + j) <=
             scalar::lookup<i32>("query_position", b, h * length(i) + i) + (length(j) - length(i));
    });
    a.tables.add({"query_position", per_head_table(q_order, where)});
    a.tables.add({"key_position", per_head_table(k_order, where)});
  }
  const Node sorted = attention(gather(q, q_order, rows, where), gather(k, k_order, rows, where),
                                gather(v, k_order, rows, where), a, where);
  if (!q.builder->usable(sorted)) return {sorted, sorted};
  const Node back = argsort(q_order, where);
  return {gather(sorted, back, rows, where), gather(attention_logsumexp(sorted), back, rows, where)};
}

}  // namespace rule

/// The cluster of every query and key: the one whose centroid has the largest dot product with it, the first of equal
/// ones. With `iterations`, spherical k-means (Dhillon and Modha 2001) first moves the centroids of each batch element
/// and head: each becomes the mean of its queries and keys, brought to length √D; an empty cluster keeps its own. The
/// length of a token never changes its cluster; centroids that are given should be of one length. q, k [B, H, N, D],
/// centroids [H, C, D] or [B, H, C, D]. Costs (N + M)·C·D, twice that for each iteration.
constexpr Clusters assign_clusters(Node q, Node k, Node centroids, std::int64_t iterations = 0,
                                   Where where = Where::current()) {
  Builder& b = *q.builder;
  const auto nearest = [&](Node x, Node c) { return argmax(matmul(x, transpose(c, where), where), where); };
  Node c = centroids;
  if (iterations > 0 && b.usable(c)) {
    const Node tokens = concatenate({q, k}, 2, where);
    for (std::int64_t i = 0; i < iterations && b.usable(tokens) && b.usable(c); ++i) {
      const AttentionPart means = rule::cluster_means(tokens, tokens, nearest(tokens, c), c, where);
      if (!b.usable(means.out)) return {means.out, means.out, means.out};
      // The old centroid weighs exp(−200), which is nothing beside a token's 1.
      const Node old = full_of(b, b.shape(means.logsumexp), -200, f32, where);
      c = rms_norm("", merge_attention({means, {c, old}}, where), {.eps = 1e-12, .weight = false}, where);
    }
  }
  return {nearest(q, c), nearest(k, c), c};
}

/// Attention within clusters: a query sees the keys of its own cluster, causal among them if asked for (Roy et al.
/// 2021, §4.1). q, k [B, H, N, D], v [B, H, N, Dv] with as many key heads as query heads; centroids [H, C, D], a
/// parameter or any node. Clusters are those of `assign_clusters`, of any size; the paper instead lets every centroid
/// take its N / C nearest tokens, which a token may miss or meet twice. It normalises queries and keys before all this
/// (layer_norm without weights) and shares them in a decoder; do so beforehand if wanted. A query whose cluster has no
/// key gives 0.
///
/// Costs (N + M)·C·D for the assignment, a sort, and Σ_c queries_c · keys_c pairs: N²/C for clusters of one size, which
/// is N√N at C = √N; all pairs if one cluster takes all. Memory is linear in N, but for (N + M)·C similarities.
constexpr Node routing_attention(Node q, Node k, Node v, Node centroids, RoutingOptions o = {},
                                 Where where = Where::current()) {
  Builder& b = *q.builder;
  if (!rule::fits_clusters(b, q, k, v, centroids, "routing_attention", where)) return {&b, {}};
  if (o.iterations < 0) {
    b.fail(op::attention, "routing_attention",
           {error_kind::bad_attribute, Text().append(o.iterations).append(" iterations"), "0 or more iterations"},
           where.line());
    return {&b, {}};
  }
  const Clusters c = assign_clusters(q, k, centroids, o.iterations, where);
  if (!b.usable(c.queries) || !b.usable(c.keys)) return {&b, {}};
  return rule::within_clusters(q, k, v, c, o, where).out;
}

/// Two levels over clusters: one softmax over the keys of the query's own cluster and over the mean key and value of
/// every other, which counts as often as it has keys (log(keys) is added to its score; cf. Vyas et al. 2020, clustered
/// attention). Not causal. Shapes and clusters as in routing_attention; `o.causal` must be false. Costs what
/// routing_attention does, and C·M for the means and N·C pairs more.
constexpr Node clustered_attention(Node q, Node k, Node v, Node centroids, RoutingOptions o = {},
                                   Where where = Where::current()) {
  Builder& b = *q.builder;
  constexpr std::string_view leaf = "clustered_attention";
  if (!rule::fits_clusters(b, q, k, v, centroids, leaf, where)) return {&b, {}};
  if (o.causal || o.iterations < 0) {
    b.fail(op::attention, leaf,
           {error_kind::bad_attribute, o.causal ? Text("causal") : Text().append(o.iterations).append(" iterations"),
            o.causal ? "no order: means hold keys of the future" : "0 or more iterations"},
           where.line());
    return {&b, {}};
  }
  const Clusters c = assign_clusters(q, k, centroids, o.iterations, where);
  if (!b.usable(c.queries) || !b.usable(c.keys)) return {&b, {}};
  const AttentionPart nearby = rule::within_clusters(q, k, v, c, o, where);
  // The number of keys and the mean key, then the mean value, of every cluster.
  const AttentionPart mean_k = rule::cluster_means(k, k, c.keys, c.centroids, where),
                      mean_v = rule::cluster_means(k, v, c.keys, c.centroids, where);
  AttentionOptions a;
  a.scale = o.scale;
  a.mask = mask::mask_mod([](auto element, auto h, auto i, auto cluster) {
    return (scalar::lookup<i32>("query_cluster", element, h * length(i) + i) != cluster) &
           (scalar::lookup("cluster_size", element, h * length(cluster) + cluster) > -1.0);  // −inf: no key
  });
  a.score = scalar::score_mod([](auto score, auto element, auto h, auto, auto cluster) {
    return score + scalar::lookup("cluster_size", element, h * length(cluster) + cluster);
  });
  a.tables.add({"query_cluster", rule::per_head_table(c.queries, where)});
  a.tables.add({"cluster_size", rule::per_head_table(mean_k.logsumexp, where)});
  const Node far = attention(q, mean_k.out, mean_v.out, a, where);
  if (!b.usable(far) || !b.usable(nearby.out)) return {&b, {}};
  return merge_attention({nearby, part_of(far)}, where);
}

}  // namespace treadle
