// What is malformed is refused before memory is taken for it: the largest request to operator new is measured.
#include "safetensors_files.hpp"

#include <treadle/io/json.hpp>
#include <treadle/io/npy.hpp>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<std::size_t> largest{0};

void* measured(std::size_t bytes, std::size_t alignment) {
  std::size_t before = largest.load(std::memory_order_relaxed);
  while (bytes > before && !largest.compare_exchange_weak(before, bytes, std::memory_order_relaxed)) {
  }
  void* p = std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}
// Not inlined: g++ would find that free() gets what operator new gave.
[[gnu::noinline]] void released(void* p) { std::free(p); }
}  // namespace

void* operator new(std::size_t n) { return measured(n, 16); }
void* operator new[](std::size_t n) { return measured(n, 16); }
void* operator new(std::size_t n, std::align_val_t a) { return measured(n, static_cast<std::size_t>(a)); }
void* operator new[](std::size_t n, std::align_val_t a) { return measured(n, static_cast<std::size_t>(a)); }
void operator delete(void* p) noexcept { released(p); }
void operator delete[](void* p) noexcept { released(p); }
void operator delete(void* p, std::size_t) noexcept { released(p); }
void operator delete[](void* p, std::size_t) noexcept { released(p); }
void operator delete(void* p, std::align_val_t) noexcept { released(p); }
void operator delete[](void* p, std::align_val_t) noexcept { released(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { released(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { released(p); }

using namespace treadle;
using namespace treadle::test;

namespace {

/// The largest request while f() runs, which is refused where `refused` says so.
template <class F>
std::size_t largest_in(F f, bool refused = true) {
  largest = 0;
  bool failed = false;
  try {
    f();
  } catch (const io::Error&) {
    failed = true;
  }
  const std::size_t result = largest;
  BOOST_CHECK_EQUAL(failed, refused);
  return result;
}

std::string bytes_of(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(allocation, CheckpointFolder)

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
