// Ids and texts of other programs: all-MiniLM-L6-v2's sentences, and what Hugging Face's library and SentencePiece's
// own answered (tests/data/tokenizers/README.md).

#include <tokenizers/support.hpp>

#include <boost/test/data/test_case.hpp>

using namespace treadle::test;
using treadle::text::Tokenizer;

namespace {

/// Every case of the folder's expected.json.
void check_expected(const Tokenizer& t, const std::string& folder) {
  for (const auto& c : read_json(data(folder) / "expected.json")) {
    const auto text = c["text"].get<std::string>();
    const auto want = c["ids"].get<Ids>();
    BOOST_TEST_CONTEXT(c["text"].dump()) {
      const Ids got = t.encode(text);
      BOOST_TEST(got == want, boost::test_tools::per_element());
      BOOST_TEST(t.decode(want) == c["decoded"].get<std::string>());
      if (c.contains("with_special")) BOOST_TEST(t.decode(want, false) == c["with_special"].get<std::string>());
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(published)

BOOST_AUTO_TEST_CASE(minilm_sentences) {
  // The vocabulary has only what these sentences need, at the published ids.
  std::vector<std::string> tokens;
  for (int i = 0; i < 30522; ++i) tokens.push_back("[no token " + std::to_string(i) + "]");
  std::istringstream needed(read(data("minilm") / "tokens.txt"));
  std::string token;
  for (std::size_t id = 0; needed >> id >> token;) tokens.at(id) = token;
  std::string vocabulary;
  for (const std::string& t : tokens) vocabulary += t + "\n";
  const TokenizerFolder folder;
  folder.write("vocab.txt", vocabulary);
  const auto sentences = read_json(data("minilm") / "sentences.json");
  for (const std::string config :
       {"", R"({"do_lower_case": true, "strip_accents": null, "tokenizer_class": "BertTokenizer",
                                           "unk_token": "[UNK]", "cls_token": {"content": "[CLS]"}})"}) {
    if (!config.empty()) folder.write("tokenizer_config.json", config);
    const Tokenizer t = Tokenizer::open(folder.path);
    BOOST_TEST(t.vocabulary_size() == 30522);
    BOOST_TEST(sentences["sentences"].size() == 8u);
    for (std::size_t i = 0; i < sentences["sentences"].size(); ++i) {
      const Ids got = t.encode(sentences["sentences"][i].get<std::string>());
      BOOST_TEST(got == sentences["token_ids"][i].get<Ids>(), boost::test_tools::per_element());
    }
    BOOST_TEST(t.decode(t.encode("The cat sits on the mat.")) == "the cat sits on the mat.");
    BOOST_TEST(*t.pad_id() == 0);
    BOOST_TEST(*t.cls_id() == 101);
    BOOST_TEST(*t.sep_id() == 102);
    BOOST_TEST(*t.mask_id() == 103);
    BOOST_TEST(!t.bos_id());
  }
}

BOOST_DATA_TEST_CASE(tokenizer_json,
                     boost::unit_test::data::make({"word_piece", "gpt2", "roberta", "llama3", "llama2", "clip",
                                                   "metaspace", "metaspace_first", "whitespace"}),
                     folder) {
  check_expected(Tokenizer::open(data(folder) / "tokenizer.json"), folder);
}

BOOST_AUTO_TEST_CASE(vocabularies_without_tokenizer_json) {
  check_expected(Tokenizer::open(data("word_piece") / "vocab.txt"), "word_piece");
  check_expected(Tokenizer::open(data("gpt2") / "vocab.json"), "gpt2");
}

BOOST_AUTO_TEST_CASE(pairs_of_texts) {
  for (const std::string file :
       {"word_piece/tokenizer.json", "word_piece/vocab.txt", "roberta/tokenizer.json", "llama2/tokenizer.json"}) {
    const Tokenizer t = Tokenizer::open(data(file));
    for (const auto& c : read_json(data(file.substr(0, file.find('/'))) / "pairs.json")) {
      const auto got = t.encode_pair(c["first"].get<std::string>(), c["second"].get<std::string>(),
                                     {.max_length = c["max_length"].get<std::int64_t>()});
      BOOST_TEST_CONTEXT(file << ": " << c.dump()) {
        BOOST_TEST(got.ids == c["ids"].get<Ids>(), boost::test_tools::per_element());
        BOOST_TEST(got.token_type_ids == c["types"].get<Ids>(), boost::test_tools::per_element());
      }
    }
  }
  // Without special tokens: the two texts alone.
  const Tokenizer t = Tokenizer::open(data("word_piece"));
  const auto plain = t.encode_pair("the earth", "void", {.special_tokens = false});
  Ids want = t.encode("the earth", {.special_tokens = false});
  BOOST_TEST(plain.token_type_ids.front() == 0);
  BOOST_TEST(plain.token_type_ids[want.size()] == 1);
  for (const std::int32_t id : t.encode("void", {.special_tokens = false})) want.push_back(id);
  BOOST_TEST(plain.ids == want, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(sentence_piece_models) {
  const Tokenizer t5 = Tokenizer::open(data("t5"));
  check_expected(t5, "t5");
  BOOST_TEST(t5.kind() == "SentencePiece");
  BOOST_TEST(*t5.eos_id() == 1);
  BOOST_TEST(*t5.pad_id() == 0);
  // T5's sentinels count down from the end of the vocabulary.
  BOOST_TEST(*t5.id_of("<extra_id_0>") == t5.vocabulary_size() - 1);
  BOOST_TEST(*t5.id_of("<extra_id_99>") == t5.vocabulary_size() - 100);
  const Ids sentinel = t5.encode("God <extra_id_0> light");
  BOOST_TEST(std::count(sentinel.begin(), sentinel.end(), t5.vocabulary_size() - 1) == 1);
  BOOST_TEST(t5.decode(sentinel, false) == "God<extra_id_0>light</s>");

  const Tokenizer llama = Tokenizer::open(data("llama"));
  check_expected(llama, "llama");
  BOOST_TEST(*llama.bos_id() == 1);
  BOOST_TEST((llama.encode("</s>") == Ids{1, 2}));
  BOOST_TEST(llama.decode(llama.encode("naïve 東京 👩‍👧")) == "naïve 東京 👩‍👧");
}

BOOST_AUTO_TEST_CASE(tokenizer_config_says_what_goes_around) {
  const TokenizerFolder folder;
  folder.write("tokenizer.model", read(data("llama") / "tokenizer.model"));
  folder.write("tokenizer_config.json",
               R"({"add_bos_token": false, "add_eos_token": true, "tokenizer_class": "LlamaTokenizerFast"})");
  const Ids plain = Tokenizer::open(data("llama")).encode("God said", {.special_tokens = false});
  Ids want = plain;
  want.push_back(2);
  BOOST_TEST(Tokenizer::open(folder.path).encode("God said") == want, boost::test_tools::per_element());

  // As XLM-RoBERTa: <s>, <pad>, </s>, <unk>, then the model's pieces, one further than there.
  const TokenizerFolder xlm;
  xlm.write("sentencepiece.bpe.model", read(data("llama") / "tokenizer.model"));
  const Tokenizer t = Tokenizer::open(xlm.path);
  want = {0};
  for (const std::int32_t id : plain) want.push_back(id + 1);
  want.push_back(2);
  BOOST_TEST(t.encode("God said") == want, boost::test_tools::per_element());
  BOOST_TEST(t.decode(want) == "God said");
  BOOST_TEST(*t.mask_id() == t.vocabulary_size() - 1);
  BOOST_TEST(*t.unk_id() == 3);
}

BOOST_AUTO_TEST_CASE(a_unigram_in_json_gives_way_to_its_sentence_piece_file) {
  const TokenizerFolder folder;
  folder.write({{"model", {{"type", "Unigram"}, {"vocab", nlohmann::json::array()}}}});
  check_not_opened(folder.path, "use the spiece.model");
  folder.write("spiece.model", read(data("t5") / "spiece.model"));
  check_expected(Tokenizer::open(folder.path), "t5");
}

BOOST_AUTO_TEST_CASE(roberta_and_qwen2_from_vocab_json) {
  const auto json = read_json(data("roberta") / "tokenizer.json");
  const TokenizerFolder folder;
  auto vocabulary = json["model"]["vocab"];
  vocabulary["<mask>"] = json["added_tokens"].back()["id"];
  folder.write("vocab.json", vocabulary.dump());
  std::string merges = "#version: 0.2\n";
  for (const auto& m : json["model"]["merges"])
    merges += m[0].get<std::string>() + " " + m[1].get<std::string>() + "\n";
  folder.write("merges.txt", merges);
  folder.write("tokenizer_config.json", R"({"tokenizer_class": "RobertaTokenizer", "add_prefix_space": true})");
  check_expected(Tokenizer::open(folder.path), "roberta");

  folder.write("tokenizer_config.json", R"({"tokenizer_class": "Qwen2Tokenizer", "unk_token": null, "eos_token": "</s>",
      "added_tokens_decoder": {"500": {"content": "<|im_start|>", "special": true}, "501": {"content": "xyz", "special": false}}})");
  const Tokenizer qwen = Tokenizer::open(folder.path);
  BOOST_TEST(qwen.vocabulary_size() == 502);
  BOOST_TEST(qwen.encode("12 e\u0301") == qwen.encode("12 é"), boost::test_tools::per_element());  // NFC
  const Ids ids = qwen.encode("<|im_start|>a xyz");
  BOOST_TEST(ids.front() == 500);
  BOOST_TEST(ids.back() == 501);
  BOOST_TEST(qwen.decode(ids) == "a xyz");
}

BOOST_AUTO_TEST_SUITE_END()
