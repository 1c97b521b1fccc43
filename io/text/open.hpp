#pragma once
// One function for each kind of file; each throws io::Error.

#include <treadle/io/text/parts.hpp>

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <utility>

namespace treadle::text {

/// vocab.txt, one token a line.
Parts open_bert(const std::filesystem::path& vocabulary);
/// vocab.json with merges.txt beside it.
Parts open_gpt2(const std::filesystem::path& vocabulary);
/// tokenizer.json.
Parts open_json(const std::filesystem::path& file);
/// Whether the file's model is Unigram, which SentencePiece's own file holds too.
bool is_unigram(const std::filesystem::path& file);
/// A SentencePiece model; the file's name and tokenizer_config.json say what goes around a text.
Parts open_sentence_piece(const std::filesystem::path& file);

/// "a b" as a merge.
std::pair<std::string, std::string> split_merge(std::string_view row, const std::string& where);
/// An object of tokens and ids.
void fill_vocabulary(Vocabulary& vocabulary, const nlohmann::json& tokens, const std::string& where);

}  // namespace treadle::text
