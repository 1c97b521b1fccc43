// The element types of safetensors: names, sizes, and floats from each.
#include <treadle/io/error.hpp>
#include <treadle/io/safetensors.hpp>
#include <treadle/io/text.hpp>

#include <array>
#include <bit>
#include <cstring>

namespace treadle::io {

namespace {

struct TypeInfo {
  std::string_view name;
  std::size_t size;
};
constexpr std::array<TypeInfo, 15> types{{{"BOOL", 1},
                                          {"U8", 1},
                                          {"I8", 1},
                                          {"F8_E5M2", 1},
                                          {"F8_E4M3", 1},
                                          {"I16", 2},
                                          {"U16", 2},
                                          {"F16", 2},
                                          {"BF16", 2},
                                          {"I32", 4},
                                          {"U32", 4},
                                          {"F32", 4},
                                          {"F64", 8},
                                          {"I64", 8},
                                          {"U64", 8}}};

// None of these computes with a subnormal operand or result, so that they hold where the CPU flushes those to zero.

/// One of two by a mask instead of a branch: loops over these become vectors.
std::uint32_t choose(bool first, std::uint32_t a, std::uint32_t b) {
  const std::uint32_t mask = std::uint32_t{0} - static_cast<std::uint32_t>(first);
  return (a & mask) | (b & ~mask);
}

float from_f16(std::uint16_t h) {
  const std::uint32_t sign = (h & 0x8000U) << 16, rest = h & 0x7fffU;
  const float tiny = static_cast<float>(static_cast<std::int32_t>(rest)) * 0x1p-24f;  // of a subnormal f16
  const std::uint32_t bias = choose(rest >= 0x7c00U, 224U << 23, 112U << 23);  // infinities, NaN: the largest exponent
  return std::bit_cast<float>(sign | choose(rest < 0x400U, std::bit_cast<std::uint32_t>(tiny), (rest << 13) + bias));
}

float from_bf16(std::uint16_t h) { return std::bit_cast<float>(static_cast<std::uint32_t>(h) << 16); }

float from_f8_e5m2(std::uint8_t b) { return from_f16(static_cast<std::uint16_t>(b << 8)); }

float from_f8_e4m3(std::uint8_t b) {
  const std::uint32_t sign = (b & 0x80U) << 24, rest = b & 0x7fU;
  const float tiny = static_cast<float>(static_cast<std::int32_t>(rest)) * 0x1p-9f;
  const std::uint32_t number = choose(rest < 8U, std::bit_cast<std::uint32_t>(tiny), (rest << 20) + (120U << 23));
  return std::bit_cast<float>(sign | choose(rest == 0x7fU, 0x7fc00000U, number));
}

template <class T, class F>
void convert_each(std::span<const std::byte> from, float* out, F f) {
  const std::size_t n = from.size() / sizeof(T);
  for (std::size_t i = 0; i < n; ++i) {
    T x;
    std::memcpy(&x, from.data() + i * sizeof(T), sizeof(T));
    out[i] = f(x);
  }
}

template <class T>
void cast_each(std::span<const std::byte> from, float* out) {
  convert_each<T>(from, out, [](T x) { return static_cast<float>(x); });
}

}  // namespace

std::string_view name(StoredType type) { return types[static_cast<std::size_t>(type)].name; }

std::size_t size_of(StoredType type) { return types[static_cast<std::size_t>(type)].size; }

void convert_to_f32(const StoredTensor& tensor, float* out) {
  const std::span<const std::byte> from = tensor.bytes;
  switch (tensor.type) {
    case StoredType::boolean:
      return convert_each<std::uint8_t>(from, out, [](std::uint8_t b) { return b != 0 ? 1.0f : 0.0f; });
    case StoredType::u8: return cast_each<std::uint8_t>(from, out);
    case StoredType::i8: return cast_each<std::int8_t>(from, out);
    case StoredType::f8_e5m2: return convert_each<std::uint8_t>(from, out, from_f8_e5m2);
    case StoredType::f8_e4m3: return convert_each<std::uint8_t>(from, out, from_f8_e4m3);
    case StoredType::i16: return cast_each<std::int16_t>(from, out);
    case StoredType::u16: return cast_each<std::uint16_t>(from, out);
    case StoredType::f16: return convert_each<std::uint16_t>(from, out, from_f16);
    case StoredType::bf16: return convert_each<std::uint16_t>(from, out, from_bf16);
    case StoredType::i32: return cast_each<std::int32_t>(from, out);
    case StoredType::u32: return cast_each<std::uint32_t>(from, out);
    case StoredType::f32:
      if (!from.empty()) std::memcpy(out, from.data(), from.size());
      return;
    case StoredType::f64: return cast_each<double>(from, out);
    case StoredType::i64: return cast_each<std::int64_t>(from, out);
    case StoredType::u64: return cast_each<std::uint64_t>(from, out);
  }
}

Tensor to_tensor(const StoredTensor& tensor) {
  const auto dtype = [&] {
    switch (tensor.type) {
      case StoredType::f32: return DType::f32;
      case StoredType::f64: return DType::f64;
      case StoredType::i32: return DType::i32;
      case StoredType::i64: return DType::i64;
      case StoredType::boolean: return DType::boolean;
      default:
        throw Error("is " + std::string(name(tensor.type)) +
                    "; F32, F64, I32, I64 or BOOL is taken as it is, and floats "
                    "are made of any (convert_to_f32)");
    }
  };
  try {
    Tensor result(dtype(), tensor.shape);
    if (!tensor.bytes.empty()) std::memcpy(result.data.data(), tensor.bytes.data(), tensor.bytes.size());
    // A bool in memory is 0 or 1; a file may say true in other ways.
    if (result.dtype == DType::boolean)
      for (std::byte& b : result.data) b = b == std::byte{0} ? std::byte{0} : std::byte{1};
    return result;
  } catch (const Error& error) {
    throw Error(tensor.file.string() + ": tensor " + in_quotes(tensor.name) + " " + error.what());
  }
}

}  // namespace treadle::io
