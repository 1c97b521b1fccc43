// The reference in double against PyTorch in double (tests/data/golden): the same inputs, so the same numbers to
// rounding.

#include "arrays.hpp"

#include <treadle/io/npy.hpp>
#include <treadle/ops/rules.hpp>

#include <filesystem>
#include <optional>

using namespace treadle;
using namespace treadle::test;
namespace ref = treadle::reference;

namespace {

Array<double> load(const std::string& name, const std::string& tensor) {
  const auto path = std::filesystem::path(TREADLE_TEST_DATA) / "golden" / "ops" / name / (tensor + ".npy");
  const io::Tensor t = io::load_npy(path);
  return ref::from_view<double>(t.view());
}
bool given(const std::string& name, const std::string& tensor) {
  return std::filesystem::exists(std::filesystem::path(TREADLE_TEST_DATA) / "golden" / "ops" / name /
                                 (tensor + ".npy"));
}

/// Runs a case of attention through a graph; `mask`, `bias`, `sink`, `document` and `key_lengths` are used where they
/// exist.
void check_attention(const std::string& name, std::optional<Mask> m = {}) {
  BOOST_TEST_CONTEXT(name) {
    ref::Tensors<double> inputs;
    Builder g;
    const auto input = [&](const std::string& tensor, DType dtype) {
      Array<double> a = load(name, tensor);
      std::vector<DimSpec> d(6, DimSpec(1));
      for (std::size_t i = 0; i < a.shape.size(); ++i) d[i] = a.shape[i];
      const std::size_t rank = a.shape.size();
      inputs[tensor] = std::move(a);
      if (rank == 1) return g.input(tensor, dtype, {d[0]});
      if (rank == 2) return g.input(tensor, dtype, {d[0], d[1]});
      return g.input(tensor, dtype, {d[0], d[1], d[2], d[3]});
    };
    const Node q = input("q", f32), k = input("k", f32), v = input("v", f32);
    for (const char* table : {"document", "key_lengths"})
      if (given(name, table)) input(table, i32);
    AttentionOptions options{.mask = std::move(m)};
    if (given(name, "mask")) options.mask_tensor = input("mask", boolean);
    if (given(name, "bias")) options.bias = input("bias", f32);
    const Node out = attention(q, k, v, options);
    g.output("out", out);
    g.output("lse", {out.builder, {out.value.node, 1}});
    const Graph graph = g.finish();
    BOOST_REQUIRE(!graph.error);
    const auto got = ref::evaluate<double>(graph, {}, inputs, ref::Tensors<double>{});
    check_close(got.at("out"), load(name, "out"), 1e-11);
    if (given(name, "lse")) check_close(got.at("lse"), load(name, "lse"), 1e-11);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(golden)

BOOST_AUTO_TEST_CASE(dense_and_causal_attention) {
  for (const char* name :
       {"attention_01_dense_17x17x8", "attention_04_dense_9x31x20", "attention_07_dense_67x130x40", "extreme_logits"})
    check_attention(name);
  for (const char* name :
       {"attention_02_causal_33x33x64", "attention_03_causal_24x24x16", "attention_05_causal_5x70x128",
        "attention_06_causal_1x1x3", "attention_08_causal_130x130x72"})
    check_attention(name, causal);
}

BOOST_AUTO_TEST_CASE(masks_and_biases) {
  check_attention("mask_bool_with_empty_rows");
  check_attention("bias_additive");
  check_attention("mask_documents_96", causal & documents("document"));
  check_attention("mask_key_padding", key_lengths("key_lengths"));
  check_attention("window_33x33_l0_r0", window(0, 0));
  check_attention("window_40x40_l3_r3", window(3, 3));
  check_attention("window_40x40_l5_r0", window(5, 0));
  check_attention("window_9x40_l7_r0", window(7, 0));
  check_attention("window_130x130_l64_r64", window(64, 64));
  check_attention("window_dilated_96", dilated(window(12, 12), 3));
  check_attention("pattern_longformer_shared_96", window(8, 8) | global_tokens({0, 7, 50}));
}

BOOST_AUTO_TEST_CASE(a_sink) {
  const std::string name = "attention_sink";
  const auto q = load(name, "q"), k = load(name, "k"), v = load(name, "v"), sink = load(name, "sink");
  const std::int64_t shift = k.shape[2] - q.shape[2];
  const auto mask = ref::mask<double>(
      {1, 1, q.shape[2], k.shape[2]}, [=](auto, auto, auto i, auto j) { return j <= i + shift; }, nullptr);
  const double scale = 1 / std::sqrt(static_cast<double>(q.shape[3]));
  const auto got = ref::attention<double>({.q = q, .k = k, .v = v, .mask = &mask, .sink = &sink, .scale = scale});
  check_close(got.out, load(name, "out"), 1e-11);
}

BOOST_AUTO_TEST_CASE(linear_attention_full_and_causal) {
  for (const std::string length : {"7", "65", "200"}) {
    for (const bool is_causal : {false, true}) {
      const std::string name = std::string("linear_elu_") + (is_causal ? "causal_" : "full_") + length;
      BOOST_TEST_CONTEXT(name) {
        const auto got = ref::linear_attention<double>(load(name, "q"), load(name, "k"), load(name, "v"), nullptr,
                                                       activation::elu_plus_one, is_causal, 0);
        check_close(got, load(name, "out"), 1e-11);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(norms_activations_and_layers) {
  for (const auto& [name, eps, tolerance] : {std::tuple{"layer_norm_eps1e-05", 1e-5, 1e-11},
                                             {"layer_norm_eps1e-12", 1e-12, 1e-11},
                                             {"layer_norm_large_mean", 1e-5, 1e-7}}) {
    const auto gamma = load(name, "gamma"), beta = load(name, "beta");
    check_close(ref::layer_norm(load(name, "x"), &gamma, &beta, eps), load(name, "out"), tolerance);
  }
  const auto gamma = load("rms_norm", "gamma");
  check_close(ref::rms_norm(load("rms_norm", "x"), &gamma, 1e-6), load("rms_norm", "out"), 1e-11);

  const auto x = load("activations", "x");
  for (const activation f :
       {activation::relu, activation::gelu, activation::gelu_tanh, activation::silu, activation::sigmoid,
        activation::tanh, activation::softplus, activation::elu, activation::squared_relu, activation::quick_gelu})
    check_close(ref::activate(x, f), load("activations", std::string(name(f))), 1e-11);

  for (const auto& [folder, f] : {std::pair{"ffn_relu", activation::relu}, {"ffn_gelu", activation::gelu}}) {
    const auto b1 = load(folder, "b1"), b2 = load(folder, "b2");
    const auto hidden = ref::linear(load(folder, "x"), load(folder, "w1"), &b1, {}, f);
    check_close(ref::linear(hidden, load(folder, "w2"), &b2), load(folder, "out"), 1e-11);
  }
  for (const std::int64_t width : {4, 5, 512}) {
    const auto want = load("positional_sinusoid_" + std::to_string(width), "out");
    check_close(ref::sinusoidal_positions<double>(0, want.shape[0], width, 10000), want, 1e-11);
  }
}

BOOST_AUTO_TEST_SUITE_END()
