#pragma once
// The steps that tokenizers are made of, with the names and the exact behaviour of Hugging Face's library.

#include <treadle/io/text/parts.hpp>
#include <treadle/io/text/regex.hpp>
#include <treadle/io/text/unicode.hpp>

namespace treadle::text {

// Normalisation.

struct BertNormalizer {
  bool clean_text = true;            ///< No control characters, plain spaces for all white space.
  bool handle_chinese_chars = true;  ///< Spaces around ideographs.
  bool strip_accents = true;         ///< NFD without nonspacing marks.
  bool lowercase = true;
};
NormalizeStep bert_normalizer(BertNormalizer options);
NormalizeStep lowercase();
NormalizeStep unicode_form(Form form);
NormalizeStep strip_accents();
NormalizeStep strip_white_space(bool left, bool right);
/// Before a text that is not empty.
NormalizeStep prepend(std::string start);
NormalizeStep replace_all(std::string what, std::string with);
NormalizeStep replace_all(Regex what, std::string with);

// Splitting.

/// What becomes of the matches of a pattern.
enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

/// At white space, which is dropped, and around every character of punctuation.
SplitStep bert_pre_tokenizer();
/// `inverted`: what does not match is taken for the matches.
SplitStep split_at(Regex pattern, SplitBehavior behavior, bool inverted);
/// Runs of letters, digits and marks; runs of other characters; without white space.
SplitStep split_whitespace();
SplitStep split_digits(bool each);
SplitStep split_punctuation(SplitBehavior behavior);

enum class PrependScheme { never, first, always };
/// White space becomes `replacement`, which starts a piece if `split`.
SplitStep metaspace(const std::string& replacement, PrependScheme scheme, bool split);

/// Bytes as the printable characters that stand for them; `split`: by the pattern of GPT-2 first.
SplitStep byte_level(bool add_prefix_space, bool split);

// Decoding.

/// Spaces before tokens without the prefix; `cleanup`: none before punctuation and English contractions.
DecodeStep decode_word_piece(std::string prefix, bool cleanup);
DecodeStep decode_byte_level();
DecodeStep decode_metaspace(const std::string& replacement, bool drop_first);
/// The suffix of a word's last token becomes a space.
DecodeStep decode_bpe_suffix(const std::string& suffix);
DecodeStep decode_replace(std::string what, std::string with);
/// Runs of <0x41> become their bytes.
DecodeStep decode_byte_fallback();
DecodeStep decode_fuse();
/// Up to so many of a character from each token's start and end.
DecodeStep decode_strip(std::string content, std::size_t start, std::size_t stop);

}  // namespace treadle::text
