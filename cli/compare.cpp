// `treadle compare`: dense, sparse and linear attention on the same inputs, in time, memory and error.

#include "accuracy.hpp"
#include "arguments.hpp"
#ifdef TREADLE_TEXT
#include "checkpoint_comparison.hpp"
#endif
#include "command.hpp"
#include "compare_page.hpp"
#include "machine.hpp"
#include "measure.hpp"
#include "page.hpp"
#include "real_input.hpp"
#include "report.hpp"

#include <treadle/backends/error.hpp>
#include <treadle/backends/random_fill.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>

namespace treadle::cli {

namespace {

/// What was typed; empty: not given.
struct Typed {
  std::string variants, lengths, batch, heads, kv_heads, head_dim, backend, isa, threads, seed, repetitions, json, csv,
      html, trace, qkv, checkpoint, text, tokens, stride, passages;
  bool quick = false, list = false;
};

struct Plan {
  std::vector<Variant> variants;
  std::vector<std::int64_t> lengths;  ///< of random inputs; may be empty
  std::vector<std::string> folders;   ///< of inputs from files; may be empty
  AttentionShape shape;               ///< of random inputs, without the length
  MeasureOptions measure;
  std::uint64_t seed = 1;
  std::string json, csv, html, trace;
};

constexpr std::int64_t most_heads = 65536, most_head_dim = 4096;

/// Where the variants run; both ways of comparing have these options.
struct RunsOn {
  std::string backend, isa;
  int threads = 1;
};

RunsOn runs_on(const Typed& t) {
  RunsOn on;
  on.backend = parse_backend(t.backend.empty() ? "tbb" : t.backend);
  if (on.backend == "reference")
    throw Error(
        "backend 'reference' is the oracle that errors are measured against, never a baseline: use simd or tbb");
  on.isa = parse_isa(t.isa);
  const int cores = machine().cores;
  const bool threaded = on.backend != "simd";
  on.threads = threaded ? cores : 1;
  if (!t.threads.empty()) {
    on.threads = static_cast<int>(parse_integer(t.threads, "--threads", 1, 1024));
    if (!threaded && on.threads > 1)
      throw Error(fmt::format("backend 'simd' runs on one thread, not {}: use --backend tbb", on.threads));
  }
  return on;
}

void check_outputs(const Typed& t) {
  const std::pair<const char*, const std::string&> files[] = {
      {"--json", t.json}, {"--csv", t.csv}, {"--html", t.html}, {"--trace", t.trace}};
  for (const auto& [option, path] : files) {
    if (path.empty()) continue;
    require_writable(path);
    for (const auto& [other, same] : files) {
      if (option == other) break;
      if (path == same) throw Error(fmt::format("{} and {} both name '{}': name two files", other, option, path));
    }
  }
  if (!t.html.empty()) require_charts();
}

Plan plan_of(const Typed& t) {
  Plan p;
  if (!t.seed.empty()) p.seed = static_cast<std::uint64_t>(parse_integer(t.seed, "--seed", 0, INT64_MAX));
  p.variants = parse_variants(t.variants.empty() ? default_variants : std::string_view(t.variants), p.seed);
  p.shape.batch = t.batch.empty() ? 1 : parse_integer(t.batch, "--batch", 1, most_heads);
  p.shape.heads = t.heads.empty() ? 4 : parse_integer(t.heads, "--heads", 1, most_heads);
  p.shape.kv_heads = t.kv_heads.empty() ? p.shape.heads : parse_integer(t.kv_heads, "--kv-heads", 1, most_heads);
  p.shape.head_dim = t.head_dim.empty() ? 64 : parse_integer(t.head_dim, "--head-dim", 1, most_head_dim);
  if (p.shape.heads % p.shape.kv_heads != 0)
    throw Error(fmt::format("--kv-heads {} does not divide --heads {}: every key head serves equally many query heads",
                            p.shape.kv_heads, p.shape.heads));
  const RunsOn on = runs_on(t);
  p.measure.backend = on.backend;
  p.measure.isa = on.isa;
  p.measure.threads = on.threads;
  if (!t.repetitions.empty())
    p.measure.repetitions = static_cast<int>(parse_integer(t.repetitions, "--repetitions", 1, 1000000));
  p.measure.budget_seconds = t.quick ? 0.5 : 2.5;

  const bool shaped = !t.batch.empty() || !t.heads.empty() || !t.kv_heads.empty() || !t.head_dim.empty();
  if (!t.qkv.empty()) {
    if (shaped || !t.lengths.empty())
      throw Error(
          "--qkv takes batch, heads, length and head size from its files: leave out --lengths, --batch, --heads, "
          "--kv-heads and --head-dim");
    p.folders.push_back(t.qkv);
  } else {
    p.lengths = parse_lengths(!t.lengths.empty() ? t.lengths : t.quick ? "256:2048" : "256:16384");
    if (t.lengths.empty() && !shaped) {
      const std::string example = example_folder();
      if (!example.empty())
        p.folders.push_back(example);
      else
        fmt::print(stderr,
                   "treadle compare: the example input minilm_layer2_512 was not found; name a folder with --qkv\n");
    }
  }
  check_outputs(t);
  p.json = t.json;
  p.csv = t.csv;
  p.html = t.html;
  p.trace = t.trace;
  return p;
}

/// Bytes of q, k, v, the result, and what measuring holds in float64.
double needed_bytes(const AttentionShape& s) {
  const double q = 1.0 * static_cast<double>(s.batch) * static_cast<double>(s.heads) * static_cast<double>(s.length) *
                   static_cast<double>(s.head_dim);
  const double k = q / static_cast<double>(s.heads) * static_cast<double>(s.kv_heads);
  const double sampled = s.length <= 2048 ? q : q / static_cast<double>(s.length) * 64;
  return 4 * (2 * q + 2 * k) + 8 * 2 * sampled + 8 * k / static_cast<double>(s.kv_heads);
}

class Comparison {
 public:
  explicit Comparison(const Plan& plan) : plan_(plan), options_(plan.measure) {
    if (!plan.html.empty() || !plan.trace.empty()) {
      trace_.emplace(TraceOptions{.counters = !plan.trace.empty()});
      options_.trace = &*trace_;
    }
    report_.machine = machine();
    report_.seed = plan.seed;
    report_.date = date();
  }

  void run() {
    for (const std::string& folder : plan_.folders) {
      const Qkv real = load_qkv(folder);
      const AttentionShape& s = real.shape;
      table_.heading(fmt::format("{}: {} heads × {} tokens × {} (real Q, K and V{})", real.name, s.heads, s.length,
                                 s.head_dim, s.kv_heads == s.heads ? "" : fmt::format(", {} key heads", s.kv_heads)));
      table_.columns();
      group(real.name, s, real.q.data(), real.k.data(), real.v.data());
      finish_input(real.name);
    }
    if (!plan_.lengths.empty()) {
      const AttentionShape& s = plan_.shape;
      table_.heading(fmt::format("random: batch {}, {} heads{}, head size {}, seed {}", s.batch, s.heads,
                                 s.kv_heads == s.heads ? "" : fmt::format(" ({} key heads)", s.kv_heads), s.head_dim,
                                 plan_.seed));
      table_.columns();
      for (const std::int64_t length : plan_.lengths) random(length);
      finish_input("random");
    }
    footer();
  }

 private:
  const Plan& plan_;
  Report report_;
  Table table_;
  std::vector<double> peaks_;
  MeasureOptions options_;
  std::optional<Trace> trace_;
  ComparePage page_;

  void random(std::int64_t length) {
    AttentionShape s = plan_.shape;
    s.length = length;
    const auto fill = [&](std::int64_t heads, std::string_view name) {
      std::vector<float> x(static_cast<std::size_t>(s.batch * heads * s.length * s.head_dim));
      fill_normal(x, seed_of(name, plan_.seed));
      return x;
    };
    table_.progress(fmt::format("length {}: filling q, k and v", length));
    const auto q = fill(s.heads, "q"), k = fill(s.kv_heads, "k"), v = fill(s.kv_heads, "v");
    group("random", s, q.data(), k.data(), v.data());
  }

  /// The variants that the memory has room for, all at once; the others are named.
  std::vector<Variant> fitting(const AttentionShape& s) {
    std::vector<Variant> fit;
    const double available = memory_available();
    double needed = 0;
    for (const Variant& v : plan_.variants) {
      const double own = v.own_bytes(s);
      if (available > 0 && needed + own > available) {
        table_.note(fmt::format("{:<24} {:>7} left out: it needs {} of memory, {} are available", v.name, s.length,
                                bytes_text(own), bytes_text(available - needed)));
        continue;
      }
      needed += own;
      fit.push_back(v);
    }
    return fit;
  }

  void group(const std::string& input, const AttentionShape& s, const float* q, const float* k, const float* v) {
    const std::vector<Variant> variants = fitting(s);
    if (variants.empty()) return;
    std::vector<float> out(static_cast<std::size_t>(s.batch * s.heads * s.length * s.head_dim));
    AccuracyMeter meter(s, q, k, v, plan_.seed, report_.machine.cores);
    std::vector<Accuracy> accuracy(variants.size());
    const auto progress = [&](const std::string& text) {
      table_.progress(fmt::format("{} × {}: {}", input, s.length, text));
    };
    options_.label = fmt::format("{} × {}: ", input, s.length);
    const Group g = measure(variants, s, {q, k, v, &out}, options_, progress, [&](std::size_t i) {
      progress(variants[i].name + ": error and entropy in float64");
      accuracy[i] = meter(variants[i], out);
    });
    peaks_.push_back(g.peak_gflops);
    std::vector<double> sorted = peaks_;
    std::sort(sorted.begin(), sorted.end());
    report_.peak_gflops = sorted[sorted.size() / 2];
    for (std::size_t i = 0; i < variants.size(); ++i) {
      add_row(input, s, variants[i], g.variants[i], g.peak_gflops, accuracy[i], meter.rows());
      if (!plan_.html.empty()) page_.add(input, variants[i], s, g.variants[i], accuracy[i]);
    }
    if (!plan_.html.empty() && input != "random") {
      progress("attention weights");
      page_.add_weights(variants, s, {q, k, v, &out}, options_);
    }
    write_pictures();
  }

  void add_row(const std::string& input, const AttentionShape& s, const Variant& variant, const Measurement& m,
               double peak, const Accuracy& accuracy, std::int64_t rows) {
    Row r;
    r.input = input;
    r.variant = variant.name;
    r.causal = variant.causal;
    r.length = s.length;
    r.batch = s.batch;
    r.heads = s.heads;
    r.kv_heads = s.kv_heads;
    r.head_dim = s.head_dim;
    r.backend = plan_.measure.backend;
    r.isa = m.isa;
    r.threads = m.threads;
    r.repetitions = static_cast<std::int64_t>(m.milliseconds.size());
    r.median_ms = m.quantile(0.5);
    r.p10_ms = m.quantile(0.1);
    r.p90_ms = m.quantile(0.9);
    if (m.flops_known) {
      r.useful_gflops = m.useful_flops / (r.median_ms * 1e6);
      r.executed_gflops = m.executed_flops / (r.median_ms * 1e6);
      r.fraction_of_peak = peak > 0 ? *r.useful_gflops / peak : 0;
    }
    r.planned_bytes = m.planned_bytes;
    r.peak_bytes = m.peak_bytes;
    r.relative_error = accuracy.relative_error;
    r.mean_entropy = accuracy.mean_entropy;
    r.sampled_rows = rows;
    report_.rows.push_back(r);
    table_.row(r);
    write();
  }

  void finish_input(const std::string& input) {
    std::vector<Exponent> fitted;
    for (const Variant& v : plan_.variants) {
      std::vector<double> lengths, times;
      for (const Row& r : report_.rows) {
        if (r.input != input || r.variant != v.name) continue;
        lengths.push_back(static_cast<double>(r.length));
        times.push_back(r.median_ms);
      }
      if (const auto e = fitted_exponent(lengths, times))
        fitted.push_back({input, v.name, *e, static_cast<std::int64_t>(lengths.size())});
    }
    table_.exponents(fitted);
    report_.exponents.insert(report_.exponents.end(), fitted.begin(), fitted.end());
    if (!fitted.empty()) write();
    write_pictures();
  }

  void write_pictures() {
    if (!plan_.html.empty()) {
      table_.progress("writing the page");
      replace_file(plan_.html, page_.html(report_, "Attention compared"));
    }
    if (!plan_.trace.empty()) replace_file(plan_.trace, trace_->to_json());
  }

  void write() const {
    if (!plan_.json.empty()) replace_file(plan_.json, to_json(report_));
    if (!plan_.csv.empty()) replace_file(plan_.csv, to_csv(report_));
  }

  void footer() {
    table_.clear_progress();
    if (report_.rows.empty())
      throw Error("no variant had room in the memory: use smaller --lengths, --batch or --heads");
    const Row& r = report_.rows.front();
    fmt::print("\n{}, {} on {} with {} thread{}, FMA peak {:.1f} GFLOP/s; {}, commit {}\n", report_.machine.cpu,
               r.backend, r.isa, r.threads, r.threads == 1 ? "" : "s", report_.peak_gflops, compiler(), commit());
    fmt::print(
        "GFLOP/s: over the pairs that the mask keeps; executed: over whole tiles; peak: GFLOP/s over the FMA peak.\n"
        "planned, measured: memory beside inputs and result. error: against dense attention (causal variants: causal\n"
        "dense attention) in float64; entropy: of the rows' own weights, in nats; rows: that both were measured on.\n");
    for (const std::string& path : {plan_.json, plan_.csv, plan_.html, plan_.trace})
      if (!path.empty()) fmt::print("Wrote {}\n", path);
  }
};

#ifdef TREADLE_TEXT
int run_checkpoint(const Typed& t) {
  if (t.checkpoint.empty() || t.text.empty())
    throw Error("--checkpoint names the model's folder and --text the text that it reads: give both");
  if (!t.qkv.empty() || !t.lengths.empty() || !t.heads.empty() || !t.kv_heads.empty() || !t.head_dim.empty() ||
      !t.repetitions.empty())
    throw Error(
        "--checkpoint gives heads and sizes itself, and each passage is a run: leave out --qkv, --lengths, --heads, "
        "--kv-heads, --head-dim and --repetitions");
  CheckpointPlan p;
  p.folder = t.checkpoint;
  p.text = t.text;
  if (!t.seed.empty()) p.seed = static_cast<std::uint64_t>(parse_integer(t.seed, "--seed", 0, INT64_MAX));
  if (!t.variants.empty()) p.variants = parse_variants(t.variants, p.seed);
  if (!t.tokens.empty()) p.tokens = parse_integer(t.tokens, "--tokens", 2, 1 << 20);
  if (!t.stride.empty()) p.stride = parse_integer(t.stride, "--stride", 1, 1 << 20);
  if (!t.passages.empty()) p.passages = parse_integer(t.passages, "--passages", 1, 20000);
  p.quick = t.quick;
  if (!t.batch.empty()) p.batch = parse_integer(t.batch, "--batch", 1, 4096);
  const RunsOn on = runs_on(t);
  p.bind = {.backend = on.backend, .isa = on.isa, .threads = on.threads};
  check_outputs(t);
  p.json = t.json;
  p.csv = t.csv;
  p.html = t.html;
  std::optional<Trace> trace;
  if (!t.trace.empty()) p.bind.trace = &trace.emplace();
  end_when_interrupted("\ntreadle compare: interrupted; the rows that were finished are kept\n");
  compare_checkpoint(p);
  if (trace) {
    replace_file(t.trace, trace->to_json());
    fmt::print("Wrote {}\n", t.trace);
  }
  return 0;
}
#endif

int run(const Typed& typed) {
  if (typed.list) {
    fmt::print("{}", variant_list());
    return 0;
  }
  if (!typed.checkpoint.empty() || !typed.text.empty()) {
#ifdef TREADLE_TEXT
    return run_checkpoint(typed);
#else
    throw Error("--checkpoint needs the tokenizers: build with TREADLE_TEXT=ON");
#endif
  }
  if (!typed.tokens.empty() || !typed.passages.empty() || !typed.stride.empty())
    throw Error("--tokens, --stride and --passages cut the text of a checkpoint: name it with --checkpoint and --text");
  const Plan plan = plan_of(typed);
  for (const std::int64_t length : plan.lengths) {  // before the first run, not in the middle of the night
    AttentionShape s = plan.shape;
    s.length = length;
    require_memory(needed_bytes(s),
                   fmt::format("length {} with batch {}, {} heads of size {}", length, s.batch, s.heads, s.head_dim),
                   "use smaller --lengths, --batch, --heads or --head-dim");
  }
  end_when_interrupted("\ntreadle compare: interrupted; the rows that were finished are kept\n");
  Comparison(plan).run();
  return 0;
}

}  // namespace

Command add_compare(CLI::App& app) {
  CLI::App* sub = app.add_subcommand(
      "compare",
      "Compare dense, sparse and linear attention in time, memory and error.\n"
      "Without --lengths and --qkv: on real Q, K and V, then on random ones of lengths 256 to 16384.");
  static Typed t;
  sub->add_option("--variants", t.variants,
                  "What to compare: all, or a list with commas (default: " + std::string(default_variants) + ")")
      ->type_name("LIST");
  sub->add_option("--lengths", t.lengths, "Doubling range 256:65536, or a list 256,1000 (default: 256:16384)")
      ->type_name("RANGE");
  sub->add_option("--batch", t.batch, "Batch size of random inputs (1)")->type_name("N");
  sub->add_option("--heads", t.heads, "Query heads (4)")->type_name("N");
  sub->add_option("--kv-heads", t.kv_heads, "Key and value heads, a divisor of --heads (as many)")->type_name("N");
  sub->add_option("--head-dim", t.head_dim, "Size of a head (64)")->type_name("N");
  sub->add_option("--backend", t.backend, "simd (one thread) or tbb (default)")->type_name("NAME");
  sub->add_option("--isa", t.isa, "Instruction set, see `treadle backends` (the best that this CPU has)")
      ->type_name("NAME");
  sub->add_option("--threads", t.threads, "Threads of tbb (all cores)")->type_name("N");
  sub->add_option("--seed", t.seed, "Seed of random inputs, of the sampled rows and of random blocks (1)")
      ->type_name("N");
  sub->add_option("--repetitions", t.repetitions,
                  "Runs of each variant (as many as a few seconds a length allow, at least 3)")
      ->type_name("N");
  sub->add_option("--json", t.json, "Write the results as JSON, rewritten after every row")->type_name("FILE");
  sub->add_option("--csv", t.csv, "Write the rows as CSV, rewritten after every row")->type_name("FILE");
  sub->add_option("--html", t.html, "Write a page of charts that opens offline, rewritten after every length")
      ->type_name("FILE");
  sub->add_option("--trace", t.trace,
                  "Write one run of each variant, which is not timed, as Chrome trace events (Perfetto opens them)")
      ->type_name("FILE");
  sub->add_option("--qkv", t.qkv, "Folder with q.npy, k.npy, v.npy: f32 [batch, heads, length, head_dim]")
      ->type_name("DIR");
  sub->add_option("--checkpoint", t.checkpoint,
                  "Compare inside a checkpoint of BERT or of a language model instead: its folder, with the tokenizer; "
                  "needs --text")
      ->type_name("DIR");
  sub->add_option("--text", t.text, "The text that the checkpoint reads, cut into passages")->type_name("FILE");
  sub->add_option("--tokens", t.tokens, "Tokens of a passage (as many as the model was made for)")->type_name("N");
  sub->add_option("--stride", t.stride, "Language models: tokens from one passage to the next (half a passage)")
      ->type_name("N");
  sub->add_option("--passages", t.passages, "Passages, from the text's beginning (200; language models: 20)")
      ->type_name("N");
  sub->add_flag("--quick", t.quick, "Lengths up to 2048 and fewer runs");
  sub->add_flag("--list", t.list, "Show the variants: spelling, defaults, pairs, source; measure nothing");
  sub->footer("Variants:\n" + variant_help() +
              "\n\nThe fields of the JSON and CSV files are described in docs/compare.md.");
  return {sub, [] { return run(t); }};
}

}  // namespace treadle::cli
