#pragma once
// The elements of a view, as every file format here has them.

#include <treadle/graph/tensor.hpp>

#include <ostream>

namespace treadle::io {

/// Writes the elements in row-major order, whatever the strides.
void write_elements(std::ostream& out, const TensorView& tensor);

}  // namespace treadle::io
