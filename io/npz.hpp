#pragma once
// NumPy's .npz files: ZIP archives of .npy files. In the library treadle_npz, which needs libzip and is not installed.

#include <treadle/backends/bound_model.hpp>
#include <treadle/io/tensor.hpp>

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>

namespace treadle::io {

/// Name, without ".npy", to tensor; what numpy.savez and numpy.savez_compressed write. Before an entry takes memory its
/// size is held against what deflate can give, against the memory of this machine and against what its .npy header
/// needs. Throws Error with one sentence: the file, the entry, what is wrong.
std::map<std::string, Tensor> load_npz(const std::filesystem::path& path);
/// The same for a file that lies in memory; `what` stands for it in errors.
std::map<std::string, Tensor> load_npz(std::span<const std::byte> file, const std::string& what);

/// Writes NAME.npy for each tensor, deflated where that is asked for; the same bytes for the same tensors. Holds the
/// archive in memory until it is whole; the file appears whole or not at all. Throws Error: a name that is empty,
/// occurs twice, is no UTF-8 or holds a zero byte; a tensor that is not given.
void save_npz(const std::filesystem::path& path, std::span<const NamedTensor> tensors, bool deflated = false);

}  // namespace treadle::io
