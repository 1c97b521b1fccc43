#include "variants.hpp"

#include "arguments.hpp"

#include <treadle/backends/error.hpp>

#include <treadle/graph/mask/random_blocks.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace treadle::cli {

namespace {
constexpr std::int64_t most = std::int64_t{1} << 31, most_blocks = 1024, most_features = 8192;

constexpr VariantForm forms[] = {
    {"dense", "softmax over all keys", "", "Vaswani et al. 2017, eq. 1", "N²"},
    {"causal", "softmax over the keys up to the query", "", "Vaswani et al. 2017, §3.2.3", "N²/2"},
    {"window:L,R", "softmax over L keys before to R keys after the query, both included (-1: no bound)", "",
     "Beltagy et al. 2020, §3.1", "N·(L+R+1)"},
    {"longformer[:W,G]", "window of W/2 keys to each side, and G first tokens that see and are seen by all", "256,1",
     "Beltagy et al. 2020, §3.1", "N·(W+1+2G)"},
    {"bigbird[:B,W,G,R]",
     "blocks of B tokens: W around the query's own, the G first ones (they see and are seen by all), R random ones",
     "64,3,2,3", "Zaheer et al. 2020, §2, app. D", "N·B·(W+2G+R)"},
    {"bigbird[:B,W,G,R]:causal", "the same over the keys up to the query", "64,3,2,3", "Zaheer et al. 2020",
     "N·B·(W/2+G+R)"},
    {"local[:C[,L]]", "chunks of C tokens: the query's own and the L before it", "64,1",
     "Kitaev et al. 2020, §2; Roy et al. 2021, §4.1", "N·C·(L+1)"},
    {"local[:C[,L]]:causal", "the same over the keys up to the query", "64,1", "Roy et al. 2021, §4.1", "N·C·(L+1/2)"},
    {"linear", "linear attention, feature map elu + 1", "", "Katharopoulos et al. 2020, eq. 4-7", "N·D"},
    {"linear:causal", "the same over the keys up to the query", "", "Katharopoulos et al. 2020, eq. 8-12", "N·D"},
    {"performer[:F]", "linear attention, F positive orthogonal random features (FAVOR+)", "256",
     "Choromanski et al. 2021, eq. 5-6", "N·F"},
    {"performer[:F]:causal", "the same over the keys up to the query", "256", "Choromanski et al. 2021, §2.1", "N·F"},
};

[[noreturn]] void unknown(std::string_view text) {
  std::vector<std::string> spellings;
  for (const VariantForm& f : forms) spellings.emplace_back(f.spelling);
  throw Error(fmt::format("unknown variant '{}': the variants are {}", text, join(spellings)));
}

/// The plain code of a mask that is the same for all lengths.
template <class F>
std::function<Keep(std::int64_t)> at_any_length(F f) {
  return [f](std::int64_t) -> Keep {
    return [f](std::int64_t, std::int64_t, std::int64_t q, std::int64_t k) { return f(q, k); };
  };
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
  v.keep = at_any_length([left, right](std::int64_t q, std::int64_t k) {
    return (left < 0 || k >= q - left) && (right < 0 || k <= q + right);
  });
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
  if (global > 0) v.mask = *v.mask | mask::global_prefix(global);
  v.keep = at_any_length([half, global](std::int64_t q, std::int64_t k) {
    return (k >= q - half && k <= q + half) || k < global || q < global;
  });
  return v;
}

/// Arguments as numbers: as many as `defaults`, or from `least_count` on.
std::vector<std::int64_t> numbers(std::string_view text, std::string_view arguments, std::string_view form,
                                  std::vector<std::int64_t> values, std::size_t least_count,
                                  std::span<const std::string_view> names, std::span<const std::int64_t> least) {
  if (arguments.empty()) return values;
  const auto parts = split(arguments);
  if (parts.size() < least_count || parts.size() > values.size())
    throw Error(
        fmt::format("variant '{}' has {} number{}: write {}", text, parts.size(), parts.size() == 1 ? "" : "s", form));
  for (std::size_t i = 0; i < parts.size(); ++i)
    values[i] = parse_integer(parts[i], fmt::format("the {} of variant '{}'", names[i], text), least[i],
                              i == 0 ? most : most_blocks);
  return values;
}

Variant local_variant(std::string_view text, std::string_view arguments, bool causal) {
  constexpr std::string_view names[] = {"chunk", "look-back"};
  constexpr std::int64_t least[] = {1, 0};
  const auto given = numbers(text, arguments, "local:CHUNK,LOOKBACK such as local:64,1", {64, 1}, 1, names, least);
  const std::int64_t chunk = given[0], back = given[1];
  Variant v;
  v.name = fmt::format("local:{},{}{}", chunk, back, causal ? ":causal" : "");
  v.causal = causal;
  v.mask = mask::block_window(chunk, back, 0);
  if (causal) v.mask = mask::causal & *v.mask;
  v.keep = at_any_length([chunk, back, causal](std::int64_t q, std::int64_t k) {
    return k / chunk <= q / chunk && k / chunk >= q / chunk - back && (!causal || k <= q);
  });
  return v;
}

Variant bigbird_variant(std::string_view text, std::string_view arguments, bool causal, std::uint64_t seed) {
  constexpr std::string_view names[] = {"block", "number of window blocks", "number of global blocks",
                                        "number of random blocks"};
  constexpr std::int64_t least[] = {8, 1, 0, 0};
  const auto given =
      numbers(text, arguments, "bigbird:BLOCK,WINDOW_BLOCKS,GLOBAL_BLOCKS,RANDOM_BLOCKS such as bigbird:64,3,2,3",
              {64, 3, 2, 3}, 4, names, least);
  const std::int64_t block = given[0], width = given[1], global = given[2], random = given[3];
  if (width % 2 == 0)
    throw Error(
        fmt::format("the number of window blocks of variant '{}' is {}: it must be odd, as many to each side of "
                    "the query's own block",
                    text, width));
  Variant v;
  v.name = fmt::format("bigbird:{},{},{},{}{}", block, width, global, random, causal ? ":causal" : "");
  v.causal = causal;
  const std::int64_t side = width / 2;
  v.mask = mask::block_window(block, side, side);
  if (global > 0) v.mask = *v.mask | mask::global_prefix(block * global);
  const mask::RandomBlocks blocks{
      .per_row = random, .left = side, .right = side, .first = global, .causal = causal, .seed = seed};
  if (random > 0) {
    v.table = BlockTable{"random_blocks", block, [blocks](std::int64_t n) { return blocks.table(n, n); }};
    v.mask = *v.mask | mask::block_table(v.table->name, block);
  }
  if (causal) v.mask = mask::causal & *v.mask;
  v.keep = [=](std::int64_t length) -> Keep {
    const std::int64_t n = (length + block - 1) / block;
    return [=, table = random > 0 ? blocks.table(n, n) : std::vector<std::uint8_t>(static_cast<std::size_t>(n * n))](
               std::int64_t, std::int64_t, std::int64_t q, std::int64_t k) {
      const std::int64_t i = q / block, j = k / block;
      const bool kept = (j >= i - side && j <= i + side) || i < global || j < global ||
                        table[static_cast<std::size_t>(i * n + j)] != 0;
      return kept && (!causal || k <= q);
    };
  };
  return v;
}

Variant performer_variant(std::string_view text, std::string_view arguments, bool causal, std::uint64_t seed) {
  constexpr std::string_view names[] = {"number of features"};
  constexpr std::int64_t least[] = {1};
  const auto given = numbers(text, arguments, "performer:FEATURES such as performer:256", {256}, 1, names, least);
  if (given[0] > most_features)
    throw Error(fmt::format("the number of features of variant '{}' is {}: at most {} are possible", text, given[0],
                            most_features));
  Variant v;
  v.name = fmt::format("performer:{}{}", given[0], causal ? ":causal" : "");
  v.linear = true;
  v.causal = causal;
  v.features = given[0];
  v.seed = static_cast<std::int64_t>(seed);
  if (causal) v.keep = at_any_length([](std::int64_t q, std::int64_t k) { return k <= q; });
  return v;
}
}  // namespace

std::span<const VariantForm> variant_forms() { return forms; }

Variant parse_variant(std::string_view text, std::uint64_t seed) {
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
    v.keep = at_any_length([](std::int64_t q, std::int64_t k) { return k <= q; });
    return v;
  }
  if (kind == "linear" && (bare || arguments == "causal")) {
    v.linear = true;
    v.causal = !bare;
    if (v.causal) v.keep = at_any_length([](std::int64_t q, std::int64_t k) { return k <= q; });
    return v;
  }
  if (kind == "window") return window_variant(text, arguments);
  if (kind == "longformer" && (bare || !arguments.empty())) return longformer_variant(text, arguments);
  if ((kind == "local" || kind == "bigbird" || kind == "performer") && (bare || !arguments.empty())) {
    // "causal" stands last, behind a colon: with a comma it would be a variant of its own.
    const std::size_t last = arguments.rfind(':');
    const std::string_view end = last == std::string_view::npos ? arguments : arguments.substr(last + 1);
    const bool causal = end == "causal";
    const std::string_view numbers = !causal                          ? arguments
                                     : last == std::string_view::npos ? std::string_view()
                                                                      : arguments.substr(0, last);
    if (kind == "performer") return performer_variant(text, numbers, causal, seed);
    return kind == "local" ? local_variant(text, numbers, causal) : bigbird_variant(text, numbers, causal, seed);
  }
  unknown(text);
}

std::vector<Variant> parse_variants(std::string_view text, std::uint64_t seed) {
  std::vector<std::string> names;
  for (const std::string& part : split(text)) {
    const std::string digits = part.substr(0, part.find(':'));  // "1:causal" ends "local:64,1:causal"
    const bool number = !digits.empty() && digits.find_first_not_of("-0123456789") == std::string::npos;
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
    Variant v = parse_variant(name, seed);
    const bool known =
        std::any_of(variants.begin(), variants.end(), [&](const Variant& o) { return o.name == v.name; });
    if (!known) variants.push_back(std::move(v));
  }
  return variants;
}

std::string variant_help() {
  std::string text;
  for (const VariantForm& f : forms)
    text += fmt::format("{}  {:<26}{}{}", text.empty() ? "" : "\n", f.spelling, f.meaning,
                        f.defaults.empty() ? "" : fmt::format(" ({})", f.defaults));
  return text;
}

std::string variant_list() {
  std::string text = fmt::format("{:<26}{:<10}{:<16}{}\n", "variant", "default", "pairs", "source");
  for (const VariantForm& f : forms)
    text += fmt::format("{:<26}{:<10}{:<16}{}\n{:4}{}\n", f.spelling, f.defaults.empty() ? "-" : f.defaults, f.cost,
                        f.source, "", f.meaning);
  return text +
         "\npairs: (query, key) pairs of a head over N tokens, to first order; linear attention keeps a state of head\n"
         "size D × D instead. --variants takes a list with commas; numbers after a comma belong to the variant "
         "before.\n";
}

}  // namespace treadle::cli
