#pragma once
// `treadle compare --checkpoint`: the variants in the place of a checkpoint's own attention, on passages of a text.

#include "report.hpp"
#include "variants.hpp"

#include <treadle/backends/bound_model.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace treadle::cli {

struct CheckpointPlan {
  std::string folder, text;       ///< of a checkpoint with its tokenizer; a file
  std::vector<Variant> variants;  ///< dense runs first in any case: the others are measured against it; none: the usual
  std::int64_t tokens = 0;        ///< of a passage, special tokens included; 0: as many as the model was made for
  std::int64_t stride = 0;        ///< language models: from one passage to the next; 0: half a passage
  std::int64_t passages = 0;      ///< the first so many of the text; 0: 200, of a language model 20
  std::int64_t batch = 0;         ///< passages that run at once; 0: 8, of a language model 1
  bool quick = false;             ///< fewer passages
  BindOptions bind;
  std::uint64_t seed = 1;
  std::string json, csv, html;
};

/// One variant inside the checkpoint. Errors and cosines are against dense attention with the same weights.
struct CheckpointRow {
  std::string variant;
  std::int64_t passages = 0, tokens = 0, batch = 0;
  std::string backend, isa;
  int threads = 1;
  double median_ms = 0, p10_ms = 0, p90_ms = 0;  ///< of a batch
  double tokens_per_second = 0;
  double time_over_dense = 1;  ///< median of the ratios of batches that ran one after the other
  std::int64_t planned_bytes = 0;
  std::vector<double> layer_errors;  ///< ‖x − dense‖ / ‖dense‖ of the hidden states behind each layer, sampled passages
  double relative_error = 0;         ///< the same at the output
  double mean_cosine = 1, least_cosine = 1;  ///< of a passage's vector and its dense one
  double rank_correlation = 1;               ///< Spearman's, of the cosines of all pairs of passages
};

/// Prints the table, writes JSON and CSV: of BERT what becomes of its passage vectors, of a language model the
/// perplexity (perplexity.hpp). Throws Error.
void compare_checkpoint(const CheckpointPlan& plan);

}  // namespace treadle::cli
