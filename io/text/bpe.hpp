#pragma once
// Byte pair encoding: the pair of neighbours that was learnt first is merged, until none is left (Sennrich et al.
// 2016).

#include <treadle/io/text/parts.hpp>

#include <cstdint>
#include <utility>

namespace treadle::text {

struct BpeOptions {
  std::optional<std::int32_t> unknown;  ///< For a character that has no token; without it such a character is left out.
  bool fuse_unknown = false;            ///< One for a run of them.
  bool byte_fallback = false;           ///< <0x41> for its bytes, where all are in the vocabulary.
  bool ignore_merges = false;           ///< A piece that is a token is taken whole.
  std::string prefix = {};              ///< Of symbols that go on within a piece ("##").
  std::string suffix = {};              ///< Of a piece's last symbol ("</w>").
};

/// Merges in the order in which they were learnt.
using Merges = std::vector<std::pair<std::string, std::string>>;

/// Throws io::Error with `where` and the number of the merge: it names a token, or makes one, that is not in the
/// vocabulary. The time for a piece of n characters is O(n log n).
std::unique_ptr<const Model> byte_pairs(const Merges& merges, const Vocabulary& vocabulary, BpeOptions options,
                                        const std::string& where);

}  // namespace treadle::text
