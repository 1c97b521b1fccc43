#pragma once
// `treadle compare --checkpoint` of a language model: the perplexity of a text with each variant of attention.

#include "checkpoint_comparison.hpp"
#include "checkpoint_runner.hpp"

namespace treadle::cli {

/// A stretch of tokens [begin, end) that runs at once; those from `scored` on count, each by what stands before it in
/// the stretch.
struct TextWindow {
  std::int64_t begin = 0, end = 0, scored = 0;

  std::int64_t tokens() const { return end - begin; }
  std::int64_t counted() const { return end - scored; }
};

/// Windows of `context` tokens, each `stride` further than the one before, up to the first that reaches the end of the
/// text, which may be shorter (the Transformers library, "Perplexity of fixed-length models"). A token counts in the
/// first window that holds it; the first token of the text has nothing before it and never counts.
std::vector<TextWindow> text_windows(std::int64_t tokens, std::int64_t context, std::int64_t stride);

/// Σ −log p(token | those before it in the window) of the tokens that count; logits [1, tokens, vocabulary].
double negative_log_likelihood(std::span<const float> logits, std::span<const std::int32_t> ids, const TextWindow& w);

/// One variant inside a language model.
struct PerplexityRow {
  std::string variant;
  std::int64_t windows = 0, context = 0, stride = 0, counted = 0;
  std::string backend, isa;
  int threads = 1;
  double perplexity = 0, perplexity_over_dense = 1;
  double median_ms = 0, p10_ms = 0, p90_ms = 0;  ///< of a window of the whole context
  double tokens_per_second = 0;
  double time_over_dense = 1;  ///< median of the ratios of windows that ran one after the other
  std::int64_t planned_bytes = 0;
  std::vector<double> layer_errors;  ///< ‖x − dense‖ / ‖dense‖ of what each layer hands on, first window
};

/// Prints the table, writes JSON and CSV. Throws Error: no language model.
void compare_language_model(const CheckpointPlan& plan, SharedCheckpoint& checkpoint);

}  // namespace treadle::cli
