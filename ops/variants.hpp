#pragma once
// The variants of attention by name, for self_attention's `.variant`, for `treadle compare` and for models that are
// made at run time. A mask is a variant too: causal, window, big_bird, sparse_transformer_strided, local_chunks and all
// that graph/mask has. docs/attention/README.md lists them with their costs.

#include <treadle/ops/favor.hpp>
#include <treadle/ops/hierarchical.hpp>
#include <treadle/ops/linformer.hpp>
#include <treadle/ops/nystrom.hpp>
#include <treadle/ops/pooled_attention.hpp>
#include <treadle/ops/recurrent_layers.hpp>
#include <treadle/ops/routing_attention.hpp>
#include <treadle/ops/top_k_attention.hpp>
#include <treadle/ops/variant.hpp>

namespace treadle::variants {

// ------------------------------------------------------------------ masks with a name of their own

/// A window of `width` / 2 keys to each side, and global tokens that see and are seen by all, with one set of
/// projections (Beltagy et al. 2020, §3.1; longformer_attention has the second set). Pairs: N·(width + 1 + 2·globals).
constexpr AttentionVariant longformer(std::int64_t width, std::initializer_list<std::int64_t> globals) {
  AttentionVariant v(globals.size() == 0 ? window(width / 2, width / 2)
                                         : window(width / 2, width / 2) | global_tokens(globals));
  v.name = "longformer";
  return v;
}

// ------------------------------------------------------------------ the linear family

struct LinearVariant {
  activation feature = activation::elu_plus_one;  ///< or relu
  std::optional<scalar::Function> feature_map{};  ///< feature_map([](auto x) { … }), in the place of `feature`
  bool causal = false;                            ///< a layer's mask `causal` says the same
  double eps = 0;                                 ///< added to the denominator
};
/// φ(q) Σ φ(k) vᵀ over its sum (Katharopoulos et al. 2020). Time N·D², a state of D × D.
constexpr AttentionVariant linear(LinearVariant o = {}) {
  AttentionVariant v(
      "linear", [](const AttentionVariant& self, const AttentionInputs& in, const AttentionOptions& more, Where where) {
        if (refused_option(self, in, more, {.causal_mask = true}, where)) return Node{in.q.builder, {}};
        return linear_attention(in.q, in.k, in.v,
                                {.causal = more.mask.has_value(),
                                 .feature = static_cast<activation>(self.sizes[0]),
                                 .feature_map = self.score,
                                 .eps = self.numbers[0]},
                                where);
      });
  if (o.causal) v.mask = treadle::causal;
  v.score = o.feature_map;
  v.sizes[0] = static_cast<std::int64_t>(o.feature);
  v.numbers[0] = o.eps;
  return v;
}

struct PerformerVariant {
  std::int64_t features = 256;
  bool causal = false;      ///< a layer's mask `causal` says the same
  bool hyperbolic = false;  ///< exp(±w·x): twice the features
  std::int64_t seed = 0;    ///< of the projection
};
/// Softmax attention approximated by positive orthogonal random features, FAVOR+ (Choromanski et al. 2021). Time N·F·D.
constexpr AttentionVariant performer(PerformerVariant o = {}) {
  AttentionVariant v("performer", [](const AttentionVariant& self, const AttentionInputs& in,
                                     const AttentionOptions& more, Where where) {
    if (refused_option(self, in, more, {.causal_mask = true}, where)) return Node{in.q.builder, {}};
    return favor_attention(in.q, in.k, in.v,
                           {.features = self.sizes[0],
                            .causal = more.mask.has_value(),
                            .seed = self.sizes[1],
                            .hyperbolic = self.sizes[2] != 0},
                           where);
  });
  if (o.causal) v.mask = treadle::causal;
  v.sizes = {o.features, o.seed, o.hyperbolic ? 1 : 0};
  return v;
}

/// Decay by the paper's rates for each head (Sun et al. 2023, eq. 5 to 7); retention_layer has the rotation, norm and
/// gate around it. Always causal. Time N·D².
constexpr AttentionVariant retention() {
  AttentionVariant v("retention", [](const AttentionVariant& self, const AttentionInputs& in,
                                     const AttentionOptions& more, Where where) {
    if (refused_option(self, in, more, {.causal_mask = true, .scale = true}, where)) return Node{in.q.builder, {}};
    return treadle::retention(in.q, in.k, in.v, {.scale = more.scale}, where).out;
  });
  return v;
}

namespace detail {
/// A projection of what the layer reads, [B, H, N, ·]; an error of the model if nobody said what that is.
constexpr Node gate_of(const AttentionVariant& self, const AttentionInputs& in, std::string_view leaf,
                       std::int64_t per_head, bool bias, Where where) {
  Builder& b = *in.q.builder;
  const auto shape = b.shape(in.q);
  const auto heads = shape.size() == 4 ? b.graph().dims.constant(shape[1]) : std::nullopt;
  if (in.x.builder == nullptr || !heads) {
    b.fail(op::recurrent_attention, leaf,
           {error_kind::bad_attribute, Text(self.name).append(" without the layer's input"),
            "self_attention, or AttentionInputs.x"},
           where.line());
    return {&b, {}};
  }
  return split_heads(treadle::linear(leaf, in.x, {.width = *heads * per_head, .bias = bias}, where), *heads, "", where);
}
}  // namespace detail

struct GatedVariant {
  double temperature = 16;  ///< log gate = log σ(x W + b) / temperature
};
/// Gated linear attention with a gate for each head, step and channel, a projection `gate` of the layer's input (Yang
/// et al. 2024; gated_linear_layer has the low-rank projection and the output gate of the paper). Always causal. Time
/// N·D².
constexpr AttentionVariant gated_linear(GatedVariant o = {}) {
  AttentionVariant v("gated_linear", [](const AttentionVariant& self, const AttentionInputs& in,
                                        const AttentionOptions& more, Where where) {
    Builder& b = *in.q.builder;
    if (refused_option(self, in, more, {.causal_mask = true, .scale = true}, where)) return Node{&b, {}};
    if (!(self.numbers[0] > 0)) {
      b.fail(op::recurrent_attention, "variant",
             {error_kind::bad_attribute, "gated_linear with a temperature not above 0", "16, for example"},
             where.line());
      return Node{&b, {}};
    }
    const auto dim = b.graph().dims.constant(b.shape(in.q)[3]);
    const Node raw = detail::gate_of(self, in, "gate", dim ? *dim : 1, true, where);
    if (!b.usable(raw)) return raw;
    const Node log_gate = rule::log_sigmoid_gate(raw, self.numbers[0], where);
    return gated_linear_attention(in.q, in.k, in.v, log_gate, {.scale = more.scale}, where).out;
  });
  v.numbers[0] = o.temperature;
  return v;
}

/// The delta rule: keys of length 1, β = σ(x W) for each head and step, a projection `beta` of the layer's input (Yang
/// et al. 2024). Always causal. Time N·D².
constexpr AttentionVariant delta_rule() {
  AttentionVariant v("delta_rule", [](const AttentionVariant& self, const AttentionInputs& in,
                                      const AttentionOptions& more, Where where) {
    Builder& b = *in.q.builder;
    if (refused_option(self, in, more, {.causal_mask = true, .scale = true}, where)) return Node{&b, {}};
    const Node raw = detail::gate_of(self, in, "beta", 1, false, where);
    if (!b.usable(raw)) return raw;
    const auto shape = b.shape(raw);
    const Node beta = sigmoid(reshape_to(raw, {shape[0], shape[1], shape[2]}, where), where);
    const Node q = l2_norm(in.q, 1e-6, where), k = l2_norm(in.k, 1e-6, where);
    return treadle::delta_rule(q, k, in.v, beta, {.scale = more.scale}, where).out;
  });
  return v;
}

// ------------------------------------------------------------------ fewer keys, fewer queries

struct LinformerVariant {
  std::int64_t length = 256, max_length = 512;
  bool shared = false;  ///< one projection for keys and values
};
/// Keys and values projected along the length (Wang et al. 2020). Pairs: N·length. Parameters `linformer.…`.
constexpr AttentionVariant linformer(LinformerVariant o = {}) {
  AttentionVariant v("linformer", [](const AttentionVariant& self, const AttentionInputs& in,
                                     const AttentionOptions& more, Where where) {
    if (refused_option(self, in, more, {.scale = true}, where)) return Node{in.q.builder, {}};
    LinformerOptions options{.length = self.sizes[0], .max_length = self.sizes[1], .shared = self.sizes[2] != 0};
    options.scale = more.scale;
    return linformer_attention("linformer", in.q, in.k, in.v, options, where);
  });
  v.sizes = {o.length, o.max_length, o.shared ? 1 : 0};
  return v;
}

/// Landmarks and a pseudo-inverse between them (Xiong et al. 2021). Pairs: 2·N·landmarks.
constexpr AttentionVariant nystrom(std::int64_t landmarks = 64, std::int64_t iterations = 6) {
  AttentionVariant v("nystrom", [](const AttentionVariant& self, const AttentionInputs& in,
                                   const AttentionOptions& more, Where where) {
    if (refused_option(self, in, more, {.scale = true}, where)) return Node{in.q.builder, {}};
    return nystrom_attention(in.q, in.k, in.v,
                             {.landmarks = self.sizes[0], .iterations = self.sizes[1], .scale = more.scale}, where);
  });
  v.sizes = {landmarks, iterations};
  return v;
}

struct PooledVariant {
  std::int64_t ratio = 4;
  treadle::reduction pool = treadle::reduction::mean;  ///< or max
  bool causal = false;                                 ///< a layer's mask `causal` says the same
};
/// Keys and values pooled over runs (Liu et al. 2018). Pairs: N²/ratio.
constexpr AttentionVariant pooled(PooledVariant o = {}) {
  AttentionVariant v(
      "pooled", [](const AttentionVariant& self, const AttentionInputs& in, const AttentionOptions& more, Where where) {
        if (refused_option(self, in, more, {.causal_mask = true, .scale = true}, where)) return Node{in.q.builder, {}};
        return pooled_attention(in.q, in.k, in.v,
                                {.ratio = self.sizes[0],
                                 .pool = static_cast<treadle::reduction>(self.sizes[1]),
                                 .causal = more.mask.has_value(),
                                 .scale = more.scale},
                                where);
      });
  if (o.causal) v.mask = treadle::causal;
  v.sizes = {o.ratio, static_cast<std::int64_t>(o.pool)};
  return v;
}

struct HierarchicalVariant {
  std::int64_t block = 64, near = 1;  ///< tokens of a summary; blocks to each side that are seen key by key
  bool causal = false;                ///< a layer's mask `causal` says the same
};
/// Near keys one by one, far ones as the means of their blocks (cf. Zhu and Soricut 2021). Pairs: N·block·(2·near + 1)
/// + N²/block.
constexpr AttentionVariant hierarchical(HierarchicalVariant o = {}) {
  AttentionVariant v("hierarchical", [](const AttentionVariant& self, const AttentionInputs& in,
                                        const AttentionOptions& more, Where where) {
    if (refused_option(self, in, more, {.causal_mask = true, .scale = true}, where)) return Node{in.q.builder, {}};
    return hierarchical_attention(
        in.q, in.k, in.v,
        {.block = self.sizes[0], .near = self.sizes[1], .causal = more.mask.has_value(), .scale = more.scale}, where);
  });
  if (o.causal) v.mask = treadle::causal;
  v.sizes = {o.block, o.near};
  return v;
}

struct RoutingVariant {
  std::int64_t clusters = 16;
  bool causal = false;          ///< a layer's mask `causal` says the same
  std::int64_t iterations = 0;  ///< of k-means on each input
};
/// Attention within clusters of tokens, by k-means from the parameter `centroids` (Roy et al. 2021). Pairs: N²/clusters
/// for clusters of one size.
constexpr AttentionVariant routing(RoutingVariant o = {}) {
  AttentionVariant v("routing", [](const AttentionVariant& self, const AttentionInputs& in,
                                   const AttentionOptions& more, Where where) {
    Builder& b = *in.q.builder;
    if (refused_option(self, in, more, {.causal_mask = true, .scale = true}, where)) return Node{&b, {}};
    const auto shape = b.shape(in.q);
    const Node centroids = b.parameter("centroids", {shape[1], b.dim_number(self.sizes[0]), shape[3]}, where);
    return routing_attention(in.q, in.k, in.v, centroids,
                             {.causal = more.mask.has_value(), .iterations = self.sizes[1], .scale = more.scale},
                             where);
  });
  if (o.causal) v.mask = treadle::causal;
  v.sizes = {o.clusters, o.iterations};
  return v;
}

/// The k largest scores of each query (Gupta et al. 2021): a reference for what the choice does, at the cost of all
/// pairs.
constexpr AttentionVariant top_k(std::int64_t k = 32) {
  AttentionVariant v(
      "top_k", [](const AttentionVariant& self, const AttentionInputs& in, const AttentionOptions& more, Where where) {
        if (refused_option(self, in, more, {.mask = true, .scale = true}, where)) return Node{in.q.builder, {}};
        return top_k_attention(in.q, in.k, in.v, {.k = self.sizes[0], .mask = more.mask, .scale = more.scale}, where);
      });
  v.sizes[0] = k;
  return v;
}

}  // namespace treadle::variants

namespace treadle {
using variants::linformer;
using variants::longformer;
using variants::performer;
}  // namespace treadle
