// Generation with a cache against the whole sequence read again for every token; sampling and beam search against
// their definitions.

#include "static_models.hpp"

#include <treadle/backends/error.hpp>
#include <treadle/models/beams.hpp>
#include <treadle/models/generation.hpp>
#include <treadle/ops/variants.hpp>

#include <allocations.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

namespace treadle::test {

namespace {

using Tokens = std::vector<std::int32_t>;

io::Tensor row_of(const Tokens& ids) { return ids_of({1, static_cast<std::int64_t>(ids.size())}, ids); }

/// The logits behind `ids`, from the model without a cache.
struct Whole {
  models::LoadedModel loaded;
  BoundModel model;
  explicit Whole(const std::filesystem::path& folder, const models::LoadOptions& options = {})
      : loaded(models::load_checkpoint(folder, options)), model(loaded.bind({.backend = "simd"})) {}
  std::vector<float> operator()(const Tokens& ids) {
    const io::Tensor all = models::run_model(model, loaded, {{"input_ids", row_of(ids)}}).at("logits");
    const auto last = all.as<float>().last(static_cast<std::size_t>(all.shape.back()));
    return {last.begin(), last.end()};
  }
  /// Greedy, without a cache.
  Tokens go_on(Tokens ids, std::size_t count) {
    Tokens fresh;
    while (fresh.size() < count) {
      const std::vector<float> logits = (*this)(ids);
      fresh.push_back(static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
      ids.push_back(fresh.back());
    }
    return fresh;
  }
};

/// A ring of 3 keys that every layer of Llama's golden checkpoint sees.
struct Mistral : ChangedConfig {
  Mistral()
      : ChangedConfig("llama", "\"model_type\": \"llama\"", "\"model_type\": \"mistral\", \"sliding_window\": 3") {}
};

const std::vector<Tokens> prompts = {{5, 9, 70, 3, 3, 128, 64}, {12}, {99, 98, 97, 96}};

}  // namespace

BOOST_AUTO_TEST_SUITE(generation)

BOOST_AUTO_TEST_CASE(a_cache_gives_what_the_whole_sequence_gives) {
  const Mistral mistral;
  for (const std::filesystem::path& path : {golden("gpt2"), golden("llama"), mistral.path()}) {
    Whole whole(path);
    const models::LoadedModel loaded = models::load_checkpoint(path, {.cache = true});
    std::vector<Tokens> want;
    for (const Tokens& p : prompts) want.push_back(whole.go_on(p, 12));
    for (const char* backend : {"reference", "simd", "tbb"})
      for (const std::int64_t chunk : {1, 2, 5, 512}) {
        if (chunk != 2 && std::string_view(backend) != "simd") continue;
        BOOST_TEST_CONTEXT(path << " on " << backend << ", prompts in parts of " << chunk) {
          models::Generator generator(loaded, {.backend = backend}, chunk);
          const models::Generation g = generator.generate(prompts, {.max_new_tokens = 12});
          for (std::size_t i = 0; i < prompts.size(); ++i) {
            BOOST_TEST(g.sequences[i].tokens == want[i], boost::test_tools::per_element());
            BOOST_TEST((g.sequences[i].reason == models::StopReason::length));
          }
          BOOST_TEST(g.prefill_tokens == 12);
          BOOST_TEST(g.decode_tokens == 33);
          // Again, alone and in another length: nothing is left of the first time.
          BOOST_TEST(generator.generate({prompts[2]}, {.max_new_tokens = 5}).sequences[0].tokens ==
                         Tokens(want[2].begin(), want[2].begin() + 5),
                     boost::test_tools::per_element());
        }
      }
  }
}

BOOST_AUTO_TEST_CASE(an_encoder_reads_the_prompts_once) {
  const models::LoadedModel whole = models::load_checkpoint(golden("t5")),
                            steps = models::load_checkpoint(golden("t5"), {.cache = true});
  BoundModel reads = whole.bind({.backend = "simd"});
  const auto behind = [&](const Tokens& prompt, const Tokens& so_far) {
    const io::Tensor all =
        models::run_model(reads, whole, {{"input_ids", row_of(prompt)}, {"decoder_input_ids", row_of(so_far)}})
            .at("logits");
    const auto last = all.as<float>().last(static_cast<std::size_t>(all.shape.back()));
    return std::vector<float>(last.begin(), last.end());
  };
  for (const char* backend : {"reference", "simd", "tbb"}) {
    models::Generator generator(steps, {.backend = backend});
    for (int again = 0; again < 2; ++again) {
      const models::Generation g = generator.generate(prompts, {.max_new_tokens = 10});
      for (std::size_t i = 0; i < prompts.size(); ++i) {
        Tokens want{steps.start_id};
        while (want.size() < 11) {
          const std::vector<float> logits = behind(prompts[i], want);
          want.push_back(static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
        }
        BOOST_TEST_CONTEXT("prompt " << i << " on " << backend)
        BOOST_TEST(g.sequences[i].tokens == Tokens(want.begin() + 1, want.end()), boost::test_tools::per_element());
      }
      generator.generate({prompts[1], prompts[0]}, {.max_new_tokens = 3});
    }
    // Beams see the same text, and their best is worth at least the greedy one.
    const models::Generation greedy = generator.generate({prompts[2], prompts[0]}, {.max_new_tokens = 6}),
                             beams = generator.generate({prompts[2], prompts[0]}, {.max_new_tokens = 6, .beams = 3});
    for (std::size_t i = 0; i < 2; ++i) {
      BOOST_TEST(beams.sequences[i].log_probability >= greedy.sequences[i].log_probability - 1e-4);
      Tokens so_far{steps.start_id};
      double sum = 0;
      for (const std::int32_t token : beams.sequences[i].tokens) {
        const std::vector<float> logits = behind(i == 0 ? prompts[2] : prompts[0], so_far);
        sum += double{logits[static_cast<std::size_t>(token)]} - models::log_sum_exp(logits);
        so_far.push_back(token);
      }
      BOOST_TEST(std::abs(sum - beams.sequences[i].log_probability) < 1e-3);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_window_keeps_a_ring_of_keys) {
  const models::LoadedModel loaded = models::load_checkpoint(Mistral().path(), {.cache = true});
  models::Generator generator(loaded, {.backend = "simd"}, 2);
  const auto bytes = [&](std::int64_t tokens) {
    generator.generate({{1, 2, 3, 4, 5}}, {.max_new_tokens = tokens});
    return generator.cache_bytes();
  };
  const std::size_t few = bytes(3), many = bytes(50);
  BOOST_TEST(few == many);
  BOOST_TEST(few > 0u);
}

BOOST_AUTO_TEST_CASE(masks_and_scores_of_a_variant_are_those_of_positions) {
  AttentionVariant variant = window(2, 0) | global_tokens({0});
  variant.score = score_mod([](auto score, auto, auto h, auto q, auto k) { return score - 0.1 * (h + 1) * (q - k); });
  Whole whole(golden("gpt2"), {.attention = variant});
  const models::LoadedModel loaded = models::load_checkpoint(golden("gpt2"), {.attention = variant, .cache = true});
  const models::Generation g = models::Generator(loaded, {.backend = "simd"}, 3).generate(prompts);
  for (std::size_t i = 0; i < prompts.size(); ++i)
    BOOST_TEST(g.sequences[i].tokens == whole.go_on(prompts[i], 32), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_step_allocates_nothing) {
  const models::LoadedModel loaded = models::load_checkpoint(golden("llama"), {.cache = true});
  models::Generator generator(loaded, {.backend = "tbb", .threads = 2});
  for (const models::Sampling& sampling :
       {models::Sampling{}, models::Sampling{.temperature = 0.8, .top_k = 20, .top_p = 0.9, .seed = 3}}) {
    std::array<long, 40> counts{};
    std::size_t at = 0;
    generator.generate({{5, 9, 70}}, {.max_new_tokens = 40, .sampling = sampling, .on_token = [&](auto, auto) {
                                        counts[at++] = allocations;
                                        return true;
                                      }});
    BOOST_TEST(at == counts.size());
    BOOST_TEST(counts[39] == counts[1]);  // the threads may make their arenas in the first step
  }
}

BOOST_AUTO_TEST_CASE(stops) {
  const models::LoadedModel loaded = models::load_checkpoint(golden("gpt2"), {.cache = true});
  models::Generator generator(loaded, {.backend = "simd"});
  const Tokens all = generator.generate({prompts[0], prompts[2]}, {.max_new_tokens = 9}).sequences[0].tokens;
  const auto first = static_cast<std::size_t>(std::find(all.begin(), all.end(), all[4]) - all.begin());
  const models::Generation g =
      generator.generate({prompts[0], prompts[2]}, {.max_new_tokens = 9, .stop_ids = {all[4]}});
  BOOST_TEST(g.sequences[0].tokens == Tokens(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(first) + 1),
             boost::test_tools::per_element());
  BOOST_TEST((g.sequences[0].reason == models::StopReason::stop_token));
  std::size_t seen = 0;
  const models::Generation called =
      generator.generate({prompts[0]}, {.max_new_tokens = 9, .on_token = [&](std::size_t i, std::int32_t token) {
                                          BOOST_TEST(i == 0u);
                                          BOOST_TEST(token == all[seen]);
                                          return ++seen < 3;
                                        }});
  BOOST_TEST(called.sequences[0].tokens.size() == 3u);
  BOOST_TEST((called.sequences[0].reason == models::StopReason::callback));
}

BOOST_AUTO_TEST_CASE(log_probabilities_are_those_of_the_model) {
  Whole whole(golden("llama"));
  const models::LoadedModel loaded = models::load_checkpoint(golden("llama"), {.cache = true});
  const models::Generation g =
      models::Generator(loaded, {.backend = "simd"})
          .generate({prompts[0]}, {.max_new_tokens = 6, .sampling = {.temperature = 2, .seed = 9}});
  Tokens ids = prompts[0];
  double want = 0;
  for (const std::int32_t token : g.sequences[0].tokens) {
    const std::vector<float> logits = whole(ids);
    want += double{logits[static_cast<std::size_t>(token)]} - models::log_sum_exp(logits);
    ids.push_back(token);
  }
  BOOST_TEST(std::abs(g.sequences[0].log_probability - want) < 1e-4);
}

BOOST_AUTO_TEST_CASE(samples_have_the_probabilities_asked_for) {
  const std::vector<float> logits = {1.0f, 3.0f, -1.0f, 2.0f, 2.5f};
  const auto shares = [&](const models::Sampling& s) {
    models::Sampler sampler(s, 5, 0);
    std::array<double, 5> share{};
    for (int i = 0; i < 40000; ++i) share[static_cast<std::size_t>(sampler.draw(logits))] += 1.0 / 40000;
    return share;
  };
  const auto expect = [&](const models::Sampling& s, std::vector<std::size_t> kept) {
    const std::array<double, 5> share = shares(s);
    double sum = 0;
    for (const std::size_t i : kept) sum += std::exp(double{logits[i]} / s.temperature);
    for (std::size_t i = 0; i < 5; ++i) {
      const bool in = std::find(kept.begin(), kept.end(), i) != kept.end();
      const double p = in ? std::exp(double{logits[i]} / s.temperature) / sum : 0;
      // Five standard deviations of a share of 40,000.
      BOOST_TEST_CONTEXT("token " << i)
      BOOST_TEST(std::abs(share[i] - p) <= 5 * std::sqrt(p * (1 - p) / 40000) + 1e-9);
    }
  };
  expect({.temperature = 1, .seed = 1}, {0, 1, 2, 3, 4});
  expect({.temperature = 0.5, .seed = 2}, {0, 1, 2, 3, 4});
  expect({.temperature = 1, .top_k = 2, .seed = 3}, {1, 4});
  // 0.47, 0.28 and 0.17 of the probability: two are not 0.8 together, three are.
  expect({.temperature = 1, .top_p = 0.8, .seed = 4}, {1, 4, 3});
  expect({.temperature = 1, .top_p = 0.01, .seed = 5}, {1});
  expect({.temperature = 1, .top_k = 3, .top_p = 0.75, .seed = 6}, {1, 4});
  BOOST_TEST(models::Sampler({}, 5, 0).draw(logits) == 1);
}

BOOST_AUTO_TEST_CASE(seeds_repeat_and_differ) {
  const models::LoadedModel loaded = models::load_checkpoint(golden("gpt2"), {.cache = true});
  models::Generator generator(loaded, {.backend = "simd"});
  const auto draw = [&](std::uint64_t seed) {
    return generator.generate({{5}, {5}}, {.max_new_tokens = 16, .sampling = {.temperature = 1, .seed = seed}});
  };
  const models::Generation a = draw(1), b = draw(1), c = draw(2);
  BOOST_TEST(a.sequences[0].tokens == b.sequences[0].tokens, boost::test_tools::per_element());
  BOOST_TEST((a.sequences[0].tokens != a.sequences[1].tokens));
  BOOST_TEST((a.sequences[0].tokens != c.sequences[0].tokens));
}

BOOST_AUTO_TEST_CASE(logits_that_are_no_numbers_are_refused) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  const auto message = [](const std::vector<float>& logits) {
    try {
      models::Sampler({}, 3, 0).draw(logits);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  BOOST_TEST(message({0, inf, 0}) == "the logit of token 1 is inf");
  BOOST_TEST(message({0, 0, std::nanf("")}) == "the logit of token 2 is NaN");
  BOOST_TEST(message({-inf, -inf, -inf}) == "no token has a logit above -inf");
  BOOST_TEST(message({-inf, 0, -inf}).empty());
}

/// Logits of a small language: a function of the tokens so far.
std::vector<float> small_language(const Tokens& so_far, std::size_t vocabulary) {
  std::vector<float> logits(vocabulary);
  std::uint32_t h = 17;
  for (const std::int32_t t : so_far) h = h * 31 + static_cast<std::uint32_t>(t) + 7;
  for (std::size_t i = 0; i < vocabulary; ++i) {
    h = h * 1664525u + 1013904223u;
    logits[i] = static_cast<float>(h >> 8) / static_cast<float>(1 << 24) * 3;
  }
  return logits;
}

models::Beams::Hypothesis beam_search(std::int64_t beams, double penalty, std::int64_t most, const Tokens& stop,
                                      std::size_t vocabulary) {
  models::Beams search(beams, penalty, most, stop);
  std::vector<Tokens> rows(static_cast<std::size_t>(beams));
  for (std::int64_t step = 0; step < most && !search.done(); ++step) {
    std::vector<float> logits;
    for (const Tokens& r : rows) {
      const std::vector<float> one = small_language(r, vocabulary);
      logits.insert(logits.end(), one.begin(), one.end());
    }
    search.advance(logits);
    std::vector<Tokens> next;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      next.push_back(rows[static_cast<std::size_t>(search.parents()[i])]);
      next.back().push_back(search.next()[i]);
    }
    rows = next;
  }
  return search.best();
}

BOOST_AUTO_TEST_CASE(beams_that_hold_everything_find_the_best) {
  // Four tokens, the last of which stops, up to four of them: 4^4 sequences at most.
  constexpr std::size_t vocabulary = 4;
  for (const double penalty : {0.0, 1.0, 2.0}) {
    double best = -1e9;
    Tokens best_tokens;
    const std::function<void(const Tokens&, double)> visit = [&](const Tokens& so_far, double score) {
      const bool ended = !so_far.empty() && so_far.back() == 3;
      if (ended || so_far.size() == 4) {
        const double worth = score / std::pow(static_cast<double>(so_far.size()), penalty);
        if (worth > best) {
          best = worth;
          best_tokens = so_far;
        }
        return;
      }
      const std::vector<float> logits = small_language(so_far, vocabulary);
      for (std::size_t t = 0; t < vocabulary; ++t) {
        Tokens more = so_far;
        more.push_back(static_cast<std::int32_t>(t));
        visit(more, score + double{logits[t]} - models::log_sum_exp(logits));
      }
    };
    visit({}, 0);
    const models::Beams::Hypothesis found = beam_search(256, penalty, 4, {3}, vocabulary);
    BOOST_TEST_CONTEXT("length penalty " << penalty) {
      BOOST_TEST(found.tokens == best_tokens, boost::test_tools::per_element());
      BOOST_TEST(std::abs(found.worth - best) < 1e-9);
    }
  }
  // Nothing but stop tokens: the best one, and no more steps.
  models::Beams ends(3, 1, 8, Tokens{0, 1});
  ends.advance(std::vector<float>{1, 2, 0, 0, 0, 0});
  BOOST_TEST(ends.done());
  BOOST_TEST(ends.best().tokens == Tokens{1}, boost::test_tools::per_element());
  // A penalty under which every hypothesis is worth nothing still gives one.
  BOOST_TEST(beam_search(2, -400, 8, {}, 4).tokens.size() == 8u);
  // One beam is greedy.
  Tokens greedy;
  while (greedy.size() < 6) {
    const std::vector<float> logits = small_language(greedy, 50);
    greedy.push_back(static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
  }
  BOOST_TEST(beam_search(1, 1, 6, {}, 50).tokens == greedy, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(beams_of_a_model_carry_their_caches) {
  for (const char* name : {"gpt2", "llama"}) {
    Whole whole(golden(name));
    const models::LoadedModel loaded = models::load_checkpoint(golden(name), {.cache = true});
    models::Generator generator(loaded, {.backend = "simd"});
    const models::Generation g = generator.generate({prompts[0], prompts[1]}, {.max_new_tokens = 8, .beams = 4});
    for (std::size_t i = 0; i < 2; ++i) {
      models::Beams search(4, 1, 8, {});
      std::vector<Tokens> rows(4, prompts[i]);
      for (int step = 0; step < 8; ++step) {
        std::vector<float> logits;
        for (const Tokens& r : rows) {
          const std::vector<float> one = whole(r);
          logits.insert(logits.end(), one.begin(), one.end());
        }
        search.advance(logits);
        std::vector<Tokens> next;
        for (std::size_t r = 0; r < 4; ++r) {
          next.push_back(rows[static_cast<std::size_t>(search.parents()[r])]);
          next.back().push_back(search.next()[r]);
        }
        rows = next;
      }
      BOOST_TEST(g.sequences[i].tokens == search.best().tokens, boost::test_tools::per_element());
      BOOST_TEST(std::abs(g.sequences[i].log_probability - search.best().log_probability) < 1e-4);
      // At least what the greedy choice is worth.
      const auto alone = generator.generate({prompts[i]}, {.max_new_tokens = 8});
      BOOST_TEST(g.sequences[i].log_probability >= alone.sequences[0].log_probability - 1e-4);
    }
  }
}

BOOST_AUTO_TEST_CASE(refusals) {
  const models::LoadedModel plain = models::load_checkpoint(golden("gpt2")),
                            cached = models::load_checkpoint(golden("gpt2"), {.cache = true});
  const auto message = [](auto f) {
    try {
      f();
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  BOOST_TEST(message([&] { models::Generator g(plain); }) ==
             "the model has no cache to generate with: it is no decoder, or was loaded without LoadOptions::cache");
  models::Generator generator(cached, {.backend = "simd"});
  const auto asked = [&](std::vector<Tokens> from, models::GenerationOptions o) {
    return message([&] { generator.generate(from, o); });
  };
  BOOST_TEST(asked({}, {}) == "there is no prompt");
  BOOST_TEST(asked({{1}, {}}, {}) ==
             "prompt 1 has no token; a text begins with one (a beginning-of-text token, if nothing else)");
  BOOST_TEST(asked({{1, 130}}, {}) == "prompt 0 holds 130; ids are 0 to 129");
  BOOST_TEST(asked({Tokens(60, 1)}, {.max_new_tokens = 6}) ==
             "prompt 0 has 60 tokens and 6 more are asked for; the model has 64 positions");
  BOOST_TEST(asked({Tokens(60, 1)}, {.max_new_tokens = 5}).empty());
  BOOST_TEST(asked({{1}}, {.max_new_tokens = 0}) == "max_new_tokens is 0; 1 to 2147483647 is right");
  BOOST_TEST(asked({{1}}, {.beams = 2, .length_penalty = std::numeric_limits<double>::infinity()}) ==
             "the length penalty is inf; a finite number is right");
  BOOST_TEST(asked({{1}}, {.sampling = {.temperature = -1}}).find("0 (greedy) or more is right") != std::string::npos);
  BOOST_TEST(asked({{1}}, {.sampling = {.temperature = 1, .top_p = 0}}).find("more than 0 and at most 1") !=
             std::string::npos);
  BOOST_TEST(asked({{1}}, {.sampling = {.temperature = 1, .top_k = -1}}) == "top_k is -1; 0 (all) or more is right");
  BOOST_TEST(asked({{1}}, {.beams = 0}) == "the number of beams is 0; 1 or more is right");
  BOOST_TEST(asked({{1}}, {.sampling = {.temperature = 1}, .beams = 2}).find("use a temperature of 0") !=
             std::string::npos);
  const models::LoadedModel learned = models::load_checkpoint(golden("transformer_pre_norm"), {.cache = true});
  models::Generator both(learned, {.backend = "simd"});
  BOOST_TEST(message([&] {
               both.generate({{5}}, {.max_new_tokens = learned.positions + 1});
             }).find("tokens are asked for; the decoder has " + std::to_string(learned.positions) + " positions") !=
             std::string::npos);
  BOOST_TEST(message([&] { both.generate({{5}}, {.max_new_tokens = learned.positions}); }).empty());
  // The encoder has a vocabulary of its own.
  BOOST_TEST(message([&] { both.generate({{59}}, {.max_new_tokens = 2}); }).empty());
  BOOST_TEST(message([&] { both.generate({{60}}, {.max_new_tokens = 2}); }) == "prompt 0 holds 60; ids are 0 to 59");
  const auto linear_cache =
      message([] { models::load_checkpoint(golden("gpt2"), {.attention = variants::linear(), .cache = true}); });
  BOOST_TEST(linear_cache.find("a cache of keys with linear") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace treadle::test
