#include "variants.hpp"

#include "arguments.hpp"

#include <treadle/backends/error.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace treadle::cli {

namespace {
constexpr std::int64_t most = std::int64_t{1} << 31;

const std::vector<std::string> forms = {"dense", "causal", "window:L,R", "longformer[:W,G]", "linear", "linear:causal"};

[[noreturn]] void unknown(std::string_view text) {
  throw Error(fmt::format("unknown variant '{}': the variants are {}", text, join(forms)));
}

/// Both numbers behind the colon.
std::pair<std::int64_t, std::int64_t> two_numbers(std::string_view text, std::string_view arguments,
                                                  std::string_view form, std::int64_t least) {
  const auto parts = split(arguments);
  if (parts.size() != 2)
    throw Error(
        fmt::format("variant '{}' has {} number{}: write {}", text, parts.size(), parts.size() == 1 ? "" : "s", form));
  return {parse_integer(parts[0], fmt::format("the first number of variant '{}'", text), least, most),
          parse_integer(parts[1], fmt::format("the second number of variant '{}'", text), least, most)};
}

Variant window_variant(std::string_view text, std::string_view arguments) {
  const auto sides = two_numbers(text, arguments, "window:LEFT,RIGHT such as window:128,128 (-1: no bound)", -1);
  const std::int64_t left = sides.first, right = sides.second;  // clang: a structured binding is no variable to capture
  Variant v;
  v.name = fmt::format("window:{},{}", left, right);
  v.causal = right == 0;
  v.mask = mask::window(left, right);
  v.keep = [left, right](std::int64_t, std::int64_t, std::int64_t q, std::int64_t k) {
    return (left < 0 || k >= q - left) && (right < 0 || k <= q + right);
  };
  return v;
}

Variant longformer_variant(std::string_view text, std::string_view arguments) {
  std::int64_t width = 256, global = 1;
  if (!arguments.empty())
    std::tie(width, global) = two_numbers(text, arguments, "longformer:WINDOW,GLOBAL such as longformer:256,1", 0);
  Variant v;
  v.name = fmt::format("longformer:{},{}", width, global);
  const std::int64_t half = width / 2;
  v.mask = mask::window(half, half);
  if (global > 0) {
    v.mask = *v.mask | mask::mask_mod([global](auto, auto, auto q, auto k) { return (k < global) | (q < global); });
  }
  v.keep = [half, global](std::int64_t, std::int64_t, std::int64_t q, std::int64_t k) {
    return (k >= q - half && k <= q + half) || k < global || q < global;
  };
  return v;
}
}  // namespace

Variant parse_variant(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  const std::string_view arguments = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  const bool bare = colon == std::string_view::npos;
  Variant v;
  v.name = std::string(text);
  if (kind == "dense" && bare) return v;
  if (kind == "causal" && bare) {
    v.causal = true;
    v.mask = mask::causal();
    v.keep = [](std::int64_t, std::int64_t, std::int64_t q, std::int64_t k) { return k <= q; };
    return v;
  }
  if (kind == "linear" && (bare || arguments == "causal")) {
    v.linear = true;
    v.causal = !bare;
    if (v.causal) v.keep = [](std::int64_t, std::int64_t, std::int64_t q, std::int64_t k) { return k <= q; };
    return v;
  }
  if (kind == "window") return window_variant(text, arguments);
  if (kind == "longformer" && (bare || !arguments.empty())) return longformer_variant(text, arguments);
  unknown(text);
}

std::vector<Variant> parse_variants(std::string_view text) {
  std::vector<std::string> names;
  for (const std::string& part : split(text)) {
    const bool number = !part.empty() && part.find_first_not_of("-0123456789") == std::string::npos;
    if (number && !names.empty() && names.back().find(':') != std::string::npos) {
      names.back() += "," + part;
    } else {
      names.push_back(part);
    }
  }
  std::vector<Variant> variants;
  for (const std::string& name : names) {
    if (name.empty())
      throw Error(fmt::format("--variants is '{}': write a list such as dense,window:128,128,linear", text));
    Variant v = parse_variant(name);
    const bool known =
        std::any_of(variants.begin(), variants.end(), [&](const Variant& o) { return o.name == v.name; });
    if (!known) variants.push_back(std::move(v));
  }
  return variants;
}

std::string variant_help() {
  return "  dense             softmax attention over all keys\n"
         "  causal            softmax attention over the keys up to the query\n"
         "  window:L,R        softmax over L keys before to R keys after the query, both included (-1: no bound)\n"
         "  longformer[:W,G]  window of W/2 keys to each side, and G first tokens that see and are seen by all "
         "(256,1)\n"
         "  linear            linear attention, feature map elu + 1\n"
         "  linear:causal     the same over the keys up to the query";
}

}  // namespace treadle::cli
