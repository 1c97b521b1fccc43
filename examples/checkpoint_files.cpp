// Writes a checkpoint, opens it, and shows what a broken one says.
#include <treadle/io/error.hpp>
#include <treadle/io/safetensors.hpp>

#include <cstdio>
#include <numeric>

#include <unistd.h>

using namespace treadle;
namespace fs = std::filesystem;

int main() {
  const fs::path folder = fs::temp_directory_path() / ("treadle_checkpoint_" + std::to_string(::getpid()));
  fs::create_directories(folder);
  const fs::path file = folder / "model.safetensors";

  io::Tensor weight(f32, {2, 3}), ids(i64, {4});
  std::iota(weight.as<float>().begin(), weight.as<float>().end(), 0.5f);
  const NamedTensor tensors[] = {{"out.weight", weight.view()}, {"position_ids", ids.view()}};
  io::save_safetensors(file, tensors, {{"format", "pt"}});

  {
    const io::Safetensors checkpoint = io::Safetensors::open(folder);
    for (const io::StoredTensor& t : checkpoint.tensors())
      std::printf("%s %s %s: %zu bytes\n", t.name.c_str(), io::name(t.type).data(), io::shape_text(t.shape).c_str(),
                  t.bytes.size());
    const io::StoredTensor* found = checkpoint.find("out.weight");
    std::vector<float> numbers(6);
    if (found != nullptr) io::convert_to_f32(*found, numbers.data());
    std::printf("%g … %g\n", numbers.front(), numbers.back());
  }

  fs::resize_file(file, fs::file_size(file) - 1);
  try {
    io::Safetensors::open(file);
  } catch (const io::Error& error) {
    std::printf("%s\n", std::string(error.what()).substr(folder.string().size() + 1).c_str());
  }
  fs::remove_all(folder);
}
