// generate: the golden GPT-2, by ids and with a small vocabulary of its own.

#include <cli/support.hpp>

#include <boost/test/unit_test.hpp>

#include <nlohmann/json.hpp>

#include <sstream>

using namespace treadle::test;

namespace {

const std::string gpt2 = std::string(TREADLE_TEST_DATA) + "/models/gpt2";

}  // namespace

BOOST_AUTO_TEST_SUITE(generate_command)

BOOST_AUTO_TEST_CASE(ids_in_ids_out) {
  const Outcome one = run("generate --checkpoint " + gpt2 + " --ids 5,9,70 --max-new-tokens 6");
  BOOST_TEST(one.code == 0, one.error);
  std::istringstream words(one.out);
  std::vector<int> ids{std::istream_iterator<int>(words), {}};
  BOOST_TEST(ids.size() == 6u);
  BOOST_TEST(has(one.error, "prefill 3 tokens"));
  BOOST_TEST(has(one.error, "decode 5 tokens"));

  const Outcome json = run("generate --checkpoint " + gpt2 + " --ids 5,9,70 --ids 7 --max-new-tokens 6 --json");
  const auto all = nlohmann::json::parse(json.out);
  BOOST_TEST(all["sequences"].size() == 2u);
  BOOST_TEST(all["sequences"][0]["ids"].get<std::vector<int>>() == ids, boost::test_tools::per_element());
  BOOST_TEST(all["sequences"][1]["reason"] == "length");
  BOOST_TEST(all["prefill_tokens"] == 4);
  BOOST_TEST(all["cache_bytes"] > 0);

  const Outcome beams = run("generate --checkpoint " + gpt2 + " --ids 5,9,70 --max-new-tokens 6 --beams 3 --json");
  BOOST_TEST(nlohmann::json::parse(beams.out)["sequences"][0]["log_probability"].get<double>() >=
             all["sequences"][0]["log_probability"].get<double>() - 1e-4);
}

BOOST_AUTO_TEST_CASE(text_in_text_out) {
  const Folder folder;
  for (const char* file : {"config.json", "model.safetensors"}) fs::copy_file(gpt2 + "/" + file, folder / file);
  std::ofstream words(folder / "vocab.txt");
  words << "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (char c = 'a'; c <= 'z'; ++c) words << c << "\n##" << c << "\n";
  for (int i = 57; i < 130; ++i) words << "w" << i << "\n";
  words.close();
  const std::string command = "generate --checkpoint '" + folder.path.string() + "' --max-new-tokens 8 ";
  const Outcome one = run(command + "--prompt 'a cat'");
  BOOST_TEST(one.code == 0, one.error);
  BOOST_TEST(one.out.rfind("a cat", 0) == 0u);
  BOOST_TEST(one.out.size() > std::string("a cat\n").size());
  // Of several prompts, one a line, each goes on as alone.
  folder.write("prompts", "a cat\nthe dog runs\n");
  const Outcome two = run(command + "--file '" + folder / "prompts" + "'");
  BOOST_TEST(two.out.substr(0, one.out.size()) == one.out);
  BOOST_TEST(has(two.out, "\nthe dog runs"));
  const Outcome seeded = run(command + "--prompt 'a cat' --temperature 1 --seed 4"),
                again = run(command + "--prompt 'a cat' --temperature 1 --seed 4"),
                other = run(command + "--prompt 'a cat' --temperature 1 --seed 5");
  BOOST_TEST(seeded.out == again.out);
  BOOST_TEST(seeded.out != other.out);
  // Brackets are text, and what is streamed is what JSON holds.
  const Outcome brackets = run(command + "--prompt '[a cat]' --json"), streamed = run(command + "--prompt '[a cat]'");
  const auto bracketed = nlohmann::json::parse(brackets.out)["sequences"];
  BOOST_TEST(bracketed.size() == 1u);
  BOOST_TEST(bracketed[0]["prompt"] == "[a cat]");
  BOOST_TEST(streamed.out == "[a cat]" + bracketed[0]["text"].get<std::string>() + "\n");
  // It ends behind a text that came.
  const std::string behind = one.out.substr(5, one.out.find_last_not_of("\n") - 4), stop = behind.substr(0, 3);
  const Outcome stopped = run(command + "--prompt 'a cat' --stop '" + stop + "' --json");
  const auto sequence = nlohmann::json::parse(stopped.out)["sequences"][0];
  BOOST_TEST(sequence["reason"] == "stop_text");
  BOOST_TEST(sequence["text"].get<std::string>().ends_with(stop));
}

BOOST_AUTO_TEST_CASE(refusals) {
  const std::string command = "generate --checkpoint " + gpt2;
  check_refused(command, "there is no prompt: --prompt TEXT, --file FILE with one a line, or --ids 1,2,3");
  check_refused(command + " --ids 5 --prompt a", "the prompts are text or ids");
  check_refused(command + " --ids 5,x", "an id");
  check_refused(command + " --ids 500", "prompt 0 holds 500; ids are 0 to 129");
  check_refused(command + " --ids 5 --max-new-tokens 100",
                "prompt 0 has 1 tokens and 100 more are asked for; the model has 64 positions");
  check_refused(command + " --ids 5 --top-p 0", "top_p");
  check_refused(command + " --ids 5 --stop x", "--stop is a text; with --ids there is none");
  check_refused(command + " --prompt a", "tokenizer");
  check_refused(command + " --prompt a --stop \"$(printf '\\357\\277')\"", "--stop is no UTF-8");
  check_refused("generate --checkpoint " + std::string(TREADLE_TEST_DATA) + "/models/bert --ids 5",
                "the model has no cache to generate with");
}

BOOST_AUTO_TEST_SUITE_END()
