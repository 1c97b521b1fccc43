// Which file a tokenizer is read from.

#include <treadle/io/error.hpp>
#include <treadle/io/text/open.hpp>
#include <treadle/io/text/tokenizer.hpp>

#include <array>

namespace treadle::text {

namespace fs = std::filesystem;

namespace {

struct Kind {
  const char* file;
  Parts (*open)(const fs::path&);
};

/// In the order in which a folder is asked for them.
constexpr std::array kinds = {Kind{"tokenizer.json", open_json},
                              Kind{"vocab.json", open_gpt2},
                              Kind{"vocab.txt", open_bert},
                              Kind{"spiece.model", open_sentence_piece},
                              Kind{"tokenizer.model", open_sentence_piece},
                              Kind{"sentencepiece.bpe.model", open_sentence_piece}};

std::string list_of_files() {
  std::string list;
  for (const Kind& k : kinds) list.append(list.empty() ? "" : ", ").append(k.file);
  return list;
}

Parts open_parts(const fs::path& path) {
  std::error_code code;
  const fs::file_status status = fs::status(path, code);
  if (status.type() == fs::file_type::not_found) throw io::Error(path.string() + ": no such file or folder");
  if (fs::is_directory(status)) {
    const Kind* found = nullptr;
    for (const Kind& k : kinds) {
      if (!fs::exists(path / k.file)) continue;
      if (found == nullptr) found = &k;
      // SentencePiece's own file instead of its Unigram model in JSON.
      const bool instead = found->open == open_json && k.open == open_sentence_piece && is_unigram(path / found->file);
      if (instead) found = &k;
    }
    if (found != nullptr) return found->open(path / found->file);
    throw io::Error(path.string() + ": holds no tokenizer; looked for " + list_of_files());
  }
  for (const Kind& k : kinds)
    if (path.filename() == k.file) return k.open(path);
  const std::string ending = path.extension().string();
  if (ending == ".json") return open_json(path);
  if (ending == ".txt" && path.filename() != "merges.txt") return open_bert(path);
  if (ending == ".model") return open_sentence_piece(path);
  throw io::Error(path.string() + ": is no tokenizer file; it is named " + list_of_files() + ", or ends so");
}

}  // namespace

Tokenizer Tokenizer::open(const fs::path& path) { return Tokenizer(std::make_shared<const Parts>(open_parts(path))); }

}  // namespace treadle::text
