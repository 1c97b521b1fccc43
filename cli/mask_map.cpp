#include "mask_map.hpp"

#include <treadle/graph/mask/tiles.hpp>

#include <algorithm>
#include <exception>
#include <memory>

namespace treadle::cli {

std::optional<MaskMap> mask_map(const Variant& variant, const AttentionShape& shape, std::int64_t strip,
                                std::int64_t block, std::int64_t head) {
  if (variant.weights != Variant::Weights::softmax) return std::nullopt;
  const AttentionVariant attention = variant.at_shape ? variant.at_shape(shape) : variant.attention;
  MaskMap m;
  m.variant = variant.name;
  m.length = shape.length;
  m.strip = strip;
  m.block = block;
  m.head = head;
  m.pairs = shape.length * shape.length;
  const auto strips = static_cast<std::size_t>((shape.length + strip - 1) / strip);
  const auto blocks = static_cast<std::size_t>((shape.length + block - 1) / block);
  if (!attention.mask) {
    m.rows.assign(strips, std::string(blocks, 'f'));
    m.useful = m.executed = m.pairs;
    return m;
  }
  std::vector<std::uint8_t> data;
  std::vector<scalar::Table> tables;
  if (variant.table) {
    const std::int64_t n = variant.table->blocks(shape.length), of_table[] = {n, n};
    data = variant.table->make(n);
    tables.push_back({variant.table->name, dense_view(data.data(), boolean, of_table)});
  }
  const scalar::Extents extents{
      .batch = shape.batch, .heads = shape.heads, .q_len = shape.length, .k_len = shape.length};
  std::optional<mask::Tiles> tiles;
  try {
    tiles.emplace(attention.mask->view(), attention.mask->root(), extents, tables);
  } catch (const std::exception&) {
    return std::nullopt;  // it looks up what only a run gives
  }
  m.same_for_all_heads = !tiles->depends_on_head();
  std::vector<std::byte> workspace(tiles->workspace_bytes() + 64);
  void* memory = workspace.data();
  std::size_t room = workspace.size();
  void* aligned = std::align(64, tiles->workspace_bytes(), memory, room);
  for (std::int64_t q = 0; q < shape.length; q += strip) {
    std::vector<std::int64_t> full(blocks), seen(blocks);  // keys of each block
    auto stream = tiles->stream(0, head, q, std::min(q + strip, shape.length), block, aligned);
    for (mask::Tile t; stream.next(t);)
      for (std::int64_t k = t.k0; k < t.k1; ++k) {
        const auto b = static_cast<std::size_t>(k / block);
        ++seen[b];
        full[b] += t.full;
      }
    std::string row;
    for (std::size_t b = 0; b < blocks; ++b) {
      const std::int64_t keys = std::min(block, shape.length - static_cast<std::int64_t>(b) * block);
      row += full[b] == keys ? 'f' : seen[b] > 0 ? 'p' : 'e';
    }
    m.rows.push_back(row);
  }
  const mask::Counts counts = tiles->count(0, head, strip, block);
  m.useful = counts.useful;
  m.executed = counts.executed;
  return m;
}

Json to_json_object(const MaskMap& m) {
  return {{"variant", m.variant}, {"length", m.length},     {"strip", m.strip},
          {"block", m.block},     {"head", m.head},         {"same_for_all_heads", m.same_for_all_heads},
          {"useful", m.useful},   {"executed", m.executed}, {"pairs", m.pairs},
          {"rows", m.rows}};
}

}  // namespace treadle::cli
