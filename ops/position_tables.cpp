#include <treadle/ops/position_tables.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>
#include <string>

namespace treadle {
namespace {

void check_rows(std::size_t size, std::int64_t length) {
  if (length < 0 || (length == 0 ? size != 0 : size % static_cast<std::size_t>(length) != 0))
    throw std::invalid_argument(std::to_string(size) + " tokens are no whole rows of " + std::to_string(length));
}

}  // namespace

std::vector<double> alibi_slopes(std::int64_t heads) {
  if (heads < 1) throw std::invalid_argument(std::to_string(heads) + " heads; at least 1 is right");
  std::int64_t power = 1;
  while (power * 2 <= heads) power *= 2;
  std::vector<double> slopes;
  for (std::int64_t i = 1; i <= power; ++i)
    slopes.push_back(std::exp2(-8.0 * static_cast<double>(i) / static_cast<double>(power)));
  for (std::int64_t i = 1; static_cast<std::int64_t>(slopes.size()) < heads; i += 2)
    slopes.push_back(std::exp2(-8.0 * static_cast<double>(i) / static_cast<double>(2 * power)));
  return slopes;
}

std::int64_t relative_bucket(std::int64_t relative_position, RelativeBuckets o) {
  const std::int64_t least = o.bidirectional ? 4 : 2;
  if (o.num_buckets < least || o.num_buckets % (o.bidirectional ? 4 : 2) != 0)
    throw std::invalid_argument(std::to_string(o.num_buckets) + " buckets; a multiple of " + std::to_string(least) +
                                " is right");
  const std::int64_t buckets = o.bidirectional ? o.num_buckets / 2 : o.num_buckets, exact = buckets / 2;
  if (o.max_distance <= exact)
    throw std::invalid_argument("max_distance " + std::to_string(o.max_distance) + "; more than " +
                                std::to_string(exact) + " is right");
  const std::int64_t first = o.bidirectional && relative_position > 0 ? buckets : 0;
  const std::int64_t distance =
      o.bidirectional ? std::abs(relative_position) : std::max<std::int64_t>(-relative_position, 0);
  if (distance < exact) return first + distance;
  const double steps = std::log(static_cast<double>(distance) / static_cast<double>(exact)) /
                       std::log(static_cast<double>(o.max_distance) / static_cast<double>(exact)) *
                       static_cast<double>(buckets - exact);
  // A distance that stands exactly on a boundary belongs to the upper bucket, whatever the logarithm's last bit.
  const auto step = static_cast<std::int64_t>(std::floor(steps + 1e-9));
  return first + std::min(exact + step, buckets - 1);
}

RotaryFrequencies rotary_frequencies(const RotaryAngles& a) {
  const auto d = static_cast<double>(a.rotary_dim), original = static_cast<double>(a.original_length);
  double base = a.base;
  if (a.scaling == rope_scaling::ntk || a.scaling == rope_scaling::dynamic_ntk) {
    double factor = a.factor;
    if (a.scaling == rope_scaling::dynamic_ntk)
      factor = a.factor * std::max(static_cast<double>(a.length) / original, 1.0) - (a.factor - 1);
    if (a.rotary_dim > 2) base *= std::pow(factor, d / (d - 2));  // one pair turns at frequency 1 whatever the base
  }
  // The pair, not rounded, that turns so many times over the original length.
  const auto pair_of = [&](double turns) {
    return d * std::log(original / (turns * 2 * std::numbers::pi)) / (2 * std::log(base));
  };
  double first = 0, last = 0;
  if (a.scaling == rope_scaling::yarn) {
    first = std::max(std::floor(pair_of(a.high)), 0.0);
    last = std::min(std::ceil(pair_of(a.low)), d - 1);
    if (first == last) last += 0.001;
  }
  RotaryFrequencies f;
  for (std::int64_t i = 0; i < a.rotary_dim / 2; ++i) {
    const double own = std::pow(base, -2.0 * static_cast<double>(i) / d), divided = own / a.factor;
    const double turns = original * own / (2 * std::numbers::pi);
    double kept = 1;  // the share of the frequency as it was
    if (a.scaling == rope_scaling::linear) kept = 0;
    if (a.scaling == rope_scaling::yarn)
      kept = 1 - std::clamp((static_cast<double>(i) - first) / (last - first), 0.0, 1.0);
    if (a.scaling == rope_scaling::llama3) kept = std::clamp((turns - a.low) / (a.high - a.low), 0.0, 1.0);
    f.values.push_back(kept == 1 ? own : kept == 0 ? divided : (1 - kept) * divided + kept * own);
  }
  if (a.scaling == rope_scaling::yarn) f.magnitude = a.magnitude != 0 ? a.magnitude : 0.1 * std::log(a.factor) + 1;
  return f;
}

std::vector<std::int64_t> rope_permutation(std::int64_t heads, std::int64_t head_dim, std::int64_t rotary_dim,
                                           rope_layout from, rope_layout to) {
  if (heads < 0 || rotary_dim < 0 || rotary_dim % 2 != 0 || rotary_dim > head_dim)
    throw std::invalid_argument("rotary_dim " + std::to_string(rotary_dim) + " of " + std::to_string(heads) +
                                " heads of " + std::to_string(head_dim) +
                                "; an even number up to the head's width is right");
  // Channel of pair i's first and second half.
  const auto channel = [&](rope_layout layout, std::int64_t i, std::int64_t half) {
    return layout == rope_layout::half ? i + half * (rotary_dim / 2) : 2 * i + half;
  };
  std::vector<std::int64_t> rows(static_cast<std::size_t>(heads * head_dim));
  for (std::int64_t h = 0; h < heads; ++h) {
    for (std::int64_t c = 0; c < head_dim; ++c) rows[static_cast<std::size_t>(h * head_dim + c)] = h * head_dim + c;
    for (std::int64_t i = 0; i < rotary_dim / 2; ++i)
      for (const std::int64_t half : {0, 1})
        rows[static_cast<std::size_t>(h * head_dim + channel(to, i, half))] = h * head_dim + channel(from, i, half);
  }
  return rows;
}

std::vector<float> permuted_rows(std::span<const float> values, std::span<const std::int64_t> rows) {
  if (rows.empty() ? !values.empty() : values.size() % rows.size() != 0)
    throw std::invalid_argument(std::to_string(values.size()) + " values are no " + std::to_string(rows.size()) +
                                " whole rows");
  const std::size_t width = rows.empty() ? 0 : values.size() / rows.size();
  std::vector<float> out;
  out.reserve(values.size());
  for (const std::int64_t r : rows) {
    if (r < 0 || r >= static_cast<std::int64_t>(rows.size()))
      throw std::invalid_argument("row " + std::to_string(r) + " of " + std::to_string(rows.size()));
    const auto row = values.subspan(static_cast<std::size_t>(r) * width, width);
    out.insert(out.end(), row.begin(), row.end());
  }
  return out;
}

std::vector<std::int32_t> position_ids(std::span<const std::uint8_t> keep, std::int64_t length) {
  check_rows(keep.size(), length);
  std::vector<std::int32_t> ids(keep.size());
  std::int32_t before = 0;
  for (std::size_t i = 0; i < keep.size(); ++i) {
    if (i % static_cast<std::size_t>(length) == 0) before = 0;
    if (keep[i] != 0) ids[i] = before++;
  }
  return ids;
}

std::vector<std::int32_t> position_ids_after_padding(std::span<const std::int64_t> ids, std::int64_t length,
                                                     std::int64_t padding_index) {
  check_rows(ids.size(), length);
  std::vector<std::int32_t> positions(ids.size());
  std::int64_t last = padding_index;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i % static_cast<std::size_t>(length) == 0) last = padding_index;
    positions[i] = static_cast<std::int32_t>(ids[i] == padding_index ? padding_index : ++last);
  }
  return positions;
}

}  // namespace treadle
