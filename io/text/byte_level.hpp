#pragma once
// GPT-2's bytes: each is written as a character that can be seen, so that a vocabulary is a text file (Radford et al.
// 2019).

#include <string>
#include <string_view>

namespace treadle::text {

/// Each byte as its character: itself where it is printable Latin-1, else one from U+0100 on.
std::string bytes_to_characters(std::string_view bytes);

/// The bytes of such characters; the token's own bytes where one of its characters stands for none.
std::string characters_to_bytes(std::string_view token);

/// How GPT-2 splits a text.
inline constexpr std::string_view gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

}  // namespace treadle::text
