#pragma once
// How a model's parameters are called in published checkpoints.

#include <string>
#include <string_view>
#include <vector>

namespace treadle::models {

/// One rule: names that `ours` matches stand in a file as `published`. A `*` in `ours` is any text without an end given
/// before its time; what the stars took is put, in order, where `published` has its stars.
///
///   {"encoder.layer.*.attention.q.*", "encoder.layer.*.attention.self.query.*"}
struct NameRule {
  std::string ours, published;
  bool transposed = false;  ///< matrices lie as [in, out] (GPT-2's Conv1D)
  int part = 0, parts = 1;  ///< of a tensor that holds several, one after the other along its outputs (c_attn: q, k, v)
};

/// The published name, and how its tensor lies.
struct Published {
  std::string name;
  bool transposed = false;
  int part = 0, parts = 1;
};

/// By the first rule that fits; a name that none fits is published as it is.
Published published_name(std::string_view ours, const std::vector<NameRule>& rules);

/// Whether `text` is `pattern`, whose stars stand for any text; `taken` gets what they stand for.
bool matches(std::string_view text, std::string_view pattern, std::vector<std::string_view>* taken = nullptr);

}  // namespace treadle::models
