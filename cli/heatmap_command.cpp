// `treadle heatmap`: the weights of one head as SVG or PNG, of a checkpoint on a sentence or of given Q and K.

#include "arguments.hpp"
#include "checkpoint_weights.hpp"
#include "command.hpp"
#include "heat_picture.hpp"
#include "real_input.hpp"
#include "report.hpp"

#include <treadle/backends/error.hpp>
#include <treadle/io/file.hpp>
#include <treadle/io/npy.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

namespace treadle::cli {

namespace fs = std::filesystem;

namespace {

struct HeatOptions {
  std::string checkpoint, sentence, target, inputs, qkv, variant = "dense", labels, attention, output, backend = "tbb",
                                                         isa;
  std::int64_t layer = 0, head = 0, cell = 12;
};

std::vector<std::string> labels_of(const HeatOptions& o) {
  std::vector<std::string> labels;
  if (o.labels.empty()) return labels;
  for (std::string& line : split(io::read_text(o.labels), '\n')) labels.push_back(std::move(line));
  if (!labels.empty() && labels.back().empty()) labels.pop_back();
  return labels;
}

std::vector<WeightMap> maps_of(const HeatOptions& o) {
  const std::string backend = parse_backend(o.backend), isa = parse_isa(o.isa);
  const std::vector<std::string> labels = labels_of(o);
  if (!o.qkv.empty()) {
    const Qkv x = load_qkv(o.qkv);
    const Variant v = parse_variant(o.variant);
    MeasureOptions m;
    m.backend = backend;
    m.isa = isa;
    m.threads = 0;
    constexpr std::int64_t all = 1024;
    auto map = variant_weights(v, x.shape, {x.q.data(), x.k.data(), x.v.data(), nullptr}, m, all);
    if (!map)
      throw Error(fmt::format(
          "variant '{}' has no weights of single pairs on {} tokens of '{}': softmax over a mask has, up to {} tokens",
          v.name, x.shape.length, o.qkv, all));
    for (std::size_t i = 0; i < std::min(labels.size(), map->keys.size()); ++i)
      map->queries[i] = map->keys[i] = labels[i];
    return {std::move(*map)};
  }
  ModelInput input;
  if (!o.sentence.empty()) {
    input = sentence_input(o.checkpoint, o.sentence, o.target);
    if (!labels.empty()) input.source = labels;
  } else {
    if (!fs::is_directory(o.inputs))
      throw Error(fmt::format("'{}' is no folder: --inputs needs one with input_ids.npy", o.inputs));
    for (const auto& entry : fs::directory_iterator(o.inputs))
      if (entry.path().extension() == ".npy" && entry.path().stem().string().rfind("expected_", 0) != 0)
        input.tensors.emplace(entry.path().stem().string(), io::load_npy(entry.path()));
    input.source = labels;
  }
  const Variant v = parse_variant(o.variant);
  if (v.table || v.at_shape)
    throw Error(fmt::format("variant '{}' does not stand in a checkpoint here: its mask or form depends on the length",
                            v.name));
  return checkpoint_weights(o.checkpoint, std::move(input), {.backend = backend, .isa = isa}, v.attention);
}

int run(const HeatOptions& o) {
  const fs::path file(o.output);
  const bool png = file.extension() == ".png";
  if (!png && file.extension() != ".svg")
    throw Error(fmt::format("'{}' ends neither in .svg nor in .png: the name says what is written", o.output));
  if (o.checkpoint.empty() == o.qkv.empty())
    throw Error("say what to look at: --checkpoint DIR with --sentence TEXT or --inputs DIR, or --qkv DIR");
  if (o.qkv.empty() && o.sentence.empty() == o.inputs.empty())
    throw Error("a checkpoint needs something to read: give one of --sentence TEXT and --inputs DIR");
  if (!o.qkv.empty() && (!o.sentence.empty() || !o.inputs.empty() || !o.target.empty() || !o.attention.empty()))
    throw Error("--qkv is one attention without a text: leave out --sentence, --target, --inputs and --attention");
  require_writable(o.output);

  const std::vector<WeightMap> maps = maps_of(o);
  std::vector<std::string> names;
  for (const WeightMap& m : maps) names.push_back(m.name);
  std::size_t which = 0;
  if (!o.attention.empty()) {
    while (which < names.size() && names[which].rfind(o.attention, 0) != 0) ++which;
    if (which == names.size())
      throw Error(fmt::format("the model has no attention '{}': it has {}", o.attention, join(names)));
  }
  const WeightMap& map = maps[which];
  const auto within = [](std::int64_t n, std::size_t count, const char* what) {
    if (n < 0 || static_cast<std::size_t>(n) >= count)
      throw Error(fmt::format("--{} is {}: the {}s are numbered from 0 to {}", what, n, what, count - 1));
    return static_cast<std::size_t>(n);
  };
  const WeightLayer& layer = map.layers[within(o.layer, map.layers.size(), "layer")];
  HeatPicture picture;
  picture.weights = layer.heads[within(o.head, layer.heads.size(), "head")];
  picture.queries = map.queries;
  picture.keys = map.keys;
  picture.title = fmt::format("{}, layer {}, head {}", map.name, o.layer, o.head);
  picture.cell = static_cast<int>(o.cell);
  replace_file(o.output, png ? heat_png(picture) : heat_svg(picture));
  fmt::print("{}: {}, {} queries × {} keys\n", o.output, picture.title, map.queries.size(), map.keys.size());
  return 0;
}

}  // namespace

Command add_heatmap(CLI::App& app) {
  const auto o = std::make_shared<HeatOptions>();
  CLI::App* sub = app.add_subcommand(
      "heatmap", "Draw the attention weights of one head: of a checkpoint on a sentence, or of given Q and K.");
  sub->add_option("--checkpoint", o->checkpoint, "Folder with config.json and model.safetensors")->type_name("DIR");
  sub->add_option("--sentence", o->sentence, "What it reads, through its tokenizer; cut to 64 tokens")
      ->type_name("TEXT");
  sub->add_option("--target", o->target, "What a decoder beside an encoder has written (the sentence itself)")
      ->type_name("TEXT");
  sub->add_option("--inputs", o->inputs, "Instead of a sentence: NAME.npy for each input, as `run` takes them")
      ->type_name("DIR");
  sub->add_option("--qkv", o->qkv, "Instead of a checkpoint: q.npy, k.npy, v.npy, f32 [batch, heads, length, head_dim]")
      ->type_name("DIR");
  sub->add_option("--variant", o->variant, "The attention that gives the weights, as in `compare` (dense)")
      ->type_name("NAME");
  sub->add_option("--attention", o->attention, "encoder, decoder or cross: which, where a model has several")
      ->type_name("NAME");
  sub->add_option("--layer", o->layer, "Layer, from 0 (0)")->type_name("N");
  sub->add_option("--head", o->head, "Head, from 0 (0)")->type_name("N");
  sub->add_option("--labels", o->labels, "The tokens' names, one a line")->type_name("FILE");
  sub->add_option("--cell", o->cell, "Size of a weight in points or pixels (12)")
      ->check(CLI::Range(1, 100))
      ->type_name("N");
  sub->add_option("--output", o->output, "FILE.svg with labels, or FILE.png without")->required()->type_name("FILE");
  sub->add_option("--backend", o->backend, "simd or tbb (default)")->type_name("NAME");
  sub->add_option("--isa", o->isa, "One of `treadle backends`; the best by default")->type_name("NAME");
  return {sub, [o] { return run(*o); }};
}

}  // namespace treadle::cli
