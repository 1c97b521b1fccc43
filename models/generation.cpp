#include <treadle/backends/error.hpp>
#include <treadle/models/beams.hpp>
#include <treadle/models/encoder_pass.hpp>
#include <treadle/models/generation.hpp>
#include <treadle/models/ports.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace treadle::models {
namespace {

using Clock = std::chrono::steady_clock;
using Prompts = std::vector<std::vector<std::int32_t>>;

constexpr std::array<std::string_view, 6> known_inputs = {"input_ids",    "position_ids", "cache_slots",
                                                          "cache_newest", "last_token",   "attention_mask"};

/// Tokens of a sequence that room is made for at once; longer ones grow.
constexpr std::int64_t most_reserved = 1 << 16;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

void check_options(const GenerationOptions& o) {
  if (o.max_new_tokens < 1 || o.max_new_tokens > std::numeric_limits<std::int32_t>::max())
    throw Error("max_new_tokens is " + std::to_string(o.max_new_tokens) + "; 1 to 2147483647 is right");
  if (!std::isfinite(o.length_penalty))
    throw Error("the length penalty is " + std::to_string(o.length_penalty) + "; a finite number is right");
  [[maybe_unused]] const Sampler tried(o.sampling, 0, 0);  // says what is wrong with it
  if (o.beams < 1) throw Error("the number of beams is " + std::to_string(o.beams) + "; 1 or more is right");
  if (o.beams > 1 && o.sampling.temperature > 0)
    throw Error("beam search follows the most probable tokens; use a temperature of 0 with it, or one beam");
  if (o.beams > 1 && o.on_token)
    throw Error("beam search knows its tokens at the end: it calls no on_token; use one beam to stream them");
}

}  // namespace

/// Rows are the sequences of a batch: prompts, or the beams of prompts.
struct Generator::Implementation {
  const LoadedModel& loaded;
  BoundModel model;
  std::int64_t chunk, vocabulary = 0;
  bool slotted = false;        ///< keeps keys in slots of a cache
  std::vector<Port> states{};  ///< by full name
  std::size_t held = 0;        ///< bytes of the states

  std::int64_t rows = 0, count = 0, capacity = 0;  ///< that the model is bound for
  std::vector<std::int64_t> lengths{};             ///< tokens of each row so far
  std::vector<std::int32_t> ids{}, positions{}, slots{}, newest{}, last{};
  std::vector<float> logits{};
  std::vector<NamedTensor> inputs{};
  NamedTensor output{};
  double plan_seconds = 0, run_seconds = 0;  ///< of this call
  std::vector<std::byte> moved{};            ///< rows of a state on their way to others

  std::optional<EncoderPass> encoder{};     ///< of an encoder–decoder: prompts are its texts
  std::int64_t source = 0;                  ///< tokens of the longest of them
  std::vector<std::int32_t> source_mask{};  ///< [rows, source]

  Implementation(const LoadedModel& from, const BindOptions& options, std::int64_t part)
      : loaded(from), model(from.bind(options)), chunk(part) {
    if (!from.encoder.nodes.empty()) encoder.emplace(from, options);
    const GraphView g = from.graph.view();
    bool cached = false;
    for (const Port& p : ports(g, op::input)) {
      slotted = slotted || p.name == "cache_slots";
      cached = cached || p.name == "last_token";
    }
    if (!cached)
      throw Error(
          "the model has no cache to generate with: it is no decoder, or was loaded without LoadOptions::cache");
    for (const Port& p : ports(g, op::input))
      if (std::find(known_inputs.begin(), known_inputs.end(), p.name) == known_inputs.end())
        throw Error("a generator does not know the model's input '" + p.name + "'");
    if (chunk < 1) throw Error("the part of a prompt is " + std::to_string(chunk) + " tokens; 1 or more is right");
    states = ports(g, op::state);
    for (const Port& p : ports(g, op::output))
      if (p.name == "logits") vocabulary = g.dims.constant(g.shape({p.node, 0}).back()).value_or(0);
    if (vocabulary == 0) throw Error("the model has no output 'logits' [batch, 1, vocabulary]");
  }

  void bind(std::int64_t batch_rows, std::int64_t tokens, std::int64_t slots_of_a_row) {
    const bool same_source = !encoder || source == encoder->source();
    if (rows == batch_rows && count == tokens && capacity == slots_of_a_row && same_source) return;
    std::vector<NamedSize> dims{{"batch", batch_rows}, {"seq", tokens}};
    if (slotted) dims.push_back({"capacity", slots_of_a_row});
    if (encoder) {
      source = encoder->source();
      dims.push_back({"source", source});
      source_mask.assign(static_cast<std::size_t>(batch_rows * source), 0);
    }
    rows = 0;  // whatever happens, the lengths before are gone
    const auto start = Clock::now();
    model.bind_dims(dims);
    plan_seconds += seconds_since(start);
    rows = batch_rows;
    count = tokens;
    capacity = slots_of_a_row;
    const auto size = static_cast<std::size_t>(rows * count);
    ids.assign(size, 0);
    positions.assign(size, 0);
    slots.assign(size, -1);
    newest.assign(static_cast<std::size_t>(rows), 0);
    last.assign(static_cast<std::size_t>(rows), 0);
    logits.assign(static_cast<std::size_t>(rows * vocabulary), 0.0f);
    inputs.clear();
    const GraphView g = loaded.graph.view();
    for (const Port& p : ports(g, op::input)) {
      std::vector<std::int32_t>& from = p.name == "input_ids"      ? ids
                                        : p.name == "position_ids" ? positions
                                        : p.name == "cache_slots"  ? slots
                                        : p.name == "cache_newest" ? newest
                                        : p.name == "last_token"   ? last
                                                                   : source_mask;
      TensorView view = model.input_spec(p.name);
      view.data = from.data();
      inputs.push_back({g.leaf(p.node), view});
    }
    TensorView view = model.output_spec("logits");
    view.data = logits.data();
    output = {"logits", view};
  }

  /// The tokens of all rows, `count` each: `token(row, i)`, −1 for none. Logits are those of the last ones.
  template <class Token>
  void feed(Token token) {
    for (std::int64_t r = 0; r < rows; ++r) {
      std::int64_t& length = lengths[static_cast<std::size_t>(r)];
      for (std::int64_t i = 0; i < count; ++i) {
        const auto at = static_cast<std::size_t>(r * count + i);
        const std::int32_t id = token(r, i);
        ids[at] = std::max(id, 0);
        positions[at] = id < 0 ? 0 : static_cast<std::int32_t>(length);
        slots[at] = id < 0 ? -1 : static_cast<std::int32_t>(capacity > 0 ? length % capacity : 0);
        if (id >= 0) ++length;
      }
      newest[static_cast<std::size_t>(r)] = static_cast<std::int32_t>(length - 1);
      last[static_cast<std::size_t>(r)] = static_cast<std::int32_t>(count - 1);
    }
    const auto start = Clock::now();
    model.run(inputs, std::span(&output, 1));
    run_seconds += seconds_since(start);
  }

  std::span<const float> row(std::int64_t r) const {
    return std::span(logits).subspan(static_cast<std::size_t>(r * vocabulary), static_cast<std::size_t>(vocabulary));
  }

  void check(const Prompts& prompts, std::int64_t more) const {
    if (prompts.empty()) throw Error("there is no prompt");
    const std::int64_t known = encoder && encoder->vocabulary() > 0 ? encoder->vocabulary() : vocabulary;
    if (encoder && loaded.positions > 0 && more > loaded.positions)
      throw Error(std::to_string(more) + " tokens are asked for; the decoder has " + std::to_string(loaded.positions) +
                  " positions");
    if (encoder && (loaded.start_id < 0 || loaded.start_id >= vocabulary))
      throw Error("decoder_start_token_id is " + std::to_string(loaded.start_id) + "; ids are 0 to " +
                  std::to_string(vocabulary - 1));
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      const auto length = static_cast<std::int64_t>(prompts[i].size());
      const std::string which = "prompt " + std::to_string(i);
      if (length == 0)
        throw Error(which + " has no token; a text begins with one (a beginning-of-text token, if nothing else)");
      for (const std::int32_t id : prompts[i])
        if (id < 0 || id >= known)
          throw Error(which + " holds " + std::to_string(id) + "; ids are 0 to " + std::to_string(known - 1));
      // The last token that is generated is not read again.
      if (!encoder && loaded.positions > 0 && length + more - 1 > loaded.positions)
        throw Error(which + " has " + std::to_string(length) + " tokens and " + std::to_string(more) +
                    " more are asked for; the model has " + std::to_string(loaded.positions) + " positions");
      if (!encoder && !slotted && length != static_cast<std::int64_t>(prompts[0].size()))
        throw Error(which + " has " + std::to_string(length) + " tokens and prompt 0 " +
                    std::to_string(prompts[0].size()) +
                    "; this model's state has no positions, so the prompts of a batch need equal lengths");
    }
  }

  /// Reads the prompts, each in `copies` rows, and binds for the steps behind. Shorter ones stand at the end, so that
  /// every row's last token is in the last part.
  void prefill(const Prompts& prompts, std::int64_t copies, std::int64_t more) {
    std::int64_t longest = 0;
    for (const auto& p : prompts) longest = std::max(longest, static_cast<std::int64_t>(p.size()));
    const std::int64_t batch_rows = static_cast<std::int64_t>(prompts.size()) * copies, part = std::min(chunk, longest);
    std::int64_t room = longest + more;
    if (loaded.window > 0) room = std::min(room, loaded.window + part - 1);
    lengths.assign(static_cast<std::size_t>(batch_rows), 0);
    std::int64_t done = 0;
    while (done < longest) {
      const std::int64_t rest = (longest - done) % part;
      bind(batch_rows, rest != 0 ? rest : part, room);
      if (done == 0) begin(copies);
      feed([&](std::int64_t r, std::int64_t i) {
        const auto& prompt = prompts[static_cast<std::size_t>(r / copies)];
        const std::int64_t at = done + i - (longest - static_cast<std::int64_t>(prompt.size()));
        return at < 0 ? -1 : prompt[static_cast<std::size_t>(at)];
      });
      done += count;
    }
  }

  /// States as before the first token.
  void begin(std::int64_t copies) {
    model.reset_states();
    if (!encoder) return;
    encoder->fill(model, states, copies);
    for (std::int64_t r = 0; r < rows; ++r)
      std::copy_n(encoder->mask(static_cast<std::size_t>(r / copies)).begin(), source,
                  source_mask.begin() + r * source);
  }

  /// From the logits of the prompts to one token a row: rows keep their logits.
  void bind_step() {
    const std::vector<float> before = logits;
    bind(rows, 1, capacity);
    logits = before;
    output.tensor.data = logits.data();
    held = 0;
    for (const Port& s : states) {
      const TensorView v = model.state(s.name);
      held += static_cast<std::size_t>(v.size()) * size_of(v.dtype);
    }
  }

  /// Row r becomes a copy of row parents[r], in every state.
  void move_rows(std::span<const std::int32_t> parents) {
    const GraphView g = loaded.graph.view();
    for (const Port& s : states) {
      if (encoder && encoder->fills(s)) continue;  // the same for all beams of a text
      const TensorView v = model.state(s.name);
      // States lie dense; those of a repeat have its iterations in front.
      std::size_t outer = 1, block = size_of(v.dtype);
      int at = 0;
      while (symbol_of(g, g.shape({s.node, 0})[static_cast<std::size_t>(at)]) != "batch")
        outer *= static_cast<std::size_t>(v.shape[static_cast<std::size_t>(at++)]);
      for (int i = at + 1; i < v.rank; ++i) block *= static_cast<std::size_t>(v.shape[static_cast<std::size_t>(i)]);
      const std::size_t all = block * parents.size();
      moved.resize(std::max(moved.size(), all));  // in the first step
      for (std::size_t o = 0; o < outer; ++o) {
        std::byte* const data = v.as<std::byte>() + o * all;
        for (std::size_t r = 0; r < parents.size(); ++r)
          if (static_cast<std::size_t>(parents[r]) != r)
            std::memcpy(moved.data() + r * block, data + static_cast<std::size_t>(parents[r]) * block, block);
        for (std::size_t r = 0; r < parents.size(); ++r)
          if (static_cast<std::size_t>(parents[r]) != r) std::memcpy(data + r * block, moved.data() + r * block, block);
      }
    }
  }

  void sample(Generation& result, const GenerationOptions& o) {
    const std::size_t n = result.sequences.size();
    std::vector<Sampler> samplers;
    for (std::size_t i = 0; i < n; ++i) {
      samplers.emplace_back(o.sampling, vocabulary, i);
      result.sequences[i].tokens.reserve(static_cast<std::size_t>(std::min(o.max_new_tokens, most_reserved)));
    }
    std::vector<std::int32_t> next(n, -1);
    std::vector<char> ended(n, 0);
    for (std::int64_t step = 0;; ++step) {
      bool going = false;
      for (std::size_t i = 0; i < n; ++i) {
        next[i] = -1;
        if (ended[i] != 0) continue;
        Generation::Sequence& s = result.sequences[i];
        const auto from = row(static_cast<std::int64_t>(i));
        const std::int32_t token = samplers[i].draw(from);
        s.tokens.push_back(token);
        s.log_probability += double{from[static_cast<std::size_t>(token)]} - log_sum_exp(from);
        if (std::find(o.stop_ids.begin(), o.stop_ids.end(), token) != o.stop_ids.end())
          s.reason = StopReason::stop_token;
        const bool stopped = o.on_token && !o.on_token(i, token);
        if (stopped && s.reason == StopReason::length) s.reason = StopReason::callback;
        ended[i] = s.reason != StopReason::length ? 1 : 0;
        if (ended[i] == 0) next[i] = token;
        going = going || ended[i] == 0;
      }
      if (!going || step + 1 == o.max_new_tokens) return;
      const auto start = Clock::now();
      feed([&](std::int64_t r, std::int64_t) { return next[static_cast<std::size_t>(r)]; });
      result.decode_seconds += seconds_since(start);
      result.decode_tokens += static_cast<std::int64_t>(n) - std::count(ended.begin(), ended.end(), 1);
    }
  }

  void search(Generation& result, const GenerationOptions& o) {
    const std::size_t n = result.sequences.size(), width = static_cast<std::size_t>(o.beams);
    std::vector<Beams> searches;
    for (std::size_t i = 0; i < n; ++i)
      searches.emplace_back(o.beams, o.length_penalty, std::min(o.max_new_tokens, most_reserved), o.stop_ids);
    std::vector<std::int32_t> parents(n * width), next(n * width);
    for (std::int64_t step = 0;; ++step) {
      std::size_t going = 0;
      for (std::size_t i = 0; i < n; ++i) {
        Beams& b = searches[i];
        if (!b.done())
          b.advance(std::span(logits).subspan(i * width * static_cast<std::size_t>(vocabulary),
                                              width * static_cast<std::size_t>(vocabulary)));
        going += b.done() ? 0 : 1;
        for (std::size_t r = 0; r < width; ++r) {
          const std::size_t at = i * width + r;
          parents[at] =
              b.done() ? static_cast<std::int32_t>(at) : static_cast<std::int32_t>(i * width) + b.parents()[r];
          next[at] = b.done() ? -1 : b.next()[r];
        }
      }
      if (going == 0 || step + 1 == o.max_new_tokens) break;
      const auto start = Clock::now();
      move_rows(parents);
      feed([&](std::int64_t r, std::int64_t) { return next[static_cast<std::size_t>(r)]; });
      result.decode_seconds += seconds_since(start);
      result.decode_tokens += static_cast<std::int64_t>(going);
    }
    for (std::size_t i = 0; i < n; ++i) {
      Beams::Hypothesis best = searches[i].best();
      result.sequences[i] = {std::move(best.tokens), best.log_probability,
                             best.stopped ? StopReason::stop_token : StopReason::length};
    }
  }
};

Generator::Generator(const LoadedModel& loaded, BindOptions options, std::int64_t chunk)
    : implementation_(std::make_unique<Implementation>(loaded, options, chunk)) {}
Generator::Generator(Generator&&) noexcept = default;
Generator::~Generator() = default;

std::size_t Generator::cache_bytes() const { return implementation_->held; }

Generation Generator::generate(const Prompts& prompts, const GenerationOptions& options) {
  Implementation& m = *implementation_;
  check_options(options);
  m.check(prompts, options.max_new_tokens);
  Generation result;
  result.sequences.resize(prompts.size());
  for (const auto& p : prompts) result.prefill_tokens += static_cast<std::int64_t>(p.size());
  m.plan_seconds = m.run_seconds = 0;
  if (m.encoder) {
    m.encoder->read(prompts);
    m.plan_seconds = m.encoder->plan_seconds();
    m.run_seconds = m.encoder->run_seconds();
    m.prefill(Prompts(prompts.size(), {m.loaded.start_id}), options.beams, options.max_new_tokens);
  } else {
    m.prefill(prompts, options.beams, options.max_new_tokens);
  }
  result.prefill_seconds = m.run_seconds;
  m.bind_step();
  result.plan_seconds = m.plan_seconds;
  if (options.beams == 1)
    m.sample(result, options);
  else
    m.search(result, options);
  return result;
}

}  // namespace treadle::models
