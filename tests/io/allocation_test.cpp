// What is malformed is refused before memory is taken for it: the largest request to operator new is measured.
#include "safetensors_files.hpp"

#include <allocations.hpp>

#include <treadle/io/json.hpp>
#include <treadle/io/npy.hpp>

using namespace treadle;
using namespace treadle::test;

namespace {

/// The largest request while f() runs, which is refused where `refused` says so.
template <class F>
std::size_t largest_in(F f, bool refused = true) {
  largest_request = 0;
  bool failed = false;
  try {
    f();
  } catch (const io::Error&) {
    failed = true;
  }
  const std::size_t result = largest_request;
  BOOST_CHECK_EQUAL(failed, refused);
  return result;
}

std::string bytes_of(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(allocation, Folder)

BOOST_AUTO_TEST_CASE(measures) {
  BOOST_CHECK_GE(largest_in([] { std::vector<char> bytes(3 << 20); }, false), 3U << 20);
}

BOOST_AUTO_TEST_CASE(malformed_files_take_no_memory) {
  constexpr std::size_t limit = 1 << 20;
  const nlohmann::json from = io::read_json(std::filesystem::path(TREADLE_TEST_DATA) / "cases" /
                                            "81-safetensors-good-and-malformed-files.json");
  for (const nlohmann::json& one : from.at("attributes").at("files")) {
    const std::filesystem::path file = write("x.safetensors", bytes_of(one.at("hex").get<std::string>()));
    const bool refused = one.at("verdict") == "reject";
    BOOST_CHECK_LE(largest_in([&] { static_cast<void>(io::Safetensors::open(file)); }, refused), limit);
  }
  const std::string huge = safetensors_file("{" + entry("w", "F32", "1000000000", "0,4000000000") + "}", "1234");
  BOOST_CHECK_LE(largest_in([&] { static_cast<void>(read_bytes(huge)); }), limit);
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (100000000,), }";
  const std::string npy =
      "\x93NUMPY\1" + std::string(1, '\0') + static_cast<char>(header.size()) + std::string(1, '\0') + header + "1234";
  BOOST_CHECK_LE(largest_in([&] { static_cast<void>(io::load_npy(std::as_bytes(std::span(npy)), "f")); }), limit);
}

BOOST_AUTO_TEST_CASE(opening_a_checkpoint_takes_its_header_only) {
  io::Tensor weights(f32, {1 << 21});
  const NamedTensor one{"w", weights.view()};
  io::save_safetensors(path / "x.safetensors", std::span(&one, 1));
  BOOST_CHECK_LE(largest_in([&] { static_cast<void>(io::Safetensors::open(path / "x.safetensors")); }, false), 10'000);
}

BOOST_AUTO_TEST_SUITE_END()
