#include <treadle/io/elements.hpp>

#include <array>
#include <bit>

namespace treadle::io {

static_assert(std::endian::native == std::endian::little, "files have elements as they lie in memory");

void write_elements(std::ostream& out, const TensorView& t) {
  const std::size_t bytes = size_of(t.dtype);
  const auto* data = static_cast<const char*>(t.data);
  if (t.contiguous()) {
    out.write(data, static_cast<std::streamsize>(static_cast<std::size_t>(t.size()) * bytes));
    return;
  }
  std::array<std::int64_t, max_rank> index{};
  for (std::int64_t n = t.size(); n > 0; --n) {
    std::int64_t at = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(t.rank); ++i) at += index[i] * t.strides[i];
    out.write(data + at * static_cast<std::int64_t>(bytes), static_cast<std::streamsize>(bytes));
    for (std::size_t i = static_cast<std::size_t>(t.rank); i-- > 0;) {
      if (++index[i] < t.shape[i]) break;
      index[i] = 0;
    }
  }
}

}  // namespace treadle::io
