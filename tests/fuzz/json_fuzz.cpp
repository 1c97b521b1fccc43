// Any bytes are JSON or an error, and any JSON is a case or an error.
#include <treadle/io/case.hpp>
#include <treadle/io/error.hpp>
#include <treadle/io/json.hpp>

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace treadle;
  try {
    const nlohmann::json value = io::parse_json({reinterpret_cast<const char*>(data), size});
    static_cast<void>(io::read_case(value, "f"));
  } catch (const io::Error&) {
  }
  return 0;
}
