#pragma once
// Text to token ids and back, as the published tokenizers of a checkpoint's folder do it.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace treadle::text {

struct Parts;

struct EncodeOptions {
  /// Put the tokens that the model expects around a text: [CLS] … [SEP], … </s>, <s> ….
  bool special_tokens = true;
  /// At most so many ids, 0 for no limit: the end of the text is cut off, the special tokens around it stay.
  std::int64_t max_length = 0;
};

/// Two texts as one, and the segment that each token belongs to: what BERT takes as token_type_ids.
struct Encoding {
  std::vector<std::int32_t> ids, token_type_ids;
};

/// A tokenizer is a value: copies share what was read, and may be used from several threads at once.
class Tokenizer {
 public:
  /// A folder that holds one of these, the first that is there, or such a file itself:
  ///   tokenizer.json                       WordPiece and BPE models, as Hugging Face writes them
  ///   vocab.json and merges.txt            byte-level BPE as in GPT-2
  ///   vocab.txt                            WordPiece as in BERT
  ///   spiece.model                         SentencePiece, </s> at the end as in T5
  ///   tokenizer.model                      SentencePiece, <s> at the start as in Llama
  ///   sentencepiece.bpe.model              SentencePiece, <s> … </s> and ids moved as in XLM-RoBERTa
  /// tokenizer_config.json beside them is read too (do_lower_case, add_bos_token, names of special tokens, …). Where
  /// tokenizer.json holds a Unigram model, the SentencePiece file beside it is taken. Throws io::Error: no such file,
  /// no tokenizer in the folder, a file that is malformed or asks for what is not supported, which is named.
  static Tokenizer open(const std::filesystem::path& path);

  /// The ids of a text. Special tokens written in the text become their ids. Truncation and padding that a
  /// tokenizer.json asks for are left to the caller. Throws io::Error: not UTF-8 (with the offset), max_length too
  /// small for the special tokens.
  std::vector<std::int32_t> encode(std::string_view utf8, const EncodeOptions& options = {}) const;

  /// A pair of texts: [CLS] first [SEP] second [SEP] in BERT's way, with segments 0 and 1, or as the files of the
  /// tokenizer say. With max_length the ends of the texts are cut off, the longer one first. Throws io::Error as
  /// encode, and if nothing says how a pair is put together.
  Encoding encode_pair(std::string_view first, std::string_view second, const EncodeOptions& options = {}) const;

  /// The text of some ids. What is no UTF-8 in the end (half of a character) becomes U+FFFD. Throws io::Error: an id
  /// outside the vocabulary.
  std::string decode(std::span<const std::int32_t> ids, bool skip_special = true) const;

  /// The largest id plus 1.
  std::int32_t vocabulary_size() const;
  std::optional<std::int32_t> id_of(std::string_view token) const;
  /// As the vocabulary writes it: "##ing", "Ġthe", "▁the". Throws io::Error: outside the vocabulary.
  std::string token_of(std::int32_t id) const;
  /// Whether decode leaves it out.
  bool is_special(std::int32_t id) const;

  std::optional<std::int32_t> pad_id() const;
  std::optional<std::int32_t> unk_id() const;
  std::optional<std::int32_t> bos_id() const;
  std::optional<std::int32_t> eos_id() const;
  std::optional<std::int32_t> cls_id() const;
  std::optional<std::int32_t> sep_id() const;
  std::optional<std::int32_t> mask_id() const;

  /// "WordPiece", "BPE" or "SentencePiece".
  std::string_view kind() const;

 private:
  explicit Tokenizer(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;
};

}  // namespace treadle::text
