#include "checkpoint_comparison.hpp"

#include "arguments.hpp"
#include "embedder.hpp"
#include "json_rows.hpp"
#include "lines.hpp"
#include "machine.hpp"

#include <treadle/backends/error.hpp>
#include <treadle/io/file.hpp>
#include <treadle/io/json.hpp>
#include <treadle/io/text/tokenizer.hpp>
#include <treadle/models/checkpoint.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <numeric>
#include <span>
#include <utility>

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

double quantile(std::vector<double> x, double p) {
  std::sort(x.begin(), x.end());
  const double at = p * static_cast<double>(x.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, x.size() - 1);
  return x[low] + (at - static_cast<double>(low)) * (x[high] - x[low]);
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
  const std::int64_t inside = p.tokens - extra;
  const std::string content = io::read_text(plan.text);
  std::vector<std::int32_t> all;
  for (const std::string_view line : lines_of(content)) {
    const auto ids = tokenizer.encode(line, {.special_tokens = false});
    all.insert(all.end(), ids.begin(), ids.end());
    if (static_cast<std::int64_t>(all.size()) >= plan.passages * inside) break;
  }
  const std::int64_t whole = static_cast<std::int64_t>(all.size()) / inside;
  p.count = std::min(plan.passages, whole);
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

/// One variant inside the model, bound for batches of passages.
class Runner {
 public:
  Runner(const CheckpointPlan& plan, const Variant& variant, std::int64_t heads, std::int64_t tokens,
         std::int64_t batch, bool every_layer)
      : loaded_(load(plan, variant, heads, tokens, every_layer)), model_(loaded_.bind(plan.bind)), batch_(batch) {
    model_.bind_dims({{"batch", batch}, {"seq", tokens}});
    ids_ = io::Tensor(i32, {batch, tokens});
    segments_ = io::Tensor(i32, {batch, tokens});
    if (variant.table) {
      const std::int64_t blocks = variant.table->blocks(tokens);
      table_ = io::Tensor(boolean, {blocks, blocks});
      const auto made = variant.table->make(blocks);
      std::copy(made.begin(), made.end(), table_.as<std::uint8_t>().begin());
      table_name_ = variant.table->name;
    }
    for (const char* name : {"hidden", "layers"}) {
      if (!every_layer && std::string_view(name) == "layers") continue;
      const TensorView v = model_.output_spec(name);
      results_.emplace_back(name, io::Tensor(f32, {v.shape.begin(), v.shape.begin() + v.rank}));
    }
  }

  /// Runs passages [first, first + batch), the last ones again where the text ends; gives milliseconds.
  double run(const Passages& p, std::int64_t first) {
    for (std::int64_t r = 0; r < batch_; ++r) {
      const std::int64_t row = std::min(first + r, p.count - 1);
      std::copy_n(p.ids.begin() + row * p.tokens, p.tokens, ids_.as<std::int32_t>().begin() + r * p.tokens);
    }
    std::vector<NamedTensor> in = {{"input_ids", ids_.view()}, {"token_type_ids", segments_.view()}}, out;
    if (!table_name_.empty()) in.push_back({table_name_, table_.view()});
    for (auto& [name, tensor] : results_) out.push_back({name, tensor.view()});
    const auto start = std::chrono::steady_clock::now();
    model_.run(in, out);
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  }

  std::span<const float> hidden() const { return results_[0].second.as<float>(); }
  const io::Tensor& layers() const { return results_[1].second; }
  const BoundModel& model() const { return model_; }

 private:
  static models::LoadedModel load(const CheckpointPlan& plan, const Variant& variant, std::int64_t heads,
                                  std::int64_t tokens, bool every_layer) {
    models::LoadOptions o;
    o.attention =
        variant.at_shape ? variant.at_shape({.heads = heads, .kv_heads = heads, .length = tokens}) : variant.attention;
    o.every_layer = every_layer;
    if (variant.table) {
      o.block_table = variant.table->name;
      o.block = variant.table->block;
    }
    try {
      return models::load_checkpoint(plan.folder, o);
    } catch (const Error& e) {
      throw Error(fmt::format("variant '{}': {}", variant.name, e.what()));
    }
  }

  models::LoadedModel loaded_;
  BoundModel model_;
  std::int64_t batch_;
  io::Tensor ids_, segments_, table_;
  std::string table_name_;
  std::vector<std::pair<std::string, io::Tensor>> results_;
};

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

void write_files(const CheckpointPlan& plan, const std::vector<CheckpointRow>& rows) {
  if (!plan.json.empty()) {
    Json j = report_head(machine(), plan.seed, date());
    j["checkpoint"] = fs::path(plan.folder).filename().string();
    j["text"] = fs::path(plan.text).filename().string();
    j["rows"] = Json::array();
    for (const CheckpointRow& r : rows) j["rows"].push_back(to_json_row(r));
    replace_file(plan.json, j.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  }
  if (!plan.csv.empty()) {
    std::string text = csv_names(to_json_row({}));
    for (const CheckpointRow& r : rows) text += csv_values(to_json_row(r));
    replace_file(plan.csv, text);
  }
}

void print_row(const CheckpointRow& r) {
  std::string layers;
  for (const double e : r.layer_errors) layers += fmt::format("{}{:.2g}", layers.empty() ? "" : " ", e);
  fmt::print("{:<24} {:>9.2f} {:>7.2f} {:>10} {:>9.2e} {:>8.4f} {:>8.4f} {:>8.4f}  {}\n", r.variant, r.median_ms,
             r.time_over_dense, bytes_text(static_cast<double>(r.planned_bytes)), r.relative_error, r.mean_cosine,
             r.least_cosine, r.rank_correlation, layers);
  std::fflush(stdout);
}

}  // namespace

void compare_checkpoint(const CheckpointPlan& plan) {
  const text::Tokenizer tokenizer = text::Tokenizer::open(plan.folder);
  const nlohmann::json config = io::read_json(fs::path(plan.folder) / "config.json");
  if (config.value("model_type", "") != "bert")
    throw Error(fmt::format("{}: is a checkpoint of {}; attention is compared inside bert", plan.folder,
                            config.value("model_type", "no model")));
  const std::int64_t longest =
      plan.tokens == 0 ? longest_text(plan.folder) : config.value("max_position_embeddings", std::int64_t{512});
  const std::int64_t heads = config.value("num_attention_heads", std::int64_t{1});
  const Passages passages = passages_of(tokenizer, plan, longest);
  const std::int64_t batch = std::min(plan.batch, passages.count), sampled = batch;
  const auto count = static_cast<std::size_t>(passages.count);

  std::vector<Variant> variants = {Variant{}};
  for (const Variant& v : plan.variants)
    if (v.name != "dense") variants.push_back(v);

  Table table;
  std::vector<std::unique_ptr<Runner>> runners;
  for (const Variant& v : variants) {
    table.progress(fmt::format("binding {}", v.name));
    runners.push_back(std::make_unique<Runner>(plan, v, heads, passages.tokens, batch, false));
    runners.back()->run(passages, 0);  // the first run warms the caches
  }
  table.heading(fmt::format("{}: {} passages of {} tokens from {}", fs::path(plan.folder).filename().string(),
                            passages.count, passages.tokens, fs::path(plan.text).filename().string()));
  fmt::print("{:<24} {:>9} {:>7} {:>10} {:>9} {:>8} {:>8} {:>8}  {}\n", "variant", "median ms", "/ dense", "planned",
             "error", "cosine", "least", "ranks", "error behind each layer");

  // Batches in turns, so that a change of the machine's mood meets all alike.
  std::vector<std::vector<double>> times(variants.size()), vectors(variants.size());
  for (std::int64_t first = 0; first < passages.count; first += batch) {
    table.progress(fmt::format("passage {} of {}", first, passages.count));
    for (std::size_t i = 0; i < variants.size(); ++i) {
      times[i].push_back(runners[i]->run(passages, first));
      const std::vector<double> means = mean_vectors(runners[i]->hidden(), batch, passages.tokens);
      const std::int64_t fresh = std::min(batch, passages.count - first);  // the last batch ends with rows again
      vectors[i].insert(vectors[i].end(), means.begin(),
                        means.begin() + fresh * (static_cast<std::int64_t>(means.size()) / batch));
    }
  }

  std::vector<CheckpointRow> rows;
  const std::vector<double> dense_similarities = similarities(vectors[0], count);
  io::Tensor dense_layers;
  for (std::size_t i = 0; i < variants.size(); ++i) {
    table.progress(fmt::format("{}: layer by layer", variants[i].name));
    CheckpointRow r;
    r.variant = variants[i].name;
    r.passages = passages.count;
    r.tokens = passages.tokens;
    r.batch = batch;
    r.backend = runners[i]->model().backend();
    r.isa = runners[i]->model().isa();
    r.threads = runners[i]->model().threads();
    r.median_ms = quantile(times[i], 0.5);
    r.p10_ms = quantile(times[i], 0.1);
    r.p90_ms = quantile(times[i], 0.9);
    r.tokens_per_second = static_cast<double>(batch * passages.tokens) / r.median_ms * 1e3;
    std::vector<double> ratios;
    for (std::size_t j = 0; j < times[i].size(); ++j) ratios.push_back(times[i][j] / times[0][j]);
    r.time_over_dense = quantile(ratios, 0.5);
    r.planned_bytes = static_cast<std::int64_t>(runners[i]->model().planned_bytes());
    runners[i].reset();

    Runner whole(plan, variants[i], heads, passages.tokens, sampled, true);
    whole.run(passages, 0);
    if (i == 0) dense_layers = whole.layers();
    const std::span<const float> got = whole.layers().as<float>(), want = std::as_const(dense_layers).as<float>();
    const auto layers = static_cast<std::size_t>(dense_layers.shape[0]);
    const std::size_t size = want.size() / layers;
    for (std::size_t l = 0; l < layers; ++l) {
      double difference = 0, norm = 0;
      for (std::size_t j = l * size; j < (l + 1) * size; ++j) {
        const double x = static_cast<double>(got[j]), y = static_cast<double>(want[j]);
        difference += (x - y) * (x - y);
        norm += y * y;
      }
      r.layer_errors.push_back(norm > 0 ? std::sqrt(difference / norm) : 0);
    }
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
    rows.push_back(r);
    table.clear_progress();
    print_row(r);
    write_files(plan, rows);
  }
  const Machine m = machine();
  fmt::print(
      "\n{}, {} on {} with {} thread{}; {}, commit {}\n"
      "median ms: of {} passages at once; / dense: of batches that ran one after the other. error, cosine, ranks: of\n"
      "hidden states, passage vectors, and the order of all pairs' cosines, against dense attention.\n",
      m.cpu, rows[0].backend, rows[0].isa, rows[0].threads, rows[0].threads == 1 ? "" : "s", compiler(), commit(),
      batch);
  for (const std::string& path : {plan.json, plan.csv})
    if (!path.empty()) fmt::print("Wrote {}\n", path);
}

}  // namespace treadle::cli
