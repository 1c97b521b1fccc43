// Any bytes are a .npz archive or an error.
#include <treadle/io/error.hpp>
#include <treadle/io/npz.hpp>

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace treadle;
  try {
    for (const auto& [name, tensor] : io::load_npz(std::as_bytes(std::span(data, size)), "f"))
      if (name.empty() || tensor.size() < 0) std::abort();
  } catch (const io::Error&) {
  }
  return 0;
}
