#include <treadle/io/error.hpp>
#include <treadle/io/text.hpp>
#include <treadle/io/text/bpe.hpp>
#include <treadle/io/text/unicode.hpp>

#include <cstdio>
#include <queue>
#include <tuple>

namespace treadle::text {

namespace {

struct Merge {
  std::int32_t rank, id;
};

std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
}

/// A symbol of a piece in a list; `previous` and `next` are −1 at the ends. Merged into its neighbour: id −1.
struct Symbol {
  std::int32_t id;
  std::int64_t previous, next;
};

/// What may be merged: the lowest rank first, of equal ones the leftmost.
struct Candidate {
  std::int32_t rank;
  std::int64_t left;
  std::int32_t id, left_id, right_id;
  bool operator>(const Candidate& other) const { return std::tie(rank, left) > std::tie(other.rank, other.left); }
};

[[noreturn]] void refuse(const std::string& where, std::int32_t rank, const Merges::value_type& merge,
                         const std::string& token) {
  std::string text = where + ": merge " + std::to_string(rank + 1);
  text.append(" (").append(io::in_quotes(merge.first)).append(" and ").append(io::in_quotes(merge.second));
  throw io::Error(
      text.append(") needs the token ").append(io::in_quotes(token)).append(", which the vocabulary does not have"));
}

class BytePairs final : public Model {
 public:
  BytePairs(const Merges& merges, const Vocabulary& vocabulary, BpeOptions options, const std::string& where)
      : options_(std::move(options)) {
    merges_.reserve(merges.size());
    std::int32_t rank = 0;
    for (const auto& merge : merges) {
      const std::string &left = merge.first, &right = merge.second;
      const auto id = [&](const std::string& token) {
        const auto found = vocabulary.find(token);
        if (!found) refuse(where, rank, merge, token);
        return *found;
      };
      const bool goes_on = !options_.prefix.empty() && right.starts_with(options_.prefix);
      const std::string merged = left + (goes_on ? right.substr(options_.prefix.size()) : right);
      const std::int32_t a = id(left), b = id(right);
      merges_.try_emplace(pair_key(a, b), Merge{rank, id(merged)});
      ++rank;
    }
    if (options_.byte_fallback) fallback_ = byte_tokens(vocabulary);
  }

  void encode(std::string_view piece, const Vocabulary& vocabulary, std::vector<std::int32_t>& ids) const override {
    if (options_.ignore_merges) {
      if (const auto id = vocabulary.find(piece)) {
        ids.push_back(*id);
        return;
      }
    }
    std::vector<Symbol> symbols;
    for (const std::int32_t id : characters(piece, vocabulary)) {
      const auto n = static_cast<std::int64_t>(symbols.size());
      symbols.push_back({id, n - 1, n + 1});
    }
    if (symbols.empty()) return;
    symbols.back().next = -1;
    merge(symbols);
    for (const Symbol& s : symbols)
      if (s.id >= 0) ids.push_back(s.id);
  }

 private:
  static std::vector<std::optional<std::int32_t>> byte_tokens(const Vocabulary& vocabulary) {
    std::vector<std::optional<std::int32_t>> ids;
    for (unsigned b = 0; b < 256; ++b) {
      char name[8];
      std::snprintf(name, sizeof name, "<0x%02X>", b);
      ids.push_back(vocabulary.find(name));
    }
    return ids;
  }

  /// The ids of the piece's characters.
  std::vector<std::int32_t> characters(std::string_view piece, const Vocabulary& vocabulary) const {
    std::vector<std::int32_t> ids;
    std::size_t at = 0;
    bool after_unknown = false;
    std::string symbol;
    each_code_point(piece, [&](char32_t, std::string_view bytes) {
      symbol.assign(at > 0 ? options_.prefix : "").append(bytes);
      at += bytes.size();
      if (at == piece.size()) symbol += options_.suffix;
      if (const auto id = vocabulary.find(symbol)) {
        ids.push_back(*id);
        after_unknown = false;
        return;
      }
      if (options_.byte_fallback && add_bytes(symbol, ids)) return;
      if (options_.unknown && !(options_.fuse_unknown && after_unknown)) ids.push_back(*options_.unknown);
      after_unknown = true;
    });
    return ids;
  }

  bool add_bytes(std::string_view symbol, std::vector<std::int32_t>& ids) const {
    const std::size_t before = ids.size();
    for (const char b : symbol) {
      const auto& id = fallback_[static_cast<unsigned char>(b)];
      if (!id) {
        ids.resize(before);
        return false;
      }
      ids.push_back(*id);
    }
    return true;
  }

  void merge(std::vector<Symbol>& symbols) const {
    std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
    const auto at = [&](std::int64_t i) -> Symbol& { return symbols[static_cast<std::size_t>(i)]; };
    const auto consider = [&](std::int64_t left) {
      if (left < 0 || at(left).next < 0) return;
      const std::int32_t a = at(left).id, b = at(at(left).next).id;
      const auto found = merges_.find(pair_key(a, b));
      if (found != merges_.end()) queue.push({found->second.rank, left, found->second.id, a, b});
    };
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(symbols.size()); ++i) consider(i);
    while (!queue.empty()) {
      const Candidate c = queue.top();
      queue.pop();
      Symbol& left = at(c.left);
      // Another merge has taken one of the two since.
      if (left.id != c.left_id || left.next < 0 || at(left.next).id != c.right_id) continue;
      Symbol& right = at(left.next);
      left.id = c.id;
      right.id = -1;
      left.next = right.next;
      if (left.next >= 0) at(left.next).previous = c.left;
      consider(left.previous);
      consider(c.left);
    }
  }

  BpeOptions options_;
  std::unordered_map<std::uint64_t, Merge> merges_;
  std::vector<std::optional<std::int32_t>> fallback_;
};

}  // namespace

std::unique_ptr<const Model> byte_pairs(const Merges& merges, const Vocabulary& vocabulary, BpeOptions options,
                                        const std::string& where) {
  return std::make_unique<BytePairs>(merges, vocabulary, std::move(options), where);
}

}  // namespace treadle::text
