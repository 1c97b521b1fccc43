#include <treadle/io/error.hpp>
#include <treadle/io/file.hpp>
#include <treadle/io/text/config.hpp>
#include <treadle/io/text/open.hpp>

#include <sentencepiece_processor.h>

#include <array>
#include <unordered_set>

namespace treadle::text {

namespace {

using Processor = std::shared_ptr<const sentencepiece::SentencePieceProcessor>;

/// What a published family does with the ids of a SentencePiece model.
enum class Family { t5, llama, xlm_roberta };

Family family_of(const Config& config, const std::filesystem::path& path) {
  const std::string name = config.tokenizer_class(), file = path.filename().string();
  if (name == "T5" || name == "MT5") return Family::t5;
  if (name == "Llama" || name == "CodeLlama" || name == "Mistral" || name == "Gemma") return Family::llama;
  if (name == "XLMRoberta") return Family::xlm_roberta;
  if (!name.empty() && name != "PreTrained")
    throw io::Error(config.where() + ": the tokenizer_class '" + name + "Tokenizer' is not supported with " + file +
                    "; those of T5, MT5, Llama, Mistral, Gemma and XLMRoberta are");
  if (file == "sentencepiece.bpe.model") return Family::xlm_roberta;
  return file == "tokenizer.model" ? Family::llama : Family::t5;
}

/// XLM-RoBERTa keeps the order of another library: four special tokens, then the model's from its third on.
constexpr std::array xlm_first = {"<s>", "<pad>", "</s>", "<unk>"};

std::int32_t moved(std::int32_t id, Family family) {
  if (family != Family::xlm_roberta) return id;
  constexpr std::array<std::int32_t, 3> first = {3, 0, 2};  // <unk>, <s>, </s>
  return id < 3 ? first[static_cast<std::size_t>(id)] : id + 1;
}

class SentencePiece final : public Model {
 public:
  SentencePiece(Processor processor, Family family) : processor_(std::move(processor)), family_(family) {}

  void encode(std::string_view piece, const Vocabulary&, std::vector<std::int32_t>& ids) const override {
    std::vector<int> found;
    const auto status = processor_->Encode({piece.data(), piece.size()}, &found);
    if (!status.ok()) throw io::Error("SentencePiece could not encode a text: " + status.ToString());
    for (const int id : found) ids.push_back(moved(id, family_));
  }

 private:
  Processor processor_;
  Family family_;
};

/// Tokens to text through the library; special ones stand as they are.
DecodeStep decode_sentence_piece(Processor processor, std::unordered_set<std::string> special) {
  return [processor = std::move(processor), special = std::move(special)](const std::vector<std::string>& tokens) {
    std::vector<std::string> result, run;
    const auto flush = [&] {
      if (run.empty()) return;
      std::string text;
      const auto status = processor->Decode(run, &text);
      if (!status.ok()) throw io::Error("SentencePiece could not decode ids: " + status.ToString());
      result.push_back(std::move(text));
      run.clear();
    };
    for (const std::string& t : tokens) {
      if (!special.contains(t)) {
        run.push_back(t);
        continue;
      }
      flush();
      result.push_back(t);
    }
    flush();
    return result;
  };
}

void add_pieces(Parts& parts, const sentencepiece::SentencePieceProcessor& processor, Family family,
                const std::string& where) {
  if (family == Family::xlm_roberta) {
    std::int32_t id = 0;
    for (const char* token : xlm_first) add_token(parts, token, {.id = id++}, where);
  }
  const bool has_special = family != Family::xlm_roberta;
  for (int i = has_special ? 0 : 3; i < processor.GetPieceSize(); ++i) {
    const std::string& piece = processor.IdToPiece(i);
    const std::int32_t id = moved(i, family);
    if (processor.IsControl(i) || processor.IsUnknown(i))
      add_token(parts, piece, {.id = id}, where);
    else
      parts.vocabulary.add(piece, id, where);
  }
}

}  // namespace

Parts open_sentence_piece(const std::filesystem::path& path) {
  const std::string where = path.string();
  const std::string bytes = io::read_text(path);
  auto processor = std::make_shared<sentencepiece::SentencePieceProcessor>();
  if (bytes.empty()) throw io::Error(where + ": is empty; a SentencePiece model is needed");
  if (const auto status = processor->LoadFromSerializedProto({bytes.data(), bytes.size()}); !status.ok())
    throw io::Error(where + ": is no SentencePiece model, or not all of it: " + status.ToString());
  const Config config = Config::beside(path);
  const Family family = family_of(config, path);
  Parts parts;
  parts.kind = "SentencePiece";
  add_pieces(parts, *processor, family, where);
  if (family == Family::t5) {
    const std::int32_t n = parts.vocabulary.size(), extra = config.count("extra_ids").value_or(100);
    for (std::int32_t i = 0; i < extra && !parts.vocabulary.find("<extra_id_" + std::to_string(i) + ">"); ++i)
      add_token(parts, "<extra_id_" + std::to_string(i) + ">", {.id = n + extra - 1 - i}, where);
  } else if (family == Family::xlm_roberta) {
    add_token(parts, "<mask>", {.id = parts.vocabulary.size(), .strip_left = true}, where);
  }
  config.add_tokens(parts);
  config.fill_special_ids(parts);
  const auto around = [&](const char* key, bool otherwise, const char* role, std::optional<std::int32_t> id,
                          std::vector<std::int32_t>& ids) {
    if (!config.flag(key).value_or(otherwise)) return;
    if (!id) throw io::Error(where + ": has no " + role + ", which goes around every text");
    ids = {*id};
  };
  around("add_bos_token", family != Family::t5, "bos_token", parts.special.bos, parts.before);
  around("add_eos_token", family != Family::llama, "eos_token", parts.special.eos, parts.after);
  std::unordered_set<std::string> special;
  for (const std::int32_t id : parts.added.special) special.emplace(*parts.vocabulary.token(id));
  parts.decode.push_back(decode_sentence_piece(processor, std::move(special)));
  parts.model = std::make_unique<SentencePiece>(std::move(processor), family);
  return parts;
}

}  // namespace treadle::text
