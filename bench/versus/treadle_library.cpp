// Treadle behind a few C functions, so that Python can run it through ctypes in the same process as its peers
// (peers/ours.py). The graphs are made with the public builder; tensors stay where NumPy has them.
//
// Functions that may fail return null or 1 and leave a sentence for versus_error().

#include <treadle/backends/kernel.hpp>
#include <treadle/models/checkpoint.hpp>
#include <treadle/treadle.hpp>

#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {
using namespace treadle;

thread_local std::string last_error;

struct Tensor {
  std::string name;
  TensorView view;
};

struct Running {
  Graph graph;
  Parameters parameters;
  std::optional<BoundModel> bound;
  std::vector<std::unique_ptr<Tensor>> tensors;  ///< what the names of `inputs` and `outputs` point into
  std::vector<NamedTensor> inputs, outputs;
  std::string description;
  std::vector<NamedSize> dims{};
  std::shared_ptr<const io::Safetensors> file{};  ///< whose memory the parameters of a checkpoint are
};

template <class F>
int guarded(F f) {
  try {
    f();
    return 0;
  } catch (const std::exception& e) {
    last_error = e.what();
    return 1;
  }
}

/// `build(builder)` adds the nodes; null with a sentence where they do not fit.
template <class Build>
Running* made(Build build) {
  Running* result = nullptr;
  guarded([&] {
    Builder g;
    build(g);
    Graph graph = g.finish();
    if (graph.error)
      throw Error("the model is wrong: " + std::string(graph.strings[graph.error.got]) + ", expected " +
                  std::string(graph.strings[graph.error.expected]));
    result = new Running{optimise(graph), {}, {}, {}, {}, {}, {}, {}, {}};
  });
  return result;
}

/// BigBird's released form, with three random blocks of 64 a row from the input `random`.
constexpr std::int64_t block = 64, random_blocks = 3;

/// dense, causal, window:LEFT,RIGHT or big_bird.
AttentionOptions options_of(std::string_view mask) {
  if (mask == "dense") return {};
  if (mask == "causal") return {.mask = causal};
  if (mask == "big_bird") return {.mask = big_bird({.block = block, .random = random_blocks, .list = "random"})};
  constexpr std::string_view window_prefix = "window:";
  if (mask.substr(0, window_prefix.size()) == window_prefix) {
    const std::string numbers(mask.substr(window_prefix.size()));
    const auto comma = numbers.find(',');
    if (comma != std::string::npos) return {.mask = window(std::stol(numbers), std::stol(numbers.substr(comma + 1)))};
  }
  throw Error("unknown mask '" + std::string(mask) + "': dense, causal, window:LEFT,RIGHT and big_bird are known");
}

TensorView view(void* data, const char* dtype, int rank, const std::int64_t* shape) {
  return dense_view(data, std::strcmp(dtype, "i32") == 0 ? i32 : f32, std::span(shape, static_cast<std::size_t>(rank)));
}
}  // namespace

extern "C" {

const char* versus_error() { return last_error.c_str(); }

/// Inputs q [batch, heads, q_len, dim], k and v [batch, heads, k_len, dim], output `out` like q.
void* versus_attention(const char* mask, std::int64_t batch_size, std::int64_t heads, std::int64_t q_len,
                       std::int64_t k_len, std::int64_t dim) {
  return made([&](Builder& g) {
    const Node q = g.input("q", f32, {batch_size, heads, q_len, dim}),
               k = g.input("k", f32, {batch_size, heads, k_len, dim}),
               v = g.input("v", f32, {batch_size, heads, k_len, dim});
    if (std::strcmp(mask, "big_bird") == 0) g.input("random", i32, {(q_len + block - 1) / block, random_blocks});
    g.output("out", attention(q, k, v, options_of(mask)));
  });
}

/// Inputs q, k, v [1, heads, length, dim], output `out`; features elu + 1.
void* versus_linear_attention(int is_causal, std::int64_t heads, std::int64_t length, std::int64_t dim) {
  return made([&](Builder& g) {
    const Node q = g.input("q", f32, {1, heads, length, dim}), k = g.input("k", f32, {1, heads, length, dim}),
               v = g.input("v", f32, {1, heads, length, dim});
    g.output("out", linear_attention(q, k, v, {.causal = is_causal != 0}));
  });
}

/// Input x [rows, in], parameter w.weight [out, in], output `out` [rows, out].
void* versus_linear(std::int64_t rows, std::int64_t in, std::int64_t out) {
  return made(
      [&](Builder& g) { g.output("out", linear("w", g.input("x", f32, {rows, in}), {.width = out, .bias = false})); });
}

/// A post-norm encoder layer with ReLU (Vaswani et al. 2017). Input x [batch, length, width], output `out`.
void* versus_encoder_layer(std::int64_t batch_size, std::int64_t length, std::int64_t width, std::int64_t heads,
                           std::int64_t hidden) {
  return made([&](Builder& g) {
    const Node x = g.input("x", f32, {batch_size, length, width});
    const Node y = layer_norm("norm1", x + self_attention("attn", x, {.heads = heads}));
    g.output("out", layer_norm("norm2", y + ffn("mlp", y, {.hidden = hidden, .activation = relu})));
  });
}

/// A checkpoint's model. Inputs and outputs are those of its architecture.
void* versus_checkpoint(const char* folder, std::int64_t batch_size, std::int64_t length) {
  Running* result = nullptr;
  guarded([&] {
    models::LoadedModel m = models::load_checkpoint(folder);
    result = new Running{std::move(m.graph), std::move(m.parameters), {}, {}, {}, {}, {}, {}, std::move(m.file)};
    result->dims = {{"batch", batch_size}, {"seq", length}};
  });
  return result;
}

/// The memory stays the caller's and must outlive the model.
int versus_parameter(void* model, const char* name, void* data, int rank, const std::int64_t* shape) {
  return guarded([&] { static_cast<Running*>(model)->parameters.set(name, view(data, "f32", rank, shape)); });
}

int versus_tensor(void* model, const char* name, int is_output, void* data, const char* dtype, int rank,
                  const std::int64_t* shape) {
  return guarded([&] {
    auto& m = *static_cast<Running*>(model);
    m.tensors.push_back(std::make_unique<Tensor>(Tensor{name, view(data, dtype, rank, shape)}));
    (is_output != 0 ? m.outputs : m.inputs).push_back({m.tensors.back()->name, m.tensors.back()->view});
  });
}

/// One thread runs on the calling one (`simd`), more over oneTBB.
int versus_bind(void* model, int threads) {
  return guarded([&] {
    auto& m = *static_cast<Running*>(model);
    m.bound.emplace(m.graph, m.parameters, BindOptions{.backend = threads == 1 ? "simd" : "tbb", .threads = threads});
    if (!m.dims.empty()) m.bound->bind_dims(m.dims);
    m.description = m.bound->describe();
  });
}

int versus_run(void* model) {
  return guarded([&] {
    auto& m = *static_cast<Running*>(model);
    m.bound->run(m.inputs, m.outputs);
  });
}

/// Bytes that a run touches beside its tensors.
std::int64_t versus_planned_bytes(void* model) {
  return static_cast<std::int64_t>(static_cast<Running*>(model)->bound->planned_bytes());
}
const char* versus_describe(void* model) { return static_cast<Running*>(model)->description.c_str(); }
void versus_free(void* model) { delete static_cast<Running*>(model); }

const char* versus_isa() { return kernel::best_table().isa; }
const char* versus_compiler() { return __VERSION__; }

/// GFLOP/s of independent fused multiply-adds in registers on `threads` threads at once; about `milliseconds` long.
double versus_fma_peak(int threads, double milliseconds) {
  using Clock = std::chrono::steady_clock;
  const auto burn = [](std::int64_t n, double& gflops) {
    const auto start = Clock::now();
    const double flops = kernel::best_table().fma_burn(n);
    gflops = flops / std::chrono::duration<double>(Clock::now() - start).count() * 1e-9;
  };
  double trial = 0;
  burn(1000, trial);
  const double per_iteration = kernel::best_table().fma_burn(1) * 1e-9;  // GFLOP
  const auto n = static_cast<std::int64_t>(trial * milliseconds * 1e-3 / per_iteration);
  std::vector<double> rates(static_cast<std::size_t>(threads));
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < rates.size(); ++i) others.emplace_back([&, i] { burn(n, rates[i]); });
  burn(n, rates[0]);
  for (std::thread& t : others) t.join();
  double sum = 0;
  for (const double r : rates) sum += r;
  return sum;
}

}  // extern "C"
