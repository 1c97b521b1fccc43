// .npz archives: round trips, every way to be malformed, truncation and changes at every byte.
#include "safetensors_files.hpp"

#include <treadle/io/file.hpp>
#include <treadle/io/npy.hpp>
#include <treadle/io/npz.hpp>

#include <sstream>

using namespace treadle;
using namespace treadle::test;

namespace {

std::string npy(const io::Tensor& tensor) {
  std::ostringstream out;
  io::write_npy(out, tensor.view());
  return std::move(out).str();
}

std::uint32_t crc32(const std::string& bytes) {
  std::uint32_t crc = ~0U;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int i = 0; i < 8; ++i) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb88320U : 0U);
  }
  return ~crc;
}

std::string little(std::uint64_t x, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(x >> (8 * i) & 255);
  return text;
}

/// An entry as a ZIP archive has it, by hand, so that each of its facts may be wrong.
struct Packed {
  std::string name, bytes;
  std::uint32_t size = 0, crc = 0;
  std::uint16_t method = 0, flags = 0;
};
Packed stored(const std::string& name, const std::string& bytes) {
  return {name, bytes, static_cast<std::uint32_t>(bytes.size()), crc32(bytes), 0, 0};
}

std::string archive(const std::vector<Packed>& entries) {
  std::string file, list;
  for (const Packed& e : entries) {
    const std::string facts = little(20, 2) + little(e.flags, 2) + little(e.method, 2) + little(0, 2) + little(33, 2) +
                              little(e.crc, 4) + little(e.bytes.size(), 4) + little(e.size, 4) +
                              little(e.name.size(), 2) + little(0, 2);
    list += "PK\1\2" + little(20, 2) + facts + std::string(10, char{}) + little(file.size(), 4) + e.name;
    file += "PK\3\4" + facts + e.name + e.bytes;
  }
  return file + list + "PK\5\6" + little(0, 4) + little(entries.size(), 2) + little(entries.size(), 2) +
         little(list.size(), 4) + little(file.size(), 4) + little(0, 2);
}

std::map<std::string, io::Tensor> read(const std::string& bytes) {
  return io::load_npz(std::as_bytes(std::span(bytes)), "f.npz");
}
void fails(const std::string& bytes, const std::string& what) {
  refuses([&] { read(bytes); }, what);
  refuses([&] { read(bytes); }, "f.npz: ");
}

io::Tensor numbers() {
  io::Tensor t(f32, {2, 3});
  for (std::size_t i = 0; i < 6; ++i) t.as<float>()[i] = static_cast<float>(i) / 4;
  return t;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(npz, Folder)

BOOST_AUTO_TEST_CASE(round_trips) {
  const io::Tensor a = numbers(), ids(i64, {4}), none(f64, {0, 2}), one(i32, {}), flags(boolean, {3});
  const std::vector<NamedTensor> tensors{
      {"a", a.view()}, {"layer/ids", ids.view()}, {"ü", none.view()}, {"one", one.view()}, {"flags", flags.view()}};
  for (const bool deflated : {false, true}) {
    io::save_npz(path / "x.npz", tensors, deflated);
    const auto back = io::load_npz(path / "x.npz");
    BOOST_CHECK_EQUAL(back.size(), tensors.size());
    BOOST_CHECK(back.at("a").data == a.data && back.at("a").shape == a.shape);
    BOOST_CHECK(back.at("layer/ids").dtype == i64 && back.at("ü").shape == none.shape);
    BOOST_CHECK(back.at("one").shape.empty() && back.at("flags").dtype == boolean);
    const std::string first = io::read_text(path / "x.npz");
    io::save_npz(path / "x.npz", tensors, deflated);
    BOOST_CHECK(io::read_text(path / "x.npz") == first);
  }
  io::Tensor zeros(f32, {1 << 16});
  const NamedTensor large{"zeros", zeros.view()};
  io::save_npz(path / "x.npz", std::span(&large, 1), true);
  BOOST_CHECK_LT(std::filesystem::file_size(path / "x.npz"), 2000);
  BOOST_CHECK(io::load_npz(path / "x.npz").at("zeros").data == zeros.data);
  io::save_npz(path / "x.npz", {});
  BOOST_CHECK(io::load_npz(path / "x.npz").empty());
}

BOOST_AUTO_TEST_CASE(reads_what_numpy_wrote) {
  const std::filesystem::path corpus = std::filesystem::path(TREADLE_TEST_DATA).parent_path() / "fuzz/corpus/npz";
  for (const std::string name : {"stored.npz", "deflated.npz"}) {
    const auto tensors = io::load_npz(corpus / name);
    BOOST_REQUIRE_EQUAL(tensors.size(), 2);
    const io::Tensor &a = tensors.at("a"), &ids = tensors.at("ids");
    BOOST_CHECK(a.dtype == f32 && a.shape == (std::vector<std::int64_t>{2, 3}) && a.as<float>()[5] == 5.0f);
    BOOST_CHECK(ids.dtype == i64 && ids.as<std::int64_t>()[1] == 2);
  }
  BOOST_CHECK_EQUAL(io::load_npz(corpus / "zeros.npz").at("layer/ü").size(), 500);
  BOOST_CHECK(io::load_npz(corpus / "none.npz").empty());
}

BOOST_AUTO_TEST_CASE(refuses_each_malformed_archive) {
  const std::string file = npy(numbers());
  BOOST_CHECK_EQUAL(read(archive({stored("a.npy", file), stored("b.npy", file)})).size(), 2);
  fails("", "is empty; a .npz file is needed");
  fails("no archive", "is no .npz file: its ZIP archive cannot be read");
  fails(file, "is no .npz file");
  fails(archive({stored("a.txt", file)}), "entry 'a.txt' is no .npy file; a .npz file holds NAME.npy only");
  fails(archive({stored(".npy", file)}), "entry '.npy' is no .npy file");
  fails(archive({stored("folder/", "")}), "entry 'folder/' is no .npy file");
  fails(archive({stored("a.npy", file), stored("a.npy", file)}), "entry 'a.npy' is there twice");
  fails(archive({stored("a.npy", "text")}), "entry 'a.npy': is no .npy file");
  fails(archive({stored("a.npy", file.substr(0, file.size() - 1))}),
        "entry 'a.npy': is truncated: shape [2, 3] of f32");
  fails(archive({stored("a.npy", file + "x")}), "entry 'a.npy': has bytes behind its data");
  fails(archive({stored("a.npy", "")}), "entry 'a.npy': is empty");
  Packed wrong = stored("a.npy", file);
  wrong.crc ^= 1;
  fails(archive({wrong}), "entry 'a.npy': cannot be unpacked: CRC error");
  wrong = stored("a.npy", file);
  wrong.method = 12;
  fails(archive({wrong}), "entry 'a.npy' is packed by method 12; stored or deflated entries are read");
  wrong = stored("a.npy", file);
  wrong.flags = 1;
  fails(archive({wrong}), "entry 'a.npy' is encrypted");
  wrong = stored("a.npy", file);
  wrong.method = 8;
  wrong.size = 4'000'000'000U;
  fails(archive({wrong}), "to 4000000000, more than deflate can");
  wrong.size = 5000;
  fails(archive({wrong}), "entry 'a.npy'");
}

BOOST_AUTO_TEST_CASE(a_bomb_is_refused_before_it_is_unpacked) {
  // A million floats in a few kilobytes, whose header speaks of six.
  io::Tensor zeros(f32, {1'000'000});
  std::string bytes = npy(zeros);
  const NamedTensor large{"a", zeros.view()};
  io::save_npz(path / "x.npz", std::span(&large, 1), true);
  std::string packed = io::read_text(path / "x.npz");
  BOOST_CHECK_LT(packed.size(), 10'000);
  // The same stream under the size of another array: the header does not fit what is declared.
  const std::string before = little(bytes.size(), 4), after = little(npy(numbers()).size(), 4);
  for (std::size_t at = packed.find(before); at != std::string::npos; at = packed.find(before, at + 1))
    packed.replace(at, 4, after);
  fails(packed, "entry 'a.npy': is truncated: shape [1000000] of f32 needs 4000000 bytes of data, the file has 24");
}

BOOST_AUTO_TEST_CASE(survives_truncation_and_every_changed_byte) {
  const io::Tensor a = numbers();
  const NamedTensor one{"a", a.view()};
  for (const bool deflated : {false, true}) {
    io::save_npz(path / "x.npz", std::span(&one, 1), deflated);
    const std::string whole = io::read_text(path / "x.npz");
    for (std::size_t n = 0; n < whole.size(); ++n) fails(whole.substr(0, n), "");
    for (std::size_t at = 0; at < whole.size(); ++at) {
      for (const char value : {'\0', '\1', '\7', 'P', '\x7f', '\xff'}) {
        std::string changed = whole;
        changed[at] = value;
        try {
          for (const auto& [name, tensor] : read(changed)) BOOST_CHECK(tensor.data == a.data);  // or the CRC is wrong
        } catch (const io::Error&) {
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_failed_write_leaves_the_old_file) {
  const std::filesystem::path file = write("x.npz", "old");
  const io::Tensor t = numbers();
  const auto saving = [&](std::vector<NamedTensor> tensors) { return [=] { io::save_npz(file, tensors); }; };
  refuses(saving({{"a", t.view()}, {"a", t.view()}}), "x.npz: cannot be written: two tensors are named 'a'");
  refuses(saving({{"", t.view()}}), "a tensor has no name");
  refuses(saving({{"\xff", t.view()}}), "is no UTF-8 without zero bytes");
  refuses(saving({{std::string_view("a\0b", 3), t.view()}}), "'a\\x00b' is no UTF-8 without zero bytes");
  refuses(saving({{"a", TensorView{.rank = 1, .shape = {1}}}}), "the tensor 'a' is not given");
  BOOST_CHECK_EQUAL(io::read_text(file), "old");
  refuses([&] { io::save_npz(path / "none" / "x.npz", {}); }, "cannot be written");
  refuses([&] { io::load_npz(path / "none.npz"); }, "none.npz: no such file");
}

BOOST_AUTO_TEST_SUITE_END()
