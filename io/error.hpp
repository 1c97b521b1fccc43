#pragma once
// What reading and writing throws: one sentence with the file, what is wrong, and what would be right.

#include <treadle/backends/error.hpp>

namespace treadle::io {

struct Error : treadle::Error {
  using treadle::Error::Error;
};

}  // namespace treadle::io
