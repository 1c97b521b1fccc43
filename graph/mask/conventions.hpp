#pragma once
// The window conventions of other libraries, by their names, as masks of this one. They differ by one key, by the side
// they count, and by where the first query stands when there are more keys than queries; docs/attention/masks.md has
// the table.
//
//   {.mask = conventions::hugging_face_sliding_window(4096)}        // sliding_window = 4096 of a configuration
//   {.mask = conventions::flash_attention_window(256, 0)}           // window_size=(256, 0)

#include <treadle/graph/mask/masks.hpp>

namespace treadle::conventions {

namespace detail {
constexpr void check_window(std::int64_t size, std::int64_t least) {
  if (size < least) scalar::fail(least == 1 ? "a sliding window has 1 key or more" : "a window size is 0 or more");
}
}  // namespace detail

/// `sliding_window = W` of Hugging Face configurations (Mistral, Gemma, Phi, Qwen, gpt-oss): a query sees W keys,
/// itself among them, k > q − W and k <= q (transformers, masking_utils.py, sliding_window_overlay over the causal
/// mask).
constexpr mask::Mask hugging_face_sliding_window(std::int64_t size) {
  detail::check_window(size, 1);
  return mask::window(size - 1, 0);
}

/// `attention_window = w` of Longformer, for one layer: w is the total, an even number, half on either side; with
/// itself a token sees w + 1 keys (Beltagy et al. 2020, §3.1; transformers, modeling_longformer.py,
/// one_sided_attn_window_size).
constexpr mask::Mask longformer_attention_window(std::int64_t total) {
  detail::check_window(total, 0);
  if (total % 2 != 0) scalar::fail("Longformer's attention_window is even: half of it on either side");
  return mask::window(total / 2, total / 2);
}

/// `window_size=(left, right)` of FlashAttention 2.1 and later: keys from i + M − N − left to i + M − N + right, both
/// included, of N queries and M keys; −1 leaves a side open (flash_attn_interface.py). `causal=True` there means
/// right = 0 and is `causal &` here.
constexpr mask::Mask flash_attention_window(std::int64_t left, std::int64_t right) {
  return mask::window(left, right, mask::Alignment::bottom_right);
}

/// generate_sliding_window(W) of attention-gym: causal and q − k <= W, so W + 1 keys with itself; FlexAttention counts
/// queries and keys from the first, so it is aligned top_left (attn_gym/masks/sliding_window.py).
constexpr mask::Mask attention_gym_sliding_window(std::int64_t size) {
  detail::check_window(size, 0);
  return mask::window(size, 0, mask::Alignment::top_left);
}

/// Prefill of Mistral's own reference: the band of tril(0) and triu(−W), which is W + 1 keys with itself
/// (mistral-inference, one_file_ref.py). Its rotating cache holds W keys, and the paper says W (Jiang et al. 2023, §2),
/// as Hugging Face has it: use hugging_face_sliding_window where the two must agree.
constexpr mask::Mask mistral_reference_window(std::int64_t size) {
  detail::check_window(size, 0);
  return mask::window(size, 0);
}

}  // namespace treadle::conventions
