#pragma once
// Variants of attention inside one checkpoint, bound and run; what they share is held once.

#include "variants.hpp"

#include <treadle/backends/bound_model.hpp>
#include <treadle/backends/packed_store.hpp>
#include <treadle/io/tensor.hpp>
#include <treadle/models/checkpoint.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace treadle::cli {

/// A checkpoint's folder: its file is opened once, and weights are converted and packed once for all that is made of
/// it.
class SharedCheckpoint {
 public:
  explicit SharedCheckpoint(std::string folder) : folder_(std::move(folder)) {}

  models::LoadedModel load(models::LoadOptions options);
  PackedStore& store() { return store_; }

 private:
  std::string folder_;
  std::optional<models::LoadedModel> first_;
  PackedStore store_;
};

/// Outputs by name; runners whose outputs have equal shapes may write into the same.
using Results = std::map<std::string, io::Tensor>;

/// One variant in the place of the model's attention.
class Runner {
 public:
  struct Options {
    std::int64_t heads = 1, longest = 0;  ///< of the model; the longest sequence that will be bound
    bool every_layer = false;
    BindOptions bind{};
  };
  /// Throws Error: a variant that the model refuses, by its name.
  Runner(SharedCheckpoint& checkpoint, const Variant& variant, const Options& options);

  /// Plans for sequences of `tokens`, and makes those of `outputs` in `results` fit.
  void bind(std::int64_t batch, std::int64_t tokens, std::span<const std::string_view> outputs, Results& results);
  /// Runs the ids [batch, tokens]; gives milliseconds.
  double run(std::span<const std::int32_t> ids, Results& results);

  const BoundModel& model() const { return model_; }

 private:
  static models::LoadedModel load(SharedCheckpoint& checkpoint, const Variant& variant, const Options& options);

  SharedCheckpoint& checkpoint_;
  models::LoadedModel loaded_;
  BoundModel model_;
  bool segments_wanted_ = false;
  std::optional<BlockTable> blocks_;
  std::vector<std::string> outputs_;
  io::Tensor ids_, segments_, table_;
};

/// ‖x − dense‖ / ‖dense‖ of each layer of [layers, …].
std::vector<double> layer_errors(const io::Tensor& layers, const io::Tensor& dense);

/// Between the values around it, linearly.
double quantile(std::vector<double> x, double p);

/// The median of the ratios of runs that followed each other.
double median_ratio(std::span<const double> times, std::span<const double> dense);

/// The variants of a list, dense attention first in any case.
std::vector<Variant> dense_first(std::span<const Variant> variants);

}  // namespace treadle::cli
