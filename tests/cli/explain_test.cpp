// `treadle explain`: the report, its JSON, the graphs, and a sentence for everything that is wrong.

#include <cli/support.hpp>

#include <treadle/graph/dot.hpp>
#include <treadle/graph/json.hpp>
#include <treadle/graph/text.hpp>
#include <treadle/models/examples.hpp>
#include <treadle/passes/pipeline.hpp>

#include <boost/test/unit_test.hpp>

#include <nlohmann/json.hpp>

using namespace treadle;
using namespace treadle::test;
using Json = nlohmann::json;

namespace {

Json report(const std::string& arguments) {
  const Outcome o = run("explain " + arguments + " --format json");
  BOOST_TEST_REQUIRE(o.code == 0, o.error);
  return Json::parse(o.out);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(explain)

BOOST_AUTO_TEST_CASE(the_report_shows_passes_nodes_and_memory) {
  const Outcome o = run("explain written_out --dims batch=1,seq=16 --backend simd --isa portable");
  BOOST_TEST_REQUIRE(o.code == 0, o.error);
  BOOST_TEST(o.error.empty());
  BOOST_TEST(!has(o.out, "\033"));  // no terminal
  for (const std::string part :
       {"written_out: attention from primitive nodes", "for batch = 1, seq = 16", "as declared", "remove_dead_nodes",
        "fuse_attention: 1 rewrite\n", "- softmax : f32[batch, 4, seq, seq]", "+ attention {",
        "Nodes on backend simd, ISA portable", "(in tiles)", "masked tiles of", "Memory: arena "})
    BOOST_TEST(has(o.out, part), part);
}

BOOST_AUTO_TEST_CASE(each_pass_stands_between_two_stages) {
  const Json j = report("written_out --dims batch=1,seq=256 --backend simd");
  const Json& passes = j.at("passes");
  std::vector<std::string> names;
  optimise(models::written_out(), [&](const PassReport& r, GraphView, GraphView) { names.emplace_back(r.pass); });
  BOOST_TEST_REQUIRE(passes.size() == names.size());
  for (std::size_t i = 0; i < passes.size(); ++i) {
    BOOST_TEST(passes[i].at("number") == i + 1);
    BOOST_TEST(passes[i].at("pass") == names[i]);
    if (i > 0) BOOST_TEST(passes[i].at("before") == passes[i - 1].at("after"));
    const bool changed = !passes[i].at("removed").empty() || !passes[i].at("added").empty();
    BOOST_TEST((passes[i].at("rewrites") != 0 || !changed), names[i]);
    // Nodes that are gone and new account for the count.
    BOOST_TEST(passes[i].at("before").at("nodes").get<int>() - static_cast<int>(passes[i].at("removed").size()) +
                   static_cast<int>(passes[i].at("added").size()) ==
               passes[i].at("after").at("nodes").get<int>());
  }
  const Json &first = passes.front().at("before"), &last = passes.back().at("after");
  BOOST_TEST(first.at("nodes") == models::written_out().nodes.size());
  // The scores [4, 256, 256] are in the first plan and not in the last; half of their pairs are not even computed.
  constexpr std::int64_t scores = 4 * 256 * 256 * 4;
  BOOST_TEST(first.at("arena_bytes").get<std::int64_t>() > scores);
  BOOST_TEST(last.at("arena_bytes").get<std::int64_t>() < scores);
  BOOST_TEST(last.at("bytes").get<double>() < first.at("bytes").get<double>() / 2);
  BOOST_TEST(last.at("flops").get<double>() < last.at("executed_flops").get<double>());
  BOOST_TEST(last.at("executed_flops").get<double>() < first.at("flops").get<double>());
}

BOOST_AUTO_TEST_CASE(nodes_and_memory_are_those_of_the_plan) {
  for (const models::Entry& e : models::all) {
    BOOST_TEST_CONTEXT(e.name) {
      const Json j = report(std::string(e.name) + " --backend simd --isa portable");
      const Graph after = optimise(e.build());
      BOOST_TEST(j.at("before") == Json::parse(to_json(e.build())));
      BOOST_TEST(j.at("after") == Json::parse(to_json(after)));
      BOOST_TEST_REQUIRE(j.at("nodes").size() == after.nodes.size());
      double flops = 0, bytes = 0;
      std::size_t steps = 0, at_bind = 0;
      for (std::size_t i = 0; i < j.at("nodes").size(); ++i) {
        const Json &n = j.at("nodes")[i], &node = j.at("after").at("nodes")[i];
        BOOST_TEST(n.at("id") == i);
        BOOST_TEST(n.at("op") == node.at("op"));
        BOOST_TEST(n.at("name") == node.at("name"));
        flops += n.at("flops").get<double>();
        bytes += n.at("bytes").get<double>();
        steps += n.at("steps").get<std::size_t>();
        at_bind += n.at("steps_at_bind").get<std::size_t>();
        const bool runs = n.at("steps") != 0 || n.at("steps_at_bind") != 0;
        BOOST_TEST(n.at("kernel").is_string() == runs);
        BOOST_TEST((runs ? n.at("backend") == "simd" && n.at("isa") == "portable" : n.at("backend").is_null()));
        if (n.at("op") == "attention" || n.at("op") == "linear_attention") BOOST_TEST(n.at("form").is_string());
      }
      const Json& cost = j.at("passes").back().at("after");
      BOOST_TEST(std::abs(flops - cost.at("flops").get<double>()) <= 1e-9 * flops);
      BOOST_TEST(std::abs(bytes - cost.at("bytes").get<double>()) <= 1e-9 * bytes);
      BOOST_TEST(steps == cost.at("steps"));

      const Json& memory = j.at("memory");
      const auto arena = memory.at("arena_bytes").get<std::size_t>();
      BOOST_TEST(cost.at("arena_bytes") == arena);
      const Json& buffers = memory.at("buffers");
      for (std::size_t a = 0; a < buffers.size(); ++a) {
        const auto number = [&](std::size_t i, const char* key) { return buffers[i].at(key).get<std::size_t>(); };
        BOOST_TEST(number(a, "offset") + number(a, "bytes") <= arena);
        BOOST_TEST(number(a, "first_step") <= number(a, "last_step"));
        BOOST_TEST(number(a, "last_step") < steps + at_bind);
        for (std::size_t b = 0; b < a; ++b) {
          const bool together =
              number(a, "first_step") <= number(b, "last_step") && number(b, "first_step") <= number(a, "last_step");
          const bool overlap = number(a, "offset") < number(b, "offset") + number(b, "bytes") &&
                               number(b, "offset") < number(a, "offset") + number(a, "bytes");
          // A result may lie over an operand that is read for the last time where the result is written.
          const bool over =
              number(a, "offset") == number(b, "offset") && number(a, "first_step") == number(b, "last_step");
          BOOST_TEST(!(together && overlap && !over), buffers[a].dump() << " and " << buffers[b].dump());
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(tables_of_a_run_make_an_upper_bound) {
  const auto attention = [](const std::string& model) {
    const Json j = report(model + " --backend simd");
    for (const Json& n : j.at("nodes"))
      if (n.at("op") == "attention") return n;
    return Json();
  };
  BOOST_TEST(attention("tiny_gpt").at("upper_bound") == false);
  const Json documents = attention("packed_documents");
  BOOST_TEST(documents.at("upper_bound") == true);
  BOOST_TEST(documents.at("flops") == documents.at("executed_flops"));
  BOOST_TEST(documents.at("flops") == 6 * 128 * 128 * 2 * (8 + 8));  // heads, pairs, products
  BOOST_TEST(has(run("explain packed_documents --backend simd").out, "≤ "));
}

BOOST_AUTO_TEST_CASE(one_graph_in_every_format) {
  const Graph before = models::written_out(), after = optimise(before);
  std::vector<Graph> stages;
  std::vector<std::string> names;
  optimise(before, [&](const PassReport& r, GraphView, GraphView g) {
    stages.push_back(parse_graph(to_text(g)));
    names.emplace_back(r.pass);
  });
  BOOST_TEST(run("explain written_out --before").out == to_text(before));
  BOOST_TEST(run("explain written_out --after").out == to_text(after));
  BOOST_TEST(run("explain written_out --after --format json").out == to_json(after));
  BOOST_TEST(run("explain written_out --format dot").out == to_dot(after, "written_out, after the passes"));
  BOOST_TEST(run("explain written_out --before --format dot").out == to_dot(before, "written_out, as declared"));
  for (std::size_t i = 0; i < stages.size(); ++i) {
    BOOST_TEST(run("explain written_out --pass " + std::to_string(i + 1)).out == to_text(stages[i]));
    if (std::count(names.begin(), names.end(), names[i]) == 1)
      BOOST_TEST(run("explain written_out --pass " + names[i]).out == to_text(stages[i]));
  }
  const Folder f;
  const Outcome o = run("explain written_out --after --output '" + f / "graph" + "'");
  BOOST_TEST(o.code == 0);
  BOOST_TEST(o.out.empty());
  BOOST_TEST(read(f / "graph") == to_text(after));
}

BOOST_AUTO_TEST_CASE(reference_and_tbb_are_named) {
  const Outcome reference = run("explain encoder --backend reference");
  BOOST_TEST(reference.code == 0, reference.error);
  BOOST_TEST(has(reference.out, "Nodes on backend reference\n"));
  const Outcome tbb = run("explain encoder");
  BOOST_TEST(tbb.code == 0, tbb.error);
  BOOST_TEST(has(tbb.out, "Nodes on backend tbb, ISA "));
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_in_memory_is_a_line_while_the_rest_fits) {
  // Scores of 4 · 10⁶ · 10⁶ numbers fit nowhere; the fused graph has none.
  const Outcome o = run("explain written_out --dims seq=1000000 --backend simd");
  BOOST_TEST_REQUIRE(o.code == 0, o.error);
  BOOST_TEST(has(o.out, "0 cannot be planned: "));
}

BOOST_AUTO_TEST_CASE(wrong_command_lines_are_one_sentence) {
  check_refused("explain", "name a model: tiny_gpt, encoder");
  check_refused("explain wibble", "unknown model 'wibble': the models are tiny_gpt, encoder");
  check_refused("explain tiny_gpt --dims sequence=5", "the model has no dim 'sequence': its dims are batch, seq");
  check_refused("explain tiny_gpt --dims seq", "--dims has 'seq': write NAME=NUMBER");
  check_refused("explain tiny_gpt --dims seq=5,seq=6", "--dims gives dim 'seq' twice");
  check_refused("explain tiny_gpt --dims seq=-1", "dim 'seq' is -1: it must be from 0 to");
  check_refused("explain tiny_gpt --dims seq=x", "whole number");
  check_refused("explain tiny_gpt --dims seq=99999999999999999999", "it must be from 0 to");
  check_refused("explain tiny_gpt --dims seq=1000", "leave the table, which has 256 rows");
  check_refused("explain longformer_like --dims seq=1000000000000", "use shorter");
  check_refused("explain longformer_like --dims batch=1000000000000,seq=1000000000000", "the lengths are too large");
  check_refused("explain tiny_gpt --format svg", "unknown format 'svg': the formats are text, dot, json");
  check_refused("explain tiny_gpt --before --after", "give one of them");
  check_refused("explain tiny_gpt --after --pass 1", "give one of them");
  check_refused("explain tiny_gpt --pass fuse", "unknown pass 'fuse': the passes are remove_dead_nodes");
  check_refused("explain tiny_gpt --pass 99", "--pass is 99: the passes are numbered from 1 to ");
  check_refused("explain tiny_gpt --pass remove_dead_nodes", "give one of the numbers 1, ");
  check_refused("explain tiny_gpt --backend cuda", "reference, simd, tbb");
  check_refused("explain tiny_gpt --isa sse9", "this CPU has");
  check_refused("explain tiny_gpt --backend reference --isa portable", "leave out --isa");
  check_refused("explain tiny_gpt --output /nowhere/x", "there is no folder '/nowhere'");
  check_refused("explain tiny_gpt encoder", "unexpected argument 'encoder'");
}

BOOST_AUTO_TEST_CASE(every_pass_saves_something_in_an_example) {
  const Outcome o = run("explain --passes --backend simd --isa portable");
  BOOST_TEST_REQUIRE(o.code == 0, o.error);
  optimise(models::tiny_gpt(), [&](const PassReport& pass, GraphView, GraphView) {
    const std::size_t at = o.out.find("\n" + std::string(pass.pass) + " ");
    BOOST_TEST_REQUIRE(at != std::string::npos, pass.pass);
    const std::string line = o.out.substr(at + 1, o.out.find('\n', at + 1) - at - 1);
    BOOST_TEST(has(line, "→"), line);
  });
}

BOOST_AUTO_TEST_CASE(the_table_of_passes_is_about_all_models) {
  for (const std::string arguments :
       {"--passes tiny_gpt", "--passes --before", "--passes --dims seq=4", "--passes --format json"}) {
    const Outcome o = run("explain " + arguments);
    BOOST_TEST(o.code == 2);
    BOOST_TEST(has(o.error, "--passes is about all example models"), o.error);
  }
}

BOOST_AUTO_TEST_SUITE_END()
