// The windows of other libraries, and sequences packed one after the other: which keys a query sees.

#include <treadle/graph/mask/conventions.hpp>
#include <treadle/graph/scalar/evaluate.hpp>

#include <cstdio>
#include <string>

using namespace treadle;

// Evaluated by the oracle, one pair after the other; attention streams tiles instead.
std::string keys_of(const mask::Mask& m, std::int64_t q, std::int64_t q_len, std::int64_t k_len,
                    std::span<const scalar::Table> tables = {}) {
  scalar::Evaluator keeps(m.view(), m.root());
  std::string keys;
  for (std::int64_t k = 0; k < k_len; ++k)
    if (keeps.holds({.q = q, .k = k, .q_len = q_len, .k_len = k_len, .tables = tables}))
      keys += " " + std::to_string(k);
  return keys.empty() ? " nothing" : keys;
}

int main() {
  struct Named {
    const char* name;
    mask::Mask mask;
  };
  const Named windows[] = {
      {"Hugging Face, sliding_window = 3", conventions::hugging_face_sliding_window(3)},
      {"Mistral's reference, sliding_window = 3", conventions::mistral_reference_window(3)},
      {"attention-gym, sliding window of 3", conventions::attention_gym_sliding_window(3)},
      {"Longformer, attention_window = 4", conventions::longformer_attention_window(4)},
      {"FlashAttention, window_size = (2, 1)", conventions::flash_attention_window(2, 1)},
  };
  std::printf("%-42s%-16s%s\n", "", "query 6 of 9", "query 0 of 2, 9 keys");
  for (const Named& w : windows)
    std::printf("%-42s%-16s%s\n", w.name, keys_of(w.mask, 6, 9, 9).c_str(), keys_of(w.mask, 0, 2, 9).c_str());

  // Three sequences of 4, 0 and 3 tokens, and 2 tokens of padding.
  std::int32_t bounds[] = {0, 4, 4, 7};
  const std::int64_t shape[] = {4};
  const scalar::Table tables[] = {{"cu_seqlens", dense_view(bounds, i32, shape)}};
  const mask::Mask packed = causal & cumulative_lengths("cu_seqlens");
  for (const std::int64_t q : {2, 5, 8})
    std::printf("packed, query %d:%s\n", static_cast<int>(q), keys_of(packed, q, 9, 9, tables).c_str());
}
