// What loading a checkpoint costs: time beside reading its file and packing its weights, and the peak of the memory
// beside the file's size. A GPT-2 of 124 million parameters with random weights, whose matrices the file holds
// transposed, and all-MiniLM-L6-v2 where TREADLE_MINILM names its folder. Each measurement has a process of its own.

#include <treadle/backends/random_fill.hpp>
#include <treadle/io/safetensors.hpp>
#include <treadle/models/checkpoint.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace {

using namespace treadle;
namespace fs = std::filesystem;

/// CPU time of the process, the system's part included, so that a busy machine disturbs less. The file is in memory
/// when it is read; what a disk takes comes to both sides alike.
double now() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// Bytes of this process that have been in memory at once (Linux: VmHWM of /proc/self/status).
double peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmHWM:", 0) == 0) return 1024 * std::strtod(line.c_str() + 6, nullptr);
  return 0;
}

/// `f` in a process of its own; what it returns and that process's peak of memory.
struct Measured {
  double value = 0, peak = 0;
};
template <class F>
Measured apart(F f) {
  int ends[2];
  if (pipe(ends) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    Measured m;
    m.value = f();
    m.peak = peak_memory();
    const bool written = write(ends[1], &m, sizeof(m)) == static_cast<ssize_t>(sizeof(m));
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  Measured m;
  if (read(ends[0], &m, sizeof(m)) != static_cast<ssize_t>(sizeof(m))) m = {};
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return m;
}

double read_file(const fs::path& file) {
  const double start = now();
  std::vector<char> buffer(1 << 20);
  std::ifstream in(file, std::ios::binary);
  while (in.read(buffer.data(), static_cast<std::streamsize>(buffer.size()))) benchmark::DoNotOptimize(buffer.data());
  return now() - start;
}

BoundModel bound(const models::LoadedModel& loaded) {
  BoundModel model = loaded.bind({.backend = "simd"});
  model.bind_dims({{"batch", 1}, {"seq", 1}});
  return model;
}

/// From the folder to a model that can run.
double load(const fs::path& folder) {
  const double start = now();
  const models::LoadedModel loaded = models::load_checkpoint(folder);
  const BoundModel model = bound(loaded);
  benchmark::DoNotOptimize(model.planned_bytes());
  return now() - start;
}

/// Packing alone: the second model of a file that is in memory by then.
double pack(const fs::path& folder) {
  const models::LoadedModel loaded = models::load_checkpoint(folder);
  benchmark::DoNotOptimize(bound(loaded).planned_bytes());
  const double start = now();
  const BoundModel second = bound(loaded);
  benchmark::DoNotOptimize(second.planned_bytes());
  return now() - start;
}

void row(benchmark::State& state, const fs::path& folder) {
  const fs::path file = folder / "model.safetensors";
  const auto bytes = static_cast<double>(fs::file_size(file));
  double read_s = 1e9, pack_s = 1e9, load_s = 1e9, peak = 0;
  for (auto _ : state) {
    for (int i = 0; i < 3; ++i) {
      read_s = std::min(read_s, apart([&] { return read_file(file); }).value);
      pack_s = std::min(pack_s, apart([&] { return pack(folder); }).value);
      const Measured m = apart([&] { return load(folder); });
      load_s = std::min(load_s, m.value);
      peak = std::max(peak, m.peak);
    }
  }
  state.counters["file_MB"] = bytes * 1e-6;
  state.counters["read_ms"] = read_s * 1e3;
  state.counters["pack_ms"] = pack_s * 1e3;
  state.counters["load_ms"] = load_s * 1e3;
  state.counters["over_read_and_pack"] = load_s / (read_s + pack_s);
  state.counters["peak_over_file"] = peak / bytes;
}

/// GPT-2 as published, but for its values.
void write_gpt2(const fs::path& folder) {
  constexpr std::int64_t words = 50257, positions = 1024, width = 768, layers = 12;
  std::ofstream(folder / "config.json") << R"({"model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024,
    "n_embd": 768, "n_layer": 12, "n_head": 12})";
  std::vector<float> values(static_cast<std::size_t>(words * width));
  fill_normal(values, 1, 0.02);
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> all = {{"wte.weight", {words, width}},
                                                                        {"wpe.weight", {positions, width}},
                                                                        {"ln_f.weight", {width}},
                                                                        {"ln_f.bias", {width}}};
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string layer = "h." + std::to_string(i) + ".";
    for (const char* norm : {"ln_1", "ln_2"})
      for (const char* part : {".weight", ".bias"}) all.push_back({layer + norm + part, {width}});
    const auto product = [&](const char* name, std::int64_t in, std::int64_t out) {
      all.push_back({layer + name + ".weight", {in, out}});
      all.push_back({layer + name + ".bias", {out}});
    };
    product("attn.c_attn", width, 3 * width);
    product("attn.c_proj", width, width);
    product("mlp.c_fc", width, 4 * width);
    product("mlp.c_proj", 4 * width, width);
  }
  std::vector<NamedTensor> tensors;
  for (const auto& [name, shape] : all) tensors.push_back({name, dense_view(values.data(), f32, shape)});
  io::save_safetensors(folder / "model.safetensors", tensors);
}

void gpt2(benchmark::State& state) {
  std::string pattern = (fs::temp_directory_path() / "treadle_load_XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) {
    state.SkipWithError("no folder for temporary files");
    return;
  }
  apart([&] {  // its memory must not count
    write_gpt2(pattern);
    return 0.0;
  });
  row(state, pattern);
  fs::remove_all(pattern);
}

void minilm(benchmark::State& state) { row(state, std::getenv("TREADLE_MINILM")); }

}  // namespace

int main(int argc, char** argv) {
  benchmark::RegisterBenchmark("gpt2_124M", gpt2)->Iterations(1)->Unit(benchmark::kMillisecond);
  const char* folder = std::getenv("TREADLE_MINILM");
  if (folder != nullptr && fs::exists(fs::path(folder) / "model.safetensors"))
    benchmark::RegisterBenchmark("minilm", minilm)->Iterations(1)->Unit(benchmark::kMillisecond);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
