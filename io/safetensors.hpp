#pragma once
// Checkpoints in the safetensors format (https://huggingface.co/docs/safetensors): a JSON header with names, dtypes,
// shapes and places, then the bytes. Files are mapped, so opening one reads its header only.

#include <treadle/backends/bound_model.hpp>
#include <treadle/io/mapped_file.hpp>
#include <treadle/io/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace treadle::io {

/// Element types of safetensors files.
enum class StoredType : std::uint8_t {
  boolean,  ///< one byte, 0 or 1
  u8,
  i8,
  f8_e5m2,  ///< the upper half of an f16
  f8_e4m3,  ///< without infinities, NaN is 0x7f and 0xff (FP8 Formats for Deep Learning, arXiv:2209.05433)
  i16,
  u16,
  f16,
  bf16,
  i32,
  u32,
  f32,
  f64,
  i64,
  u64
};
/// As files spell it: "BOOL", "F8_E4M3", "BF16", …
std::string_view name(StoredType type);
/// Bytes of one element.
std::size_t size_of(StoredType type);

/// A tensor where it lies in a file: dense, row-major, little endian, at any address.
struct StoredTensor {
  std::string name;
  StoredType type{};
  std::vector<std::int64_t> shape;   ///< empty: one element
  std::span<const std::byte> bytes;  ///< as many as shape and type need
  std::filesystem::path file;        ///< for errors
};

/// One file, or all files of a sharded checkpoint. Movable; what it hands out lives as long as it does, and stays where
/// it is when it is moved.
class Safetensors {
 public:
  /// path: a .safetensors file, a model.safetensors.index.json, or a folder that holds model.safetensors or the index.
  /// Everything is checked before anything is allocated for it: the header's length, JSON, UTF-8 and names; dtypes,
  /// shapes and sizes; that tensors neither overlap nor leave bytes between them or behind the last; that an index and
  /// its shards name the same tensors. Throws Error with one sentence: the file, the tensor, what is wrong.
  static Safetensors open(const std::filesystem::path& path);
  /// The same for a file that lies in memory, which must outlive the result; `file` stands for it in errors.
  static Safetensors read(std::span<const std::byte> bytes, const std::filesystem::path& file);

  /// Sorted by name.
  std::span<const StoredTensor> tensors() const { return tensors_; }
  /// nullptr where there is none of this name.
  const StoredTensor* find(std::string_view name) const;
  /// What writers noted under `__metadata__`; of several files with the same key, the first file's.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  /// Size of all files.
  std::size_t bytes() const { return bytes_; }

 private:
  static Safetensors open_shards(const std::filesystem::path& index);
  void map(const std::filesystem::path& file);
  void add(std::span<const std::byte> bytes, const std::filesystem::path& file);
  void sort();

  std::vector<MappedFile> files_;
  std::vector<StoredTensor> tensors_;
  std::map<std::string, std::string> metadata_;
  std::size_t bytes_ = 0;
};

/// Every element as float: exactly from booleans, f8, f16, bf16 and integers up to 24 bits, rounded to nearest from the
/// others. A NaN stays a NaN, of the same sign. `out` holds the elements in the tensor's order.
void convert_to_f32(const StoredTensor& tensor, float* out);

/// A copy of an F32, F64, I32, I64 or BOOL tensor as it is. Throws Error: another dtype, a rank above max_rank.
Tensor to_tensor(const StoredTensor& tensor);

/// Writes a file with these tensors, of any strides: wide elements first, then by name, so that all are aligned. It
/// appears whole or not at all. Throws Error: a name that occurs twice, is no UTF-8 or is `__metadata__`; a tensor that
/// is not given; metadata that is no UTF-8.
void save_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                      const std::map<std::string, std::string>& metadata = {});

}  // namespace treadle::io
