#include <treadle/io/text/unicode.hpp>
#include <treadle/io/text/word_piece.hpp>

namespace treadle::text {

namespace {

class WordPiece final : public Model {
 public:
  explicit WordPiece(WordPieceOptions options) : options_(std::move(options)) {}

  void encode(std::string_view word, const Vocabulary& vocabulary, std::vector<std::int32_t>& ids) const override {
    const std::size_t before = ids.size();
    if (count_code_points(word) > options_.longest) {
      ids.push_back(options_.unknown);
      return;
    }
    std::string candidate;
    for (std::size_t start = 0; start < word.size();) {
      std::size_t end = word.size();
      std::optional<std::int32_t> id;
      for (; end > start; --end) {
        if (end < word.size() && (static_cast<unsigned char>(word[end]) & 0xC0) == 0x80)
          continue;  // within a character
        candidate.assign(start > 0 ? options_.prefix : "");
        candidate += word.substr(start, end - start);
        id = vocabulary.find(candidate);
        if (id) break;
      }
      if (!id) {
        ids.resize(before);
        ids.push_back(options_.unknown);
        return;
      }
      ids.push_back(*id);
      start = end;
    }
  }

 private:
  WordPieceOptions options_;
};

}  // namespace

std::unique_ptr<const Model> word_piece(WordPieceOptions options) {
  return std::make_unique<WordPiece>(std::move(options));
}

}  // namespace treadle::text
