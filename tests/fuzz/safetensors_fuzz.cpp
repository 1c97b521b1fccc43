// Any bytes are a safetensors file or an error; every tensor of one lies inside of it and becomes floats.
#include <treadle/io/error.hpp>
#include <treadle/io/safetensors.hpp>

#include <cstdlib>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace treadle;
  const std::span<const std::byte> file = std::as_bytes(std::span(data, size));
  try {
    const io::Safetensors s = io::Safetensors::read(file, "f");
    std::size_t bytes = 0;
    for (const io::StoredTensor& t : s.tensors()) {
      std::vector<float> numbers(t.bytes.size() / io::size_of(t.type));
      io::convert_to_f32(t, numbers.data());
      bytes += t.bytes.size();
      if (s.find(t.name) != &t) std::abort();
      try {
        static_cast<void>(io::to_tensor(t));
      } catch (const io::Error&) {
      }
    }
    if (bytes + 8 > size) std::abort();
  } catch (const io::Error&) {
  }
  return 0;
}
