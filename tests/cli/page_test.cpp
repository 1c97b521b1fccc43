// The pages of --html: what their data says, that they load nothing, and what happens to bad names, bad numbers and
// bad paths. scripts/check_pages.py opens them in a browser.

#include "support.hpp"

#include <treadle/io/npy.hpp>
#include <treadle/io/tensor.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <limits>

using namespace treadle;
using namespace treadle::test;
using nlohmann::json;

namespace {

/// What stands in the page's data element.
json data_of(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const std::size_t begin = page.find(open), end = page.find("</script>", begin);
  BOOST_TEST_REQUIRE((begin != std::string::npos && end != std::string::npos));
  return json::parse(page.substr(begin + open.size(), end - begin - open.size()));
}

void write_qkv(const fs::path& folder, std::int64_t length, float first) {
  fs::create_directories(folder);
  for (const char* name : {"q", "k", "v"}) {
    io::Tensor t(f32, {1, 2, length, 8});
    float x = 0.25F;
    for (float& f : t.as<float>()) f = x = x * 3.7F * (1 - x);  // anything that is no constant
    t.as<float>()[0] = first;
    io::save_npy(folder / (std::string(name) + ".npy"), t.view());
  }
}

const std::string small = "compare --backend simd --repetitions 1 --heads 2 --head-dim 16 --lengths 64,128,192 ";

}  // namespace

BOOST_AUTO_TEST_SUITE(page)

BOOST_AUTO_TEST_CASE(the_page_has_what_was_measured) {
  const Folder f;
  const Outcome o = run(small + "--variants dense,window:16,16,linear,causal --html '" + f / "page.html" +
                        "' --json '" + f / "rows.json" + "' --csv '" + f / "rows.csv" + "'");
  BOOST_TEST_REQUIRE(o.code == 0, o.error);
  const std::string page = read(f / "page.html");
  const json d = data_of(page);
  BOOST_TEST(d["kind"] == "compare");
  BOOST_TEST(d["rows"] == json::parse(read(f / "rows.json"))["rows"]);
  BOOST_TEST(d["files"]["csv"].get<std::string>() == read(f / "rows.csv"));
  BOOST_TEST(json::parse(d["files"]["json"].get<std::string>()) == json::parse(read(f / "rows.json")));
  BOOST_TEST(d["crossovers"].size() == 2u);  // window and linear against dense; causal has no baseline but itself
  BOOST_TEST(d["exponents"].size() == 4u);
  BOOST_TEST(d["heads"].size() == d["rows"].size());
  for (const json& h : d["heads"]) BOOST_TEST(h["error"].size() == 2u);
  BOOST_TEST(d["roofline"]["kernels"].size() >= d["rows"].size());
  for (const json& k : d["roofline"]["kernels"]) BOOST_TEST(k["milliseconds"].get<double>() > 0);
  BOOST_TEST(d["roofline"]["bandwidths"].back()["gigabytes_per_second"].get<double>() > 0);
  BOOST_TEST(d["attention"].empty());
  BOOST_TEST(d["head"]["machine"]["cpu"].get<std::string>() != "");

  BOOST_TEST_REQUIRE(d["masks"].size() == 3u);  // linear attention has no pairs
  for (const json& m : d["masks"]) {
    BOOST_TEST(m["length"] == 192);
    const auto strip = m["strip"].get<std::int64_t>(), block = m["block"].get<std::int64_t>();
    BOOST_TEST(static_cast<std::int64_t>(m["rows"].size()) == (192 + strip - 1) / strip);
    for (const json& row : m["rows"])
      BOOST_TEST(static_cast<std::int64_t>(row.get<std::string>().size()) == (192 + block - 1) / block);
  }
  BOOST_TEST(d["masks"][0]["useful"] == 192 * 192);
  BOOST_TEST(d["masks"][2]["useful"] == 192 * 193 / 2);
  BOOST_TEST(has(d["masks"][0]["rows"][0].get<std::string>(), "f"));
  BOOST_TEST(!has(d["masks"][2]["rows"][0].get<std::string>(), "f"));
}

BOOST_AUTO_TEST_CASE(the_page_loads_nothing) {
  const Folder f;
  BOOST_TEST_REQUIRE(
      run("compare --quick --repetitions 1 --variants dense --heads 1 --lengths 64 --html '" + f / "page.html" + "'")
          .code == 0);
  const std::string page = read(f / "page.html");
  for (const char* part : {" src=", "<link", "@import", "fetch(", "XMLHttpRequest", "import("})
    BOOST_TEST(!has(page, part), part);
  BOOST_TEST(has(page, "default-src 'none'"));
  BOOST_TEST(has(page, "Chart.js v"));
  BOOST_TEST(has(page, "MIT License"));
  BOOST_TEST(!has(page, "{{"));
}

BOOST_AUTO_TEST_CASE(names_are_text_and_no_markup) {
  const Folder f;
  const std::string name = "a \"b\" & <script><!-- ünïcödé 注意";
  write_qkv(fs::path(f / name), 24, 0);
  const std::string file = "a page \"of\" ü & <b>.html";
  const Outcome o = run("compare --backend simd --repetitions 1 --variants dense,causal --qkv '" + f / name +
                        "' --html '" + f / file + "'");
  BOOST_TEST_REQUIRE(o.code == 0, o.error);
  const std::string page = read(f / file);
  const json d = data_of(page);
  BOOST_TEST(d["rows"][0]["input"].get<std::string>() == name);
  BOOST_TEST(!has(page, "<script><!--"));
  BOOST_TEST_REQUIRE(d["attention"].size() == 2u);
  const json& causal = d["attention"][1];
  BOOST_TEST(causal["queries"].size() == 24u);
  BOOST_TEST_REQUIRE(causal["layers"][0]["heads"].size() == 2u);
  // The first query sees the first key alone: its weight is 1, the next is 0.
  BOOST_TEST(causal["layers"][0]["heads"][0].get<std::string>().substr(0, 4) == "/wAA");
}

BOOST_AUTO_TEST_CASE(many_tokens_are_pooled) {
  const Folder f;
  write_qkv(fs::path(f / "in"), 130, 0);
  BOOST_TEST_REQUIRE(run("compare --backend simd --repetitions 1 --variants dense --qkv '" + f / "in" + "' --html '" +
                         f / "p.html" + "'")
                         .code == 0);
  const json map = data_of(read(f / "p.html"))["attention"][0];
  BOOST_TEST(map["keys"].size() == 44u);  // groups of 3
  BOOST_TEST(map["keys"][43] == "129–129");
  BOOST_TEST(has(map["note"].get<std::string>(), "groups of 3"));
}

BOOST_AUTO_TEST_CASE(what_is_no_number_becomes_null) {
  const Folder f;
  write_qkv(fs::path(f / "nan"), 16, std::numeric_limits<float>::quiet_NaN());
  const Outcome o = run("compare --backend simd --repetitions 1 --variants dense --qkv '" + f / "nan" + "' --html '" +
                        f / "p.html" + "'");
  BOOST_TEST_REQUIRE(o.code == 0, o.error);
  const json d = data_of(read(f / "p.html"));
  BOOST_TEST(d["rows"][0]["relative_error"].is_null());
}

BOOST_AUTO_TEST_CASE(bad_paths_are_refused_before_anything_runs) {
  const Folder f;
  check_refused(small + "--html '" + f / "no/such/page.html" + "'", "there is no folder");
  check_refused(small + "--html '" + f / "." + "'", "is a folder");
  check_refused(small + "--html '" + f / "x" + "' --json '" + f / "x" + "'", "--json and --html both name");
  check_refused(small + "--trace '" + f / "no/such/trace.json" + "'", "there is no folder");
  setenv("TREADLE_CHART_JS", (f / "none.js").c_str(), 1);
  check_refused(small + "--html '" + f / "page.html" + "'", "libjs-chart.js");
  unsetenv("TREADLE_CHART_JS");
}

// A limit of the file size stands in for a full disk: writing fails in the middle.
BOOST_AUTO_TEST_CASE(a_disk_that_fills_leaves_the_old_page) {
  const Folder f;
  std::ofstream(f / "page.html") << "the old page";
  const std::string command = std::string("trap '' XFSZ; ulimit -f 64; '") + TREADLE_CLI_PATH + "' " + small +
                              "--variants dense --html '" + f / "page.html" + "' >/dev/null 2>'" + f / "error" + "'";
  const int status = std::system(("bash -c \"" + command + "\"").c_str());
  BOOST_TEST(WEXITSTATUS(status) == 2);
  BOOST_TEST(has(read(f / "error"), "cannot write"));
  BOOST_TEST(read(f / "page.html") == "the old page");
  BOOST_TEST(std::distance(fs::directory_iterator(f / "."), fs::directory_iterator()) == 2);  // the page and "error"
}

BOOST_AUTO_TEST_CASE(a_trace_has_the_last_run_of_each_variant) {
  const Folder f;
  BOOST_TEST_REQUIRE(run(small + "--variants dense,window:16,16 --trace '" + f / "t.json" + "'").code == 0);
  const json t = json::parse(read(f / "t.json"));
  std::vector<std::string> models;
  std::size_t attentions = 0;
  for (const json& e : t["traceEvents"]) {
    if (e["name"] == "process_name") models.push_back(e["args"]["name"]);
    if (e["ph"] == "X" && e["cat"] == "attention" && e["tid"] == 0) ++attentions;
  }
  BOOST_TEST_REQUIRE(models.size() == 6u);
  BOOST_TEST(models[1] == "random × 64: window:16,16");
  BOOST_TEST(attentions == 6u);
  BOOST_TEST(t["otherData"]["hardware_counters"].is_string());
}

BOOST_AUTO_TEST_CASE(a_checkpoint_has_a_page_of_its_own) {
  const Folder f;
  const std::string bert = std::string(TREADLE_TEST_DATA) + "/models/bert/";
  for (const char* file : {"config.json", "model.safetensors"}) fs::copy_file(bert + file, f / file);
  std::string words = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (char c = 'a'; c <= 'z'; ++c) words.append(1, c).append("\n##").append(1, c).append("\n");
  for (int i = 57; i < 120; ++i) words.append("[unused").append(std::to_string(i)).append("]\n");
  f.write("vocab.txt", words);
  std::string text;
  for (int i = 0; i < 200; ++i) text.append(1, static_cast<char>('a' + i * 7 % 26)).append(i % 3 == 0 ? " " : "");
  f.write("text", text);
  const Outcome o = run("compare --backend simd --checkpoint '" + f.path.string() + "' --text '" + f / "text" +
                        "' --tokens 24 --passages 4 --variants window:2,2,linear --html '" + f / "p.html" +
                        "' --json '" + f / "p.json" + "' --trace '" + f / "t.json" + "'");
  BOOST_TEST_REQUIRE(o.code == 0, o.error);
  const json d = data_of(read(f / "p.html"));
  BOOST_TEST(d["kind"] == "checkpoint");
  BOOST_TEST(d["rows"] == json::parse(read(f / "p.json"))["rows"]);
  BOOST_TEST_REQUIRE(d["attention"].size() == 2u);  // linear attention has no weights of pairs
  BOOST_TEST(d["attention"][0]["name"] == "dense: encoder self-attention");
  BOOST_TEST(d["attention"][0]["layers"].size() == 2u);
  BOOST_TEST(d["attention"][1]["name"] == "window:2,2: encoder self-attention");
  BOOST_TEST(d["attention"][0]["queries"][0] == "[CLS]");
  BOOST_TEST(has(read(f / "t.json"), "\"name\":\"window:2,2\""));
}

BOOST_AUTO_TEST_CASE(explain_has_a_page) {
  const Folder f;
  const Outcome o = run("explain written_out --backend simd --html '" + f / "p.html" + "' --trace '" + f / "t.json" +
                        "' --output '" + f / "text" + "'");
  BOOST_TEST_REQUIRE(o.code == 0, o.error);
  const json d = data_of(read(f / "p.html"));
  BOOST_TEST(d["kind"] == "explain");
  BOOST_TEST_REQUIRE(d["stages"].size() > 5u);
  const auto attentions = [&](const json& stage) {
    int n = 0;
    for (const json& node : stage["graph"]["nodes"]) n += node["op"] == "attention";
    return n;
  };
  BOOST_TEST(attentions(d["stages"].front()) == 0);
  BOOST_TEST(attentions(d["stages"].back()) > 0);
  BOOST_TEST(!d["memory"]["buffers"].empty());
  BOOST_TEST(has(d["files"]["dot_after"].get<std::string>(), "digraph"));
  BOOST_TEST(has(read(f / "text"), "attention"));
  BOOST_TEST(has(read(f / "t.json"), "\"cat\":\"attention\""));

  check_refused("explain tiny_gpt --before --html '" + f / "x.html" + "'",
                "--html and --trace are about the whole model");
  check_refused("explain tiny_gpt --html '" + f / "no/x.html" + "'", "there is no folder");
  check_refused("explain tiny_gpt --backend reference --trace '" + f / "x.json" + "'", "has no steps to trace");
}

BOOST_AUTO_TEST_SUITE_END()
