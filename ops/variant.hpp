#pragma once
// Which attention a layer has, as a value: what stands between its projections and the product that joins the heads.
//
//   self_attention("attn", x, {.heads = 8, .variant = longformer(256, {0})})   // ops/variants.hpp names them
//   self_attention("attn", x, {.heads = 8, .variant = causal & window(255, 0)})  // any mask is one
//
// A variant of your own is a function of the projected heads:
//
//   constexpr AttentionVariant mine("mine", [](const AttentionVariant&, const AttentionInputs& in,
//                                              const AttentionOptions&, Where where) { return … in.q … in.k … in.v …;
//                                              });

#include <treadle/ops/attention.hpp>

#include <array>

namespace treadle {

/// What a variant attends with.
struct AttentionInputs {
  Node q, k, v;        ///< [B, H, N, D], [B, Hkv, M, D] and [B, Hkv, M, Dv]: projected, with their positions
  Node x{}, memory{};  ///< what they were projected from, [B, N, W] and [B, M, Wm]: for gates; without builder: unknown
};

struct AttentionVariant {
  /// out [B, H, N, Dv]. What the layer was asked for besides the variant (masks, bias, sink, score, scale) comes as
  /// `o`, its mask and'ed with the variant's own; a variant that cannot do one of them says so (refused_option).
  using Apply = Node (*)(const AttentionVariant&, const AttentionInputs&, const AttentionOptions& o, Where);

  /// Attention with the mask and the score function. A variant always has a function, since with the undefined
  /// behaviour sanitizer g++ 12 does not compare a pointer to one with nullptr in a constant expression.
  static constexpr Node softmax(const AttentionVariant& v, const AttentionInputs& in, const AttentionOptions& o, Where);

  std::string_view name = "softmax";
  Apply apply = softmax;
  std::optional<Mask> mask{};               ///< and'ed with the layer's
  std::optional<scalar::Function> score{};  ///< score_mod(…), or the feature map of a variant that has one
  std::array<std::int64_t, 6> sizes{};      ///< what `apply` reads: numbers of features, blocks, landmarks, …
  std::array<double, 2> numbers{};          ///< and an eps or the like
  bool over_scores = true;                  ///< softmax attention with mask and score: no function of its own

  constexpr AttentionVariant() = default;
  /// Softmax attention over the pairs that a mask keeps.
  constexpr AttentionVariant(const Mask& m) : name("masked"), mask(m) {}
  constexpr AttentionVariant(std::string_view called, Apply function)
      : name(called), apply(function), over_scores(false) {}
};

namespace detail {
constexpr std::optional<Mask> both(const std::optional<Mask>& a, const std::optional<Mask>& b) {
  if (!a) return b;
  if (!b) return a;
  return *a & *b;
}
}  // namespace detail

/// True, and an error of the model, if the layer asks a variant for what it has not: any of the options of softmax
/// attention but those that the variant names in `able`.
struct AbleTo {
  bool mask = false, causal_mask = false, scale = false;
};
constexpr bool refused_option(const AttentionVariant& v, const AttentionInputs& in, const AttentionOptions& o,
                              AbleTo able, Where where) {
  Builder& b = *in.q.builder;
  const auto refuse = [&](std::string_view what, std::string_view right) {
    b.fail(op::attention, "variant", {error_kind::bad_attribute, Text(what).append(" with ").append(v.name), right},
           where.line());
    return true;
  };
  const bool only_causal = o.mask && *o.mask == causal;
  if (o.mask && !able.mask && !(able.causal_mask && only_causal))
    return refuse("a mask", able.causal_mask ? "the causal mask or none" : "no mask");
  if (o.mask_tensor.builder != nullptr) return refuse("a mask tensor", "softmax attention, or no mask tensor");
  if (o.bias.builder != nullptr) return refuse("a bias", "softmax attention, or no bias");
  if (o.sink.builder != nullptr) return refuse("a sink", "softmax attention, or no sink");
  if (o.score) return refuse("a score function", "softmax attention, or no score function");
  if (o.softcap) return refuse("a softcap", "softmax attention, or no softcap");
  if (o.scale && !able.scale) return refuse("a scale", "no scale");
  return false;
}

constexpr Node AttentionVariant::softmax(const AttentionVariant& v, const AttentionInputs& in,
                                         const AttentionOptions& o, Where where) {
  Builder& b = *in.q.builder;
  if (v.score && o.score) {
    b.fail(op::attention, "variant",
           {error_kind::bad_attribute, "two score functions", "that of the variant or that of the layer"},
           where.line());
    return {&b, {}};
  }
  AttentionOptions options = o;
  if (v.score) options.score = v.score;
  return attention(in.q, in.k, in.v, options, where);
}

/// The heads attend as `variant` says; what `o` adds is and'ed, added or refused.
constexpr Node attend(const AttentionVariant& variant, const AttentionInputs& in, AttentionOptions o = {},
                      Where where = Where::current()) {
  Builder& b = *in.q.builder;
  if (!b.usable(in.q) || !b.usable(in.k) || !b.usable(in.v)) return {&b, {}};
  o.mask = detail::both(variant.mask, o.mask);
  return variant.apply(variant, in, o, where);
}

}  // namespace treadle
