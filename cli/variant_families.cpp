#include "variant_families.hpp"

#include <treadle/backends/error.hpp>

#include <treadle/graph/mask/random_blocks.hpp>

#include <fmt/format.h>

namespace treadle::cli {

namespace {
constexpr std::int64_t most = std::int64_t{1} << 31, most_blocks = 1024, most_features = 8192;

using Numbers = std::span<const std::int64_t>;

Variant plain(const AttentionVariant& attention, bool causal, Variant::Weights weights) {
  Variant v;
  v.attention = attention;
  v.causal = causal;
  v.weights = weights;
  return v;
}
/// Softmax attention over the pairs that a mask keeps; causal: of those, keys up to the query.
Variant masked(const Mask& mask, bool causal) {
  return plain(causal ? mask::causal & mask : mask, causal, Variant::Weights::softmax);
}
/// Softmax attention over a mask that is causal as it is.
Variant causal_mask(const Mask& mask) { return plain(mask, true, Variant::Weights::softmax); }
/// What has no row of weights over the keys.
Variant other(const AttentionVariant& attention, bool causal) {
  return plain(attention, causal, Variant::Weights::none);
}

Variant window_variant(Numbers n, bool, std::uint64_t) {
  return plain(window(n[0], n[1]), n[1] == 0, Variant::Weights::softmax);
}

Variant dilated_variant(Numbers n, bool causal, std::uint64_t) {
  return masked(dilated(window(n[0] * n[1], n[0] * n[1]), n[1]), causal);
}

Variant longformer_variant(Numbers n, bool, std::uint64_t) {
  const Mask band = window(n[0] / 2, n[0] / 2);
  return masked(n[1] > 0 ? band | global_prefix(n[1]) : band, false);
}

Variant bigbird_variant(Numbers n, bool causal, std::uint64_t seed) {
  const std::int64_t block = n[0], width = n[1], global = n[2], random = n[3], side = width / 2;
  if (width % 2 == 0)
    throw Error(
        fmt::format("the number of window blocks of variant 'bigbird' is {}: it must be odd, as many to each side of "
                    "the query's own block",
                    width));
  Mask kept = block_window(block, side, side);
  if (global > 0) kept = kept | global_prefix(block * global);
  std::optional<BlockTable> table;
  if (random > 0) {
    const mask::RandomBlocks blocks{
        .per_row = random, .left = side, .right = side, .first = global, .causal = causal, .seed = seed};
    table = BlockTable{"random_blocks", block, [blocks](std::int64_t length) { return blocks.table(length, length); }};
    kept = kept | block_table(table->name, block);
  }
  Variant v = masked(kept, causal);
  v.table = std::move(table);
  return v;
}

/// Linear attention, with `features` random features or elu + 1.
Variant linear_variant(const AttentionVariant& attention, bool causal, std::int64_t features, std::uint64_t seed) {
  Variant v = plain(attention, causal, Variant::Weights::linear);
  v.features = features;
  v.seed = static_cast<std::int64_t>(seed);
  return v;
}

constexpr VariantNumber window_numbers[] = {{"first number", "LEFT", 128, -1, most},
                                            {"second number", "RIGHT", 128, -1, most}};
constexpr VariantNumber dilated_numbers[] = {{"width", "WIDTH", 64, 0, most / 1024}, {"step", "STEP", 4, 1, 1024}};
constexpr VariantNumber longformer_numbers[] = {{"window", "WINDOW", 256, 0, most},
                                                {"number of global tokens", "GLOBAL", 1, 0, most}};
constexpr VariantNumber strided_numbers[] = {{"stride", "STRIDE", 128, 1, most}};
constexpr VariantNumber fixed_numbers[] = {{"stride", "STRIDE", 128, 1, most},
                                           {"number of summary keys", "KEYS", 8, 1, most_blocks}};
constexpr VariantNumber bigbird_numbers[] = {{"block", "BLOCK", 64, 8, most},
                                             {"number of window blocks", "WINDOW_BLOCKS", 3, 1, most_blocks},
                                             {"number of global blocks", "GLOBAL_BLOCKS", 2, 0, most_blocks},
                                             {"number of random blocks", "RANDOM_BLOCKS", 3, 0, most_blocks}};
constexpr VariantNumber local_numbers[] = {{"chunk", "CHUNK", 64, 1, most},
                                           {"look-back", "LOOKBACK", 1, 0, most_blocks}};
constexpr VariantNumber top_k_numbers[] = {{"number of keys", "KEYS", 32, 1, most}};
constexpr VariantNumber performer_numbers[] = {{"number of features", "FEATURES", 256, 1, most_features}};
constexpr VariantNumber linformer_numbers[] = {{"length", "LENGTH", 256, 1, most_features}};
constexpr VariantNumber nystrom_numbers[] = {{"number of landmarks", "MARKS", 64, 1, most_features}};
constexpr VariantNumber pooled_numbers[] = {{"ratio", "RATIO", 4, 1, most}};
constexpr VariantNumber hierarchical_numbers[] = {{"block", "BLOCK", 64, 1, most},
                                                  {"number of near blocks", "NEAR", 1, 0, most_blocks}};
constexpr VariantNumber routing_numbers[] = {{"number of clusters", "CLUSTERS", 16, 1, most_features}};

constexpr VariantFamily families[] = {
    {"dense",
     {},
     0,
     false,
     "softmax over all keys",
     "Vaswani et al. 2017, eq. 1",
     "N²",
     "",
     [](Numbers, bool, std::uint64_t) { return Variant{}; }},
    {"causal",
     {},
     0,
     false,
     "softmax over the keys up to the query",
     "Vaswani et al. 2017, §3.2.3",
     "N²/2",
     "",
     [](Numbers, bool, std::uint64_t) { return causal_mask(causal()); }},
    {"window", window_numbers, 2, true,
     "softmax over L keys before to R keys after the query, both included (-1: no bound)", "Beltagy et al. 2020, §3.1",
     "N·(L+R+1)", "", window_variant},
    {"dilated", dilated_numbers, 1, false, "W keys to each side of the query, every S-th one",
     "Beltagy et al. 2020, §3.1", "N·(2W+1)", "N·(W+1)", dilated_variant},
    {"longformer", longformer_numbers, 2, false,
     "window of W/2 keys to each side, and G first tokens that see and are seen by all", "Beltagy et al. 2020, §3.1",
     "N·(W+1+2G)", "", longformer_variant},
    {"strided", strided_numbers, 1, false, "sparse transformer: S keys back, and every S-th key; causal",
     "Child et al. 2019, §4.3", "N·(S+N/2S)", "",
     [](Numbers n, bool, std::uint64_t) { return causal_mask(sparse_transformer_strided(n[0])); }},
    {"fixed", fixed_numbers, 1, false,
     "sparse transformer: the own block of S keys, and the last K of each block; causal", "Child et al. 2019, §4.3",
     "N·(S/2+NK/2S)", "",
     [](Numbers n, bool, std::uint64_t) {
       if (n[1] > n[0])
         throw Error(fmt::format("variant 'fixed' has {} summary keys in blocks of {}: at most as many as a block has",
                                 n[1], n[0]));
       return causal_mask(sparse_transformer_fixed(n[0], n[1]));
     }},
    {"bigbird", bigbird_numbers, 4, false,
     "blocks of B tokens: W around the query's own, the G first ones (they see and are seen by all), R random ones",
     "Zaheer et al. 2020, §2, app. D", "N·B·(W+2G+R)", "N·B·(W/2+G+R)", bigbird_variant},
    {"local", local_numbers, 1, false, "chunks of C tokens: the query's own and the L before it",
     "Kitaev et al. 2020, §2; Roy et al. 2021, §4.1", "N·C·(L+1)", "N·C·(L+1/2)",
     [](Numbers n, bool c, std::uint64_t) { return masked(local_chunks(n[0], n[1]), c); }},
    {"linear",
     {},
     0,
     false,
     "linear attention, feature map elu + 1",
     "Katharopoulos et al. 2020, eq. 4-12",
     "N·D",
     "N·D",
     [](Numbers, bool c, std::uint64_t) { return linear_variant(variants::linear({.causal = c}), c, 0, 0); }},
    {"performer", performer_numbers, 1, false, "linear attention, F positive orthogonal random features (FAVOR+)",
     "Choromanski et al. 2021, eq. 5-6", "N·F", "N·F",
     [](Numbers n, bool c, std::uint64_t seed) {
       return linear_variant(performer({.features = n[0], .causal = c, .seed = static_cast<std::int64_t>(seed)}), c,
                             n[0], seed);
     }},
    {"retention",
     {},
     0,
     false,
     "linear attention without a denominator, decaying by head; causal",
     "Sun et al. 2023, eq. 5-7",
     "N·D",
     "",
     [](Numbers, bool, std::uint64_t) { return other(variants::retention(), true); }},
    {"gated_linear",
     {},
     0,
     false,
     "linear attention with a gate per step and channel (random weights); causal",
     "Yang et al. 2024, eq. 3",
     "N·D",
     "",
     [](Numbers, bool, std::uint64_t) { return other(variants::gated_linear(), true); }},
    {"delta_rule",
     {},
     0,
     false,
     "a state that is corrected towards each value (random weights); causal",
     "Yang et al. 2024, §2",
     "N·D",
     "",
     [](Numbers, bool, std::uint64_t) { return other(variants::delta_rule(), true); }},
    {"linformer", linformer_numbers, 1, false, "keys and values projected to L rows (random weights)",
     "Wang et al. 2020, eq. 7", "N·L", "",
     [](Numbers n, bool, std::uint64_t) {
       Variant v = other({}, false);
       v.at_shape = [length = n[0]](const AttentionShape& s) {
         return linformer({.length = length, .max_length = s.length});
       };
       return v;
     }},
    {"nystrom", nystrom_numbers, 1, false, "M landmarks and a pseudo-inverse between them", "Xiong et al. 2021, eq. 14",
     "2·N·M", "", [](Numbers n, bool, std::uint64_t) { return other(variants::nystrom(n[0]), false); }},
    {"pooled", pooled_numbers, 1, false, "means of R keys and of their values", "Liu et al. 2018, §4.2.3", "N²/R",
     "N²/2R",
     [](Numbers n, bool c, std::uint64_t) { return other(variants::pooled({.ratio = n[0], .causal = c}), c); }},
    {"hierarchical", hierarchical_numbers, 1, false,
     "blocks of B tokens: the own one and N to each side key by key, all others by their means",
     "Zhu and Soricut 2021, two levels", "N·B·(2N+1)+N²/B", "half",
     [](Numbers n, bool c, std::uint64_t) {
       return other(variants::hierarchical({.block = n[0], .near = n[1], .causal = c}), c);
     }},
    {"routing", routing_numbers, 1, false, "within C clusters of tokens, by k-means (random centroids)",
     "Roy et al. 2021, §4.1", "N²/C", "N²/2C",
     [](Numbers n, bool c, std::uint64_t) { return other(variants::routing({.clusters = n[0], .causal = c}), c); }},
    {"top_k", top_k_numbers, 1, false, "the K largest scores of each query, found among all", "Gupta et al. 2021, §2",
     "N²", "N²",
     [](Numbers n, bool c, std::uint64_t) {
       AttentionVariant a = variants::top_k(n[0]);
       if (c) a.mask = causal();
       Variant v = other(a, c);
       v.scores_held = 3;
       return v;
     }},
};
}  // namespace

std::span<const VariantFamily> variant_families() { return families; }

}  // namespace treadle::cli
