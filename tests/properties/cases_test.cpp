// Properties that the cases of tests/data/cases ask for beside their numbers: one test a case, named after it. What
// `treadle verify` calls generically is not repeated here.

#include <executor/support.hpp>

#include <treadle/ops/constant.hpp>
#include <treadle/ops/rules.hpp>
#include <treadle/passes/pipeline.hpp>

#include <functional>

using namespace treadle;
using namespace treadle::test;

BOOST_AUTO_TEST_SUITE(properties_of_cases)

namespace {

struct Given {
  std::string_view name;
  std::vector<std::int64_t> shape;
  std::vector<float> data;
  std::vector<std::int64_t> strides = {};  ///< empty: dense
  std::int64_t offset = 0;                 ///< of the first element
};

TensorView view(Given& x) {
  TensorView v = dense_view(x.data.data() + x.offset, f32, x.shape);
  for (std::size_t i = 0; i < x.strides.size(); ++i) v.strides[i] = x.strides[i];
  return v;
}

/// The output "out" of a graph without named dims.
std::vector<float> result(const Graph& g, std::vector<Given> inputs, const BindOptions& options) {
  BOOST_REQUIRE(!g.error);
  const Parameters none;
  BoundModel model(g, none, options);
  std::vector<NamedTensor> in;
  for (Given& x : inputs) in.push_back({x.name, view(x)});
  TensorView out = model.output_spec("out");
  std::vector<float> data(static_cast<std::size_t>(out.size()), NAN);
  out.data = data.data();
  const NamedTensor outputs[] = {{"out", out}};
  model.run(in, outputs);
  return data;
}

/// On every backend and ISA, as declared and after the passes.
void each(const Graph& g, const std::vector<Given>& inputs,
          const std::function<void(const std::vector<float>&)>& check) {
  const Graph better = optimise(g);
  for (const Graph* graph : {&g, &better}) {
    check(result(*graph, inputs, {.backend = "reference"}));
    for (const std::string& isa : isas()) {
      BOOST_TEST_CONTEXT(isa) {
        const std::vector<float> one = result(*graph, inputs, {.backend = "simd", .isa = isa});
        check(one);
        BOOST_TEST((result(*graph, inputs, {.backend = "tbb", .isa = isa, .threads = 3}) == one));
      }
    }
  }
}

void near(const std::vector<float>& got, const std::vector<double>& want, double tolerance) {
  BOOST_TEST_REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    BOOST_TEST(std::abs(static_cast<double>(got[i]) - want[i]) <= tolerance * std::max(1.0, std::abs(want[i])));
}

std::vector<float> numbers(std::size_t n, std::uint64_t seed) {
  Numbers r{seed};
  std::vector<float> x(n);
  for (float& v : x) v = static_cast<float>(r.number());
  return x;
}

/// Attention over q, k, v [1, 1, n, 4] as inputs.
Graph attention_over(std::int64_t n, std::optional<Mask> mask) {
  Builder g;
  const Node q = g.input("q", f32, {1, 1, n, 4}), k = g.input("k", f32, {1, 1, n, 4}),
             v = g.input("v", f32, {1, 1, n, 4});
  g.output("out", attention(q, k, v, {.mask = mask}));
  return g.finish();
}
std::vector<Given> qkv(std::int64_t n) {
  const auto size = static_cast<std::size_t>(n) * 4;
  return {{"q", {1, 1, n, 4}, numbers(size, 1)},
          {"k", {1, 1, n, 4}, numbers(size, 2)},
          {"v", {1, 1, n, 4}, numbers(size, 3)}};
}

}  // namespace

BOOST_AUTO_TEST_CASE(case_03_float_min_padding_plus_causal) {
  // A bias of the lowest float on padded keys: finite everywhere, and no row depends on a key behind it.
  constexpr std::int64_t n = 7;
  Builder g;
  const Node q = g.input("q", f32, {1, 1, n, 4}), k = g.input("k", f32, {1, 1, n, 4}),
             v = g.input("v", f32, {1, 1, n, 4}), bias = g.input("bias", f32, {1, 1, 1, n});
  g.output("out", attention(q, k, v, {.mask = causal, .bias = bias}));
  const Graph graph = g.finish();
  std::vector<Given> inputs = qkv(n);
  inputs.push_back({"bias", {1, 1, 1, n}, std::vector<float>(n, 0.0f)});
  for (int j = 0; j < 3; ++j) inputs[3].data[static_cast<std::size_t>(j)] = std::numeric_limits<float>::lowest();
  std::vector<Given> changed = inputs;
  for (std::size_t i = 4 * 4; i < changed[1].data.size(); ++i) changed[1].data[i] = 1e3f, changed[2].data[i] = -1e3f;
  each(graph, inputs, [](const std::vector<float>& out) {
    for (const float x : out) BOOST_TEST(std::isfinite(x));
  });
  for (const std::string& isa : isas()) {
    const auto a = result(graph, inputs, {.backend = "simd", .isa = isa}),
               b = result(graph, changed, {.backend = "simd", .isa = isa});
    BOOST_TEST((std::vector(a.begin(), a.begin() + 16) == std::vector(b.begin(), b.begin() + 16)));
  }
}

BOOST_AUTO_TEST_CASE(case_12_window_equals_causal_when_wide) {
  const auto want = result(attention_over(6, causal), qkv(6), {.backend = "reference"});
  const std::vector<double> numbers_wanted(want.begin(), want.end());
  for (const Mask& wide : {window(-1, 0), window(6, 0), window(5, 0)})
    each(attention_over(6, wide), qkv(6), [&](const std::vector<float>& out) { near(out, numbers_wanted, 1e-6); });
  const auto narrow = result(attention_over(6, window(4, 0)), qkv(6), {.backend = "simd"});
  BOOST_TEST(std::abs(narrow[20] - want[20]) > 1e-4);  // the last row misses the first key
}

BOOST_AUTO_TEST_CASE(case_18_sparse_pattern_covering_everything_equals_dense) {
  constexpr std::int64_t n = 24;
  const auto want = result(attention_over(n, {}), qkv(n), {.backend = "reference"});
  for (const Mask& m : {window(n, n), window(2, 2) | global_prefix(n), block_window(8, 3, 3), dilated(window(n, n), 1),
                        causal | !causal, prefix(n)})
    each(attention_over(n, m), qkv(n),
         [&](const std::vector<float>& out) { near(out, {want.begin(), want.end()}, 1e-6); });
}

BOOST_AUTO_TEST_CASE(case_26_27_softmax_rows_sum_to_one) {
  for (const float shift : {1e4f, -1e4f}) {
    Builder g;
    g.output("out", softmax(g.input("x", f32, {3, 19})));
    std::vector<float> x = numbers(57, 4);
    for (float& v : x) v = 50 * v + shift;
    each(g.finish(), {{"x", {3, 19}, x}}, [](const std::vector<float>& out) {
      for (std::size_t row = 0; row < 3; ++row) {
        double sum = 0;
        for (std::size_t j = 0; j < 19; ++j) sum += out[row * 19 + j];
        BOOST_TEST(std::abs(sum - 1) < 1e-6);
      }
    });
  }
}

BOOST_AUTO_TEST_CASE(case_34_rope_keeps_the_norm_of_every_pair) {
  for (const rope_layout layout : {rope_layout::half, rope_layout::interleaved}) {
    Builder g;
    g.output("out", rope(g.input("x", f32, {1, 2, 5, 8}), {.layout = layout, .offset = 1000}));
    const std::vector<float> x = numbers(80, 5);
    each(g.finish(), {{"x", {1, 2, 5, 8}, x}}, [&](const std::vector<float>& out) {
      for (std::size_t row = 0; row < 10; ++row)
        for (std::size_t pair = 0; pair < 4; ++pair) {
          const std::size_t a = row * 8 + (layout == rope_layout::half ? pair : 2 * pair),
                            b = a + (layout == rope_layout::half ? 4 : 1);
          BOOST_TEST(std::abs(std::hypot(out[a], out[b]) - std::hypot(x[a], x[b])) < 1e-6);
        }
    });
  }
}

BOOST_AUTO_TEST_CASE(case_38_rope_odd_dimension_rejected) {
  Builder g;
  g.output("out", rope(g.input("x", f32, {1, 1, 2, 5}), {.rotary_dim = 5}));
  BOOST_TEST((g.finish().error.kind != error_kind::none));
}

BOOST_AUTO_TEST_CASE(case_51_a_lane_does_not_see_its_neighbours) {
  constexpr std::int64_t n = 37;
  std::vector<float> x = numbers(n, 6);
  for (float& v : x) v *= 8;
  for (const activation f : {activation::exp, activation::tanh, activation::erf, activation::gelu,
                             activation::gelu_tanh, activation::silu, activation::sigmoid, activation::softplus}) {
    Builder g;
    g.output("out", activate(g.input("x", f32, {n}), f));
    const Graph graph = g.finish();
    for (const std::string& isa : isas()) {
      const auto whole = result(graph, {{"x", {n}, x}}, {.backend = "simd", .isa = isa});
      std::vector<float> turned = x;
      std::rotate(turned.begin(), turned.begin() + 5, turned.end());
      auto out = result(graph, {{"x", {n}, turned}}, {.backend = "simd", .isa = isa});
      std::rotate(out.begin(), out.end() - 5, out.end());
      BOOST_TEST((out == whole));
    }
  }
}

BOOST_AUTO_TEST_CASE(case_52_exp_underflow_range) {
  Builder g;
  g.output("out", activate(g.input("x", f32, {512}), activation::exp));
  std::vector<float> x(512);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = -110.0f + 0.4f * static_cast<float>(i % 300);
  each(g.finish(), {{"x", {512}, x}}, [](const std::vector<float>& out) {
    for (const float y : out) BOOST_TEST((std::isfinite(y) && y >= 0));
  });
}

BOOST_AUTO_TEST_CASE(case_71_batch_elements_are_independent) {
  const auto graph = [](std::int64_t b) {
    Builder g;
    const Node q = g.input("q", f32, {b, 2, 3, 4}), k = g.input("k", f32, {b, 2, 3, 4}),
               v = g.input("v", f32, {b, 2, 3, 4});
    g.output("out", attention(q, k, v));
    return g.finish();
  };
  std::vector<Given> both, alone;
  for (const std::string_view name : {"q", "k", "v"}) {
    std::vector<float> x = numbers(48, name[0]);
    for (std::size_t i = 24; i < 48; ++i) x[i] = NAN;
    alone.push_back({name, {1, 2, 3, 4}, {x.begin(), x.begin() + 24}});
    both.push_back({name, {2, 2, 3, 4}, x});
  }
  for (const std::string& isa : isas()) {
    const auto a = result(graph(2), both, {.backend = "tbb", .isa = isa, .threads = 2}),
               b = result(graph(1), alone, {.backend = "simd", .isa = isa});
    BOOST_TEST((std::vector(a.begin(), a.begin() + 24) == b));
  }
}

BOOST_AUTO_TEST_CASE(case_73_broadcast_of_length_one_axes) {
  const auto binary = [](bool product, std::initializer_list<DimSpec> a, std::initializer_list<DimSpec> b) {
    Builder g;
    const Node x = g.input("a", f32, a), y = g.input("b", f32, b);
    g.output("out", product ? x * y : x + y);
    return g.finish();
  };
  each(binary(false, {3}, {1}), {{"a", {3}, {0, 0, 0}}, {"b", {1}, {0}}},
       [](const auto& out) { near(out, {0, 0, 0}, 1e-6); });
  each(binary(true, {1}, {2}), {{"a", {1}, {-1}}, {"b", {2}, {-58, -56}}},
       [](const auto& out) { near(out, {58, 56}, 1e-6); });
  each(binary(true, {2}, {1}), {{"a", {2}, {-58, -56}}, {"b", {1}, {-1}}},
       [](const auto& out) { near(out, {58, 56}, 1e-6); });
  const std::vector<float> o = {0.125f, 1, -0.125f};
  each(binary(true, {3, 1}, {3}), {{"a", {3, 1}, o}, {"b", {3}, o}}, [](const auto& out) {
    near(out, {0.015625, 0.125, -0.015625, 0.125, 1, -0.125, -0.015625, -0.125, 0.015625}, 1e-6);
  });
}

BOOST_AUTO_TEST_CASE(case_74_gemm_transposed_and_views) {
  {
    Builder g;
    const Node x = g.input("x", f32, {2, 3});
    const Node t = transpose(x);
    g.output("out", matmul(t, x));
    each(g.finish(), {{"x", {2, 3}, {1, 2, 3, 1, 2, 3}}},
         [](const auto& out) { near(out, {2, 4, 6, 4, 8, 12, 6, 12, 18}, 1e-5); });
  }
  {  // column 0 times column 1 from its end: a view with a negative stride
    Builder g;
    const Node a = g.input("a", f32, {1, 3}), b = g.input("b", f32, {3, 1});
    g.output("out", matmul(a, b));
    const std::vector<float> m = {2, 3, 5, 7, 11, 13};
    each(g.finish(), {{"a", {1, 3}, m, {6, 2}}, {"b", {3, 1}, m, {-2, 1}, 5}},
         [](const auto& out) { near(out, {94}, 1e-5); });
  }
  {
    Builder g;
    const Node a = g.input("a", f32, {1, 2}), b = g.input("b", f32, {2, 3});
    g.output("out", matmul(a, b));
    each(g.finish(), {{"a", {1, 2}, {1, 2}}, {"b", {2, 3}, {1, 1, 1, 1, 2, 3}}},
         [](const auto& out) { near(out, {3, 5, 7}, 1e-5); });
  }
}

BOOST_AUTO_TEST_CASE(case_75_assignment_with_aliasing) {
  // x is not needed after the addition, so its memory may take the sum: not before its transpose is read.
  Builder g;
  const Node x = softmax(g.input("x", f32, {4, 4}));
  const Node sum = x + transpose(x);
  g.output("out", softmax(sum));
  const std::vector<float> data = {1.65625f,   1.953125f,  0.453125f,  -1.71875f, 0.984375f, 0.921875f,
                                   -0.140625f, 0.625f,     -0.828125f, 0.734375f, 0.21875f,  -1.96875f,
                                   1.671875f,  -1.109375f, 1.46875f,   1};
  const auto rows = [](std::vector<double> m) {
    for (std::size_t i = 0; i < 4; ++i) {
      double all = 0;
      for (std::size_t j = 0; j < 4; ++j) all += std::exp(m[i * 4 + j]);
      for (std::size_t j = 0; j < 4; ++j) m[i * 4 + j] = std::exp(m[i * 4 + j]) / all;
    }
    return m;
  };
  const std::vector<double> p = rows({data.begin(), data.end()});
  std::vector<double> s(16);
  for (std::size_t i = 0; i < 16; ++i) s[i] = p[i] + p[i % 4 * 4 + i / 4];
  each(g.finish(), {{"x", {4, 4}, data}}, [&](const auto& out) { near(out, rows(s), 1e-6); });
}

BOOST_AUTO_TEST_CASE(case_77_all_padded_column_keeps_its_place) {
  Builder g;
  const Node q = g.input("q", f32, {2, 1, 4, 3}), k = g.input("k", f32, {2, 1, 5, 3}),
             v = g.input("v", f32, {2, 1, 5, 3});
  g.output("out", attention(q, k, v, {.mask = mask_mod([](auto, auto, auto, auto at) { return at < 3; })}));
  std::vector<Given> inputs = {
      {"q", {2, 1, 4, 3}, numbers(24, 1)}, {"k", {2, 1, 5, 3}, numbers(30, 2)}, {"v", {2, 1, 5, 3}, numbers(30, 3)}};
  for (const std::size_t i : {9u, 12u, 24u, 27u}) inputs[2].data[i] = NAN;  // in padded rows only
  each(g.finish(), inputs, [](const auto& out) {
    BOOST_TEST(out.size() == 24u);
    for (const float x : out) BOOST_TEST(std::isfinite(x));
  });
}

BOOST_AUTO_TEST_CASE(case_78_long_sequence_indexing_and_linear_memory) {
  constexpr std::int64_t n = 70001;  // n² does not fit into 32 bits
  Builder g;
  const Node q = g.input("q", f32, {1, 1, n, 1}), k = g.input("k", f32, {1, 1, n, 1}),
             v = g.input("v", f32, {1, 1, n, 1});
  g.output("out", attention(q, k, v, {.mask = window(3, 0), .scale = 1}));
  const Graph graph = g.finish();
  const auto formula = [](std::int64_t factor, std::int64_t modulus) {
    std::vector<float> x;
    for (std::int64_t i = 0; i < n; ++i) x.push_back(static_cast<float>(factor * i % modulus - modulus / 2) / 4);
    return x;
  };
  const std::vector<Given> inputs = {
      {"q", {1, 1, n, 1}, formula(7, 13)}, {"k", {1, 1, n, 1}, formula(5, 11)}, {"v", {1, 1, n, 1}, formula(3, 17)}};
  const std::size_t rows[] = {0, 1, 46340, 46341, 46342, 65535, 65536, 65537, 69999, 70000};
  const double want[] = {-2.0,
                         -1.5668784761106411,
                         -0.4417020884389063,
                         -0.016519867630345728,
                         0.16443818186439488,
                         0.5708983752221224,
                         -0.298558247603715,
                         -0.29334952796025293,
                         0.23971014455232123,
                         1.0561980844421792};
  for (const std::string& isa : isas()) {
    const auto out = result(graph, inputs, {.backend = "simd", .isa = isa});
    double sum = 0;
    for (const float x : out) sum += x;
    for (std::size_t i = 0; i < std::size(rows); ++i)
      BOOST_TEST(std::abs(out[rows[i]] - want[i]) < 1e-5 + 1e-4 * std::abs(want[i]));
    BOOST_TEST(std::abs(sum + 6.500800634973308) < 0.02);
  }
  const Parameters none;
  BOOST_TEST(BoundModel(graph, none, {.backend = "tbb", .threads = 8}).planned_bytes() < 64u << 20);
}

BOOST_AUTO_TEST_CASE(case_79_same_bits_for_every_thread_count) {
  const std::vector<Given> inputs = qkv(37);
  for (const std::string& isa : isas()) {
    const auto want = result(attention_over(37, causal), inputs, {.backend = "simd", .isa = isa});
    for (const int threads : {1, 2, 3, 8})
      for (int repeat = 0; repeat < 5; ++repeat)
        BOOST_TEST(
            (result(attention_over(37, causal), inputs, {.backend = "tbb", .isa = isa, .threads = threads}) == want));
  }
}

BOOST_AUTO_TEST_CASE(case_80_subnormal_inputs) {
  // How long it takes is a row of bench/; here the values: flushed to zero, or right within 1 %.
  constexpr std::int64_t n = 256;
  Builder g;
  const Node a = g.input("a", f32, {n, n}), b = g.input("b", f32, {n, n});
  g.output("out", matmul(a, b));
  const Graph graph = g.finish();
  const std::vector<Given> inputs = {{"a", {n, n}, std::vector<float>(n * n, 1e-39f)},
                                     {"b", {n, n}, std::vector<float>(n * n, 1.0f)}};
  for (const std::string& isa : isas())
    for (const float x : result(graph, inputs, {.backend = "simd", .isa = isa}))
      if (x != 0 && std::abs(x - 2.56e-37f) > 2.56e-39f) BOOST_ERROR(x);
  volatile float subnormal = 1e-39f;  // the caller's own arithmetic is as it was
  BOOST_TEST(subnormal * 0.5f != 0.0f);
}

BOOST_AUTO_TEST_CASE(case_82_buffers_at_any_element_alignment) {
  Builder g;
  const Node q = g.input("q", f32, {1, 1, 5, 9}), k = g.input("k", f32, {1, 1, 6, 9}),
             v = g.input("v", f32, {1, 1, 6, 9});
  g.output("out", attention(q, k, v));
  const Graph graph = g.finish();
  const Parameters none;
  for (const std::string& isa : isas()) {
    std::vector<float> first;
    for (const std::int64_t offset : {0, 1, 2, 3, 5, 7, 8, 15}) {
      std::vector<Given> inputs;
      for (const auto& [name, rows] : {std::pair{"q", 5}, std::pair{"k", 6}, std::pair{"v", 6}}) {
        std::vector<float> data(static_cast<std::size_t>(offset), NAN);
        const auto x = numbers(static_cast<std::size_t>(rows) * 9, static_cast<std::uint64_t>(name[0]));
        data.insert(data.end(), x.begin(), x.end());
        inputs.push_back({name, {1, 1, rows, 9}, data, {}, offset});
      }
      constexpr float untouched = 12345.0f;
      std::vector<float> memory(static_cast<std::size_t>(offset) + 45 + 16, untouched);
      BoundModel model(graph, none, {.backend = "simd", .isa = isa});
      TensorView out = model.output_spec("out");
      out.data = memory.data() + offset;
      const NamedTensor in[] = {{"q", view(inputs[0])}, {"k", view(inputs[1])}, {"v", view(inputs[2])}},
                        to[] = {{"out", out}};
      model.run(in, to);
      for (std::size_t i = 0; i < memory.size(); ++i)
        if (i < static_cast<std::size_t>(offset) || i >= static_cast<std::size_t>(offset) + 45)
          BOOST_TEST(memory[i] == untouched);
      const std::vector<float> got(memory.begin() + offset, memory.begin() + offset + 45);
      if (first.empty()) first = got;
      BOOST_TEST((got == first));
    }
  }
}

BOOST_AUTO_TEST_CASE(case_83_every_isa_is_one_that_the_cpu_has) {
  const Parameters none;
  const Graph graph = attention_over(3, {});
  const BoundModel model(graph, none, {.backend = "simd"});
  bool found = false;
  for (int i = 0; i < kernel::isa_count; ++i)
    found = found || (kernel::isa_list()[i].name == model.isa() && kernel::isa_list()[i].supported);
  BOOST_TEST(found);
}

BOOST_AUTO_TEST_SUITE_END()
