// `treadle generate`: text (or token ids) that a decoder's checkpoint goes on with.

#include "arguments.hpp"
#include "command.hpp"
#include "lines.hpp"

#include <treadle/backends/error.hpp>
#include <treadle/io/error.hpp>
#include <treadle/io/text/tokenizer.hpp>
#include <treadle/models/generation.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>

namespace treadle::cli {

namespace {

using Tokens = std::vector<std::int32_t>;

struct GenerateOptions {
  std::string checkpoint, file, stop, backend = "tbb", isa;
  std::vector<std::string> prompts, ids;
  models::GenerationOptions generation;
  std::int64_t threads = 0;
  bool json = false, no_stop_token = false;
};

/// What is whole of a text that is still growing: without the bytes of a character that more tokens may complete.
std::string_view whole_characters(std::string_view text) {
  constexpr std::string_view replacement = "\xEF\xBF\xBD";
  while (text.ends_with(replacement)) text.remove_suffix(replacement.size());
  return text;
}

/// The text behind a prompt, as its tokens come.
class Continuation {
 public:
  /// `prompt` is what stands before the text: nothing, if it is an encoder's.
  Continuation(const text::Tokenizer& tokenizer, const Tokens& prompt) : tokenizer_(tokenizer), ids_(prompt) {
    begin_ = tokenizer_.decode(ids_, true).size();
  }
  void add(std::int32_t id) { ids_.push_back(id); }
  /// All of it.
  std::string text() const {
    const std::string all = tokenizer_.decode(ids_, true);
    return all.size() <= begin_ ? std::string() : all.substr(begin_);
  }
  /// What is new and whole since the last call.
  std::string fresh() {
    const std::string now(whole_characters(text()));
    if (now.size() <= shown_) return {};
    std::string part = now.substr(shown_);
    shown_ = now.size();
    return part;
  }

 private:
  const text::Tokenizer& tokenizer_;
  Tokens ids_;
  std::size_t begin_ = 0, shown_ = 0;
};

Tokens parse_ids(const std::string& list) {
  Tokens ids;
  for (const std::string& word : split(list))
    ids.push_back(static_cast<std::int32_t>(parse_integer(word, "an id", 0, std::numeric_limits<std::int32_t>::max())));
  return ids;
}

const char* reason_name(models::StopReason r) {
  return r == models::StopReason::length ? "length" : r == models::StopReason::stop_token ? "stop_token" : "stop_text";
}

std::string rate(std::int64_t tokens, double seconds) {
  if (tokens == 0 || !(seconds > 0)) return fmt::format("{} tokens", tokens);
  return fmt::format("{} tokens, {:.4g} tokens/s", tokens, static_cast<double>(tokens) / seconds);
}

int run(const GenerateOptions& o) {
  if (!o.ids.empty() && (!o.prompts.empty() || !o.file.empty()))
    throw Error("the prompts are text or ids: use --prompt and --file, or --ids");
  const std::string backend = parse_backend(o.backend), isa = parse_isa(o.isa);
  const bool stream = !o.json && o.generation.beams == 1;

  std::optional<text::Tokenizer> tokenizer;
  std::vector<std::string> texts = o.prompts;
  std::vector<Tokens> prompts;
  for (const std::string& list : o.ids) prompts.push_back(parse_ids(list));
  if (prompts.empty()) {
    if (!o.file.empty()) {
      const std::string content = read_whole(o.file);
      for (const std::string_view line : lines_of(content)) texts.emplace_back(line);
    }
    if (texts.empty()) throw Error("there is no prompt: --prompt TEXT, --file FILE with one a line, or --ids 1,2,3");
    tokenizer = text::Tokenizer::open(o.checkpoint);
    for (const std::string& t : texts) prompts.push_back(tokenizer->encode(t, {}));
  } else if (!o.stop.empty()) {
    throw Error("--stop is a text; with --ids there is none");
  }
  if (!o.stop.empty() && o.generation.beams > 1)
    throw Error("--stop ends a text while it grows; beam search knows its texts at the end: use one or the other");

  const models::LoadedModel loaded = models::load_checkpoint(o.checkpoint, {.cache = true});
  const bool translates = !loaded.encoder.nodes.empty();  // the prompt is another text than what is printed
  models::GenerationOptions options = o.generation;
  if (!o.no_stop_token) options.stop_ids = loaded.stop_ids;
  std::vector<Continuation> texts_behind;
  if (tokenizer)
    for (const Tokens& p : prompts) texts_behind.emplace_back(*tokenizer, translates ? Tokens() : p);

  const bool live = stream && prompts.size() == 1;
  if (live && tokenizer && !translates) fmt::print("{}", texts[0]);
  if (options.beams == 1)
    options.on_token = [&](std::size_t i, std::int32_t token) {
      if (!tokenizer) {
        if (live) fmt::print("{} ", token);
      } else {
        texts_behind[i].add(token);
        if (live) fmt::print("{}", texts_behind[i].fresh());
        if (!o.stop.empty() && texts_behind[i].text().find(o.stop) != std::string::npos) return false;
      }
      if (live) std::fflush(stdout);
      return true;
    };
  models::Generator generator(loaded, {.backend = backend, .isa = isa, .threads = static_cast<int>(o.threads)});
  const models::Generation g = generator.generate(prompts, options);

  nlohmann::ordered_json report = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const models::Generation::Sequence& s = g.sequences[i];
    std::string text;
    if (tokenizer) {
      if (options.beams > 1)
        for (const std::int32_t id : s.tokens) texts_behind[i].add(id);
      text = texts_behind[i].text();
    }
    if (o.json) {
      nlohmann::ordered_json entry;
      if (tokenizer) {
        entry["prompt"] = texts[i];
        entry["text"] = text;
      }
      entry["prompt_ids"] = prompts[i];
      entry["ids"] = s.tokens;
      entry["log_probability"] = s.log_probability;
      entry["reason"] = reason_name(s.reason);
      report.push_back(entry);
    } else if (!live) {
      fmt::print("{}\n",
                 tokenizer ? (translates ? text : texts[i] + text) : fmt::format("{}", fmt::join(s.tokens, " ")));
    }
  }
  if (o.json) {
    const nlohmann::ordered_json all = {{"sequences", report},
                                        {"plan_seconds", g.plan_seconds},
                                        {"prefill_tokens", g.prefill_tokens},
                                        {"prefill_seconds", g.prefill_seconds},
                                        {"decode_tokens", g.decode_tokens},
                                        {"decode_seconds", g.decode_seconds},
                                        {"cache_bytes", generator.cache_bytes()}};
    fmt::print("{}\n", all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else if (live) {
    fmt::print("\n");
  }
  fmt::print(stderr, "planned in {:.3g} s; prefill {}; decode {}; cache {}\n", g.plan_seconds,
             rate(g.prefill_tokens, g.prefill_seconds), rate(g.decode_tokens, g.decode_seconds),
             bytes_text(static_cast<double>(generator.cache_bytes())));
  if (std::fflush(stdout) != 0) throw Error("the output could not be written");
  return 0;
}

}  // namespace

Command add_generate(CLI::App& app) {
  const auto o = std::make_shared<GenerateOptions>();
  models::GenerationOptions& g = o->generation;
  CLI::App* sub = app.add_subcommand("generate", "Text that a decoder's checkpoint goes on with, token by token.");
  sub->add_option("--checkpoint", o->checkpoint, "Folder of a decoder's checkpoint, with its tokenizer for text")
      ->required()
      ->type_name("DIR");
  sub->add_option("--prompt", o->prompts, "What to go on from; several run as one batch")->type_name("TEXT");
  sub->add_option("--file", o->file, "Prompts from a file, one a line; - for standard input")->type_name("FILE");
  sub->add_option("--ids", o->ids, "Prompts as token ids, divided by commas; prints ids")
      ->type_name("LIST")
      ->delimiter('\0');
  sub->add_option("--max-new-tokens", g.max_new_tokens, "At most so many tokens (32)")
      ->check(CLI::Range(1, 1 << 30))
      ->type_name("N");
  sub->add_option("--temperature", g.sampling.temperature, "0 (default): the most probable token; else of the softmax")
      ->type_name("T");
  sub->add_option("--top-k", g.sampling.top_k, "Draw from so many of the most probable tokens; 0: all (default)")
      ->type_name("N");
  sub->add_option("--top-p", g.sampling.top_p, "Draw from the fewest tokens of this probability together (1)")
      ->type_name("P");
  sub->add_option("--seed", g.sampling.seed, "Of the draws (0)")->type_name("N");
  sub->add_option("--beams", g.beams, "Beam search with so many hypotheses (1: none)")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  sub->add_option("--length-penalty", g.length_penalty, "Of beam search: log p / length^penalty (1)")->type_name("X");
  sub->add_option("--stop", o->stop, "End behind this text")->type_name("TEXT");
  sub->add_flag("--ignore-stop-token", o->no_stop_token, "Go on behind the checkpoint's eos_token_id");
  sub->add_flag("--json", o->json, "Ids, text, log probability and times as JSON");
  sub->add_option("--backend", o->backend, "reference, simd or tbb (default)")->type_name("NAME");
  sub->add_option("--isa", o->isa, "One of `treadle backends`; the best by default")->type_name("NAME");
  sub->add_option("--threads", o->threads, "Threads of tbb; 0: all (default)")
      ->check(CLI::Range(0, 4096))
      ->type_name("N");
  return {sub, [o] { return run(*o); }};
}

}  // namespace treadle::cli
