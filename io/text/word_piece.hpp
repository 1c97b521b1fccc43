#pragma once
// WordPiece: the longest token that starts a word, then the longest that goes on (Wu et al. 2016; Devlin et al. 2018).

#include <treadle/io/text/parts.hpp>

namespace treadle::text {

struct WordPieceOptions {
  std::string prefix = "##";  ///< Of tokens that go on within a word.
  std::int32_t unknown = 0;   ///< For a word that cannot be put together.
  std::size_t longest = 100;  ///< In code points; a longer word is unknown.
};

std::unique_ptr<const Model> word_piece(WordPieceOptions options);

}  // namespace treadle::text
