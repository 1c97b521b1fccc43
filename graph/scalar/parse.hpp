#pragma once
// Expressions from text, as print.hpp writes them. Spaces are free, C++'s precedence holds, and `>`, `>=` are
// understood. Types work as in tracing: an integer that meets a number becomes one.

#include <treadle/graph/scalar/expression.hpp>

#include <optional>
#include <string>

namespace treadle::scalar {

struct ParseError {
  std::size_t position = 0;  ///< offset into the text
  std::string what;          ///< a sentence
};

struct Parsed {
  int root = -1;  ///< −1: see error
  ParseError error;
  explicit operator bool() const { return root >= 0; }
};

/// Adds the expression in `text` to `pool`. Given `type`, an integer becomes a number if that is what is wanted, and
/// anything else of another type is an error.
Parsed parse(Pool& pool, std::string_view text, std::optional<Type> type = {});

}  // namespace treadle::scalar
