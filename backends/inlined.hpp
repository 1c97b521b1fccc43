#pragma once
// Score functions that were compiled for each ISA, by treadle_add_model(target file.hpp MODELS …) (cmake/model.cmake):
// the attention kernel calls one for each tile, in place of the tile evaluator. A model finds them by the function
// itself, so it does not matter where the model comes from, or what the passes made of it.

#include <treadle/backends/kernel.hpp>
#include <treadle/graph/scalar/expression.hpp>

#include <span>

namespace treadle::kernel {

/// A score function as `scalar::import` gives it in an empty pool, and its code.
struct InlinedScore {
  std::span<const scalar::Node> nodes;
  std::span<const char> names;
  ScoreHook hook = nullptr;
};

/// The functions of some models for one ISA; constant-initialised, as `Table` is.
struct ModelTable {
  const char* isa = nullptr;
  std::span<const InlinedScore> scores;
};

/// Makes tables known while it lives. Any thread may do so; models that are bound already keep what they found.
class RegisteredModels {
 public:
  explicit RegisteredModels(std::span<const ModelTable* const> tables);
  RegisteredModels(const RegisteredModels&) = delete;
  RegisteredModels& operator=(const RegisteredModels&) = delete;
  ~RegisteredModels();

 private:
  std::span<const ModelTable* const> tables_;
};

/// The code of the function at `root`; nullptr if no registered table of this ISA has it.
ScoreHook find_inlined(const char* isa, scalar::View functions, int root);

}  // namespace treadle::kernel
