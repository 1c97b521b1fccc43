// JSON that nobody has looked at, and the text of errors.
#include "safetensors_files.hpp"

#include <treadle/io/json.hpp>
#include <treadle/io/mapped_file.hpp>
#include <treadle/io/text.hpp>

using namespace treadle;
using namespace treadle::test;

BOOST_FIXTURE_TEST_SUITE(json, Folder)

BOOST_AUTO_TEST_CASE(reads_and_refuses) {
  const auto says = [](const std::string& text, const std::string& what, io::JsonLimits limits = {}) {
    refuses([&] { io::parse_json(text, limits); }, what);
  };
  BOOST_CHECK_EQUAL(io::parse_json(R"({"a":[1,{"a":2}],"b":{"a":3}})").at("b").at("a"), 3);
  BOOST_CHECK_EQUAL(io::parse_json("[\"\xf0\x9f\x98\x80\\u00fc\"]")[0], "\xf0\x9f\x98\x80\xc3\xbc");
  says("", "is no valid JSON: parse error at line 1, column 1");
  says("{\"a\":1,}", "is no valid JSON: parse error");
  says("[1] x", "is no valid JSON");
  says("[1e999]", "is no valid JSON");
  says("[NaN]", "is no valid JSON");
  says("[\"\t\"]", "is no valid JSON");
  says("[\"" + std::string(100000, 'x'), "is no valid JSON: parse error");
  says(std::string("[1]\0", 4), "is no valid JSON: byte 3 is 0");
  says("[\"\xc0\x80\"]", "is no UTF-8: byte 2 of the JSON, '\\xc0'");
  says(R"({"a":{"b":1,"c":2,"b":3}})", "has the key 'b' twice in one object; each once is right");
  says("[1,2,3]", "has 7 bytes of JSON; at most 6 are read", {.bytes = 6, .depth = 9});
  const auto nested = [](std::size_t n) { return std::string(n, '[') + std::string(n, ']'); };
  BOOST_CHECK(io::parse_json(nested(64)).is_array());
  says(nested(65), "nests deeper than 64 levels of objects and lists");
  says(std::string(1000000, '['), "nests deeper than 64 levels");
  BOOST_CHECK(io::parse_json("[[],[],{},[]]", {.bytes = 99, .depth = 2}).is_array());
  says("[[],[[]]]", "nests deeper than 2 levels", {.bytes = 99, .depth = 2});
}

BOOST_AUTO_TEST_CASE(reads_files) {
  BOOST_CHECK_EQUAL(io::read_json(write("a.json", "{\"a\": 1}")).at("a"), 1);
  refuses([&] { io::read_json(path / "none.json"); }, "none.json: no such file");
  refuses([&] { io::read_json(path); }, "is a folder");
  refuses([&] { io::read_json(write("a.json", "{")); }, "a.json: is no valid JSON");
  refuses([&] { io::read_json(write("a.json", "[1,2]"), {.bytes = 4, .depth = 1}); }, "a.json: has 5 bytes of JSON");
}

BOOST_AUTO_TEST_CASE(utf8) {
  const auto good = [](std::string_view text) { return io::find_bad_utf8(text) == std::string_view::npos; };
  for (const std::string_view text : {"", "a", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
                                      "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"})
    BOOST_CHECK_MESSAGE(good(text), text);
  for (const std::string_view text :
       {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2\x41", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xed\xbf\xbf",
        "\xe1\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xf1\x80\x80", "\xff", "\xfe"})
    BOOST_CHECK_MESSAGE(!good(text), text);
  BOOST_CHECK_EQUAL(io::find_bad_utf8("abc\xc3\xbcx\xff"), 6);
}

BOOST_AUTO_TEST_CASE(shows_text_on_one_line) {
  BOOST_CHECK_EQUAL(io::in_quotes("h.0.w"), "'h.0.w'");
  BOOST_CHECK_EQUAL(io::in_quotes("ü'\\\n\x7f\xc2\x85\xff"), "'ü\\'\\\\\\x0a\\x7f\\xc2\\x85\\xff'");
  BOOST_CHECK_EQUAL(io::in_quotes(std::string(79, 'a') + "ü"), "'" + std::string(79, 'a') + "…'");
  BOOST_CHECK_EQUAL(io::in_quotes(std::string(80, 'a')), "'" + std::string(80, 'a') + "'");
}

BOOST_AUTO_TEST_CASE(maps_files) {
  io::MappedFile empty(write("empty", ""));
  BOOST_CHECK(empty.bytes().empty());
  io::MappedFile file(write("f", "abc"));
  const std::byte* at = file.bytes().data();
  io::MappedFile moved = std::move(file);
  BOOST_CHECK(moved.bytes().data() == at && moved.bytes().size() == 3 && moved.bytes()[2] == std::byte{'c'});
  empty = std::move(moved);
  BOOST_CHECK(empty.bytes().data() == at && io::MappedFile().bytes().empty());
  refuses([&] { io::MappedFile{path}; }, "is a folder");
  refuses([&] { io::MappedFile{path / "none"}; }, "no such file");
}

BOOST_AUTO_TEST_SUITE_END()
