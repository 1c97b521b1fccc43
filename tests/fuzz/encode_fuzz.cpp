// Any bytes are a text for the tokenizers of the tests, or no UTF-8, and any ids are a text or an error. The first byte
// picks the tokenizer.
#include <treadle/io/error.hpp>
#include <treadle/io/text/tokenizer.hpp>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace treadle;
  static const std::vector<text::Tokenizer> all = [] {
    std::vector<text::Tokenizer> tokenizers;
    for (const char* name :
         {"word_piece", "gpt2", "roberta", "llama3", "llama2", "clip", "metaspace", "whitespace", "t5", "llama"})
      tokenizers.push_back(text::Tokenizer::open(std::string(TREADLE_TOKENIZERS "/") + name));
    return tokenizers;
  }();
  if (size == 0) return 0;
  const text::Tokenizer& tokenizer = all[data[0] % all.size()];
  ++data, --size;
  try {
    const auto ids = tokenizer.encode({reinterpret_cast<const char*>(data), size});
    for (const std::int32_t id : ids)
      if (id < 0 || id >= tokenizer.vocabulary_size()) std::abort();
    static_cast<void>(tokenizer.decode(ids));
    const std::string all_of_it = tokenizer.decode(ids, false);
    if (!ids.empty() && size > 0 && tokenizer.encode(all_of_it, {.max_length = 8}).size() > 8) std::abort();
  } catch (const io::Error&) {
  }
  std::vector<std::int32_t> ids(size / 2);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = data[2 * i] | (data[2 * i + 1] & 3) << 8;
  try {
    static_cast<void>(tokenizer.decode(ids));
  } catch (const io::Error&) {
  }
  return 0;
}
