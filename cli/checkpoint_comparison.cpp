#include "checkpoint_comparison.hpp"

#include "arguments.hpp"
#include "checkpoint_files.hpp"
#include "checkpoint_runner.hpp"
#include "json_rows.hpp"
#include "lines.hpp"
#include "machine.hpp"
#include "perplexity.hpp"

#include <treadle/backends/error.hpp>
#include <treadle/backends/trace.hpp>
#include <treadle/io/file.hpp>
#include <treadle/io/json.hpp>
#include <treadle/io/text/tokenizer.hpp>
#include <treadle/models/embedder.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <span>

namespace treadle::cli {

namespace fs = std::filesystem;

namespace {

/// Ranks from 1; equal numbers share the mean of theirs.
std::vector<double> ranks(const std::vector<double>& x) {
  std::vector<std::size_t> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) { return x[i] < x[j]; });
  std::vector<double> r(x.size());
  for (std::size_t i = 0; i < order.size();) {
    std::size_t end = i + 1;
    while (end < order.size() && x[order[end]] == x[order[i]]) ++end;
    const double mean = 0.5 * static_cast<double>(i + 1 + end);
    for (; i < end; ++i) r[order[i]] = mean;
  }
  return r;
}

/// Spearman's: Pearson's correlation of the ranks.
double rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const std::vector<double> x = ranks(a), y = ranks(b);
  const double mean = 0.5 * static_cast<double>(x.size() + 1);
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

/// A text cut into passages of equal length, each within the tokens that the model expects around one.
struct Passages {
  std::int64_t count = 0, tokens = 0;
  std::vector<std::int32_t> ids;  ///< [count, tokens]
};

Passages passages_of(const text::Tokenizer& tokenizer, const CheckpointPlan& plan, std::int64_t longest) {
  const std::vector<std::int32_t> around = tokenizer.encode("");
  const auto extra = static_cast<std::int64_t>(around.size());
  Passages p;
  p.tokens = plan.tokens == 0 ? longest : plan.tokens;
  if (p.tokens > longest)
    throw Error(fmt::format("passages of {} tokens do not fit the model: it has {} positions", p.tokens, longest));
  if (p.tokens <= extra || (extra != 0 && extra != 2))
    throw Error(fmt::format("passages of {} tokens hold no text: {} of them are special", p.tokens, extra));
  const std::int64_t inside = p.tokens - extra, most = plan.passages != 0 ? plan.passages : plan.quick ? 24 : 200;
  const std::string content = io::read_text(plan.text);
  std::vector<std::int32_t> all;
  for (const std::string_view line : lines_of(content)) {
    const auto ids = tokenizer.encode(line, {.special_tokens = false});
    all.insert(all.end(), ids.begin(), ids.end());
    if (static_cast<std::int64_t>(all.size()) >= most * inside) break;
  }
  const std::int64_t whole = static_cast<std::int64_t>(all.size()) / inside;
  p.count = std::min(most, whole);
  if (p.count < 2)
    throw Error(fmt::format("{}: has {} tokens; two passages of {} are the least (--tokens takes shorter ones)",
                            plan.text, all.size(), inside));
  p.ids.reserve(static_cast<std::size_t>(p.count * p.tokens));
  for (std::int64_t i = 0; i < p.count; ++i) {
    if (extra != 0) p.ids.push_back(around.front());
    p.ids.insert(p.ids.end(), all.begin() + i * inside, all.begin() + (i + 1) * inside);
    if (extra != 0) p.ids.push_back(around.back());
  }
  return p;
}

/// Passages [first, first + batch), the last one again where the text ends.
std::vector<std::int32_t> batch_of(const Passages& p, std::int64_t first, std::int64_t batch) {
  std::vector<std::int32_t> ids;
  ids.reserve(static_cast<std::size_t>(batch * p.tokens));
  for (std::int64_t r = 0; r < batch; ++r) {
    const auto row = p.ids.begin() + std::min(first + r, p.count - 1) * p.tokens;
    ids.insert(ids.end(), row, row + p.tokens);
  }
  return ids;
}

double dot(const std::vector<double>& a, std::size_t i, const std::vector<double>& b, std::size_t j,
           std::size_t width) {
  const auto at = [width](const std::vector<double>& v, std::size_t row) {
    return v.begin() + static_cast<std::ptrdiff_t>(row * width);
  };
  return std::inner_product(at(a, i), at(a, i) + static_cast<std::ptrdiff_t>(width), at(b, j), 0.0);
}

/// The cosines of all pairs of passages.
std::vector<double> similarities(const std::vector<double>& vectors, std::size_t count) {
  std::vector<double> all;
  const std::size_t width = vectors.size() / count;
  all.reserve(count * (count - 1) / 2);
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t j = 0; j < i; ++j) all.push_back(dot(vectors, i, vectors, j, width));
  return all;
}

Json to_json_row(const CheckpointRow& r) {
  return {{"variant", r.variant},
          {"passages", r.passages},
          {"tokens", r.tokens},
          {"batch", r.batch},
          {"backend", r.backend},
          {"isa", r.isa},
          {"threads", r.threads},
          {"median_ms", r.median_ms},
          {"p10_ms", r.p10_ms},
          {"p90_ms", r.p90_ms},
          {"tokens_per_second", r.tokens_per_second},
          {"time_over_dense", r.time_over_dense},
          {"planned_bytes", r.planned_bytes},
          {"layer_errors", r.layer_errors},
          {"relative_error", r.relative_error},
          {"mean_cosine", r.mean_cosine},
          {"least_cosine", r.least_cosine},
          {"rank_correlation", r.rank_correlation}};
}

void print_row(const CheckpointRow& r) {
  std::string layers;
  for (const double e : r.layer_errors) layers += fmt::format("{}{:.2g}", layers.empty() ? "" : " ", e);
  fmt::print("{:<24} {:>9.2f} {:>7.2f} {:>10} {:>9.2e} {:>8.4f} {:>8.4f} {:>8.4f}  {}\n", r.variant, r.median_ms,
             r.time_over_dense, bytes_text(static_cast<double>(r.planned_bytes)), r.relative_error, r.mean_cosine,
             r.least_cosine, r.rank_correlation, layers);
  std::fflush(stdout);
}

void compare_encoder(const CheckpointPlan& plan, SharedCheckpoint& checkpoint) {
  const text::Tokenizer tokenizer = text::Tokenizer::open(plan.folder);
  const nlohmann::json config = io::read_json(fs::path(plan.folder) / "config.json");
  const std::int64_t longest =
      plan.tokens == 0 ? models::longest_text(plan.folder) : config.value("max_position_embeddings", std::int64_t{512});
  const Passages passages = passages_of(tokenizer, plan, longest);
  const std::int64_t batch = std::min(plan.batch == 0 ? std::int64_t{8} : plan.batch, passages.count);
  const auto count = static_cast<std::size_t>(passages.count);
  const std::vector<Variant> variants = dense_first(plan.variants);

  Table table;
  Runner::Options options{.heads = config.value("num_attention_heads", std::int64_t{1}),
                          .longest = passages.tokens,
                          .every_layer = false,
                          .bind = plan.bind};
  constexpr std::string_view last[] = {"hidden"}, every[] = {"layers"};
  Results results;
  std::vector<Runner> runners;
  for (const Variant& v : variants) {
    table.progress(fmt::format("binding {}", v.name));
    if (plan.bind.trace != nullptr) {
      plan.bind.trace->pause();
      plan.bind.trace->label(v.name);
    }
    runners.emplace_back(checkpoint, v, options);
    runners.back().bind(batch, passages.tokens, last, results);
    runners.back().run(batch_of(passages, 0, batch), results);  // the first run warms the caches
  }
  table.heading(fmt::format("{}: {} passages of {} tokens from {}", fs::path(plan.folder).filename().string(),
                            passages.count, passages.tokens, fs::path(plan.text).filename().string()));
  fmt::print("{:<24} {:>9} {:>7} {:>10} {:>9} {:>8} {:>8} {:>8}  {}\n", "variant", "median ms", "/ dense", "planned",
             "error", "cosine", "least", "ranks", "error behind each layer");

  // Batches in turns, so that a change of the machine's mood meets all alike.
  std::vector<std::vector<double>> times(variants.size()), vectors(variants.size());
  for (std::int64_t first = 0; first < passages.count; first += batch) {
    table.progress(fmt::format("passage {} of {}", first, passages.count));
    const std::vector<std::int32_t> ids = batch_of(passages, first, batch);
    for (std::size_t i = 0; i < variants.size(); ++i) {
      times[i].push_back(runners[i].run(ids, results));
      const std::vector<double> means = models::mean_vectors(results.at("hidden").as<float>(), batch, passages.tokens);
      const std::int64_t fresh = std::min(batch, passages.count - first);  // the last batch ends with rows again
      vectors[i].insert(vectors[i].end(), means.begin(),
                        means.begin() + fresh * (static_cast<std::int64_t>(means.size()) / batch));
    }
  }

  options.every_layer = true;
  std::vector<Json> rows;
  const std::vector<double> dense_similarities = similarities(vectors[0], count);
  io::Tensor dense_layers;
  for (std::size_t i = 0; i < variants.size(); ++i) {
    table.progress(fmt::format("{}: layer by layer", variants[i].name));
    CheckpointRow r;
    r.variant = variants[i].name;
    r.passages = passages.count;
    r.tokens = passages.tokens;
    r.batch = batch;
    r.backend = runners[i].model().backend();
    r.isa = runners[i].model().isa();
    r.threads = runners[i].model().threads();
    r.median_ms = quantile(times[i], 0.5);
    r.p10_ms = quantile(times[i], 0.1);
    r.p90_ms = quantile(times[i], 0.9);
    r.tokens_per_second = static_cast<double>(batch * passages.tokens) / r.median_ms * 1e3;
    r.time_over_dense = median_ratio(times[i], times[0]);
    r.planned_bytes = static_cast<std::int64_t>(runners[i].model().planned_bytes());
    if (plan.bind.trace != nullptr) {
      plan.bind.trace->resume();
      runners[i].run(batch_of(passages, 0, batch), results);
      plan.bind.trace->pause();
    }

    Results layers;
    Runner whole(checkpoint, variants[i], options);
    whole.bind(batch, passages.tokens, every, layers);
    whole.run(batch_of(passages, 0, batch), layers);
    if (i == 0) dense_layers = layers.at("layers");
    r.layer_errors = layer_errors(layers.at("layers"), dense_layers);
    r.relative_error = r.layer_errors.back();

    const std::size_t width = vectors[0].size() / count;
    double sum = 0, least = 1;
    for (std::size_t j = 0; j < count; ++j) {
      const double c = dot(vectors[i], j, vectors[0], j, width);
      sum += c;
      least = std::min(least, c);
    }
    r.mean_cosine = sum / static_cast<double>(count);
    r.least_cosine = least;
    r.rank_correlation = rank_correlation(similarities(vectors[i], count), dense_similarities);
    rows.push_back(to_json_row(r));
    table.clear_progress();
    print_row(r);
    write_checkpoint_files(plan, rows, to_json_row(CheckpointRow{}), i + 1 == variants.size());
  }
  const Machine m = machine();
  const BoundModel& ran = runners[0].model();
  fmt::print(
      "\n{}, {} on {} with {} thread{}; {}, commit {}\n"
      "median ms: of {} passages at once; / dense: of batches that ran one after the other. error, cosine, ranks: of\n"
      "hidden states, passage vectors, and the order of all pairs' cosines, against dense attention.\n",
      m.cpu, ran.backend(), ran.isa(), ran.threads(), ran.threads() == 1 ? "" : "s", compiler(), commit(), batch);
  print_checkpoint_files(plan);
}

/// Tokens in, the next token's scores out, and nothing else to give.
bool is_language_model(const models::LoadedModel& m) {
  const GraphView g = m.graph.view();
  bool others = false, scores = false;
  for (std::int32_t n = 0; n < g.size(); ++n) {
    const op kind = g.nodes[static_cast<std::size_t>(n)].op;
    others = others || (kind == op::input && g.leaf(n) != "input_ids");
    scores = scores || (kind == op::output && g.leaf(n) == "logits");
  }
  return scores && !others;
}

constexpr std::string_view encoder_variants =
    "window:32,32,window:64,64,window:128,128,longformer:64,1,bigbird:16,3,1,1,linear,performer:64,performer:256,"
    "performer:1024,pooled:4";
constexpr std::string_view language_model_variants =
    "window:31,0,window:63,0,window:127,0,window:255,0,bigbird:16,3,1,1:causal,linear:causal,performer:256:causal";

}  // namespace

void compare_checkpoint(const CheckpointPlan& given) {
  CheckpointPlan plan = given;
  SharedCheckpoint checkpoint(plan.folder);
  const models::LoadedModel dense = checkpoint.load({});
  const bool encoder = dense.model_type == "bert";
  if (!encoder && !is_language_model(dense))
    throw Error(
        fmt::format("{}: is a checkpoint of {}; attention is compared inside bert and decoder-only language models",
                    plan.folder, dense.model_type));
  if (encoder && plan.stride != 0)
    throw Error(fmt::format(
        "{}: is a checkpoint of bert, whose passages lie side by side; --stride is for language models", plan.folder));
  if (!encoder && plan.batch > 1)
    throw Error(fmt::format("{}: is a language model, whose windows run one by one; leave out --batch", plan.folder));
  if (plan.variants.empty())
    plan.variants = parse_variants(encoder ? encoder_variants : language_model_variants, plan.seed);
  if (encoder)
    compare_encoder(plan, checkpoint);
  else
    compare_language_model(plan, checkpoint);
}

}  // namespace treadle::cli
