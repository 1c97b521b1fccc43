#pragma once
// Safetensors files made byte by byte.

#include <treadle/io/error.hpp>
#include <treadle/io/safetensors.hpp>

#include <boost/test/unit_test.hpp>

#include <folder.hpp>

#include <string>

namespace treadle::test {

/// Length, header, data.
inline std::string safetensors_file(const std::string& header, const std::string& data = {}) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> (8 * i) & 255);
  return bytes + header + data;
}

/// An entry: "w":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}.
inline std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                         const std::string& offsets) {
  return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":[)" + shape + R"(],"data_offsets":[)" + offsets + "]}";
}

inline io::Safetensors read_bytes(const std::string& bytes) {
  return io::Safetensors::read(std::as_bytes(std::span(bytes)), "f.safetensors");
}

/// f() throws one line that contains all of `what`.
template <class F>
void refuses(F f, const std::string& what) {
  try {
    f();
    BOOST_ERROR("no error instead of '" << what << "'");
  } catch (const io::Error& error) {
    const std::string text = error.what();
    BOOST_CHECK_MESSAGE(text.find(what) != std::string::npos && text.find('\n') == std::string::npos,
                        "wanted '" << what << "', got '" << text << "'");
  }
}

}  // namespace treadle::test
