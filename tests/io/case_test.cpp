// Case folders and JSON cases: all that are shipped, and the ways to be wrong.
#include <treadle/io/case.hpp>
#include <treadle/io/error.hpp>
#include <treadle/io/npy.hpp>

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <fstream>

#include <unistd.h>

using namespace treadle;
namespace fs = std::filesystem;

namespace {

const fs::path data = TREADLE_TEST_DATA;

struct Folder {
  fs::path path = fs::temp_directory_path() / ("treadle_case_" + std::to_string(::getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  fs::path write(const std::string& name, const std::string& text) const {
    std::ofstream(path / name, std::ios::binary) << text;
    return path / name;
  }
};

std::string message(const fs::path& path) {
  try {
    io::load_case(path);
  } catch (const io::Error& error) {
    return error.what();
  }
  return "no error";
}
void fails(const fs::path& path, const std::string& what) {
  const std::string text = message(path);
  BOOST_CHECK_MESSAGE(text.find(what) != std::string::npos && text.find('\n') == std::string::npos,
                      "wanted '" << what << "', got '" << text << "'");
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(cases, Folder)

BOOST_AUTO_TEST_CASE(reads_all_that_are_shipped) {
  const std::vector<fs::path> paths = io::find_cases({data / "golden" / "ops", data / "cases"});
  BOOST_CHECK_EQUAL(paths.size(), 80 + 72);
  BOOST_CHECK(std::ranges::is_sorted(paths.begin(), paths.begin() + 80));
  std::size_t without_call = 0, calls = 0;
  for (const fs::path& one : paths) {
    const io::Case c = io::load_case(one);
    BOOST_CHECK(!c.name.empty() && (c.numeric || c.calls.size() <= 1));
    without_call += c.calls.empty() ? 1 : 0;
    calls += c.calls.size();
    for (const io::Call& call : c.calls) {
      BOOST_CHECK(!call.op.empty() && call.attributes.is_object() && (!call.outputs.empty() || !c.numeric));
      if (c.numeric) BOOST_CHECK(c.f32.rtol + c.f32.atol > 0 && c.f64.rtol + c.f64.atol > 0);
    }
  }
  BOOST_CHECK_EQUAL(calls, 80 + 114);
  BOOST_CHECK_EQUAL(without_call, 7);
}

BOOST_AUTO_TEST_CASE(reads_a_folder) {
  const io::Case c = io::load_case(data / "golden" / "ops" / "attention_03_causal_24x24x16");
  BOOST_CHECK_EQUAL(c.name, "attention_03_causal_24x24x16");
  BOOST_REQUIRE_EQUAL(c.calls.size(), 1);
  const io::Call& call = c.calls[0];
  BOOST_CHECK_EQUAL(call.op, "attention");
  BOOST_CHECK_EQUAL(call.attributes.at("causal"), true);
  BOOST_CHECK(call.inputs.at("q").dtype == f32 && call.inputs.at("q").shape.size() == 4);
  BOOST_CHECK(call.outputs.at(0).name == "out" && call.outputs.at(0).required && call.outputs.at(0).want.dtype == f64);
  const auto found = io::find_cases({data / "golden" / "ops" / "attention_03_causal_24x24x16" / "case.json"});
  BOOST_CHECK_EQUAL(io::load_case(found.at(0)).name, c.name);
}

BOOST_AUTO_TEST_CASE(reads_values_json_has_no_word_for) {
  const io::Case c = io::load_case(
      write("c.json", R"({"calls": [{"op": "f", "attributes": {}, "inputs": {"x": "a"}, "outputs": {"out": "b"}}],
    "inputs": {"a": {"shape": [4], "dtype": "f", "data": ["nan", "inf", "-inf", 0.5]}},
    "expected": {"b": {"shape": [2, 1], "dtype": "i64", "data": [-3, 4], "compare": [1, 0]}},
    "tolerance": {"fp32": {"rtol": 0, "atol": 0.25}, "fp64": {"rtol": 1e-9, "atol": 0}}})"));
  const std::span<const double> x = c.calls[0].inputs.at("x").as<double>();
  BOOST_CHECK(std::isnan(x[0]) && x[1] == INFINITY && x[2] == -INFINITY && x[3] == 0.5);
  const io::Expected& e = c.calls[0].outputs.at(0);
  BOOST_CHECK(e.want.as<std::int64_t>()[0] == -3 && e.where && e.where->as<bool>()[0] && !e.where->as<bool>()[1]);
  BOOST_CHECK(c.f32.atol == 0.25 && c.f64.rtol == 1e-9);
}

BOOST_AUTO_TEST_CASE(refuses_malformed_json_cases) {
  const std::string call = R"("calls": [{"op": "f", "attributes": {}, "inputs": {"x": "a"}, "outputs": {"out": "b"}}])";
  const std::string tolerance = R"("tolerance": {"fp32": {"rtol": 0, "atol": 0}, "fp64": {"rtol": 0, "atol": 0}})";
  const auto with = [&](const std::string& a) {
    return write("c.json", "{" + call + ", " + tolerance + R"(, "inputs": {"a": )" + a +
                               R"(}, "expected": {"b": {"shape": [], "dtype": "f", "data": [1]}}})");
  };
  BOOST_CHECK_EQUAL(message(with(R"({"shape": [1], "dtype": "f", "data": [1]})")), "no error");
  fails(with(R"({"shape": [2], "dtype": "f", "data": [1]})"), "needs 2 elements, there are 1");
  fails(with(R"({"shape": [-1], "dtype": "f", "data": [1]})"), "negative dim");
  fails(with(R"({"shape": [4294967296, 4294967296], "dtype": "f", "data": [1]})"), "larger than any memory");
  fails(with(R"({"shape": [1.5], "dtype": "f", "data": [1]})"), "integer is needed");
  fails(with(R"({"shape": [1, 1, 1, 1, 1, 1, 1], "dtype": "f", "data": [1]})"), "rank 7");
  fails(with(R"({"shape": [1], "dtype": "f16", "data": [1]})"), "dtype 'f16'; f, i64 or bool");
  fails(with(R"({"shape": [1], "dtype": "f", "data": ["NaN"]})"), "\"nan\"");
  fails(with(R"({"shape": [1], "dtype": "bool", "data": [2]})"), "0 or 1");
  fails(with(R"({"shape": [1], "dtype": "f"})"), "has no 'data'");
  fails(with("3"), "{shape, dtype, data} is needed");
  fails(write("c.json", "{" + call + ", " + tolerance + R"(, "inputs": {}, "expected": {}})"),
        "names the tensor 'a', which is missing");
  fails(write("c.json", "{" + call + "}"), "has no 'tolerance'");
  fails(write("c.json", "{}"), "has no 'tolerance'");
  fails(write("c.json", R"({"numeric": false})"), "has no 'calls'");
  fails(write("c.json", R"({"numeric": 3, "calls": []})"), "c.json: ");
  fails(write("c.json", "[]"), "holds array instead of an object");
  fails(write("c.json", "{\"a\":"), "is no valid JSON");
  fails(write("c.json", ""), "is no valid JSON");
  fails(path / "none.json", "no such file");
}

BOOST_AUTO_TEST_CASE(refuses_malformed_folders) {
  const auto with = [&](const std::string& inputs, const std::string& rest) {
    write("case.json",
          R"({"op": "f", "attributes": {}, "outputs": ["out"], "rtol": 0, "inputs": )" + inputs + rest + "}");
    return path;
  };
  io::save_npy(path / "out.npy", io::Tensor(f64, {1}).view());
  BOOST_CHECK_EQUAL(message(with("[]", R"(, "atol": 0)")), "no error");
  fails(with(R"(["x"])", R"(, "atol": 0)"), "the input 'x' is missing");
  fails(with(R"(["../x"])", R"(, "atol": 0)"), "no name of a tensor");
  fails(with("[]", ""), "has no 'atol'");
  fails(with("[]", R"(, "atol": "0")"), "'atol' is string");
  fails(with("[]", R"(, "atol": -1)"), "negative");
  fails(with("[]", R"(, "atol": 0, "required_outputs": ["lse"])"), "'lse' is not among");
  write("x.npy", "no array");
  fails(with(R"(["x"])", R"(, "atol": 0)"), "x.npy: is no .npy file");
}

BOOST_AUTO_TEST_CASE(finds_nothing_where_nothing_is) {
  BOOST_CHECK_THROW(io::find_cases({path / "none"}), io::Error);
  BOOST_CHECK_THROW(io::find_cases({path}), io::Error);
  BOOST_CHECK_THROW(io::find_cases({write("x.txt", "")}), io::Error);
}

BOOST_AUTO_TEST_SUITE_END()
