// Tokenizers of an installed Treadle: `text_consumer TOKENIZER`; and the header of what needs them is there.
#include <treadle/io/text/tokenizer.hpp>
#include <treadle/models/embedder.hpp>

#include <cstdio>
#include <string>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    const auto tokenizer = treadle::text::Tokenizer::open(argv[1]);
    const std::string text = "in the beginning god created the heaven and the earth.";
    const auto ids = tokenizer.encode(text);
    std::printf("%zu tokens\n", ids.size());
    return tokenizer.decode(ids) == text ? 0 : 1;
  } catch (const treadle::Error& e) {
    std::printf("%s\n", e.what());
    return 3;
  }
}
