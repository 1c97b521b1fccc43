// Any bytes are a .npy file or an error; what is read is written and read again with the same elements.
#include <treadle/io/error.hpp>
#include <treadle/io/npy.hpp>

#include <cstdlib>
#include <sstream>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace treadle;
  try {
    const io::Tensor t = io::load_npy(std::as_bytes(std::span(data, size)), "f");
    std::ostringstream out;
    io::write_npy(out, t.view());
    const std::string again = std::move(out).str();
    const io::Tensor back = io::load_npy(std::as_bytes(std::span(again)), "g");
    if (back.dtype != t.dtype || back.shape != t.shape || back.data != t.data) std::abort();
  } catch (const io::Error&) {
  }
  return 0;
}
