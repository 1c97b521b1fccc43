// What is wrong is one sentence that names the file, the place and what would be right.

#include <tokenizers/support.hpp>

using namespace treadle::test;
using nlohmann::json;
using treadle::text::Tokenizer;

namespace {

const std::string small_vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n";

json word_piece_json() { return read_json(data("word_piece") / "tokenizer.json"); }

}  // namespace

BOOST_FIXTURE_TEST_SUITE(refusals, TokenizerFolder)

BOOST_AUTO_TEST_CASE(texts) {
  const Tokenizer t = Tokenizer::open(data("gpt2"));
  for (const auto& [text, offset] : std::vector<std::pair<std::string, std::string>>{
           {"abc\xFF", "0xff at offset 3"},
           {"\x80", "0x80 at offset 0"},
           {"\xC0\x80", "0xc0 at offset 0"},              // overlong
           {"a\xED\xA0\x80", "0xed at offset 1"},         // a surrogate
           {"ab\xF4\x90\x80\x80", "0xf4 at offset 2"},    // above U+10FFFF
           {"\xE4\xBD\xA0\xE4\xBD", "0xe4 at offset 3"},  // cut off
       })
    check_refused([&] { t.encode(text); }, "the text is not UTF-8: byte " + offset);
}

BOOST_AUTO_TEST_CASE(pairs) {
  check_refused([] { Tokenizer::open(data("gpt2")).encode_pair("a", "b"); },
                "this tokenizer has no form for a pair of texts");
  const Tokenizer t = Tokenizer::open(data("word_piece"));
  check_refused([&] { t.encode_pair("a", "b\xFF"); }, "the second text is not UTF-8: byte 0xff at offset 1");
  check_refused([&] { t.encode_pair("a", "b", {.max_length = 2}); }, "max_length is 2: the special tokens alone are 3");
  const auto not_opened = [&](const json& pair, const std::string& sentence) {
    json file = word_piece_json();
    file["post_processor"]["pair"] = pair;
    check_not_opened(write("tokenizer.json", file.dump()), sentence);
  };
  const json a = json::parse(R"({"Sequence": {"id": "A", "type_id": 0}})");
  not_opened(7, "'pair' must be a list");
  not_opened(json::array({a, a}), "'pair' must have each of its two texts once");
  not_opened(json::array({a, json::parse(R"({"Sequence": {"id": "C", "type_id": 0}})")}), "must be A or B");
  not_opened(json::array({json::parse(R"({"Sequence": {"id": "A", "type_id": -1}})")}), "a number from 0 to 255");
}

BOOST_AUTO_TEST_CASE(ids_outside_the_vocabulary) {
  const Tokenizer t = Tokenizer::open(data("word_piece"));
  const std::string last = std::to_string(t.vocabulary_size() - 1);
  for (const std::int32_t id : {-1, t.vocabulary_size(), 2147483647}) {
    const std::string sentence =
        "id " + std::to_string(id) + " is outside the vocabulary: its ids go from 0 to " + last;
    check_refused([&] { t.decode(Ids{4, id}); }, sentence);
    check_refused([&] { t.token_of(id); }, sentence);
  }
  BOOST_TEST(!t.id_of("no such token"));
  BOOST_TEST(t.token_of(*t.id_of("[MASK]")) == "[MASK]");
}

BOOST_AUTO_TEST_CASE(files_that_are_not_there) {
  check_not_opened(path / "nothing", "nothing: no such file or folder");
  check_not_opened(path,
                   "holds no tokenizer; looked for tokenizer.json, vocab.json, vocab.txt, spiece.model, "
                   "tokenizer.model, sentencepiece.bpe.model");
  check_not_opened(write("notes.md", "x"), "is no tokenizer file");
  check_not_opened(write("vocab.json", "{\"a\": 0}"), "merges.txt: no such file");
}

BOOST_AUTO_TEST_CASE(vocab_txt) {
  check_not_opened(write("vocab.txt", ""), "is empty");
  check_not_opened(write("vocab.txt", small_vocabulary + "b\na\n"),
                   "line 7: the token 'a' is there twice, with ids 4 and 6");
  check_not_opened(write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\na\n"), "has no token '[SEP]'");
  check_not_opened(write("vocab.txt", small_vocabulary + "\xFF\n"), "is not UTF-8: byte 0xff at offset 26");
  write("vocab.txt", small_vocabulary);
  BOOST_TEST((Tokenizer::open(path).encode("a b") == Ids{2, 4, 1, 3}));
  // Windows ends lines with two characters.
  write("vocab.txt", "[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\na\r\n");
  BOOST_TEST((Tokenizer::open(path).encode("a") == Ids{2, 4, 3}));
  write("tokenizer_config.json", R"({"tokenizer_class": "BertJapaneseTokenizer"})");
  check_not_opened(path, "'BertJapaneseTokenizer' is not supported");
  write("tokenizer_config.json", R"({"do_lower_case": "yes"})");
  check_not_opened(path, "'do_lower_case' must be true or false, but is string");
  write("tokenizer_config.json", R"({"do_basic_tokenize": false})");
  check_not_opened(path, "do_basic_tokenize = false is not supported");
}

BOOST_AUTO_TEST_CASE(cased_vocabularies) {
  write("vocab.txt", small_vocabulary + "A\ne\n");
  BOOST_TEST((Tokenizer::open(path).encode("A \u00e9") == Ids{2, 4, 6, 3}));
  write("tokenizer_config.json", R"({"do_lower_case": false})");
  BOOST_TEST((Tokenizer::open(path).encode("A \u00e9") == Ids{2, 5, 1, 3}));
}

BOOST_AUTO_TEST_CASE(merges) {
  write("vocab.json", R"({"a": 0, "b": 1, "ab": 2})");
  write("merges.txt", "#version: 0.2\na b\na c\n");
  check_not_opened(path, "merge 2 ('a' and 'c') needs the token 'c', which the vocabulary does not have");
  write("merges.txt", "a b\nab a\n");
  check_not_opened(path, "needs the token 'aba'");
  write("merges.txt", "a b\nab\n");
  check_not_opened(path, "line 2: 'ab' is no merge");
  write("merges.txt", "a b c\n");
  check_not_opened(path, "line 1: 'a b c' is no merge");
  write("merges.txt", "a b\n");
  BOOST_TEST((Tokenizer::open(path).encode("aab") == Ids{0, 2}));
  write("vocab.json", R"({"a": 0, "b": 0})");
  check_not_opened(path, "has id 0, which 'a' has already");
  write("vocab.json", R"({"a": 0, "a": 1})");
  check_not_opened(path, "has the key 'a' twice");
  for (const char* id : {"-1", "1.5", "\"0\"", "4000000000", "18446744073709551615"}) {
    write("vocab.json", std::string(R"({"a": )") + id + "}");
    check_not_opened(path, "ids");
  }
  write("tokenizer_config.json", R"({"tokenizer_class": "CLIPTokenizer"})");
  check_not_opened(path, "'CLIPTokenizer' is not supported");
}

BOOST_AUTO_TEST_CASE(sentence_piece_files) {
  const std::string whole = read(data("t5") / "spiece.model");
  check_not_opened(write("spiece.model", ""), "is empty");
  check_not_opened(write("spiece.model", "no model"), "is no SentencePiece model");
  // The format has no length of the whole: a cut between two pieces is not seen, one within a piece is.
  int refused = 0;
  for (std::size_t n = whole.size() / 2; n < whole.size() / 2 + 20; ++n) {
    try {
      Tokenizer::open(write("spiece.model", whole.substr(0, n)));
    } catch (const treadle::io::Error& e) {
      refused += std::string(e.what()).find("or not all of it") != std::string::npos ? 1 : 0;
    }
  }
  BOOST_TEST(refused >= 15);
  write("spiece.model", whole);
  write("tokenizer_config.json", R"({"tokenizer_class": "AlbertTokenizer"})");
  check_not_opened(path, "'AlbertTokenizer' is not supported");
  write("tokenizer_config.json", R"({"extra_ids": -3})");
  check_not_opened(path, "'extra_ids' must be a whole number");
  write("tokenizer_config.json", R"({"add_bos_token": true})");
  check_not_opened(path, "has no bos_token");
}

BOOST_AUTO_TEST_CASE(json_that_is_malformed) {
  const std::string whole = word_piece_json().dump(-1, ' ', true);  // ASCII: a cut is no bad UTF-8
  for (std::size_t n = 0; n < whole.size(); n += n < 64 ? 1 : 97)
    check_not_opened(write("tokenizer.json", whole.substr(0, n)), "is no valid JSON");
  check_not_opened(write("tokenizer.json", "[]"), "is no JSON object");
  check_not_opened(write("tokenizer.json", "{}"), "'model' is missing");
  check_not_opened(write("tokenizer.json", "\xFF{}"), "is no UTF-8");
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  check_not_opened(write("tokenizer.json", "{\"model\": " + deep + "}"), "nests deeper than 64 levels");
}

BOOST_AUTO_TEST_CASE(json_that_asks_for_what_is_not_there) {
  const auto refused = [&](const std::string& pointer, const json& value, const std::string& part) {
    json file = word_piece_json();
    file[json::json_pointer(pointer)] = value;
    BOOST_TEST_CONTEXT(pointer << " = " << value.dump()) { check_not_opened(write(file), part); }
  };
  refused("/model/type", "WordLevel", "the model 'WordLevel' is not supported; WordPiece and BPE are");
  refused("/model/type", 3, "'type' must be a string, but is number");
  refused("/model/vocab", json::object(), "has no tokens");
  refused("/model/vocab", json::array(), "must be an object of tokens and ids");
  refused("/model/unk_token", "?!", "unk_token '?!' is not in the vocabulary");
  refused("/model/max_input_chars_per_word", -1, "must be a whole number");
  refused("/normalizer/type", "Precompiled", "normalizer: 'Precompiled' is not supported; BertNormalizer,");
  refused("/normalizer", json{{"type", "Sequence"}, {"normalizers", {{{"type", "NFC"}}, {{"type", "Nmt"}}}}},
          "normalizer[1]: 'Nmt' is not supported");
  refused("/normalizer/lowercase", 1, "'lowercase' must be true or false");
  refused("/pre_tokenizer/type", "UnicodeScripts", "pre_tokenizer: 'UnicodeScripts' is not supported");
  refused("/pre_tokenizer", json{{"type", "Split"}, {"pattern", {{"Regex", "(a"}}}, {"behavior", "Isolated"}},
          "the pattern '(a' is no regular expression");
  refused("/pre_tokenizer", json{{"type", "Split"}, {"pattern", {{"String", "a"}}}, {"behavior", "Gone"}},
          "behavior 'Gone' is not supported");
  refused("/post_processor/type", "PairProcessing", "post_processor: 'PairProcessing' is not supported");
  refused("/post_processor/single", json::array(), "has no place for the text");
  refused("/decoder/type", "CTC", "decoder: 'CTC' is not supported");
  refused("/added_tokens/0/id", 77, "the added token '[PAD]' has id 77, but the vocabulary gives it 0");
  refused("/added_tokens/0/id", -1, "has the id -1");
  json nested = {{"type", "NFC"}};
  for (int i = 0; i < 20; ++i) nested = {{"type", "Sequence"}, {"normalizers", json::array({nested})}};
  refused("/normalizer", nested, "nested more than 16 deep");

  json pairs = read_json(data("gpt2") / "tokenizer.json");
  pairs["model"]["dropout"] = 0.1;
  check_not_opened(write(pairs), "dropout 0.1 is not supported");
  pairs["model"]["dropout"] = nullptr;
  pairs["model"]["merges"].push_back({"a", "no such token"});
  check_not_opened(write(pairs), "needs the token 'no such token'");
  pairs["model"]["merges"].back() = 7;
  check_not_opened(write(pairs), "is neither \"a b\" nor");
}

BOOST_AUTO_TEST_SUITE_END()
