#include "variants.hpp"

#include "arguments.hpp"

#include <treadle/backends/error.hpp>

#include <treadle/graph/mask/patterns.hpp>
#include <treadle/graph/mask/random_blocks.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace treadle::cli {

namespace {
constexpr std::int64_t most = std::int64_t{1} << 31, most_blocks = 1024, most_features = 8192;

constexpr VariantForm forms[] = {
    {"dense", "softmax over all keys", "", "Vaswani et al. 2017, eq. 1", "N²", "dense"},
    {"causal", "softmax over the keys up to the query", "", "Vaswani et al. 2017, §3.2.3", "N²/2", "causal"},
    {"window:L,R", "softmax over L keys before to R keys after the query, both included (-1: no bound)", "",
     "Beltagy et al. 2020, §3.1", "N·(L+R+1)", "window:128,128"},
    {"longformer[:W,G]", "window of W/2 keys to each side, and G first tokens that see and are seen by all", "256,1",
     "Beltagy et al. 2020, §3.1", "N·(W+1+2G)", "longformer"},
    {"bigbird[:B,W,G,R]",
     "blocks of B tokens: W around the query's own, the G first ones (they see and are seen by all), R random ones",
     "64,3,2,3", "Zaheer et al. 2020, §2, app. D", "N·B·(W+2G+R)", "bigbird"},
    {"bigbird[:B,W,G,R]:causal", "the same over the keys up to the query", "64,3,2,3", "Zaheer et al. 2020",
     "N·B·(W/2+G+R)", "bigbird:causal"},
    {"local[:C[,L]]", "chunks of C tokens: the query's own and the L before it", "64,1",
     "Kitaev et al. 2020, §2; Roy et al. 2021, §4.1", "N·C·(L+1)", "local"},
    {"local[:C[,L]]:causal", "the same over the keys up to the query", "64,1", "Roy et al. 2021, §4.1", "N·C·(L+1/2)",
     "local:causal"},
    {"linear", "linear attention, feature map elu + 1", "", "Katharopoulos et al. 2020, eq. 4-7", "N·D", "linear"},
    {"linear:causal", "the same over the keys up to the query", "", "Katharopoulos et al. 2020, eq. 8-12", "N·D",
     "linear:causal"},
    {"performer[:F]", "linear attention, F positive orthogonal random features (FAVOR+)", "256",
     "Choromanski et al. 2021, eq. 5-6", "N·F", "performer"},
    {"performer[:F]:causal", "the same over the keys up to the query", "256", "Choromanski et al. 2021, §2.1", "N·F",
     "performer:causal"},
};

[[noreturn]] void unknown(std::string_view text) {
  std::vector<std::string> spellings;
  for (const VariantForm& f : forms) spellings.emplace_back(f.spelling);
  throw Error(fmt::format("unknown variant '{}': the variants are {}", text, join(spellings)));
}

/// Softmax attention over the pairs that a mask keeps.
Variant masked(std::string name, const Mask& mask, bool causal) {
  Variant v;
  v.name = std::move(name);
  v.attention = mask;
  v.causal = causal;
  return v;
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
  const auto [left, right] =
      two_numbers(text, arguments, "window:LEFT,RIGHT such as window:128,128 (-1: no bound)", -1);
  return masked(fmt::format("window:{},{}", left, right), window(left, right), right == 0);
}

Variant longformer_variant(std::string_view text, std::string_view arguments) {
  std::int64_t width = 256, global = 1;
  if (!arguments.empty())
    std::tie(width, global) = two_numbers(text, arguments, "longformer:WINDOW,GLOBAL such as longformer:256,1", 0);
  const Mask band = window(width / 2, width / 2);
  return masked(fmt::format("longformer:{},{}", width, global), global > 0 ? band | global_prefix(global) : band,
                false);
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
  const Mask chunks = local_chunks(chunk, back);
  return masked(fmt::format("local:{},{}{}", chunk, back, causal ? ":causal" : ""),
                causal ? mask::causal & chunks : chunks, causal);
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
  const std::int64_t side = width / 2;
  Mask kept = big_bird({.block = block, .window = width, .first = global, .last = 0});
  std::optional<BlockTable> table;
  if (random > 0) {
    const mask::RandomBlocks blocks{
        .per_row = random, .left = side, .right = side, .first = global, .causal = causal, .seed = seed};
    table = BlockTable{"random_blocks", block, [blocks](std::int64_t n) { return blocks.table(n, n); }};
    kept = kept | block_table(table->name, block);
  }
  Variant v = masked(fmt::format("bigbird:{},{},{},{}{}", block, width, global, random, causal ? ":causal" : ""),
                     causal ? mask::causal & kept : kept, causal);
  v.table = std::move(table);
  return v;
}

/// Linear attention, with `features` random features or elu + 1.
Variant linear_variant(std::string name, const AttentionVariant& attention, bool causal, std::int64_t features,
                       std::uint64_t seed) {
  Variant v;
  v.name = std::move(name);
  v.attention = attention;
  v.causal = causal;
  v.weights = Variant::Weights::linear;
  v.features = features;
  v.seed = static_cast<std::int64_t>(seed);
  return v;
}

Variant performer_variant(std::string_view text, std::string_view arguments, bool causal, std::uint64_t seed) {
  constexpr std::string_view names[] = {"number of features"};
  constexpr std::int64_t least[] = {1};
  const auto given = numbers(text, arguments, "performer:FEATURES such as performer:256", {256}, 1, names, least);
  if (given[0] > most_features)
    throw Error(fmt::format("the number of features of variant '{}' is {}: at most {} are possible", text, given[0],
                            most_features));
  return linear_variant(fmt::format("performer:{}{}", given[0], causal ? ":causal" : ""),
                        performer({.features = given[0], .causal = causal, .seed = static_cast<std::int64_t>(seed)}),
                        causal, given[0], seed);
}
}  // namespace

std::span<const VariantForm> variant_forms() { return forms; }

Variant parse_variant(std::string_view text, std::uint64_t seed) {
  const std::size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  const std::string_view arguments = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  const bool bare = colon == std::string_view::npos;
  if (kind == "dense" && bare) {
    Variant v;
    v.name = "dense";
    return v;
  }
  if (kind == "causal" && bare) return masked("causal", mask::causal(), true);
  if (kind == "linear" && (bare || arguments == "causal"))
    return linear_variant(std::string(text), variants::linear({.causal = !bare}), !bare, 0, 0);
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
  if (text == "all") {
    std::vector<Variant> variants;
    for (const VariantForm& f : forms) variants.push_back(parse_variant(f.typical, seed));
    return variants;
  }
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
         "size D × D instead. --variants takes all, or a list with commas; numbers after a comma belong to the variant "
         "before.\n";
}

}  // namespace treadle::cli
