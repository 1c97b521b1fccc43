// Floats from every element type: all bit patterns of the narrow ones against arithmetic of their definition.
#include "safetensors_files.hpp"

#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>

using namespace treadle;
using namespace treadle::test;
using io::StoredType;

namespace {

/// sign · 2^(exponent − bias) · 1.mantissa, as the IEEE formats say; in double, which holds all of them exactly.
double value_of(std::uint32_t bits, int exponent_bits, int mantissa_bits, int bias) {
  const std::uint32_t mantissa = bits & ((1U << mantissa_bits) - 1);
  const int exponent = static_cast<int>(bits >> mantissa_bits & ((1U << exponent_bits) - 1));
  const double sign = (bits >> (exponent_bits + mantissa_bits) & 1) != 0 ? -1.0 : 1.0;
  const double fraction = std::ldexp(static_cast<double>(mantissa), -mantissa_bits);
  if (exponent == (1 << exponent_bits) - 1)
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity() : std::copysign(std::nan(""), sign);
  return exponent == 0 ? sign * std::ldexp(fraction, 1 - bias) : sign * std::ldexp(1 + fraction, exponent - bias);
}

template <class T>
io::StoredTensor stored(StoredType type, std::span<const T> values) {
  return {"t", type, {static_cast<std::int64_t>(values.size())}, std::as_bytes(values), "f.safetensors"};
}

template <class T>
std::vector<float> floats(StoredType type, const std::vector<T>& values) {
  std::vector<float> out(values.size());
  io::convert_to_f32(stored(type, std::span<const T>(values)), out.data());
  return out;
}

/// Every pattern of T gives want(pattern): the same number, sign of zero included, or a NaN of the same sign.
template <class T, class F>
void check_all(StoredType type, F want) {
  std::vector<T> all(std::size_t{1} << (8 * sizeof(T)));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<T>(i);
  const std::vector<float> got = floats(type, all);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double w = want(static_cast<std::uint32_t>(i));
    const bool same = std::isnan(w) ? std::isnan(got[i]) : static_cast<double>(got[i]) == w;
    wrong += same && std::signbit(got[i]) == std::signbit(w) ? 0 : 1;
  }
  BOOST_CHECK_MESSAGE(wrong == 0, wrong << " of " << io::name(type));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(stored_type)

BOOST_AUTO_TEST_CASE(every_half) {
  check_all<std::uint16_t>(StoredType::f16, [](std::uint32_t b) { return value_of(b, 5, 10, 15); });
  check_all<std::uint16_t>(StoredType::bf16, [](std::uint32_t b) { return value_of(b, 8, 7, 127); });
  check_all<std::uint16_t>(StoredType::u16, [](std::uint32_t b) { return static_cast<double>(b); });
  check_all<std::uint16_t>(StoredType::i16,
                           [](std::uint32_t b) { return static_cast<double>(b) - (b >= 0x8000 ? 65536 : 0); });
}

BOOST_AUTO_TEST_CASE(every_byte) {
  check_all<std::uint8_t>(StoredType::f8_e5m2, [](std::uint32_t b) { return value_of(b, 5, 2, 15); });
  check_all<std::uint8_t>(StoredType::f8_e4m3, [](std::uint32_t b) {
    if ((b & 0x7f) == 0x7f) return std::copysign(std::nan(""), b > 0x7f ? -1.0 : 1.0);
    // Exponent 15 is a number here: one format with a wider exponent has no special one there.
    const double sign = b > 0x7f ? -1.0 : 1.0;
    return sign * value_of(b & 0x7f, 5, 3, 7);
  });
  check_all<std::uint8_t>(StoredType::u8, [](std::uint32_t b) { return static_cast<double>(b); });
  check_all<std::uint8_t>(StoredType::i8,
                          [](std::uint32_t b) { return static_cast<double>(b) - (b >= 128 ? 256 : 0); });
  check_all<std::uint8_t>(StoredType::boolean, [](std::uint32_t b) { return b != 0 ? 1.0 : 0.0; });
  const std::vector<float> known = floats(StoredType::f8_e4m3, std::vector<std::uint8_t>{0x7e, 0x08, 0x01, 0x38, 0xb8});
  const std::vector<float> want{448.0f, 0x1p-6f, 0x1p-9f, 1.0f, -1.0f};
  BOOST_CHECK_EQUAL_COLLECTIONS(known.begin(), known.end(), want.begin(), want.end());
}

BOOST_AUTO_TEST_CASE(wide_ones_round_to_nearest_even) {
  const std::vector<float> from_i32 =
      floats(StoredType::i32, std::vector<std::int32_t>{16777217, 16777219, -16777217, 2147483647, -2147483647 - 1, 0});
  const std::vector<float> want_i32{16777216.0f, 16777220.0f, -16777216.0f, 2147483648.0f, -2147483648.0f, 0.0f};
  BOOST_CHECK_EQUAL_COLLECTIONS(from_i32.begin(), from_i32.end(), want_i32.begin(), want_i32.end());
  BOOST_CHECK_EQUAL(floats(StoredType::u32, std::vector<std::uint32_t>{4294967295U})[0], 4294967296.0f);
  BOOST_CHECK_EQUAL(floats(StoredType::i64, std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::min()})[0],
                    -0x1p63f);
  // Once, not by way of a double: 2^24 + 1 + 2^−30, scaled by 2^38.
  const std::uint64_t once = (std::uint64_t{16777217} << 38) + 256;
  BOOST_CHECK_EQUAL(floats(StoredType::u64, std::vector<std::uint64_t>{once})[0], 16777218.0f * 0x1p38f);
  BOOST_CHECK_EQUAL(floats(StoredType::u64, std::vector<std::uint64_t>{~std::uint64_t{0}})[0], 0x1p64f);
  const std::vector<float> from_f64 =
      floats(StoredType::f64, std::vector<double>{1 + 0x1p-24, 1 + 0x1.8p-23, -0.0, 1e300, 0x1p-149});
  const std::vector<float> want_f64{1.0f, 1 + 0x1p-22f, -0.0f, std::numeric_limits<float>::infinity(), 0x1p-149f};
  BOOST_CHECK_EQUAL_COLLECTIONS(from_f64.begin(), from_f64.end(), want_f64.begin(), want_f64.end());
  BOOST_CHECK(std::signbit(from_f64[2]) && std::isnan(floats(StoredType::f64, std::vector<double>{NAN})[0]));
  const std::vector<std::uint32_t> bits{0x00000001, 0x7fa00001, 0xff800000, 0x80000000};
  const std::vector<float> same = floats(StoredType::f32, bits);
  BOOST_CHECK(std::memcmp(same.data(), bits.data(), 16) == 0);
}

BOOST_AUTO_TEST_CASE(any_address_and_no_element) {
  for (const StoredType type : {StoredType::f16, StoredType::bf16, StoredType::i16, StoredType::i32, StoredType::f32,
                                StoredType::f64, StoredType::i64, StoredType::u64}) {
    std::vector<std::byte> bytes(7 * io::size_of(type) + 1);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 37 % 60);
    const std::vector<std::byte> moved(bytes.begin() + 1, bytes.end());
    std::vector<float> a(7), b(7);
    io::convert_to_f32({"t", type, {7}, std::span<const std::byte>(bytes).subspan(1), "f"}, a.data());
    io::convert_to_f32({"t", type, {7}, moved, "f"}, b.data());
    BOOST_CHECK(std::memcmp(a.data(), b.data(), 28) == 0);
    io::convert_to_f32({"t", type, {0}, {}, "f"}, nullptr);
  }
}

BOOST_AUTO_TEST_CASE(takes_five_types_as_they_are) {
  const std::vector<std::byte> bytes(8);
  for (int i = 0; i <= static_cast<int>(StoredType::u64); ++i) {
    const auto type = static_cast<StoredType>(i);
    const io::StoredTensor t{"w", type, {static_cast<std::int64_t>(8 / io::size_of(type))}, bytes, "f.safetensors"};
    const bool taken = type == StoredType::f32 || type == StoredType::f64 || type == StoredType::i32 ||
                       type == StoredType::i64 || type == StoredType::boolean;
    if (taken)
      BOOST_CHECK_EQUAL(io::to_tensor(t).data.size(), 8);
    else
      refuses([&] { io::to_tensor(t); }, "f.safetensors: tensor 'w' is " + std::string(io::name(type)) +
                                             "; F32, F64, I32, I64 or BOOL is taken as it is");
  }
  refuses([&] { io::to_tensor({"w", StoredType::f64, {1, 1, 1, 1, 1, 1, 1}, bytes, "f"}); }, "f: tensor 'w' shape");
}

BOOST_AUTO_TEST_SUITE_END()
