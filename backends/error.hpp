#pragma once
// The error that people see: one sentence with what is wrong, where, and what would be right.

#include <stdexcept>

namespace treadle {

struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace treadle
