// Any bytes are a tokenizer's file or an error. The first byte says which kind of file: j tokenizer.json, t vocab.txt,
// s and m SentencePiece models as T5 and Llama have them. What opens then encodes and decodes.
#include <treadle/io/error.hpp>
#include <treadle/io/text/tokenizer.hpp>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <unistd.h>

namespace {
namespace fs = std::filesystem;

/// A folder of this process; it stays when a crash ends it, and holds the file then.
fs::path folder() {
  static const fs::path made = [] {
    fs::path p = fs::temp_directory_path() / ("treadle_fuzz_tokenizer_" + std::to_string(::getpid()));
    fs::create_directories(p);
    return p;
  }();
  return made;
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace treadle;
  if (size == 0) return 0;
  const char kind = static_cast<char>(data[0]);
  const char* name = kind == 'j'   ? "tokenizer.json"
                     : kind == 't' ? "vocab.txt"
                     : kind == 's' ? "spiece.model"
                                   : "tokenizer.model";
  const fs::path file = folder() / name;
  {
    std::ofstream out(file, std::ios::binary);
    out.write(reinterpret_cast<const char*>(data) + 1, static_cast<std::streamsize>(size - 1));
  }
  try {
    const text::Tokenizer tokenizer = text::Tokenizer::open(file);
    for (const char* text : {"", "The cat's naïve 3.14 <s>", "\u00c5 ＡＢ 東京\n\n [MASK]"}) {
      const auto ids = tokenizer.encode(text);
      for (const std::int32_t id : ids)
        if (id < 0 || id >= tokenizer.vocabulary_size()) std::abort();
      static_cast<void>(tokenizer.decode(ids));
    }
  } catch (const io::Error&) {
  }
  return 0;
}
