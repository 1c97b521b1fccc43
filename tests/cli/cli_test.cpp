// The binary itself: exit codes, sentences, and the files that it writes.

#include <cli/support.hpp>

#include <boost/test/unit_test.hpp>

#include <nlohmann/json.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

using namespace treadle::test;

namespace {

/// A float32 .npy file with zeros, or whatever header is asked for.
void write_npy(const std::string& path, const std::string& shape, std::size_t bytes, const std::string& descr = "<f4",
               bool fortran = false) {
  std::string header =
      "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': " + shape + ", }";
  while ((header.size() + 11) % 64 != 0) header += ' ';
  header += '\n';
  std::ofstream out(path, std::ios::binary);
  out << "\x93NUMPY" << '\x01' << '\0' << static_cast<char>(header.size() % 256)
      << static_cast<char>(header.size() / 256) << header;
  out << std::string(bytes, '\0');
}

std::string small = "--lengths 32,64 --heads 2 --head-dim 16 --repetitions 2 ";

}  // namespace

BOOST_AUTO_TEST_SUITE(cli)

BOOST_AUTO_TEST_CASE(help_and_version) {
  const Outcome help = run("--help");
  BOOST_TEST(help.code == 0);
  for (const std::string command : {"compare", "verify", "explain", "backends", "peak"}) {
    BOOST_TEST(has(help.out, command));
    const Outcome o = run(command + " --help");
    BOOST_TEST(o.code == 0);
    BOOST_TEST(has(o.out, "--help"));
  }
  const Outcome version = run("--version");
  BOOST_TEST(version.code == 0);
  BOOST_TEST(version.out.rfind("treadle 0.", 0) == 0u);
}

BOOST_AUTO_TEST_CASE(wrong_command_lines_are_one_sentence) {
  check_refused("", "the commands are compare");
  check_refused("compair", "did you mean compare?");
  check_refused("compare --lenghts 5", "did you mean --lengths?");
  check_refused("compare --variants dense,wibble", "the variants are dense, causal");
  check_refused("compare --variants window:3", "window:LEFT,RIGHT");
  check_refused("compare --variants dense,,causal", "write a list");
  check_refused("compare --variants local:0", "the chunk of variant 'local:0' is 0: it must be from 1 to");
  check_refused("compare --variants local:64,-1", "the look-back of variant 'local:64,-1' is -1");
  check_refused("compare --variants local:64,1,2:causal", "has 3 numbers: write local:CHUNK,LOOKBACK");
  check_refused("compare --variants local:64:wobble", "the chunk of variant 'local:64:wobble' is '64:wobble'");
  check_refused("compare --variants bigbird:64,3", "write bigbird:BLOCK,WINDOW_BLOCKS,GLOBAL_BLOCKS,RANDOM_BLOCKS");
  check_refused("compare --variants bigbird:4,3,2,3", "the block of variant 'bigbird:4,3,2,3' is 4: it must be from 8");
  check_refused("compare --variants bigbird:64,2,2,3", "it must be odd");
  check_refused("compare --variants bigbird:64,3,2,x", "variant 'bigbird:64,3,2' has 3 numbers");
  check_refused("compare --variants bigbird:64,3,2,2000",
                "the number of random blocks of variant 'bigbird:64,3,2,2000' is");
  check_refused("compare --variants bigbirds", "bigbird[:B,W,G,R]");
  check_refused("compare --variants performer:0", "the number of features of variant 'performer:0' is 0");
  check_refused("compare --variants performer:9999999", "it must be from 1 to 8192");
  check_refused("compare --lengths 512:256", "256:512");
  check_refused("compare --lengths 1:2:3", "two ends");
  check_refused("compare --lengths 12x", "whole number");
  check_refused("compare --lengths 0", "from 1 to");
  check_refused("compare --lengths 99999999999999999999", "from 1 to");
  check_refused("compare --heads 6 --kv-heads 4", "does not divide");
  check_refused("compare --backend cuda", "reference, simd, tbb");
  check_refused("compare --backend reference", "use simd or tbb");
  check_refused("compare --isa sse9", "this CPU has");
  check_refused("compare --backend simd --threads 2", "--backend tbb");
  check_refused("compare --threads 0", "from 1 to");
  check_refused("compare --repetitions -1", "from 1 to");
  check_refused("compare --qkv /nowhere", "is no folder");
  check_refused("compare --qkv . --lengths 5", "leave out --lengths");
  check_refused("compare --json /nowhere/x.json", "there is no folder '/nowhere'");
  check_refused("compare --json", "--json");
  check_refused("compare dense", "unexpected argument 'dense'");
  check_refused("verify", "paths");
  check_refused("verify /nowhere", "/nowhere");
  check_refused("peak --threads x", "whole number");
}

BOOST_AUTO_TEST_CASE(absurd_sizes_are_refused_before_they_start) {
  const Folder f;
  std::ofstream(f / "old.json") << "old";
  check_refused("compare --lengths 2000000000 --json '" + f / "old.json" + "'", "of memory but");
  check_refused("compare --lengths 65536 --heads 65536 --batch 65536 --head-dim 4096", "use smaller");
  BOOST_TEST(read(f / "old.json") == "old");
}

BOOST_AUTO_TEST_CASE(bad_npy_files_are_refused) {
  const Folder f;
  check_refused("compare --qkv '" + f.path.string() + "'", "q.npy' does not exist");
  for (const char* name : {"q.npy", "k.npy", "v.npy"}) write_npy(f / name, "(1, 2, 8, 4)", 256);
  write_npy(f / "q.npy", "(1, 2, 8, 4)", 512, "<f8");
  check_refused("compare --qkv '" + f.path.string() + "'", "float32");
  write_npy(f / "q.npy", "(1, 2, 8, 4)", 256, "<f4", true);
  check_refused("compare --qkv '" + f.path.string() + "'", "q.npy");
  write_npy(f / "q.npy", "(2, 8, 4)", 256);
  check_refused("compare --qkv '" + f.path.string() + "'", "rank 4");
  write_npy(f / "q.npy", "(1, 2, 8, 4)", 100);
  check_refused("compare --qkv '" + f.path.string() + "'", "q.npy");
  write_npy(f / "q.npy", "(1, 3, 8, 4)", 384);
  check_refused("compare --qkv '" + f.path.string() + "'", "must divide");
  std::ofstream(f / "q.npy") << "not an array";
  check_refused("compare --qkv '" + f.path.string() + "'", "q.npy");
}

BOOST_AUTO_TEST_CASE(compare_writes_what_is_documented) {
  const Folder f;
  const Outcome o = run("compare " + small + "--seed 7 --json '" + f / "r.json" + "' --csv '" + f / "r.csv" + "'");
  BOOST_TEST_REQUIRE(o.code == 0, o.error);
  BOOST_TEST(o.error.empty());      // no progress where stderr is no terminal
  BOOST_TEST(!has(o.out, "\033"));  // and no colours
  const auto j = nlohmann::ordered_json::parse(read(f / "r.json"));
  std::vector<std::string> top, fields;
  for (const auto& [name, value] : j.items()) top.push_back(name);
  const std::vector<std::string> documented_top = {"machine", "compiler",    "commit", "version",  "seed",
                                                   "date",    "peak_gflops", "rows",   "exponents"};
  BOOST_TEST(top == documented_top, boost::test_tools::per_element());
  BOOST_TEST(j["seed"] == 7);
  BOOST_TEST(j["machine"].contains("cpu"));
  BOOST_TEST(j["machine"]["cores"].get<int>() >= 1);
  BOOST_TEST(j["peak_gflops"].get<double>() > 0);
  BOOST_TEST_REQUIRE(j["rows"].size() == 14u);  // 7 variants, 2 lengths
  const std::vector<std::string> documented = {
      "input",         "variant",    "causal",         "length",        "batch",           "heads",
      "kv_heads",      "head_dim",   "backend",        "isa",           "threads",         "repetitions",
      "median_ms",     "p10_ms",     "p90_ms",         "useful_gflops", "executed_gflops", "fraction_of_peak",
      "planned_bytes", "peak_bytes", "relative_error", "mean_entropy",  "sampled_rows"};
  for (const auto& row : j["rows"]) {
    fields.clear();
    for (const auto& [name, value] : row.items()) fields.push_back(name);
    BOOST_TEST(fields == documented, boost::test_tools::per_element());
    const double p10 = row["p10_ms"], median = row["median_ms"], p90 = row["p90_ms"];
    BOOST_TEST((0 < p10 && p10 <= median && median <= p90));
    BOOST_TEST(row["repetitions"] == 2);
    BOOST_TEST(row["sampled_rows"].get<int>() == 2 * row["length"].get<int>());
    BOOST_TEST(row["useful_gflops"].get<double>() <= row["executed_gflops"].get<double>() * 1.0001);
    const std::string variant = row["variant"];
    const double error = row["relative_error"], entropy = row["mean_entropy"],
                 largest = std::log(row["length"].get<double>());
    if (variant == "dense" || variant == "causal" || variant == "window:256,0" || variant == "window:128,128")
      BOOST_TEST(error < 1e-5, variant << " " << error);  // these windows hold the whole sequence
    if (variant == "linear") BOOST_TEST((error > 1e-3 && error < 2), variant << " " << error);
    BOOST_TEST((entropy > 0 && entropy <= largest + 1e-9), variant << " " << entropy);
  }
  BOOST_TEST(j["exponents"].size() == 7u);
  const std::string csv = read(f / "r.csv");
  BOOST_TEST(std::count(csv.begin(), csv.end(), '\n') == 16);
  BOOST_TEST(has(csv, "\"window:128,128\""));
}

/// Which keys clusters hold is known in the run alone: an upper bound would be a figure above the FMA peak.
BOOST_AUTO_TEST_CASE(compare_has_no_rate_for_pairs_that_the_run_chooses) {
  const Folder f;
  const Outcome o =
      run("compare --variants dense,routing:4 --lengths 64 --repetitions 2 --json '" + f / "r.json" + "'");
  BOOST_TEST_REQUIRE(o.code == 0, o.error);
  const auto j = nlohmann::ordered_json::parse(read(f / "r.json"));
  BOOST_TEST_REQUIRE(j["rows"].size() == 2u);
  for (const char* field : {"useful_gflops", "executed_gflops", "fraction_of_peak"}) {
    BOOST_TEST(j["rows"][0][field].is_number());
    BOOST_TEST(j["rows"][1][field].is_null());
  }
}

BOOST_AUTO_TEST_CASE(compare_lists_its_variants) {
  const Outcome o = run("compare --list --lengths 5");  // nothing is measured
  BOOST_TEST(o.code == 0);
  const std::string help = run("compare --help").out;
  for (const std::string spelling : {"dense",
                                     "causal",
                                     "window:L,R",
                                     "longformer[:W,G]",
                                     "bigbird[:B,W,G,R]",
                                     "bigbird[:B,W,G,R]:causal",
                                     "local[:C[,L]]",
                                     "local[:C[,L]]:causal",
                                     "linear",
                                     "linear:causal",
                                     "performer[:F]",
                                     "performer[:F]:causal",
                                     "dilated[:W[,S]]",
                                     "strided[:S]",
                                     "fixed[:S[,K]]",
                                     "retention",
                                     "gated_linear",
                                     "delta_rule",
                                     "linformer[:L]",
                                     "nystrom[:M]",
                                     "pooled[:R]:causal",
                                     "hierarchical[:B[,N]]",
                                     "routing[:C]:causal",
                                     "top_k[:K]"}) {
    BOOST_TEST(has(o.out, "\n" + spelling + " "), spelling);
    BOOST_TEST(has(help, "  " + spelling + " "), spelling);
    BOOST_TEST(has(read(TREADLE_DOCS "/compare.md"), "| `" + spelling + "` |"), spelling);
  }
  BOOST_TEST(has(o.out, "Zaheer et al. 2020"));
  BOOST_TEST(has(o.out, "64,3,2,3"));
}

BOOST_AUTO_TEST_CASE(compare_runs_everything_there_is) {
  const Folder f;
  const Outcome o =
      run("compare --variants all --lengths 40,65 --heads 2 --head-dim 8 --repetitions 1 --json " + (f / "r.json"));
  BOOST_TEST_REQUIRE(o.code == 0, o.error);
  const auto j = nlohmann::json::parse(read(f / "r.json"));
  const std::string list = run("compare --list").out;
  std::vector<std::string> names;
  for (const auto& row : j["rows"]) {
    const std::string variant = row["variant"];
    if (row["length"] == 40) names.push_back(variant);
    BOOST_TEST(has(list, "\n" + variant.substr(0, variant.find(':'))), variant);
    BOOST_TEST(std::isfinite(row["relative_error"].get<double>()), variant);
    // At most the whole of softmax attention is as exact as float32 is.
    if (variant == "dense" || variant == "causal") BOOST_TEST(row["relative_error"].get<double>() < 1e-5);
  }
  BOOST_TEST(names.size() == 29u);
  BOOST_TEST(j["rows"].size() == 58u);
}

BOOST_AUTO_TEST_CASE(compare_keeps_to_the_past_where_it_says_so) {
  // The 64 largest of at most 40 scores are all of them: dense attention, and causal dense attention.
  const Folder f;
  const Outcome o =
      run("compare --variants top_k:64,top_k:64:causal --lengths 40 --repetitions 1 --json " + (f / "r.json"));
  BOOST_TEST_REQUIRE(o.code == 0, o.error);
  const auto j = nlohmann::json::parse(read(f / "r.json"));
  BOOST_TEST_REQUIRE(j["rows"].size() == 2u);
  for (const auto& row : j["rows"]) BOOST_TEST(row["relative_error"].get<double>() < 1e-5);
}

BOOST_AUTO_TEST_CASE(compare_says_why_a_variant_does_not_fit_the_heads) {
  const Outcome o = run("compare --variants nystrom --kv-heads 2 --lengths 64");
  BOOST_TEST(o.code == 2);
  BOOST_TEST(has(o.error, "variant 'nystrom:64' cannot be made here: 2 key heads"), o.error);
}

BOOST_AUTO_TEST_CASE(compare_leaves_out_what_the_memory_has_no_room_for) {
  const Outcome o = run("compare --variants top_k --lengths 4194304 --heads 1 --head-dim 1");
  BOOST_TEST(o.code == 2);
  BOOST_TEST(has(o.out, "left out: it needs"), o.out);
  BOOST_TEST(has(o.error, "no variant had room in the memory"), o.error);
}

BOOST_AUTO_TEST_CASE(compare_runs_masks_by_blocks) {
  const Folder f;
  // 300 tokens are 5 chunks of 64 or 10 blocks of 32, and the last is partial.
  const Outcome o =
      run("compare --lengths 300 --heads 2 --head-dim 16 --repetitions 1 --variants local,local:64,1:causal,"
          "local:300,0,bigbird:32,3,2,3,bigbird:32,3,2,3:causal,bigbird:32,1,0,0,bigbird:512,1,0,3,causal --json '" +
          f / "r.json" + "'");
  BOOST_TEST_REQUIRE(o.code == 0, o.error);
  const auto j = nlohmann::json::parse(read(f / "r.json"));
  const std::vector<std::string> names = {
      "local:64,1",       "local:64,1:causal", "local:300,0", "bigbird:32,3,2,3", "bigbird:32,3,2,3:causal",
      "bigbird:32,1,0,0", "bigbird:512,1,0,3", "causal"};
  BOOST_TEST_REQUIRE(j["rows"].size() == names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto& row = j["rows"][i];
    BOOST_TEST(row["variant"] == names[i]);
    BOOST_TEST(row["causal"] == (names[i].find("causal") != std::string::npos));
    const double error = row["relative_error"];
    const bool whole = i == 2 || i == 6 || i == 7;  // one chunk or block holds everything
    BOOST_TEST((whole ? error < 1e-5 : error > 1e-3 && error < 10), names[i] << " " << error);
  }
}

BOOST_AUTO_TEST_CASE(compare_runs_random_features) {
  const Folder f;
  const Outcome o =
      run("compare --lengths 200 --heads 2 --head-dim 16 --repetitions 1 --variants "
          "performer:16,performer:1024,performer:64:causal,dense --json '" +
          f / "r.json" + "'");
  BOOST_TEST_REQUIRE(o.code == 0, o.error);
  const auto j = nlohmann::json::parse(read(f / "r.json"));
  BOOST_TEST_REQUIRE(j["rows"].size() == 4u);
  const auto number = [&](std::size_t i, const char* name) { return j["rows"][i][name].get<double>(); };
  BOOST_TEST(j["rows"][2]["variant"] == "performer:64:causal");
  BOOST_TEST(j["rows"][2]["causal"] == true);
  // More features come closer to softmax, and so do the weights' entropies.
  BOOST_TEST(number(1, "relative_error") < number(0, "relative_error"));
  const auto off = [&](std::size_t i) { return std::abs(number(i, "mean_entropy") - number(3, "mean_entropy")); };
  BOOST_TEST(off(1) < off(0));
}

BOOST_AUTO_TEST_CASE(compare_reads_files_and_is_repeatable) {
  const Folder f;
  for (const char* name : {"q.npy", "k.npy", "v.npy"}) write_npy(f / name, "(1, 2, 40, 8)", 2560);
  const std::string arguments =
      "compare --qkv '" + f.path.string() + "' --variants dense,linear --repetitions 1 --backend simd --json ";
  BOOST_TEST(run(arguments + "'" + f / "a.json" + "'").code == 0);
  const auto j = nlohmann::json::parse(read(f / "a.json"));
  BOOST_TEST_REQUIRE(j["rows"].size() == 2u);
  BOOST_TEST(j["rows"][0]["input"] == f.path.filename().string());
  BOOST_TEST(j["rows"][0]["threads"] == 1);
  // Zeros: every weight is 1/40.
  BOOST_TEST(std::abs(j["rows"][0]["mean_entropy"].get<double>() - std::log(40.0)) < 1e-9);
  BOOST_TEST(std::abs(j["rows"][1]["mean_entropy"].get<double>() - std::log(40.0)) < 1e-9);
}

BOOST_AUTO_TEST_CASE(interrupt_leaves_the_finished_rows) {
  const Folder f;
  const std::string json = f / "r.json";
  const pid_t child = fork();
  BOOST_TEST_REQUIRE(child >= 0);
  if (child == 0) {
    const std::string out = f / "out";
    if (std::freopen(out.c_str(), "w", stdout) == nullptr || std::freopen(out.c_str(), "w", stderr) == nullptr)
      _exit(99);
    execl(TREADLE_CLI_PATH, "treadle", "compare", "--lengths", "64,16384", "--heads", "2", "--variants", "dense,causal",
          "--repetitions", "400", "--json", json.c_str(), static_cast<char*>(nullptr));
    _exit(98);
  }
  for (int i = 0; i < 2400 && !fs::exists(json); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(25));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  kill(child, SIGINT);
  int status = 0;
  waitpid(child, &status, 0);
  BOOST_TEST((WIFEXITED(status) && WEXITSTATUS(status) == 130));
  const auto j = nlohmann::json::parse(read(json));
  BOOST_TEST(j["rows"].size() >= 1u);
  BOOST_TEST(j["rows"][0]["length"] == 64);
  for (const auto& e : fs::directory_iterator(f.path)) BOOST_TEST(!has(e.path().string(), ".part"));
}

BOOST_AUTO_TEST_CASE(verify_passes_fails_and_names_what_is_missing) {
  const Folder f;
  const auto write = [&](const std::string& name, const std::string& op, const std::string& attributes,
                         const std::string& want) {
    std::ofstream(f / (name + ".json"))
        << R"({"id": "x", "inputs": {"x": {"shape": [1, 3], "dtype": "f", "data": [-1, 0, 2]}}, "expected": {"y": {"shape": [1, 3], "dtype": "f", "data": )"
        << want
        << R"(}}, "tolerance": {"fp32": {"rtol": 1e-6, "atol": 1e-6}, "fp64": {"rtol": 1e-12, "atol": 1e-12}}, "numeric": true, "calls": [{"op": ")"
        << op << R"(", "attributes": )" << attributes << R"(, "inputs": {"x": "x"}, "outputs": {"out": "y"}}]})";
  };
  const auto verify = [&](const std::string& name, const std::string& more = "") {
    return run("verify '" + f / (name + ".json") + "' " + more);
  };
  write("good", "relu", "{}", "[0, 0, 2]");
  write("bad", "relu", "{}", "[0, 0, 3]");
  write("op", "wobble", "{}", "[0, 0, 2]");
  write("attribute", "relu", R"({"slope": 0.1})", "[0, 0, 2]");
  const Outcome good = verify("good", "--backend reference");
  BOOST_TEST(good.code == 0, good.error);
  BOOST_TEST(has(good.out, "2 passed, 0 failed, 0 not supported\n"));
  BOOST_TEST(verify("good", "--complete").code == 0);
  const Outcome bad = verify("bad");
  BOOST_TEST(bad.code == 1);
  BOOST_TEST(has(bad.out, "FAILED"));
  BOOST_TEST(has(bad.out, "0 passed, "));
  const Outcome op = verify("op");
  BOOST_TEST(op.code == 0);
  BOOST_TEST(has(op.out, "not supported: op wobble"));
  BOOST_TEST(has(op.out, "0 passed, 0 failed, 1 not supported\n"));
  BOOST_TEST(verify("op", "--complete").code == 1);
  BOOST_TEST(has(verify("attribute").out, "not supported: attribute slope of relu"));
  check_refused("verify '" + f / "good.json" + "' --backend cuda", "reference, simd, tbb");
  std::ofstream(f / "broken.json") << "{";
  check_refused("verify '" + f / "broken.json" + "'", "broken.json");
  write("softmax", "softmax", R"({"axis": "last"})", "[0, 0, 2]");
  check_refused("verify '" + f / "softmax.json" + "'", "a whole number is needed");
}

BOOST_AUTO_TEST_CASE(verify_opens_the_files_of_a_case) {
  const Folder f;
  const auto verify = [&](const std::string& files) {
    std::ofstream(f / "files.json") << R"({"op": "safetensors_open", "attributes": {"files": [)" << files
                                    << R"(]}, "numeric": false, "calls": []})";
    return run("verify '" + f / "files.json" + "'");
  };
  const std::string good = R"({"name": "good", "hex": "02000000000000007b7d", "verdict": "accept"})";
  const Outcome all = verify(good + R"(, {"name": "short", "hex": "02", "verdict": "reject"})");
  BOOST_TEST(all.code == 0, all.error);
  BOOST_TEST(has(all.out, "2 of 2 verdicts"));
  BOOST_TEST(has(all.out, "1 passed, 0 failed, 0 not supported\n"));
  const Outcome bad = verify(good + R"(, {"name": "short", "hex": "02", "verdict": "accept"})");
  BOOST_TEST(bad.code == 1);
  BOOST_TEST(has(bad.out, "1 of 2 verdicts: short: ends inside its header length"));
  BOOST_TEST(has(verify(R"({"name": "a", "hex": "02000000000000007b7d", "verdict": "reject"})").out,
                 "0 of 1 verdicts: a: accepted; the case says reject"));
  check_refused("verify '" + f / "files.json" + "' --backend cuda", "reference, simd, tbb");
  BOOST_TEST(verify(R"({"name": "a", "hex": "0", "verdict": "reject"})").code != 0);
  BOOST_TEST(verify(R"({"name": "a", "hex": "0x", "verdict": "reject"})").code != 0);
  BOOST_TEST(verify(R"({"name": "a"})").code != 0);
}

BOOST_AUTO_TEST_CASE(backends_are_listed) {
  const Outcome o = run("backends");
  BOOST_TEST(o.code == 0);
  for (const std::string name : {"reference", "simd", "tbb", "portable", "avx2", "avx512"})
    BOOST_TEST(has(o.out, name));
}

BOOST_AUTO_TEST_CASE(tokenize) {
  if (!has(run("--help").out, "tokenize")) return;  // built without tokenizers
  const std::string folder = std::string(TREADLE_TEST_DATA) + "/tokenizers/",
                    option = "tokenize --tokenizer '" + folder;
  const Folder work;
  std::ofstream(work / "text") << "God said\n\nlight\r\n";
  const Outcome ids = run(option + "gpt2' '" + work / "text" + "'");
  BOOST_TEST(ids.code == 0);
  BOOST_TEST(std::count(ids.out.begin(), ids.out.end(), '\n') == 3);
  std::ofstream(work / "ids") << ids.out;
  BOOST_TEST(run(option + "gpt2' --decode - <'" + work / "ids" + "'").out == "God said\n\nlight\n");
  BOOST_TEST(
      has(run(option + "word_piece' --tokens '" + work / "text" + "'").out, "[CLS] god said [SEP]\n[CLS] [SEP]\n"));
  BOOST_TEST(has(run(option + "word_piece' --tokens --plain '" + work / "text" + "'").out, "god said\n\n"));
  BOOST_TEST(has(run(option + "word_piece' --tokens --max-length 3 '" + work / "text" + "'").out, "[CLS] god [SEP]\n"));
  std::ofstream(work / "pairs") << "god said\tlight\n";
  BOOST_TEST(run(option + "word_piece' --tokens --pairs '" + work / "pairs" + "'").out ==
             "[CLS] god said [SEP] light [SEP]\t0 0 0 0 1 1\n");
  check_refused(option + "word_piece' --pairs '" + work / "text" + "'", "two texts with one tab between them");
  std::ofstream(work / "bad") << "fine\nnot \xFF\n";
  check_refused(option + "gpt2' '" + work / "bad" + "'", "line 2: the text is not UTF-8: byte 0xff at offset 4");
  std::ofstream(work / "bad") << "1 2 99999\n";
  check_refused(option + "gpt2' --decode '" + work / "bad" + "'", "id 99999 is outside the vocabulary");
  std::ofstream(work / "bad") << "1 x\n";
  check_refused(option + "gpt2' --decode '" + work / "bad" + "'", "an id is 'x'");
  check_refused(option + "gpt2' --decode --tokens", "leave it out with --decode");
  check_refused(option + "minilm' -", "holds no tokenizer; looked for tokenizer.json");
  check_refused("tokenize", "--tokenizer is required");
}

BOOST_AUTO_TEST_SUITE_END()
