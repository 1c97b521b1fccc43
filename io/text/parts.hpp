#pragma once
// What a tokenizer is put together from, in the order in which a text passes through: added tokens are split out, the
// rest is normalised, split into pieces, and each piece becomes ids; special ids go around it. Decoding turns tokens
// into text, step by step.

#include <treadle/io/text/added_tokens.hpp>
#include <treadle/io/text/vocabulary.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace treadle::text {

/// One step of normalisation: UTF-8 to UTF-8.
using NormalizeStep = std::function<std::string(std::string_view)>;

/// A piece of the text that no token will reach over.
struct Piece {
  std::string text;
  bool first = false;  ///< Starts where the text starts.
};
/// One step of splitting: adds the parts of a piece, none of them empty.
using SplitStep = std::function<void(Piece piece, std::vector<Piece>& parts)>;

/// One step of decoding: tokens to tokens; in the end they are joined.
using DecodeStep = std::function<std::vector<std::string>(std::vector<std::string>)>;

/// Turns a piece into ids.
class Model {
 public:
  Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  virtual ~Model() = default;
  virtual void encode(std::string_view piece, const Vocabulary& vocabulary, std::vector<std::int32_t>& ids) const = 0;
};

struct SpecialIds {
  std::optional<std::int32_t> pad, unk, bos, eos, cls, sep, mask;
};

/// A part of what a pair of texts becomes: one of the two, or a token.
struct PairPart {
  enum class Kind : std::uint8_t { token, first, second } kind = Kind::token;
  std::int32_t id = 0;    ///< of the token
  std::int32_t type = 0;  ///< the segment that it belongs to
};

/// cls first sep second sep, as in BERT.
inline std::vector<PairPart> bert_pair(std::int32_t cls, std::int32_t sep) {
  using Kind = PairPart::Kind;
  return {
      {Kind::token, cls, 0}, {Kind::first, 0, 0}, {Kind::token, sep, 0}, {Kind::second, 0, 1}, {Kind::token, sep, 1}};
}
/// cls first sep sep second sep, all of one segment, as in RoBERTa.
inline std::vector<PairPart> roberta_pair(std::int32_t cls, std::int32_t sep) {
  using Kind = PairPart::Kind;
  return {{Kind::token, cls, 0}, {Kind::first, 0, 0},  {Kind::token, sep, 0},
          {Kind::token, sep, 0}, {Kind::second, 0, 0}, {Kind::token, sep, 0}};
}

struct Parts {
  std::string kind;
  Vocabulary vocabulary;
  AddedTokens added;
  std::vector<NormalizeStep> normalize;
  std::vector<SplitStep> split;
  std::unique_ptr<const Model> model;
  std::vector<std::int32_t> before, after;  ///< The special ids around a text.
  std::vector<PairPart> pair;               ///< Two texts; empty: nothing is said of pairs.
  std::vector<DecodeStep> decode;
  std::string separator;  ///< Between decoded tokens.
  SpecialIds special;

  std::string normalized(std::string_view text) const {
    std::string result(text);
    for (const NormalizeStep& step : normalize) result = step(result);
    return result;
  }
};

}  // namespace treadle::text
