// `treadle tokenize`: text to token ids and back, line by line.

#include "arguments.hpp"
#include "command.hpp"
#include "lines.hpp"

#include <treadle/backends/error.hpp>
#include <treadle/io/error.hpp>
#include <treadle/io/text/tokenizer.hpp>

#include <fmt/format.h>

#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace treadle::cli {

namespace {

struct TokenizeOptions {
  std::string tokenizer;
  std::vector<std::string> files;
  std::int64_t max_length = 0;
  bool tokens = false, decode = false, plain = false, pairs = false;
};

/// The ids of a line, divided by blanks.
std::vector<std::int32_t> parse_ids(std::string_view line) {
  std::vector<std::int32_t> ids;
  while (true) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (line.empty()) return ids;
    const std::string_view word = line.substr(0, line.find_first_of(" \t"));
    ids.push_back(static_cast<std::int32_t>(parse_integer(word, "an id", 0, std::numeric_limits<std::int32_t>::max())));
    line.remove_prefix(word.size());
  }
}

std::string shown(const text::Tokenizer& tokenizer, const TokenizeOptions& o, const std::vector<std::int32_t>& ids) {
  if (!o.tokens) return fmt::format("{}", fmt::join(ids, " "));
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const std::int32_t id : ids) tokens.push_back(tokenizer.token_of(id));
  return join(tokens, " ");
}

/// What one line becomes.
std::string convert(const text::Tokenizer& tokenizer, const TokenizeOptions& o, std::string_view line) {
  if (o.decode) return tokenizer.decode(parse_ids(line), !o.plain);
  const text::EncodeOptions options{.special_tokens = !o.plain, .max_length = o.max_length};
  if (!o.pairs) return shown(tokenizer, o, tokenizer.encode(line, options));
  const std::size_t tab = line.find('\t');
  if (tab == std::string_view::npos || line.find('\t', tab + 1) != std::string_view::npos)
    throw Error("with --pairs a line holds two texts with one tab between them");
  const text::Encoding pair = tokenizer.encode_pair(line.substr(0, tab), line.substr(tab + 1), options);
  return fmt::format("{}\t{}", shown(tokenizer, o, pair.ids), fmt::join(pair.token_type_ids, " "));
}

int run(const TokenizeOptions& o) {
  if (o.decode && o.tokens) throw Error("--tokens shows the pieces of a text: leave it out with --decode");
  if (o.decode && o.pairs) throw Error("--pairs reads two texts a line: leave it out with --decode");
  const text::Tokenizer tokenizer = text::Tokenizer::open(o.tokenizer);
  std::string out;  // printed when everything went well
  for (const std::string& file : o.files.empty() ? std::vector<std::string>{"-"} : o.files) {
    const std::string content = read_whole(file);
    std::int64_t number = 0;
    for (const std::string_view line : lines_of(content)) {
      ++number;
      try {
        out += convert(tokenizer, o, line);
      } catch (const Error& e) {
        throw Error(fmt::format("{}: line {}: {}", file == "-" ? "standard input" : file, number, e.what()));
      }
      out += '\n';
    }
  }
  std::cout.write(out.data(), static_cast<std::streamsize>(out.size())).flush();
  if (!std::cout) throw Error("the output could not be written");
  return 0;
}

}  // namespace

Command add_tokenize(CLI::App& app) {
  const auto o = std::make_shared<TokenizeOptions>();
  CLI::App* sub = app.add_subcommand("tokenize", "Turn lines of text into token ids, or ids into text.");
  sub->add_option(
         "--tokenizer", o->tokenizer,
         "Folder with tokenizer.json, vocab.txt, vocab.json and merges.txt, or a SentencePiece model; or a file")
      ->required()
      ->type_name("DIR");
  sub->add_option("FILE", o->files, "Text files; - or none for standard input");
  sub->add_flag("--tokens", o->tokens, "Show tokens instead of their ids");
  sub->add_flag("--decode", o->decode, "Read lines of ids, write text");
  sub->add_flag("--pairs", o->pairs, "Lines of two texts, divided by a tab; writes ids, a tab, and token_type_ids");
  sub->add_flag("--plain", o->plain, "No special tokens around a text; with --decode: show them");
  sub->add_option("--max-length", o->max_length, "At most so many ids a line (0: no limit)")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  return {sub, [o] { return run(*o); }};
}

}  // namespace treadle::cli
