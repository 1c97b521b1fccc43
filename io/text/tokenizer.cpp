#include <treadle/io/error.hpp>
#include <treadle/io/text/parts.hpp>
#include <treadle/io/text/tokenizer.hpp>
#include <treadle/io/text/unicode.hpp>

#include <limits>

namespace treadle::text {

namespace {

/// A text between added tokens, normalised already.
void encode_plain(const Parts& parts, std::string text, bool first, std::vector<std::int32_t>& ids) {
  std::vector<Piece> pieces, next;
  pieces.push_back({std::move(text), first});
  for (const SplitStep& step : parts.split) {
    next.clear();
    for (Piece& p : pieces) step(std::move(p), next);
    pieces.swap(next);
  }
  for (const Piece& p : pieces) parts.model->encode(p.text, parts.vocabulary, ids);
}

/// A whole text, with the added tokens in it.
void encode_text(const Parts& p, std::string_view utf8, std::vector<std::int32_t>& ids) {
  std::vector<Segment> raw, inner;
  p.added.raw.split(utf8, raw);
  for (const Segment& segment : raw) {
    if (segment.id) {
      ids.push_back(*segment.id);
      continue;
    }
    const std::string normalized = p.normalized(segment.text);
    inner.clear();
    p.added.normalized.split(normalized, inner);
    for (const Segment& part : inner) {
      const bool first = segment.text.data() == utf8.data() && part.text.data() == normalized.data();
      if (part.id)
        ids.push_back(*part.id);
      else
        encode_plain(p, std::string(part.text), first, ids);
    }
  }
}

/// How many ids there may be; so many special tokens are among them.
std::size_t room(const EncodeOptions& options, std::size_t around) {
  if (options.max_length < 0)
    throw io::Error("max_length is " + std::to_string(options.max_length) + ": it must be 0 (no limit) or more");
  if (options.max_length == 0) return std::numeric_limits<std::size_t>::max();
  const auto most = static_cast<std::size_t>(options.max_length);
  if (most < around)
    throw io::Error("max_length is " + std::to_string(most) + ": the special tokens alone are " +
                    std::to_string(around));
  return most;
}

std::string_view token_or_throw(const Parts& parts, std::int32_t id) {
  const auto token = parts.vocabulary.token(id);
  if (!token)
    throw io::Error("id " + std::to_string(id) + " is outside the vocabulary: its ids go from 0 to " +
                    std::to_string(parts.vocabulary.size() - 1) +
                    (id >= 0 && id < parts.vocabulary.size() ? ", and this one has no token" : ""));
  return *token;
}

}  // namespace

std::vector<std::int32_t> Tokenizer::encode(std::string_view utf8, const EncodeOptions& options) const {
  const Parts& p = *parts_;
  require_utf8(utf8, "the text");
  std::vector<std::int32_t> ids;
  if (options.special_tokens) ids = p.before;
  encode_text(p, utf8, ids);
  const std::size_t closing = options.special_tokens ? p.after.size() : 0;
  const std::size_t most = room(options, options.special_tokens ? p.before.size() + closing : 0);
  if (ids.size() + closing > most) ids.resize(most - closing);
  if (options.special_tokens) ids.insert(ids.end(), p.after.begin(), p.after.end());
  return ids;
}

Encoding Tokenizer::encode_pair(std::string_view first, std::string_view second, const EncodeOptions& options) const {
  const Parts& p = *parts_;
  if (p.pair.empty())
    throw io::Error(
        "this tokenizer has no form for a pair of texts; those of BERT and RoBERTa have one, and a tokenizer.json "
        "whose post-processor is BertProcessing, RobertaProcessing or a template of pairs");
  require_utf8(first, "the first text");
  require_utf8(second, "the second text");
  std::vector<std::int32_t> a, b;
  encode_text(p, first, a);
  encode_text(p, second, b);
  const std::size_t around = options.special_tokens ? p.pair.size() - 2 : 0;
  const std::size_t both = room(options, around) - around;
  if (a.size() + b.size() > both) {
    // The longer text gives way until both are equal; what cannot be halved stays with it, of equal ones the second.
    std::vector<std::int32_t>&shorter = a.size() > b.size() ? b : a, &longer = a.size() > b.size() ? a : b;
    if (shorter.size() > both / 2) shorter.resize(both / 2);
    longer.resize(both - shorter.size());
  }
  Encoding e;
  for (const PairPart& part : p.pair) {
    if (part.kind == PairPart::Kind::token) {
      if (!options.special_tokens) continue;
      e.ids.push_back(part.id);
    } else {
      const std::vector<std::int32_t>& text = part.kind == PairPart::Kind::first ? a : b;
      e.ids.insert(e.ids.end(), text.begin(), text.end());
    }
    e.token_type_ids.resize(e.ids.size(), part.type);
  }
  return e;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool skip_special) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const std::int32_t id : ids) {
    const std::string_view token = token_or_throw(*parts_, id);
    if (!skip_special || !is_special(id)) tokens.emplace_back(token);
  }
  for (const DecodeStep& step : parts_->decode) tokens = step(std::move(tokens));
  std::string text;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0) text += parts_->separator;
    text += tokens[i];
  }
  return text;
}

std::int32_t Tokenizer::vocabulary_size() const { return parts_->vocabulary.size(); }
std::optional<std::int32_t> Tokenizer::id_of(std::string_view token) const { return parts_->vocabulary.find(token); }
std::string Tokenizer::token_of(std::int32_t id) const { return std::string(token_or_throw(*parts_, id)); }
bool Tokenizer::is_special(std::int32_t id) const { return parts_->added.special.contains(id); }

std::optional<std::int32_t> Tokenizer::pad_id() const { return parts_->special.pad; }
std::optional<std::int32_t> Tokenizer::unk_id() const { return parts_->special.unk; }
std::optional<std::int32_t> Tokenizer::bos_id() const { return parts_->special.bos; }
std::optional<std::int32_t> Tokenizer::eos_id() const { return parts_->special.eos; }
std::optional<std::int32_t> Tokenizer::cls_id() const { return parts_->special.cls; }
std::optional<std::int32_t> Tokenizer::sep_id() const { return parts_->special.sep; }
std::optional<std::int32_t> Tokenizer::mask_id() const { return parts_->special.mask; }
std::string_view Tokenizer::kind() const { return parts_->kind; }

}  // namespace treadle::text
