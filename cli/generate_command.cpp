// `treadle generate`: text (or token ids) that a decoder's checkpoint goes on with.

#include "arguments.hpp"
#include "command.hpp"
#include "lines.hpp"

#include <treadle/backends/error.hpp>
#include <treadle/io/error.hpp>
#include <treadle/io/text.hpp>
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

/// The text behind a prompt, piece by piece as its tokens come: of a few tokens each time, whatever the length.
class Continuation {
 public:
  /// `prompt` is what stands before the text: nothing, if it is an encoder's.
  Continuation(const text::Tokenizer& tokenizer, const Tokens& prompt) : tokenizer_(tokenizer), ids_(prompt) {
    // Enough of the prompt that the first token is decoded as behind it.
    shown_ = ids_.size();
    begin_ = shown_ - std::min<std::size_t>(shown_, 8);
  }
  void add(std::int32_t id) { ids_.push_back(id); }
  /// What is new and whole; nothing while more tokens may change it. `last`: none will come.
  std::string fresh(bool last = false) {
    if (shown_ == ids_.size()) return {};
    // Of bytes that are tokens a run is decoded at once: what they are is known behind it.
    if (!last && is_byte(tokenizer_.token_of(ids_.back()))) return {};
    const std::string before = decoded(shown_), now = decoded(ids_.size());
    if (!last && (now.size() <= before.size() || now.ends_with("\xEF\xBF\xBD"))) return {};
    begin_ = shown_;
    shown_ = ids_.size();
    return now.size() <= before.size() ? std::string() : now.substr(before.size());
  }

 private:
  static bool is_byte(std::string_view token) {
    return token.size() == 6 && token.starts_with("<0x") && token.ends_with(">");
  }
  std::string decoded(std::size_t end) const {
    return tokenizer_.decode(
        Tokens(ids_.begin() + static_cast<std::ptrdiff_t>(begin_), ids_.begin() + static_cast<std::ptrdiff_t>(end)),
        true);
  }

  const text::Tokenizer& tokenizer_;
  Tokens ids_;
  std::size_t begin_ = 0, shown_ = 0;  ///< what is decoded again each time, and what has been handed out
};

/// What one prompt becomes.
struct Text {
  std::optional<Continuation> continuation;
  std::string text;
  bool stopped = false;

  /// Adds what is new and cuts behind `stop`; gives what of it is left.
  std::string take(const std::string& stop, bool last) {
    const std::size_t from = text.size();
    text += continuation->fresh(last);
    if (!stop.empty())
      if (const auto at = text.find(stop, from - std::min(from, stop.size() - 1)); at != std::string::npos) {
        text.resize(at + stop.size());
        stopped = true;
      }
    return text.substr(std::min(from, text.size()));
  }
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
  if (io::find_bad_utf8(o.stop) != std::string_view::npos) throw Error("--stop is no UTF-8: " + io::in_quotes(o.stop));
  const std::string backend = parse_backend(o.backend), isa = parse_isa(o.isa);
  const bool stream = !o.json && o.generation.beams == 1;

  std::optional<text::Tokenizer> tokenizer;
  std::vector<std::string> texts = o.prompts;
  std::vector<Tokens> prompts;
  for (const std::string& list : o.ids) prompts.push_back(parse_ids(list));
  if (prompts.empty()) {
    if (!o.file.empty()) {
      const std::string content = read_whole(o.file);
      std::int64_t number = 0;
      for (const std::string_view line : lines_of(content)) {
        ++number;
        if (line.empty()) throw Error(fmt::format("{}: line {} is empty; each line is a prompt", o.file, number));
        texts.emplace_back(line);
      }
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
  std::vector<Text> behind;
  if (tokenizer)
    for (const Tokens& p : prompts) behind.push_back({Continuation(*tokenizer, translates ? Tokens() : p), {}, false});

  const bool live = stream && prompts.size() == 1;
  bool begun = false;
  const auto show = [&](const std::string& part) {
    if (!live) return;
    if (!begun && tokenizer && !translates) fmt::print("{}", texts[0]);
    begun = true;
    fmt::print("{}", part);
    if (std::fflush(stdout) != 0) throw Error("the output could not be written");
  };
  if (options.beams == 1)
    options.on_token = [&](std::size_t i, std::int32_t token) {
      if (!tokenizer) {
        show(fmt::format("{} ", token));
        return true;
      }
      behind[i].continuation->add(token);
      show(behind[i].take(o.stop, false));
      return !behind[i].stopped;
    };
  models::Generator generator(loaded, {.backend = backend, .isa = isa, .threads = static_cast<int>(o.threads)});
  const models::Generation g = generator.generate(prompts, options);
  for (std::size_t i = 0; i < behind.size(); ++i) {
    if (options.beams > 1)
      for (const std::int32_t id : g.sequences[i].tokens) behind[i].continuation->add(id);
    if (!behind[i].stopped) show(behind[i].take(o.stop, true));
  }

  nlohmann::ordered_json report = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const models::Generation::Sequence& s = g.sequences[i];
    const std::string text = tokenizer ? behind[i].text : std::string();
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
  sub->add_option("--prompt", o->prompts, "What to go on from; several run as one batch")
      ->allow_extra_args(false)  // one a time, as it is: no list in brackets
      ->type_name("TEXT");
  sub->add_option("--file", o->file, "Prompts from a file, one a line; - for standard input")->type_name("FILE");
  sub->add_option("--ids", o->ids, "Prompts as token ids, divided by commas; prints ids")
      ->type_name("LIST")
      ->allow_extra_args(false)
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
  sub->add_option("--stop", o->stop, "End behind this text, which is the last that is shown")->type_name("TEXT");
  sub->add_flag("--ignore-stop-token", o->no_stop_token, "Go on behind the checkpoint's eos_token_id");
  sub->add_flag("--json", o->json, "Ids, text, log probability and times as JSON");
  add_where_to_run(*sub, o->backend, o->isa, o->threads);
  return {sub, [o] { return run(*o); }};
}

}  // namespace treadle::cli
