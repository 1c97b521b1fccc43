// `heatmap`, and the weights that pages show of checkpoints.

#include "support.hpp"

#include <treadle/io/npy.hpp>
#include <treadle/io/tensor.hpp>

#include <nlohmann/json.hpp>

using namespace treadle;
using namespace treadle::test;

namespace {

const std::string models = std::string(TREADLE_TEST_DATA) + "/models/";

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

/// A golden model's inputs alone.
std::string inputs_of(const Folder& f, const std::string& model) {
  const fs::path to = f.path / model;
  fs::create_directories(to);
  for (const auto& e : fs::directory_iterator(models + model))
    if (e.path().extension() == ".npy" && e.path().stem().string().rfind("expected_", 0) != 0)
      fs::copy_file(e.path(), to / e.path().filename());
  return to.string();
}

void write_qkv(const Folder& f, std::int64_t length) {
  for (const char* name : {"q", "k", "v"}) {
    io::Tensor t(f32, {1, 2, length, 8});
    float x = 0.3F;
    for (float& e : t.as<float>()) e = x = x * 3.7F * (1 - x);
    io::save_npy(f.path / (std::string(name) + ".npy"), t.view());
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(heatmap)

BOOST_AUTO_TEST_CASE(every_kind_of_attention_of_a_checkpoint) {
  const Folder f;
  const auto draw = [&](const std::string& model, const std::string& options) {
    const Outcome o = run("heatmap --checkpoint " + models + model + " --inputs '" + inputs_of(f, model + "") + "' " +
                          options + " --output '" + f / "p.svg" + "'");
    BOOST_TEST(o.code == 0, o.error);
    fs::remove_all(f.path / model);
    return o.out;
  };
  BOOST_TEST(has(draw("bert", ""), "encoder self-attention, layer 0, head 0, 19 queries × 19 keys"));
  BOOST_TEST(has(draw("gpt2", "--layer 1 --head 1"), "decoder self-attention, layer 1, head 1, 21 queries × 21 keys"));
  BOOST_TEST(has(draw("t5", "--attention decoder"), "decoder self-attention, layer 0, head 0, 45 queries × 45 keys"));
  BOOST_TEST(has(draw("t5", "--attention cross"), "cross-attention, layer 0, head 0, 45 queries × 47 keys"));
  BOOST_TEST(has(draw("vit", ""), "17 queries × 17 keys"));
}

// A causal head's first row has one weight, 1; zeros are not drawn.
BOOST_AUTO_TEST_CASE(the_picture_has_the_weights) {
  const Folder f;
  write_qkv(f, 5);
  f.write("labels", "<s>\n\"a\" & b\nü\n注意\nlast\n");
  const Outcome o = run("heatmap --qkv '" + f.path.string() + "' --variant causal --head 1 --labels '" + f / "labels" +
                        "' --output '" + f / "p.svg" + "'");
  BOOST_TEST_REQUIRE(o.code == 0, o.error);
  const std::string svg = read(f / "p.svg");
  BOOST_TEST(count_of(svg, "<rect") == 15u + 1 + 32);  // weights, frame, scale
  BOOST_TEST(count_of(svg, "#08306b") >= 1u);          // the largest
  BOOST_TEST(count_of(svg, ">&lt;s&gt;</text>") == 2u);
  BOOST_TEST(count_of(svg, ">&quot;a&quot; &amp; b</text>") == 2u);
  BOOST_TEST(count_of(svg, ">注意</text>") == 2u);
  BOOST_TEST(!has(svg, "<s>"));
}

BOOST_AUTO_TEST_CASE(png_is_png) {
  const Folder f;
  write_qkv(f, 7);
  const Outcome o = run("heatmap --qkv '" + f.path.string() + "' --cell 3 --output '" + f / "p.png" + "'");
  if (has(o.error, "no libpng")) return;
  BOOST_TEST_REQUIRE(o.code == 0, o.error);
  const std::string png = read(f / "p.png");
  BOOST_TEST(png.substr(1, 3) == "PNG");
  BOOST_TEST(png.substr(16, 8) == std::string("\0\0\0\x15\0\0\0\x15", 8));  // 21 × 21
}

BOOST_AUTO_TEST_CASE(bad_input_is_one_sentence) {
  const Folder f;
  write_qkv(f, 5);
  const std::string qkv = "heatmap --qkv '" + f.path.string() + "' --output '" + f / "p.svg" + "' ";
  check_refused("heatmap --output x.svg", "say what to look at");
  check_refused("heatmap --qkv . --output x.gif", "ends neither in .svg nor in .png");
  check_refused("heatmap --checkpoint " + models + "bert --output x.svg", "give one of --sentence TEXT and --inputs");
  check_refused(qkv + "--head 2", "the heads are numbered from 0 to 1");
  check_refused(qkv + "--layer 1", "the layers are numbered from 0 to 0");
  check_refused(qkv + "--variant linear", "has no weights of single pairs");
  check_refused(qkv + "--sentence x", "leave out --sentence");
  check_refused("heatmap --qkv '" + f.path.string() + "' --output '" + f / "no/p.svg" + "'", "there is no folder");
  check_refused("heatmap --checkpoint " + models + "bert --inputs '" + inputs_of(f, "bert") +
                    "' --attention cross --output '" + f / "p.svg" + "'",
                "it has encoder self-attention");
}

BOOST_AUTO_TEST_SUITE_END()
