// Score functions inlined by treadle_add_model: the same bits as through the tile evaluator, on every ISA.

#include "executor/support.hpp"
#include "scores.hpp"

#include <treadle/backends/inlined.hpp>

#include <limits>

using namespace treadle;
using namespace treadle::test;

namespace {

const StepInfo& attention_of(const BoundModel& model) {
  for (const StepInfo& s : model.steps())
    if (s.op == op::attention) return s;
  throw Error("no attention");
}
bool ends_with(const std::string& text, std::string_view end) { return std::string_view(text).ends_with(end); }

template <class M>
void check(std::string_view form = "; score inlined") {
  const Parameters none;
  const GraphView g = M::optimised.view();
  // Vectors of 4, 8 and 16 lanes, strips of three, blocks of 128 and 192 keys; and what lies between.
  for (const auto& [n, m] : std::vector<std::pair<int, int>>{{0, 3},
                                                             {1, 1},
                                                             {3, 4},
                                                             {4, 5},
                                                             {7, 17},
                                                             {8, 8},
                                                             {12, 130},
                                                             {13, 12},
                                                             {16, 15},
                                                             {17, 33},
                                                             {33, 48},
                                                             {47, 191},
                                                             {48, 193},
                                                             {49, 65},
                                                             {65, 260}}) {
    const Lengths dims{{"batch", 2}, {"n", n}, {"m", m}};
    const Results want = oracle(g, none, dims, 21);
    for (const std::string& isa : isas()) {
      BOOST_TEST_CONTEXT(isa << ", " << n << " x " << m) {
        const Tensors in = inputs_of(g, dims, 21);
        Tensors out = outputs_of(g, dims), out_in_tiles = outputs_of(g, dims);
        BoundModel inlined = M::bind(none, {.backend = "simd", .isa = isa});
        inlined.bind_dims(dims);
        inlined.run(named(in), named(out));
        BoundModel tiles = M::bind(none, {.backend = "simd", .isa = isa, .inlined = false});
        tiles.bind_dims(dims);
        tiles.run(named(in), named(out_in_tiles));
        BOOST_TEST(out.at("y").memory == out_in_tiles.at("y").memory);
        BOOST_TEST(difference(run(g, none, dims, {.backend = "tbb", .isa = isa, .threads = 3}, 21), values(out)) ==
                   0.0);
        BOOST_TEST(difference(values(out), want) < 1e-4);
        BOOST_TEST(ends_with(attention_of(inlined).form, form));
        BOOST_TEST(ends_with(attention_of(tiles).form, "; score in tiles"));
      }
    }
  }
}

Graph dynamic(double cap) {
  Builder g;
  g.output("y", scored(g, score_mod([&](auto score, auto, auto, auto, auto) { return cap * tanh(score / cap); })));
  return g.finish();
}
std::string form_of(const Graph& g, const Lengths& dims) {
  BoundModel model(g, Parameters{}, {.backend = "simd"});
  model.bind_dims(dims);
  return attention_of(model).form;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(inlined)

BOOST_AUTO_TEST_CASE(distances) { check<Alibi>(); }
BOOST_AUTO_TEST_CASE(softcap_under_a_mask) { check<Softcap>(); }
BOOST_AUTO_TEST_CASE(tables) { check<LookupTables>(); }
BOOST_AUTO_TEST_CASE(integers) { check<Integers>(); }
BOOST_AUTO_TEST_CASE(functions) { check<Functions>(); }
BOOST_AUTO_TEST_CASE(wide_integers) { check<Wide>("; score in tiles (64-bit integers)"); }
BOOST_AUTO_TEST_CASE(several_layers) { check<Layers>(); }

BOOST_AUTO_TEST_CASE(found_by_the_function_alone) {
  const Lengths dims{{"batch", 1}, {"n", 5}, {"m", 6}};
  BOOST_TEST(form_of(dynamic(1.5), dims) == "all keys; score inlined");  // Softcap's, in a graph made at run time
  BOOST_TEST(form_of(dynamic(2.5), dims) == "all keys; score in tiles");
  BoundModel model = Softcap::bind({}, {.backend = "simd"});
  model.bind_dims(dims);
  BOOST_TEST(model.describe().find("score inlined") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(masked_keys_may_be_anything) {
  constexpr std::int64_t length = 50;
  const Lengths dims{{"batch", 1}, {"n", length}, {"m", length}};
  for (const std::string& isa : isas()) {
    const Tensors in = inputs_of(Softcap::optimised.view(), dims, 3), out = outputs_of(Softcap::optimised.view(), dims);
    for (const char* name : {"k", "v"})  // the last key, which only the last query sees
      in.at(name).each([&](std::int64_t i, std::byte* to) {
        if (i / 16 % length == length - 1) *reinterpret_cast<float*>(to) = std::numeric_limits<float>::quiet_NaN();
      });
    BoundModel model = Softcap::bind({}, {.backend = "simd", .isa = isa});
    model.bind_dims(dims);
    model.run(named(in), named(out));
    out.at("y").each([&](std::int64_t i, std::byte* y) {
      BOOST_TEST(std::isnan(*reinterpret_cast<float*>(y)) == (i / 16 % length == length - 1));
    });
  }
}

BOOST_AUTO_TEST_CASE(a_run_reads_new_tables) {
  const Lengths dims{{"batch", 2}, {"n", 9}, {"m", 20}};
  const GraphView g = LookupTables::optimised.view();
  BoundModel model = LookupTables::bind({}, {.backend = "simd"});
  model.bind_dims(dims);
  for (const std::uint64_t seed : {1, 2}) {
    const Tensors in = inputs_of(g, dims, seed), out = outputs_of(g, dims);
    model.run(named(in), named(out));
    BOOST_TEST(difference(values(out), oracle(g, {}, dims, seed)) < 1e-4);
  }
}

BOOST_AUTO_TEST_CASE(tables_are_known_while_registered) {
  const scalar::Function f = score_mod([](auto score, auto, auto, auto, auto) { return score * 1.25; });
  scalar::Pool pool;
  scalar::import(pool, f.view(), f.root());
  const kernel::ScoreHook hook = [](const kernel::ScoreTile&) {};
  const kernel::InlinedScore entry{pool.nodes, pool.names, hook};
  const kernel::ModelTable table{"portable", std::span(&entry, 1)};
  const kernel::ModelTable* const list[] = {&table};
  BOOST_TEST(kernel::find_inlined("portable", f.view(), f.root()) == nullptr);
  {
    const kernel::RegisteredModels registered(list);
    BOOST_TEST(kernel::find_inlined("portable", f.view(), f.root()) == hook);
    BOOST_TEST(kernel::find_inlined("avx2", f.view(), f.root()) == nullptr);
    BOOST_TEST(kernel::find_inlined("portable", f.view(), 0) == nullptr);
  }
  BOOST_TEST(kernel::find_inlined("portable", f.view(), f.root()) == nullptr);
}

BOOST_AUTO_TEST_SUITE_END()
