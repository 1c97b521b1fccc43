#pragma once
// NumPy's .npy files (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html), versions 1 to 3.

#include <treadle/io/tensor.hpp>

#include <filesystem>
#include <ostream>
#include <span>
#include <string>

namespace treadle::io {

/// Reads f4, f8, i4, i8 and b1, little endian, C order, rank up to max_rank. The header is held against the size of the
/// file before anything is allocated. Throws Error with one sentence: the file, what is wrong, what would be right.
Tensor load_npy(const std::filesystem::path& path);
/// The same for a file that lies in memory; `what` stands for it in errors.
Tensor load_npy(std::span<const std::byte> file, const std::string& what);

/// Writes version 1 from any strides. The file appears whole or not at all. Throws Error.
void save_npy(const std::filesystem::path& path, const TensorView& tensor);
/// The same bytes to a stream, whose state says whether they got there.
void write_npy(std::ostream& out, const TensorView& tensor);

}  // namespace treadle::io
