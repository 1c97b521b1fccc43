// .npy files: round trips, every way to be malformed, truncation at every byte.
#include <treadle/io/error.hpp>
#include <treadle/io/file.hpp>
#include <treadle/io/npy.hpp>

#include <boost/test/unit_test.hpp>

#include <cstdio>
#include <fstream>
#include <numeric>

#include <unistd.h>

using namespace treadle;
namespace fs = std::filesystem;

namespace {

struct Folder {
  fs::path path = fs::temp_directory_path() / ("treadle_npy_" + std::to_string(::getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  fs::path write(const std::string& bytes) const {
    std::ofstream(path / "x.npy", std::ios::binary) << bytes;
    return path / "x.npy";
  }
};

/// A file with this header text; version 1 has a length of 2 bytes, later ones of 4.
std::string file(const std::string& header, const std::string& data, char version = 1) {
  std::string bytes = std::string("\x93NUMPY") + version + '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) bytes += static_cast<char>(header.size() >> (8 * i) & 255);
  return bytes + header + data;
}
std::string header(const std::string& descr, const std::string& shape) {
  return "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }\n";
}

/// Loading these bytes gives one sentence that names the file and contains `what`.
void fails(const Folder& folder, const std::string& bytes, const std::string& what) {
  const fs::path path = folder.write(bytes);
  BOOST_CHECK_EXCEPTION(io::load_npy(path), io::Error, [&](const io::Error& error) {
    const std::string text = error.what();
    const bool right = text.starts_with(path.string() + ": ") && text.find(what) != std::string::npos &&
                       text.find('\n') == std::string::npos;
    BOOST_CHECK_MESSAGE(right, "wanted '" << what << "', got '" << text << "'");
    return right;
  });
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(npy, Folder)

BOOST_AUTO_TEST_CASE(round_trips) {
  for (const DType dtype : {f32, f64, i32, i64, boolean}) {
    for (const std::vector<std::int64_t>& shape :
         {std::vector<std::int64_t>{}, {0}, {1}, {7}, {2, 3}, {3, 0, 2}, {2, 1, 2, 1, 2, 3}}) {
      io::Tensor t(dtype, shape);
      for (std::size_t i = 0; i < t.data.size(); ++i)
        t.data[i] = static_cast<std::byte>(dtype == boolean ? i % 2 : i * 37 % 251);
      io::save_npy(path / "t.npy", t.view());
      const io::Tensor back = io::load_npy(path / "t.npy");
      BOOST_CHECK(back.dtype == dtype);
      BOOST_CHECK(back.shape == shape);
      BOOST_CHECK(back.data == t.data);
      BOOST_CHECK_EQUAL(reinterpret_cast<std::uintptr_t>(back.data.data()) % 64 * (back.data.empty() ? 0 : 1), 0);
      BOOST_CHECK(back.view());
    }
  }
  BOOST_CHECK_EQUAL(std::distance(fs::directory_iterator(path), {}), 1);  // no temporary is left
}

BOOST_AUTO_TEST_CASE(from_memory_as_from_a_file) {
  const std::string whole = file(header("<f4", "(2,)"), "\1\2\3\4\5\6\7\10");
  const auto from_memory = [](const std::string& bytes) { return io::load_npy(std::as_bytes(std::span(bytes)), "it"); };
  BOOST_CHECK(from_memory(whole).data == io::load_npy(write(whole)).data);
  for (std::size_t n = 0; n < whole.size(); ++n)
    BOOST_CHECK_EXCEPTION(from_memory(whole.substr(0, n)), io::Error,
                          [](const io::Error& e) { return std::string(e.what()).starts_with("it: "); });
}

BOOST_AUTO_TEST_CASE(strided_views_are_written_in_their_order) {
  io::Tensor t(f32, {2, 3});
  std::iota(t.as<float>().begin(), t.as<float>().end(), 0.0f);
  TensorView transposed = t.view();
  std::swap(transposed.shape[0], transposed.shape[1]);
  std::swap(transposed.strides[0], transposed.strides[1]);
  io::save_npy(path / "t.npy", transposed);
  const io::Tensor back = io::load_npy(path / "t.npy");
  const std::vector<float> want{0, 3, 1, 4, 2, 5};
  BOOST_CHECK_EQUAL_COLLECTIONS(back.as<float>().begin(), back.as<float>().end(), want.begin(), want.end());
}

BOOST_AUTO_TEST_CASE(accepts_what_numpy_versions_wrote) {
  const std::string two(8, '\0');
  for (const char version : {1, 2, 3})
    BOOST_CHECK_EQUAL(io::load_npy(write(file(header("<f4", "(2,)"), two, version))).size(), 2);
  for (const std::string text : {"{\"shape\":(2,),\"fortran_order\":False,\"descr\":\"<f4\"}",
                                 "{'descr': '<f4', 'fortran_order': False, 'shape': (2L,), }   \n",
                                 " { 'fortran_order' : False , 'descr' : '<f4' , 'shape' : ( 1 , 2 , ) } "})
    BOOST_CHECK_EQUAL(io::load_npy(write(file(text, two))).size(), 2);
  const io::Tensor flags = io::load_npy(write(file(header("|b1", "(3,)"), std::string("\0\1\7", 3))));
  BOOST_CHECK(flags.as<bool>()[2] && !flags.as<bool>()[0]);
  BOOST_CHECK_EQUAL(static_cast<int>(flags.data[2]), 1);
}

BOOST_AUTO_TEST_CASE(refuses_each_malformed_file) {
  const std::string six(24, '\0');
  fails(*this, "", "is empty");
  fails(*this, "PK\3\4 something else", "does not start with");
  fails(*this, "\x93NUMPY\4" + std::string(1, '\0'), "version 4.0");
  fails(*this, file(header("<f4", "(2, 3)"), six).replace(7, 1, "\1"), "version 1.1");
  fails(*this, file(header(">f4", "(2, 3)"), six), "big-endian");
  fails(*this, file(header("<f2", "(2, 3)"), six), "'<f2'; little-endian f4");
  fails(*this, file(header("<U4", "(2, 3)"), six), "'<U4'");
  fails(*this, file(header("|O", "(2, 3)"), six), "'|O'");
  fails(*this, file(header("", "(2, 3)"), six), "dtype ''");
  fails(*this, file(header("<", "(2, 3)"), six), "dtype '<'");
  fails(*this, file("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (6,), }", six), "array of records");
  fails(*this, file("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", six), "Fortran order");
  fails(*this, file("{'descr': '<f4', 'shape': (2, 3), }", six), "no 'fortran_order'");
  fails(*this, file("{'fortran_order': False, 'shape': (2, 3), }", six), "no 'descr'");
  fails(*this, file("{'descr': '<f4', 'fortran_order': False}", six), "no 'shape'");
  fails(*this, file("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", six),
        "repeated header entry");
  fails(*this, file("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'more': 1}", six), "unexpected");
  fails(*this, file(header("<f4", "(2, 3)") + "x", six), "malformed header");
  fails(*this, file(header("<f4", "(6)"), six), "malformed header");
  fails(*this, file(header("<f4", "(2 3)"), six), "malformed header");
  fails(*this, file(header("<f4", "(2, x)"), six), "malformed header");
  fails(*this, file(header("<f4", "[2, 3]"), six), "malformed header");
  fails(*this, file("{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2, 3), }", six), "malformed header");
  fails(*this, file("{'descr': '<f4, 'fortran_order': False, 'shape': (2, 3), }", six), "malformed header");
  fails(*this, file("", six), "malformed header");
  fails(*this, file("{", six), "malformed header");
  fails(*this, file(std::string(10, '\0'), six), "malformed header");
  fails(*this, file(header("<f4", "(1, 1, 1, 1, 1, 1, 6)"), six), "rank 7; at most 6");
  fails(*this, file(header("<f4", "(-2, -3)"), six), "negative dim");
  fails(*this, file(header("<f4", "(2, 4)"), six), "needs 32 bytes of data, the file has 24");
  fails(*this, file(header("<f4", "(2, 2)"), six), "bytes behind its data");
  fails(*this, file(header("<f4", "(0, 3)"), six), "bytes behind its data");
  fails(*this, file(header("<f4", "(1000000000, 1000000000)"), six), "is truncated");
  fails(*this, file(header("<f4", "(4294967296, 4294967296, 2)"), six), "larger than any memory");
  fails(*this, file(header("<f4", "(0, 4294967296, 4294967296)"), six), "larger than any memory");
  fails(*this, file(header("<f4", "(4611686018427387905,)"), six), "larger than any memory");
  fails(*this, file(header("<f4", "(99999999999999999999,)"), six), "larger than any memory");
  fails(*this, "\x93NUMPY\2" + std::string(1, '\0') + "\xff\xff\xff\xff" + six, "claims a header of 4294967295 bytes");
  fails(*this, "\x93NUMPY\2" + std::string(1, '\0') + std::string("\0\0\1\0", 4) + six, "ends inside its header");
}

BOOST_AUTO_TEST_CASE(refuses_truncation_at_every_byte) {
  for (const char version : {1, 2}) {
    const std::string whole = file(header("<f8", "(2, 2)"), std::string(32, '\1'), version);
    BOOST_CHECK_EQUAL(io::load_npy(write(whole)).size(), 4);
    for (std::size_t n = 0; n < whole.size(); ++n) fails(*this, whole.substr(0, n), "");
  }
}

BOOST_AUTO_TEST_CASE(survives_every_changed_byte) {
  const std::string whole = file(header("<f4", "(2, 3)"), std::string(24, '\0'));
  for (std::size_t at = 0; at + 24 < whole.size(); ++at) {
    for (const char value : {'\0', '\1', '\'', '(', ')', ',', '-', '9', '{', '}', '\x7f', '\xff'}) {
      std::string changed = whole;
      changed[at] = value;
      try {
        BOOST_CHECK_EQUAL(io::load_npy(write(changed)).data.size(), 24);
      } catch (const io::Error&) {
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(refuses_what_is_no_file) {
  const auto says = [](const std::string& what) {
    return [what](const io::Error& error) { return std::string(error.what()).find(what) != std::string::npos; };
  };
  BOOST_CHECK_EXCEPTION(io::load_npy(path / "none.npy"), io::Error, says("no such file"));
  BOOST_CHECK_EXCEPTION(io::load_npy(path), io::Error, says("is a folder"));
  BOOST_CHECK_EXCEPTION(io::load_npy("/dev/zero"), io::Error, says("no regular file"));
  io::Tensor t(f32, {1});
  BOOST_CHECK_EXCEPTION(io::save_npy(path / "none" / "x.npy", t.view()), io::Error, says("cannot be written"));
  BOOST_CHECK_EXCEPTION(io::save_npy(path, t.view()), io::Error, says("is a folder"));
}

BOOST_AUTO_TEST_CASE(a_failed_write_leaves_what_was_there) {
  io::replace_file(path / "a", [](std::ostream& out) { out << "first"; });
  BOOST_CHECK_THROW(io::replace_file(path / "a",
                                     [](std::ostream& out) {
                                       out << "second";
                                       throw 1;
                                     }),
                    int);
  BOOST_CHECK_THROW(io::replace_file(path / "a", [](std::ostream& out) { out.setstate(std::ios::badbit); }), io::Error);
  BOOST_CHECK_EQUAL(io::read_text(path / "a"), "first");
  BOOST_CHECK_EQUAL(std::distance(fs::directory_iterator(path), {}), 1);
}

BOOST_AUTO_TEST_CASE(converts) {
  io::Tensor t(f64, {3});
  t.as<double>()[0] = 1.5, t.as<double>()[1] = -2.0, t.as<double>()[2] = 0.0;
  BOOST_CHECK_EQUAL(io::to_f32(t).as<float>()[0], 1.5f);
  BOOST_CHECK_EQUAL(io::convert(t, i32).as<std::int32_t>()[1], -2);
  BOOST_CHECK(!io::convert(t, boolean).as<bool>()[2]);
  t.as<double>()[0] = 3e9;
  BOOST_CHECK_THROW(io::convert(t, i32), io::Error);
  BOOST_CHECK_EQUAL(io::convert(t, i64).as<std::int64_t>()[0], 3000000000);
  BOOST_CHECK_THROW(io::convert(io::convert(t, i64), i32), io::Error);
  BOOST_CHECK_THROW(io::Tensor(f32, {1, 1, 1, 1, 1, 1, 1}), io::Error);
}

BOOST_AUTO_TEST_SUITE_END()
