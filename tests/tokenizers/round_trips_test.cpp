// Properties: byte-level BPE loses nothing, lengths are kept to, what is given twice comes out twice.

#include <tokenizers/support.hpp>

#include <rounds.hpp>

#include <thread>

using namespace treadle::test;
using treadle::text::Tokenizer;

BOOST_AUTO_TEST_SUITE(round_trips)

BOOST_AUTO_TEST_CASE(byte_level_gives_every_text_back) {
  const std::vector<Tokenizer> tokenizers = {
      Tokenizer::open(data("gpt2")), Tokenizer::open(data("gpt2") / "vocab.json"), Tokenizer::open(data("llama3"))};
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const std::string text = random_text(random, random() % 40);
    for (const Tokenizer& t : tokenizers) BOOST_REQUIRE_EQUAL(t.decode(t.encode(text)), text);
  }
}

BOOST_AUTO_TEST_CASE(every_byte_is_a_token) {
  const Tokenizer t = Tokenizer::open(data("gpt2"));
  std::string text;
  for (int b = 0; b < 128; ++b) text += static_cast<char>(b);
  BOOST_TEST(t.decode(t.encode(text)) == text);
  // Half a character: its tokens alone are no UTF-8.
  const Ids halves = t.encode("\U0001F9F5");
  BOOST_REQUIRE(halves.size() == 4);
  BOOST_TEST(t.decode(std::span(halves).first(3)) == "\uFFFD");
  BOOST_TEST(t.decode(std::span(halves).last(1)) == "\uFFFD");
}

BOOST_AUTO_TEST_CASE(any_text_is_encoded) {
  std::mt19937 random(2);
  for (const char* name : {"word_piece", "roberta", "llama2", "clip", "metaspace", "whitespace", "t5", "llama"}) {
    const Tokenizer t = Tokenizer::open(data(name));
    for (int round = 0; round < 60; ++round) {
      const Ids ids = t.encode(random_text(random, random() % 40));
      for (const std::int32_t id : ids) BOOST_REQUIRE(id >= 0 && id < t.vocabulary_size());
      t.decode(ids);
    }
  }
}

BOOST_AUTO_TEST_CASE(special_tokens_stay_where_a_text_is_cut) {
  const Tokenizer t = Tokenizer::open(data("word_piece"));
  const std::string text = "And God said, Let there be light: and there was light.";
  const Ids all = t.encode(text), plain = t.encode(text, {.special_tokens = false});
  BOOST_REQUIRE(all.size() == plain.size() + 2);
  const auto size = static_cast<std::int64_t>(all.size());
  for (std::int64_t n = 2; n <= size + 1; ++n) {
    const Ids cut = t.encode(text, {.max_length = n});
    BOOST_REQUIRE_EQUAL(static_cast<std::int64_t>(cut.size()), std::min(n, size));
    BOOST_TEST(cut.front() == *t.cls_id());
    BOOST_TEST(cut.back() == *t.sep_id());
    BOOST_TEST(std::equal(cut.begin() + 1, cut.end() - 1, plain.begin()));
    const Ids bare = t.encode(text, {.special_tokens = false, .max_length = n});
    BOOST_TEST(std::equal(bare.begin(), bare.end(), plain.begin()));
    BOOST_TEST(static_cast<std::int64_t>(bare.size()) == std::min(n, size - 2));
  }
  check_refused([&] { t.encode(text, {.max_length = 1}); }, "max_length is 1: the special tokens alone are 2");
  check_refused([&] { t.encode(text, {.max_length = -1}); }, "max_length is -1");
}

BOOST_AUTO_TEST_CASE(empty_text) {
  const Tokenizer t = Tokenizer::open(data("word_piece"));
  BOOST_TEST((t.encode("") == Ids{*t.cls_id(), *t.sep_id()}));
  BOOST_TEST(t.encode("", {.special_tokens = false}).empty());
  BOOST_TEST(t.decode({}).empty());
  BOOST_TEST(Tokenizer::open(data("gpt2")).encode("").empty());
  BOOST_TEST((Tokenizer::open(data("t5")).encode("") == Ids{1}));
}

BOOST_AUTO_TEST_CASE(long_words_take_no_quadratic_time) {
  // 20 000 characters without a break: hours if every merge looked at all of them for every other.
  const std::string letters(20000, 'a'), spaces(20000, ' ');
  for (const char* name : {"gpt2", "llama3", "llama2", "word_piece", "llama"}) {
    const Tokenizer t = Tokenizer::open(data(name));
    BOOST_TEST(!t.encode(letters).empty());
    t.encode(spaces);
    if (std::string_view(name).substr(0, 4) == "gpt2")
      BOOST_TEST(t.decode(t.encode(letters + spaces)) == letters + spaces);
  }
}

BOOST_AUTO_TEST_CASE(copies_work_in_several_threads) {
  const Tokenizer t = Tokenizer::open(data("llama3"));
  const std::string text = "And the Spirit of God moved upon the face of the waters. 東京";
  const Ids want = t.encode(text);
  std::vector<std::thread> threads;
  std::array<int, 4> wrong{};
  for (std::size_t i = 0; i < wrong.size(); ++i)
    threads.emplace_back([&wrong, &want, &text, copy = t, i] {
      for (int round = 0; round < 50; ++round)
        wrong[i] += copy.encode(text) == want && copy.decode(want) == text ? 0 : 1;
    });
  for (std::thread& thread : threads) thread.join();
  for (const int w : wrong) BOOST_TEST(w == 0);
}

BOOST_AUTO_TEST_SUITE_END()
