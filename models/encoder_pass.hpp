#pragma once
// The encoder of an encoder–decoder before generation: reads the texts of a batch once, and fills the decoder's states
// with the keys and values that its layers make of them. Not installed.

#include <treadle/backends/bound_model.hpp>
#include <treadle/models/checkpoint.hpp>
#include <treadle/models/ports.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace treadle::models {

class EncoderPass {
 public:
  EncoderPass(const LoadedModel& loaded, const BindOptions& options);

  /// Ids that the encoder knows; 0: that could not be told.
  std::int64_t vocabulary() const { return vocabulary_; }
  /// Shorter texts are padded at their ends, and the padding is masked.
  void read(const std::vector<std::vector<std::int32_t>>& texts);
  double plan_seconds() const { return plan_seconds_; }  ///< of the last read
  double run_seconds() const { return run_seconds_; }
  /// Tokens of the longest text.
  std::int64_t source() const { return source_; }
  /// 1 for the tokens of text i, 0 for padding, [source].
  std::span<const std::int32_t> mask(std::size_t i) const {
    return std::span(mask_).subspan(i * static_cast<std::size_t>(source_), static_cast<std::size_t>(source_));
  }
  /// Whether the encoder fills this state.
  bool fills(const Port& state) const;
  /// Fills the decoder's states cross_k and cross_v: text i in rows [i · copies, (i + 1) · copies).
  void fill(BoundModel& decoder, std::span<const Port> states, std::int64_t copies) const;

 private:
  struct Output {
    std::string name;
    std::vector<float> values;  ///< [layers, texts, …]
    TensorView view;
  };
  BoundModel model_;
  std::int64_t source_ = 0, vocabulary_ = 0;
  double plan_seconds_ = 0, run_seconds_ = 0;
  std::vector<std::int32_t> ids_, mask_;
  std::vector<Output> outputs_;
};

}  // namespace treadle::models
