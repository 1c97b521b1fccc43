#pragma once
// Score functions by name: values for AttentionOptions.score, combined by `>>` from left to right.
//
//   attention(q, k, v, {.mask = causal, .score = softcap(50) >> alibi(heads)})

#include <treadle/graph/mask/masks.hpp>
#include <treadle/graph/scalar/compose.hpp>

#include <string_view>

namespace treadle {

namespace rule {
/// |i − j| with query i counted as `alignment` says.
constexpr scalar::Symbol distance(scalar::Symbol q, scalar::Symbol k, mask::Alignment alignment) {
  if (alignment == mask::Alignment::top_left) return abs(q - k);
  return abs(q + (length(k) - length(q)) - k);
}
constexpr bool finite(double x) { return x - x == 0; }
}  // namespace rule

/// ALiBi: score − m_h · |i − j|, with Press et al.'s slopes m_h = 2^(−8 (h+1) / n) for n heads if n is a power of two;
/// otherwise those of the next lower power of two m, then every other one of 2m's, 2^(−4 (2i+1) / m) for i = 0, 1, …
/// (Press et al. 2022, §3 and the authors' code). Needs no table. With unequal lengths the last query stands at the
/// last key unless `alignment` is top_left.
constexpr scalar::Function alibi(std::int64_t heads, mask::Alignment alignment = mask::Alignment::bottom_right) {
  if (heads < 1) scalar::fail("alibi needs at least 1 head");
  std::int64_t power = 1;
  while (power * 2 <= heads) power *= 2;
  constexpr double ln2 = 0.69314718055994531;
  const double step = -4 * ln2 / static_cast<double>(power);
  return scalar::score_mod([=](auto score, auto, auto h, auto q, auto k) {
    const auto exponent =
        heads == power ? 2 * (h + 1) : where(h < power, 2 * (h + 1), 2 * (h - power) + 1);  // in units of step
    return score - exp(exponent * step) * rule::distance(q, k, alignment);
  });
}

/// ALiBi with slopes of one's own: an f32 table [heads], an input or parameter of that name. alibi_slopes
/// (ops/position_tables.hpp) computes Press et al.'s.
constexpr scalar::Function alibi(std::string_view table, mask::Alignment alignment = mask::Alignment::bottom_right) {
  return scalar::score_mod([=](auto score, auto, auto h, auto q, auto k) {
    return score - scalar::lookup<f32>(table, h) * rule::distance(q, k, alignment);
  });
}

/// cap · tanh(score / cap): bounds scores by ±cap and hardly changes the small ones; before the mask, so what is masked
/// stays masked (Gemma 2 technical report, 2024, §2).
constexpr scalar::Function softcap(double cap) {
  if (!rule::finite(cap) || cap <= 0) scalar::fail("a softcap is a finite number above 0");
  return scalar::score_mod([cap](auto score, auto, auto, auto, auto) { return cap * tanh(score * (1.0 / cap)); });
}

/// score − rate · |i − j|: weights shrink by e^(−rate) with every position between query and key, as in retention (Sun
/// et al. 2023) with γ = e^(−rate).
constexpr scalar::Function distance_decay(double rate, mask::Alignment alignment = mask::Alignment::bottom_right) {
  if (!rule::finite(rate)) scalar::fail("the rate of a decay is a finite number");
  return scalar::score_mod(
      [=](auto score, auto, auto, auto q, auto k) { return score - rate * rule::distance(q, k, alignment); });
}

/// score + table[h, min(|i − j|, last)]: a learned number for each head and distance. `table` f32 [heads, size] is an
/// input or parameter of that name; distances beyond share its last column.
constexpr scalar::Function distance_bias(std::string_view table, std::int64_t size,
                                         mask::Alignment alignment = mask::Alignment::bottom_right) {
  if (size < 1) scalar::fail("a table of distances has at least 1 column");
  return scalar::score_mod([=](auto score, auto, auto h, auto q, auto k) {
    return score + scalar::lookup<f32>(table, h, min(rule::distance(q, k, alignment), size - 1));
  });
}

}  // namespace treadle
