#include "real_input.hpp"

#include <treadle/backends/error.hpp>
#include <treadle/io/npy.hpp>

#include <fmt/format.h>

#include <filesystem>

namespace treadle::cli {

namespace fs = std::filesystem;

namespace {
io::Tensor load(const fs::path& folder, const char* name) {
  const fs::path file = folder / (std::string(name) + ".npy");
  if (!fs::exists(file))
    throw Error(fmt::format("'{}' does not exist: --qkv needs a folder with q.npy, k.npy and v.npy", file.string()));
  io::Tensor t = io::load_npy(file);
  if (t.dtype != f32)
    throw Error(fmt::format("'{}' holds {}: float32 is needed, such as x.astype(numpy.float32)", file.string(),
                            treadle::name(t.dtype)));
  if (t.shape.size() != 4)
    throw Error(fmt::format("'{}' has shape {}: rank 4 is needed, [batch, heads, length, head_dim]", file.string(),
                            io::shape_text(t.shape)));
  if (t.size() == 0)
    throw Error(fmt::format("'{}' has shape {}, which holds nothing", file.string(), io::shape_text(t.shape)));
  return t;
}
}  // namespace

Qkv load_qkv(const std::string& folder) {
  if (!fs::is_directory(folder))
    throw Error(fmt::format("'{}' is no folder: --qkv needs one with q.npy, k.npy and v.npy", folder));
  const io::Tensor q = load(folder, "q"), k = load(folder, "k"), v = load(folder, "v");
  const auto wrong = [&](const char* rule) {
    throw Error(fmt::format("q {}, k {} and v {} of '{}' do not fit: {}", io::shape_text(q.shape),
                            io::shape_text(k.shape), io::shape_text(v.shape), folder, rule));
  };
  if (k.shape != v.shape) wrong("k and v need the same shape");
  if (q.shape[0] != k.shape[0]) wrong("the batch sizes must be equal");
  if (q.shape[2] != k.shape[2]) wrong("compare needs as many queries as keys");
  if (q.shape[3] != k.shape[3]) wrong("the head sizes must be equal");
  if (q.shape[1] % k.shape[1] != 0) wrong("the number of key heads must divide the number of query heads");
  Qkv r;
  r.name = fs::weakly_canonical(folder).filename().string();
  r.shape = {q.shape[0], q.shape[1], k.shape[1], q.shape[2], q.shape[3]};
  const auto copy = [](const io::Tensor& t) { return std::vector<float>(t.as<float>().begin(), t.as<float>().end()); };
  r.q = copy(q);
  r.k = copy(k);
  r.v = copy(v);
  return r;
}

std::string example_folder() {
  // Installed, the data lies beside the binary's folder; in a build tree, in the sources (…/build/release/treadle).
  std::error_code failed;
  const fs::path binary = fs::read_symlink("/proc/self/exe", failed).parent_path();
  const char* example = "minilm_layer2_512";
  for (const fs::path& data : {binary / ".." / "share" / "treadle" / "examples" / "data", binary / "examples" / "data",
                               binary / ".." / ".." / "examples" / "data", fs::path(TREADLE_SOURCE_DATA)}) {
    if (fs::exists(data / example / "q.npy", failed)) return fs::weakly_canonical(data / example, failed).string();
  }
  return "";
}

}  // namespace treadle::cli
