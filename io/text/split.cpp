#include <treadle/io/text/byte_level.hpp>
#include <treadle/io/text/steps.hpp>

#include <algorithm>

namespace treadle::text {

namespace {

struct Range {
  std::size_t start, end;
  bool match;
};

/// The piece cut at the ranges, which cover it; empty ones are left out.
void cut(const Piece& piece, const std::vector<Range>& ranges, SplitBehavior behavior, std::vector<Piece>& parts) {
  std::vector<Range> kept;
  const auto join = [&](const Range& r) { kept.back().end = r.end; };
  switch (behavior) {
    case SplitBehavior::removed:
      for (const Range& r : ranges)
        if (!r.match) kept.push_back(r);
      break;
    case SplitBehavior::isolated: kept = ranges; break;
    case SplitBehavior::contiguous:
      for (const Range& r : ranges) {
        if (!kept.empty() && kept.back().match == r.match)
          join(r);
        else
          kept.push_back(r);
      }
      break;
    case SplitBehavior::merged_with_previous: {
      bool previous = false;
      for (const Range& r : ranges) {
        if (r.match && !previous && !kept.empty())
          join(r);
        else
          kept.push_back(r);
        previous = r.match;
      }
      break;
    }
    case SplitBehavior::merged_with_next: {
      bool next = false;
      for (auto r = ranges.rbegin(); r != ranges.rend(); ++r) {
        if (r->match && !next && !kept.empty())
          kept.back().start = r->start;
        else
          kept.push_back(*r);
        next = r->match;
      }
      std::reverse(kept.begin(), kept.end());
      break;
    }
  }
  for (const Range& r : kept)
    if (r.end > r.start) parts.push_back({piece.text.substr(r.start, r.end - r.start), piece.first && r.start == 0});
}

std::vector<Range> ranges_of(const Regex& pattern, std::string_view text, bool inverted) {
  std::vector<Range> ranges;
  std::size_t at = 0;
  for (const auto& [start, end] : pattern.matches(text)) {
    if (start > at) ranges.push_back({at, start, inverted});
    ranges.push_back({start, end, !inverted});
    at = end;
  }
  if (at < text.size()) ranges.push_back({at, text.size(), inverted});
  return ranges;
}

/// Each character that `is` tells as a match of its own.
template <typename Is>
std::vector<Range> ranges_where(std::string_view text, Is is) {
  std::vector<Range> ranges;
  std::size_t at = 0;
  each_code_point(text, [&](char32_t c, std::string_view bytes) {
    const bool match = is(c);
    if (!match && !ranges.empty() && !ranges.back().match)
      ranges.back().end = at + bytes.size();
    else
      ranges.push_back({at, at + bytes.size(), match});
    at += bytes.size();
  });
  return ranges;
}

}  // namespace

SplitStep bert_pre_tokenizer() {
  return [](const Piece& piece, std::vector<Piece>& parts) {
    std::vector<Piece> words;
    cut(piece, ranges_where(piece.text, is_white_space), SplitBehavior::removed, words);
    for (const Piece& word : words)
      cut(word, ranges_where(word.text, is_bert_punctuation), SplitBehavior::isolated, parts);
  };
}

SplitStep split_at(Regex pattern, SplitBehavior behavior, bool inverted) {
  return [pattern = std::move(pattern), behavior, inverted](const Piece& piece, std::vector<Piece>& parts) {
    cut(piece, ranges_of(pattern, piece.text, inverted), behavior, parts);
  };
}

SplitStep split_whitespace() {
  return split_at(Regex(R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d]+|)"
                        R"([^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d\p{White_Space}]+)",
                        "Whitespace"),
                  SplitBehavior::removed, true);
}

SplitStep split_digits(bool each) {
  return [each](const Piece& piece, std::vector<Piece>& parts) {
    cut(piece, ranges_where(piece.text, is_numeric), each ? SplitBehavior::isolated : SplitBehavior::contiguous, parts);
  };
}

SplitStep split_punctuation(SplitBehavior behavior) {
  return [behavior](const Piece& piece, std::vector<Piece>& parts) {
    cut(piece, ranges_where(piece.text, is_bert_punctuation), behavior, parts);
  };
}

SplitStep metaspace(const std::string& replacement, PrependScheme scheme, bool split) {
  const Regex pattern(quoted_pattern(replacement), "Metaspace");
  return [spaces = replace_all(" ", replacement), replacement, scheme, split, pattern](Piece piece,
                                                                                       std::vector<Piece>& parts) {
    piece.text = spaces(piece.text);
    if ((scheme == PrependScheme::always || (scheme == PrependScheme::first && piece.first)) &&
        !piece.text.starts_with(replacement))
      piece.text.insert(0, replacement);
    if (split)
      cut(piece, ranges_of(pattern, piece.text, false), SplitBehavior::merged_with_next, parts);
    else if (!piece.text.empty())
      parts.push_back(std::move(piece));
  };
}

SplitStep byte_level(bool add_prefix_space, bool split) {
  return [add_prefix_space, split, pattern = Regex(gpt2_pattern, "ByteLevel")](Piece piece, std::vector<Piece>& parts) {
    if (add_prefix_space && !piece.text.starts_with(' ')) piece.text.insert(0, " ");
    const std::size_t before = parts.size();
    if (split)
      cut(piece, ranges_of(pattern, piece.text, false), SplitBehavior::isolated, parts);
    else if (!piece.text.empty())
      parts.push_back(std::move(piece));
    for (std::size_t i = before; i < parts.size(); ++i) parts[i].text = bytes_to_characters(parts[i].text);
  };
}

}  // namespace treadle::text
