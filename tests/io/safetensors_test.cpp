// Safetensors files: what they hold, every way to be malformed, truncation and changes at every byte.
#include "safetensors_files.hpp"

#include <treadle/io/json.hpp>

using namespace treadle;
using namespace treadle::test;
namespace fs = std::filesystem;

namespace {

const std::string four("\0\0\x80\x3f\0\0\x20\xc0\0\0\0\0\0\0\x50\x40", 16);  // 1, −2.5, 0, 3.25
const std::string good = safetensors_file(R"({"__metadata__":{"format":"pt"},)" + entry("w", "F32", "2,1", "8,16") +
                                              "," + entry("a.b", "F16", "4", "0,8") + "}",
                                          four);

void fails(const std::string& bytes, const std::string& what) {
  refuses([&] { read_bytes(bytes); }, what);
  refuses([&] { read_bytes(bytes); }, "f.safetensors: ");
}
void fails_header(const std::string& header, const std::string& what) { fails(safetensors_file(header, four), what); }

}  // namespace

BOOST_FIXTURE_TEST_SUITE(safetensors, Folder)

BOOST_AUTO_TEST_CASE(holds_what_the_header_says) {
  const fs::path file = write("x.safetensors", good);
  io::Safetensors moved = io::Safetensors::open(file);
  const std::byte* where = moved.tensors()[0].bytes.data();
  const io::Safetensors s = std::move(moved);
  BOOST_REQUIRE_EQUAL(s.tensors().size(), 2);
  BOOST_CHECK_EQUAL(s.tensors()[0].name, "a.b");
  BOOST_CHECK_EQUAL(s.tensors()[1].name, "w");
  BOOST_CHECK(s.tensors()[0].bytes.data() == where);
  BOOST_CHECK(s.find("none") == nullptr && s.find("") == nullptr && s.find("x") == nullptr);
  const io::StoredTensor* w = s.find("w");
  BOOST_REQUIRE(w != nullptr);
  BOOST_CHECK(w->type == io::StoredType::f32 && w->file == file);
  BOOST_CHECK((w->shape == std::vector<std::int64_t>{2, 1}));
  const io::Tensor t = io::to_tensor(*w);
  BOOST_CHECK(t.dtype == f32 && t.shape == w->shape && t.as<float>()[0] == 0.0f && t.as<float>()[1] == 3.25f);
  BOOST_CHECK_EQUAL(s.metadata().at("format"), "pt");
  BOOST_CHECK_EQUAL(s.metadata().size(), 1);
  BOOST_CHECK_EQUAL(s.bytes(), good.size());
}

BOOST_AUTO_TEST_CASE(empty_tensors_scalars_and_none) {
  const std::string bytes =
      safetensors_file("{" + entry("e", "F64", "0,4294967296", "4,4") + "," + entry("s", "I32", "", "0,4") + "," +
                           entry("z", "U8", "3,0", "4,4") + "," + entry("", "BOOL", "2", "4,6") + "}   ",
                       std::string("\7\0\0\0\1\5", 6));
  const io::Safetensors s = read_bytes(bytes);
  BOOST_CHECK_EQUAL(s.tensors().size(), 4);
  BOOST_CHECK_EQUAL(io::to_tensor(*s.find("s")).as<std::int32_t>()[0], 7);
  BOOST_CHECK(io::to_tensor(*s.find("e")).data.empty() && s.find("e")->bytes.empty());
  const io::Tensor flags = io::to_tensor(*s.find(""));
  BOOST_CHECK_EQUAL(static_cast<int>(flags.data[1]), 1);
  BOOST_CHECK(read_bytes(safetensors_file("{}")).tensors().empty());
}

BOOST_AUTO_TEST_CASE(refuses_a_malformed_start) {
  fails("", "is empty; a safetensors file is needed");
  fails("abc", "ends inside its header length: 8 bytes are needed, there are 3");
  fails(std::string(8, '\0') + "{}", "claims a header of 0 bytes");
  fails(std::string("\0\0\0\0\0\0\0\x80", 8) + "{}", "claims a header of 9223372036854775808 bytes; at most 100 MB");
  fails(std::string(8, '\xff') + "{}", "claims a header of 18446744073709551615 bytes");
  fails(std::string("\0\xe1\xf5\x05\0\0\0\0", 8) + "{}",
        "ends inside its header: 100000000 bytes are needed, 2 are left");
  fails(std::string("\1\xe1\xf5\x05\0\0\0\0", 8) + "{}", "claims a header of 100000001 bytes; at most");
  fails(safetensors_file("[1,2,3]"), "does not start with '{'");
  fails(safetensors_file(" {}"), "does not start with '{'");
  fails(safetensors_file("{\"w\":"), "has a header that is no valid JSON: parse error");
  fails(safetensors_file("{}{}"), "is no valid JSON");
  fails(safetensors_file(std::string("{}\0 ", 4)), "is no valid JSON: byte 2 is 0");
  fails_header("{" + entry("w\xff", "F32", "4", "0,16") + "}", "is no UTF-8: byte 3 of the JSON, '\\xff'");
  fails_header("{" + entry("\\ud800", "F32", "4", "0,16") + "}", "is no valid JSON");
  fails_header("{\"w\":" + std::string(9, '[') + std::string(9, ']') + "}", "nests deeper than 8 levels");
  fails_header("{\"w\":" + std::string(100000, '['), "nests deeper than 8 levels");
}

BOOST_AUTO_TEST_CASE(refuses_malformed_entries) {
  const auto one = [](const std::string& value) { return "{\"w\":" + value + "}"; };
  fails_header(one("3"), "tensor 'w' is number; an object with dtype, shape and data_offsets is needed");
  fails_header(one(R"({"shape":[4],"data_offsets":[0,16]})"), "tensor 'w' has no 'dtype'");
  fails_header(one(R"({"dtype":7,"shape":[4],"data_offsets":[0,16]})"), "has the dtype '7'; the name of a type");
  fails_header(one(R"({"dtype":"F32","data_offsets":[0,16]})"), "has no 'shape'; a list of dims is needed");
  fails_header(one(R"({"dtype":"F32","shape":4,"data_offsets":[0,16]})"), "has the shape '4'; a list of dims");
  fails_header(one(R"({"dtype":"F32","shape":[4]})"), "has no 'data_offsets'; a list of begin and end");
  fails_header(one(R"({"dtype":"F32","shape":[4],"data_offsets":{}})"), "has the data_offsets object; a list");
  fails_header(one(R"({"dtype":"F32","dtype":"F32","shape":[4],"data_offsets":[0,16]})"), "has the key 'dtype' twice");
  fails_header("{" + entry("w", "F33", "4", "0,16") + "}",
               "tensor 'w' has the dtype 'F33'; one of BOOL, U8, I8, F8_E5M2, F8_E4M3, I16, U16, F16, BF16, I32, U32, "
               "F32, F64, I64, U64 is read");
  const auto with = [](const std::string& shape, const std::string& offsets, const std::string& dtype = "F32") {
    return "{" + entry("w", dtype, shape, offsets) + "}";
  };
  fails_header(with("-4", "0,16"), "has '-4' in its shape; whole numbers from 0 are needed");
  fails_header(with("4.0", "0,16"), "has '4.0' in its shape");
  fails_header(with("\\\"4\\\"", "0,16"), "is no valid JSON");
  fails_header(with("\"4\"", "0,16"), "in its shape; whole numbers");
  fails_header(with("[4]", "0,16"), "has array in its shape");
  fails_header(with("9223372036854775808", "0,16"), "has the dim 9223372036854775808, larger than any memory");
  fails_header(with("18446744073709551616", "0,16"), "in its shape; whole numbers");
  fails_header(with("8589934592,8589934592", "0,16"), "has the shape [8589934592, 8589934592], larger than any memory");
  fails_header(with("4611686018427387905,4", "0,16"), "larger than any memory");
  fails_header(with("0,4611686018427387905,4", "0,0"), "larger than any memory");
  std::string ones = "1";
  for (int i = 1; i < 65; ++i) ones += ",1";
  fails_header(with(ones, "0,4"), "has rank 65; at most 64 is read");
  fails_header(with("4", "0"), "has 1 data_offsets; begin and end are needed");
  fails_header(with("4", "0,16,16"), "has 3 data_offsets");
  fails_header(with("4", "-16,0"), "has '-16' in its data_offsets");
  fails_header(with("4", "0,16.5"), "has '16.5' in its data_offsets");
  fails_header(with("4", "16,0"), "has the data_offsets [16, 0]; begin must not lie behind end");
  fails_header(with("5", "0,16"), "has the data_offsets [0, 16], 16 bytes; shape [5] of F32 needs 20");
  fails_header(with("4", "0,16", "F16"), "shape [4] of F16 needs 8");
  fails_header(with("1", "0,0"), "shape [1] of F32 needs 4");
  fails_header(with("0", "0,16"), "shape [0] of F32 needs 0");
  fails_header(with("4", "18446744073709551600,18446744073709551615"), "15 bytes; shape [4]");
  fails_header(with("4", "18446744073709551599,18446744073709551615"), "ends at byte 18446744073709551615 of the data");
  fails(safetensors_file(with("4", "0,16"), four.substr(0, 12)),
        "ends at byte 16 of the data; the file has 12 bytes of it: it is truncated, or the data_offsets are wrong");
  fails_header(one("{}").replace(2, 1, std::string("\\u001b\\n\\u202e'\\\\")),
               "tensor '\\x1b\\x0a\\xe2\\x80\\xae\\'\\\\' ");
  fails_header("{\"" + std::string(5000, 'x') + "\":{}}", std::string(80, 'x') + "…'");
}

BOOST_AUTO_TEST_CASE(refuses_a_wrong_layout) {
  const auto two = [](const std::string& a, const std::string& b) { return "{" + a + "," + b + "}"; };
  fails_header(two(entry("a", "F32", "3", "0,12"), entry("b", "F32", "2", "8,16")),
               "tensor 'b' starts at byte 8 of the data, before tensor 'a' ends at byte 12");
  fails_header(two(entry("a", "F32", "4", "0,16"), entry("b", "F32", "4", "0,16")),
               "before tensor 'a' ends at byte 16");
  fails_header(
      two(entry("a", "F32", "1", "0,4"), entry("b", "F32", "2", "8,16")),
      "tensor 'b' starts at byte 8 of the data, but bytes 4 to 8 belong to no tensor; it should start at byte 4");
  fails_header("{" + entry("w", "F32", "3", "4,16") + "}", "but bytes 0 to 4 belong to no tensor");
  fails_header("{" + entry("w", "F32", "3", "0,12") + "}", "has 4 bytes behind its last tensor");
  fails_header("{}", "has 16 bytes behind its last tensor");
  fails_header(two(entry("a", "F32", "4", "0,16"), entry("b", "F32", "0", "8,8")), "before tensor 'a' ends");
  fails_header(two(entry("w", "F32", "2", "0,8"), entry("w", "F32", "2", "8,16")), "has the key 'w' twice");
  fails_header(two(entry("w", "F32", "2", "0,8"), entry("\\u0077", "F32", "2", "8,16")), "has the key 'w' twice");
}

BOOST_AUTO_TEST_CASE(refuses_malformed_metadata) {
  const auto with = [](const std::string& metadata) {
    return R"({"__metadata__":)" + metadata + "," + entry("w", "F32", "4", "0,16") + "}";
  };
  fails_header(with("[]"), "has a __metadata__ that is array; an object of strings is needed");
  fails_header(with("null"), "has a __metadata__ that is null");
  fails_header(with(R"({"a":"b","step":3})"), "has 'step' in its __metadata__ as number; a string is needed");
  fails_header(with(R"({"a":"b","a":"c"})"), "has the key 'a' twice");
}

BOOST_AUTO_TEST_CASE(refuses_truncation_at_every_byte) {
  BOOST_CHECK_EQUAL(read_bytes(good).tensors().size(), 2);
  for (std::size_t n = 0; n < good.size(); ++n) fails(good.substr(0, n), "");
  fails(good + "x", "1 bytes behind");
  const fs::path cut = write("cut.safetensors", good.substr(0, good.size() - 1));
  refuses([&] { io::Safetensors::open(cut); }, cut.string() + ": tensor 'w' ends at byte 16");
}

BOOST_AUTO_TEST_CASE(survives_every_changed_byte) {
  const std::size_t end = good.size() - four.size();
  std::size_t opened = 0;
  for (std::size_t at = 0; at < end; ++at) {
    for (int value = 0; value < 256; value += at < 8 ? 1 : 5) {
      std::string changed = good;
      changed[at] = static_cast<char>(value);
      try {
        const io::Safetensors s = read_bytes(changed);
        std::size_t bytes = 0;
        for (const io::StoredTensor& t : s.tensors()) {
          std::vector<float> numbers(t.bytes.size() / io::size_of(t.type));
          io::convert_to_f32(t, numbers.data());
          bytes += t.bytes.size();
        }
        BOOST_CHECK_EQUAL(bytes, four.size());
        ++opened;
      } catch (const io::Error&) {
      }
    }
  }
  BOOST_CHECK_GT(opened, 100);  // names and metadata may change
}

BOOST_AUTO_TEST_CASE(verdicts_of_the_shared_files) {
  const nlohmann::json from =
      io::read_json(fs::path(TREADLE_TEST_DATA) / "cases" / "81-safetensors-good-and-malformed-files.json");
  int files = 0;
  for (const nlohmann::json& one : from.at("attributes").at("files")) {
    const auto hex = one.at("hex").get<std::string>();
    std::string bytes;
    for (std::size_t i = 0; i < hex.size(); i += 2)
      bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    const fs::path file = write(one.at("name").get<std::string>(), bytes);
    bool accepted = true;
    try {
      const io::Safetensors s = io::Safetensors::open(file);
    } catch (const io::Error&) {
      accepted = false;
    }
    BOOST_CHECK_MESSAGE(accepted == (one.at("verdict") == "accept"), one.at("name"));
    ++files;
  }
  BOOST_CHECK_EQUAL(files, 34);
}

BOOST_AUTO_TEST_CASE(refuses_what_is_no_file) {
  refuses([&] { io::Safetensors::open(path / "none.safetensors"); }, "no such file");
  refuses([&] { io::Safetensors::open(path); }, "holds neither model.safetensors nor model.safetensors.index.json");
  refuses([&] { io::Safetensors::open("/dev/zero"); }, "is no regular file");
  refuses([&] { io::Safetensors::open(write("e.safetensors", "")); }, "is empty");
}

BOOST_AUTO_TEST_CASE(shards) {
  const auto shard = [&](const std::string& name, const std::string& tensor, const std::string& note) {
    write(name, safetensors_file(R"({"__metadata__":{"format":"pt",")" + tensor + "\":\"" + note + "\"}," +
                                     entry(tensor, "F32", "4", "0,16") + "}",
                                 four));
  };
  const auto index = [&](const std::string& text) { return write("model.safetensors.index.json", text); };
  const auto open = [&] { return io::Safetensors::open(path); };
  shard("1.safetensors", "b", "one");
  shard("2.safetensors", "a", "two");
  index(R"({"metadata":{"total_size":32},"weight_map":{"a":"2.safetensors","b":"1.safetensors"}})");
  const io::Safetensors s = open();
  BOOST_REQUIRE_EQUAL(s.tensors().size(), 2);
  BOOST_CHECK(s.find("a")->file == path / "2.safetensors" && s.find("b")->file == path / "1.safetensors");
  BOOST_CHECK_EQUAL(s.bytes(), fs::file_size(path / "1.safetensors") + fs::file_size(path / "2.safetensors"));
  BOOST_CHECK_EQUAL(s.metadata().size(), 3);
  BOOST_CHECK_EQUAL(io::Safetensors::open(path / "model.safetensors.index.json").tensors()[0].name, "a");

  const auto broken = [&](const std::string& text, const std::string& what) {
    index(text);
    refuses(open, what);
  };
  broken(R"({"weight_map":{"a":"2.safetensors","b":"3.safetensors"}})",
         "index.json: names the shard '3.safetensors', which does not exist beside it");
  broken(R"({"weight_map":{"a":"2.safetensors","c":"2.safetensors"}})",
         "index.json: lists tensor 'c' in the shard '2.safetensors', which does not hold it");
  broken(R"({"weight_map":{"c":"1.safetensors","a":"2.safetensors"}})", "1.safetensors: holds tensor 'b', which ");
  broken(R"({"weight_map":{"a":"1.safetensors","b":"2.safetensors"}})", "lists in '1.safetensors'");
  for (const std::string name :
       {"../1.safetensors", "/etc/passwd", "x/1.safetensors", "..", ".", "", "x\\\\y", "x\\u0000"})
    broken(R"({"weight_map":{"a":")" + name + R"("}})", "the name of a file beside the index is needed");
  broken(R"({"weight_map":{"a":3}})", "gives number as the file of tensor 'a'; a file name is needed");
  broken(R"({"weight_map":{}})", "has an empty weight_map");
  broken(R"({"weight_map":[]})", "has the weight_map array; an object, name to file, is needed");
  broken(R"({"metadata":{}})", "has no 'weight_map'");
  broken("[]", "holds array; an object with 'weight_map' is needed");
  broken(R"({"weight_map":{"a":"1.safetensors","a":"2.safetensors"}})", "index.json: has the key 'a' twice");
  write("2.safetensors", good.substr(0, good.size() - 4));
  broken(R"({"weight_map":{"a":"2.safetensors","b":"1.safetensors"}})", "2.safetensors: tensor 'w' ends at byte 16");
  write("model.safetensors", good);  // before the index
  BOOST_CHECK_EQUAL(open().tensors()[1].name, "w");
}

BOOST_AUTO_TEST_SUITE_END()
