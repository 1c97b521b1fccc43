#pragma once
// The variants of attention by name, for self_attention's `.variant`, for `treadle compare` and for models that are
// made at run time. A mask is a variant too.

#include <treadle/ops/favor.hpp>
#include <treadle/ops/variant.hpp>

namespace treadle::variants {

struct LinearVariant {
  activation feature = activation::elu_plus_one;  ///< or relu
  bool causal = false;                            ///< a layer's mask `causal` says the same
  double eps = 0;                                 ///< added to the denominator
};
/// φ(q) Σ φ(k) vᵀ over its sum (Katharopoulos et al. 2020). Time N·D², a state of D × D.
constexpr AttentionVariant linear(LinearVariant o = {}) {
  AttentionVariant v(
      "linear", [](const AttentionVariant& self, const AttentionInputs& in, const AttentionOptions& more, Where where) {
        if (refused_option(self, in, more, {.causal_mask = true}, where)) return Node{in.q.builder, {}};
        return linear_attention(in.q, in.k, in.v,
                                {.causal = self.causal || more.mask.has_value(),
                                 .feature = static_cast<activation>(self.sizes[0]),
                                 .eps = self.numbers[0]},
                                where);
      });
  v.causal = o.causal;
  v.sizes[0] = static_cast<std::int64_t>(o.feature);
  v.numbers[0] = o.eps;
  return v;
}

struct PerformerVariant {
  std::int64_t features = 256;
  bool causal = false;    ///< a layer's mask `causal` says the same
  std::int64_t seed = 0;  ///< of the projection
};
/// Softmax attention approximated by positive orthogonal random features, FAVOR+ (Choromanski et al. 2021). Time N·F·D.
constexpr AttentionVariant performer(PerformerVariant o = {}) {
  AttentionVariant v("performer", [](const AttentionVariant& self, const AttentionInputs& in,
                                     const AttentionOptions& more, Where where) {
    if (refused_option(self, in, more, {.causal_mask = true}, where)) return Node{in.q.builder, {}};
    return favor_attention(
        in.q, in.k, in.v,
        {.features = self.sizes[0], .causal = self.causal || more.mask.has_value(), .seed = self.sizes[1]}, where);
  });
  v.causal = o.causal;
  v.sizes = {o.features, o.seed};
  return v;
}

/// A window of `width` / 2 keys to each side, and global tokens that see and are seen by all; shared projections
/// (Beltagy et al. 2020, §3.1). Pairs: N·(width + 1 + 2·globals).
constexpr AttentionVariant longformer(std::int64_t width, std::initializer_list<std::int64_t> globals) {
  AttentionVariant v(globals.size() == 0 ? window(width / 2, width / 2)
                                         : window(width / 2, width / 2) | global_tokens(globals));
  v.name = "longformer";
  return v;
}

}  // namespace treadle::variants

namespace treadle {
using variants::longformer;
using variants::performer;
}  // namespace treadle
