// `treadle embed`: sentence vectors of lines of text, and the lines nearest to a query.

#include "arguments.hpp"
#include "command.hpp"
#include "lines.hpp"

#include <treadle/backends/error.hpp>
#include <treadle/io/npy.hpp>
#include <treadle/models/embedder.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <numeric>

#include <unistd.h>

namespace treadle::cli {

namespace {

struct EmbedOptions {
  std::string checkpoint, output, query, backend = "tbb", isa;
  std::vector<std::string> files;
  std::int64_t batch = 32, threads = 0, top = 5;
};

std::vector<std::string> read_lines(const std::vector<std::string>& files) {
  std::vector<std::string> lines;
  for (const std::string& file : files) {
    const std::string content = read_whole(file);
    for (const std::string_view line : lines_of(content)) lines.emplace_back(line);
  }
  return lines;
}

/// The lines whose vectors lie nearest to the query's, by the cosine.
void print_nearest(const std::vector<std::string>& lines, const std::vector<float>& vectors,
                   const std::vector<float>& query, std::int64_t top) {
  std::vector<double> cosine(lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i)
    cosine[i] = std::inner_product(query.begin(), query.end(),
                                   vectors.begin() + static_cast<std::ptrdiff_t>(i * query.size()), 0.0);
  std::vector<std::size_t> order(lines.size());
  std::iota(order.begin(), order.end(), 0);
  const auto shown = static_cast<std::ptrdiff_t>(std::min(order.size(), static_cast<std::size_t>(top)));
  std::partial_sort(order.begin(), order.begin() + shown, order.end(), [&](std::size_t i, std::size_t j) {
    return cosine[i] != cosine[j] ? cosine[i] > cosine[j] : i < j;
  });
  order.resize(static_cast<std::size_t>(shown));
  for (const std::size_t i : order) fmt::print("{:6.3f}  {:>6}  {}\n", cosine[i], i + 1, lines[i]);
}

int run(const EmbedOptions& o) {
  if (o.output.empty() && o.query.empty())
    throw Error("say what to do with the vectors: --output FILE.npy keeps them, --query TEXT shows the nearest lines");
  const std::string backend = parse_backend(o.backend), isa = parse_isa(o.isa);
  models::Embedder embedder(o.checkpoint, {.backend = backend, .isa = isa, .threads = static_cast<int>(o.threads)});
  const std::vector<std::string> lines = read_lines(o.files.empty() ? std::vector<std::string>{"-"} : o.files);
  if (lines.empty()) throw Error("there is no text: each line is a sentence");
  // A terminal sees every batch, a log a line every ten seconds.
  const bool live = isatty(fileno(stderr)) == 1;
  auto told = std::chrono::steady_clock::now();
  const auto progress = [&](std::size_t done) {
    const auto now = std::chrono::steady_clock::now();
    if (live)
      fmt::print(stderr, "\r{} of {} lines{}", done, lines.size(), done == lines.size() ? "\n" : "");
    else if (now - told > std::chrono::seconds(10))
      fmt::print(stderr, "{} of {} lines\n", done, lines.size());
    else
      return;
    told = now;
  };
  const std::vector<float> vectors = embedder.embed(lines, o.batch, progress);
  if (!o.output.empty()) {
    const std::int64_t shape[] = {static_cast<std::int64_t>(lines.size()), embedder.width()};
    io::save_npy(o.output, dense_view(const_cast<float*>(vectors.data()), f32, shape));
    fmt::print("{} f32 [{}, {}]\n", o.output, shape[0], shape[1]);
  }
  if (!o.query.empty()) print_nearest(lines, vectors, embedder.embed({o.query}), o.top);
  return 0;
}

}  // namespace

Command add_embed(CLI::App& app) {
  const auto o = std::make_shared<EmbedOptions>();
  CLI::App* sub = app.add_subcommand("embed", "Sentence vectors of lines of text, and the lines nearest to a query.");
  sub->add_option("--checkpoint", o->checkpoint, "Folder of a BERT checkpoint with its tokenizer")
      ->required()
      ->type_name("DIR");
  sub->add_option("FILE", o->files, "Text files, a sentence a line; - or none for standard input");
  sub->add_option("--output", o->output, "Keep the vectors, f32 [lines, width], each of length 1")
      ->type_name("FILE.npy");
  sub->add_option("--query", o->query, "Show the lines nearest to this text, by the cosine")->type_name("TEXT");
  sub->add_option("--top", o->top, "So many of them (5)")->check(CLI::Range(1, 1 << 30))->type_name("N");
  sub->add_option("--batch", o->batch, "Texts of equal length that run at once (32)")
      ->check(CLI::Range(1, 65536))
      ->type_name("N");
  add_where_to_run(*sub, o->backend, o->isa, o->threads);
  return {sub, [o] { return run(*o); }};
}

}  // namespace treadle::cli
