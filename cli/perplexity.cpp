#include "perplexity.hpp"

#include "arguments.hpp"
#include "checkpoint_files.hpp"
#include "json_rows.hpp"
#include "machine.hpp"
#include "report.hpp"

#include <treadle/backends/error.hpp>
#include <treadle/backends/trace.hpp>
#include <treadle/io/file.hpp>
#include <treadle/io/json.hpp>
#include <treadle/io/text/tokenizer.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace treadle::cli {

namespace fs = std::filesystem;

std::vector<TextWindow> text_windows(std::int64_t tokens, std::int64_t context, std::int64_t stride) {
  std::vector<TextWindow> windows;
  std::int64_t done = 0;
  for (std::int64_t begin = 0; done < tokens; begin += stride) {
    const std::int64_t end = std::min(begin + context, tokens);
    windows.push_back({begin, end, std::max(done, begin + 1)});
    done = end;
  }
  return windows;
}

double negative_log_likelihood(std::span<const float> logits, std::span<const std::int32_t> ids, const TextWindow& w) {
  const std::size_t words = logits.size() / static_cast<std::size_t>(w.tokens());
  double sum = 0;
  for (std::int64_t i = w.scored; i < w.end; ++i) {
    const std::span<const float> row = logits.subspan(static_cast<std::size_t>(i - 1 - w.begin) * words, words);
    const float most = *std::max_element(row.begin(), row.end());
    double total = 0;
    for (const float x : row) total += std::exp(static_cast<double>(x - most));
    const auto id = static_cast<std::size_t>(ids[static_cast<std::size_t>(i)]);
    sum += std::log(total) - static_cast<double>(row[id] - most);
  }
  return sum;
}

namespace {

constexpr std::int64_t default_context = 1024;

/// The first `wanted` tokens of a text, or all; what is not needed is not tokenised.
std::vector<std::int32_t> first_tokens(const text::Tokenizer& tokenizer, std::string_view content, std::size_t wanted) {
  for (std::size_t bytes = 8 * wanted;; bytes *= 2) {
    // Whole lines: how a text begins does not depend on what comes a line later.
    const std::size_t end = bytes >= content.size() ? content.size() : content.rfind('\n', bytes);
    if (end == std::string_view::npos || (end == 0 && !content.empty())) continue;
    std::vector<std::int32_t> ids = tokenizer.encode(content.substr(0, end));
    if (ids.size() <= wanted && end < content.size()) continue;  // the last one may go on in the next line
    ids.resize(std::min(ids.size(), wanted));
    return ids;
  }
}

Json to_json_row(const PerplexityRow& r) {
  return {{"variant", r.variant},
          {"windows", r.windows},
          {"context", r.context},
          {"stride", r.stride},
          {"counted", r.counted},
          {"backend", r.backend},
          {"isa", r.isa},
          {"threads", r.threads},
          {"perplexity", r.perplexity},
          {"perplexity_over_dense", r.perplexity_over_dense},
          {"median_ms", r.median_ms},
          {"p10_ms", r.p10_ms},
          {"p90_ms", r.p90_ms},
          {"tokens_per_second", r.tokens_per_second},
          {"time_over_dense", r.time_over_dense},
          {"planned_bytes", r.planned_bytes},
          {"layer_errors", r.layer_errors}};
}

void print_row(const PerplexityRow& r) {
  std::string layers;
  for (const double e : r.layer_errors) layers += fmt::format("{}{:.2g}", layers.empty() ? "" : " ", e);
  fmt::print("{:<24} {:>11.4f} {:>8.4f} {:>9.2f} {:>7.2f} {:>10}  {}\n", r.variant, r.perplexity,
             r.perplexity_over_dense, r.median_ms, r.time_over_dense, bytes_text(static_cast<double>(r.planned_bytes)),
             layers);
  std::fflush(stdout);
}

/// The text cut into windows for the model.
struct Text {
  std::vector<std::int32_t> ids;
  std::vector<TextWindow> windows;
  std::int64_t context = 0, stride = 0;

  std::span<const std::int32_t> of(const TextWindow& w) const {
    return std::span(ids).subspan(static_cast<std::size_t>(w.begin), static_cast<std::size_t>(w.tokens()));
  }
};

Text read_text(const CheckpointPlan& plan, const nlohmann::json& config) {
  const text::Tokenizer tokenizer = text::Tokenizer::open(plan.folder);
  const std::int64_t longest = config.value("n_positions", config.value("max_position_embeddings", default_context));
  Text t;
  t.context = plan.tokens == 0 ? std::min(longest, default_context) : plan.tokens;
  if (t.context > longest)
    throw Error(fmt::format("windows of {} tokens do not fit the model: it has {} positions", t.context, longest));
  t.stride = plan.stride == 0 ? std::max<std::int64_t>(t.context / 2, 1) : plan.stride;
  if (t.stride > t.context)
    throw Error(fmt::format("a stride of {} leaves out tokens between windows of {}; at most {} is right", t.stride,
                            t.context, t.context));
  constexpr std::int64_t usual = 20, few = 4;
  const std::int64_t most = plan.passages != 0 ? plan.passages : plan.quick ? few : usual;
  t.ids =
      first_tokens(tokenizer, io::read_text(plan.text), static_cast<std::size_t>(t.context + (most - 1) * t.stride));
  if (t.ids.size() < 2)
    throw Error(
        fmt::format("{}: has {} tokens; two are the least: the first has nothing before it", plan.text, t.ids.size()));
  const std::int64_t words = config.value("vocab_size", std::int64_t{0});
  if (const std::int32_t id = *std::max_element(t.ids.begin(), t.ids.end()); id >= words)
    throw Error(fmt::format("{}: the tokenizer gives the id {}, and the model has {}: they are not of one checkpoint",
                            plan.folder, id, words));
  t.context = std::min(t.context, static_cast<std::int64_t>(t.ids.size()));
  t.windows = text_windows(static_cast<std::int64_t>(t.ids.size()), t.context, t.stride);
  return t;
}

void print_heading(Table& table, const CheckpointPlan& plan, const Text& text) {
  table.heading(fmt::format("{}: {} tokens from {}, windows of {}, each {} further",
                            fs::path(plan.folder).filename().string(), text.ids.size(),
                            fs::path(plan.text).filename().string(), text.context, text.stride));
  fmt::print("{:<24} {:>11} {:>8} {:>9} {:>7} {:>10}  {}\n", "variant", "perplexity", "/ dense", "median ms", "/ dense",
             "planned", "error behind each layer");
}

}  // namespace

void compare_language_model(const CheckpointPlan& plan, SharedCheckpoint& checkpoint) {
  const nlohmann::json config = io::read_json(fs::path(plan.folder) / "config.json");
  const Text text = read_text(plan, config);
  const std::vector<Variant> variants = dense_first(plan.variants);
  Runner::Options options{.heads = config.value("num_attention_heads", config.value("n_head", std::int64_t{1})),
                          .longest = text.context,
                          .every_layer = false,
                          .bind = plan.bind};
  constexpr std::string_view last[] = {"logits"}, every[] = {"layers"};
  Table table;
  Results results;
  std::vector<Runner> runners;
  for (const Variant& v : variants) {
    table.progress(fmt::format("binding {}", v.name));
    if (plan.bind.trace != nullptr) {
      plan.bind.trace->pause();
      plan.bind.trace->label(v.name);
    }
    runners.emplace_back(checkpoint, v, options);
    runners.back().bind(1, text.context, last, results);
    runners.back().run(text.of(text.windows.front()), results);  // the first run warms the caches
  }
  print_heading(table, plan, text);

  // Windows in turns, so that a change of the machine's mood meets all alike.
  std::vector<std::vector<double>> times(variants.size());
  std::vector<double> sums(variants.size(), 0.0);
  std::vector<std::int64_t> planned;
  for (const Runner& r : runners) planned.push_back(static_cast<std::int64_t>(r.model().planned_bytes()));
  std::int64_t counted = 0;
  for (std::size_t n = 0; n < text.windows.size(); ++n) {
    const TextWindow& w = text.windows[n];
    table.progress(fmt::format("window {} of {}", n + 1, text.windows.size()));
    counted += w.counted();
    for (std::size_t i = 0; i < variants.size(); ++i) {
      runners[i].bind(1, w.tokens(), last, results);  // the last window may be shorter
      const double time = runners[i].run(text.of(w), results);
      if (w.tokens() == text.context) times[i].push_back(time);
      sums[i] += negative_log_likelihood(results.at("logits").as<float>(), text.ids, w);
    }
  }

  options.every_layer = true;
  std::vector<Json> rows;
  io::Tensor dense_layers;
  for (std::size_t i = 0; i < variants.size(); ++i) {
    table.progress(fmt::format("{}: layer by layer", variants[i].name));
    PerplexityRow r;
    r.variant = variants[i].name;
    r.windows = static_cast<std::int64_t>(text.windows.size());
    r.context = text.context;
    r.stride = text.stride;
    r.counted = counted;
    r.backend = runners[i].model().backend();
    r.isa = runners[i].model().isa();
    r.threads = runners[i].model().threads();
    r.perplexity = std::exp(sums[i] / static_cast<double>(counted));
    r.perplexity_over_dense = std::exp((sums[i] - sums[0]) / static_cast<double>(counted));
    r.median_ms = quantile(times[i], 0.5);
    r.p10_ms = quantile(times[i], 0.1);
    r.p90_ms = quantile(times[i], 0.9);
    r.tokens_per_second = static_cast<double>(text.context) / r.median_ms * 1e3;
    r.time_over_dense = median_ratio(times[i], times[0]);
    r.planned_bytes = planned[i];
    if (plan.bind.trace != nullptr) {
      plan.bind.trace->label(variants[i].name);
      runners[i].bind(1, text.context, last, results);
      plan.bind.trace->resume();
      runners[i].run(text.of(text.windows.front()), results);
      plan.bind.trace->pause();
    }

    Results layers;
    Runner whole(checkpoint, variants[i], options);
    whole.bind(1, text.context, every, layers);
    whole.run(text.of(text.windows.front()), layers);
    if (i == 0) dense_layers = layers.at("layers");
    r.layer_errors = layer_errors(layers.at("layers"), dense_layers);
    rows.push_back(to_json_row(r));
    table.clear_progress();
    print_row(r);
    write_checkpoint_files(plan, rows, to_json_row(PerplexityRow{}), i + 1 == variants.size());
  }
  const Machine m = machine();
  const BoundModel& ran = runners[0].model();
  fmt::print(
      "\n{}, {} on {} with {} thread{}; {}, commit {}\n"
      "perplexity: exp of the mean of -log p over {} tokens. median ms: of a window; / dense: of windows that ran one\n"
      "after the other.\n",
      m.cpu, ran.backend(), ran.isa(), ran.threads(), ran.threads() == 1 ? "" : "s", compiler(), commit(), counted);
  print_checkpoint_files(plan);
}

}  // namespace treadle::cli
