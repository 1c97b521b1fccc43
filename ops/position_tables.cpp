#include <treadle/ops/position_tables.hpp>

#include <algorithm>
#include <cmath>
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
