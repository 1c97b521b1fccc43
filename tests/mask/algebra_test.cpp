// Random algebra over every built-in mask, each with its meaning written down once more, in plain C++: tiles are exact
// with unsorted documents, block lists, tables by head and by batch element, both alignments, and lengths that differ
// or are 0. TREADLE_RANDOM_ROUNDS sets how many masks there are.

#include <treadle/graph/mask/masks.hpp>
#include <treadle/graph/mask/tiles.hpp>
#include <treadle/graph/scalar/print.hpp>

#include <rounds.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <bit>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

using namespace treadle;
using mask::Tile;
using mask::Tiles;

namespace {

using Index = std::int64_t;
using Allowed = std::function<bool(Index b, Index h, Index q, Index k)>;
using Ids = std::vector<std::int32_t>;

struct Part {
  int root;
  Allowed allowed;
};

class Maker {
 public:
  explicit Maker(unsigned seed) : random_(seed) {
    e = {.batch = 1 + pick(2), .heads = 1 + pick(3), .q_len = pick(90), .k_len = pick(120)};
    if (pick(3) == 0) e.k_len = e.q_len;
  }

  scalar::Extents e;
  scalar::Pool pool;
  std::vector<scalar::Table> tables;

  Part any(int depth) {
    if (depth == 0) return built_in();
    const Part a = any(depth - 1);
    switch (pick(4)) {
      case 0: {
        const Allowed f = a.allowed;
        return {scalar::build::logic_not(pool, a.root),
                [f](Index b, Index h, Index q, Index k) { return !f(b, h, q, k); }};
      }
      case 1: return combine(scalar::Op::logic_or, a, any(depth - 1));
      default: return combine(scalar::Op::logic_and, a, any(depth - 1));
    }
  }
  Index pick(Index n) { return std::uniform_int_distribution<Index>(0, n - 1)(random_); }

 private:
  Part combine(scalar::Op op, const Part& a, const Part& b) {
    const Allowed f = a.allowed, g = b.allowed;
    const bool both = op == scalar::Op::logic_and;
    return {scalar::build::logic(pool, op, a.root, b.root), [=](Index x, Index h, Index q, Index k) {
              return both ? f(x, h, q, k) && g(x, h, q, k) : f(x, h, q, k) || g(x, h, q, k);
            }};
  }

  /// A table under a new name, with its own memory.
  std::string table(Ids ids, std::vector<Index> shape) {
    names_.push_back("t" + std::to_string(names_.size()));
    ids.push_back(0);  // never without an address
    memory_.push_back(std::make_unique<Ids>(std::move(ids)));
    kept_.push_back(std::make_unique<std::string>(names_.back()));
    tables.push_back({*kept_.back(), dense_view(memory_.back()->data(), i32, shape)});
    return names_.back();
  }
  Ids ids(Index count, Index from, Index to) {
    Ids v;
    for (Index i = 0; i < count; ++i) v.push_back(static_cast<std::int32_t>(from + pick(to - from)));
    return v;
  }
  Ids ascending(Index count, Index step) {
    Ids v;
    for (Index i = 0; i < count; ++i) v.push_back(i ? v.back() + static_cast<std::int32_t>(pick(step)) : 0);
    return v;
  }

  Part built_in() {
    const auto alignment = pick(2) ? bottom_right : top_left;
    const Index shift = alignment == bottom_right ? e.k_len - e.q_len : 0, offset = e.k_len - e.q_len;
    const Index n = e.k_len, heads = e.heads, batch = e.batch;
    switch (pick(15)) {
      case 0:
        return {mask::build::causal(pool, alignment), [=](Index, Index, Index q, Index k) { return k <= q + shift; }};
      case 1: {
        const Index left = pick(30) - 1, right = pick(20) - 1;
        return {mask::build::window(pool, left, right, alignment), [=](Index, Index, Index q, Index k) {
                  return (left < 0 || q + shift - k <= left) && (right < 0 || k - q - shift <= right);
                }};
      }
      case 2: {
        const Index step = 1 + pick(9);
        return {mask::build::strided(pool, step, alignment),
                [=](Index, Index, Index q, Index k) { return (q + shift - k) % step == 0; }};
      }
      case 3: {
        const Index size = pick(40);
        return {mask::build::prefix(pool, size), [=](Index, Index, Index, Index k) { return k < size; }};
      }
      case 4: {
        const Index block = 1 + pick(40), left = pick(4) - 1, right = pick(3) - 1;
        const auto down = [block](Index x) { return x >= 0 ? x / block : -((-x + block - 1) / block); };
        return {mask::build::block_window(pool, block, left, right, alignment), [=](Index, Index, Index q, Index k) {
                  const Index apart = down(q + shift) - down(k);
                  return (left < 0 || apart <= left) && (right < 0 || -apart <= right);
                }};
      }
      case 5: {
        const Index size = pick(20);
        const bool symmetric = pick(2) != 0;
        return {mask::build::global_prefix(pool, size, symmetric, alignment),
                [=](Index, Index, Index q, Index k) { return k < size || (symmetric && q + shift < size); }};
      }
      case 6: {
        std::vector<Index> tokens;
        for (Index i = pick(6); i >= 0; --i) tokens.push_back(pick(n + 3));
        const bool symmetric = pick(2) != 0;
        const auto is = [tokens](Index at) { return std::find(tokens.begin(), tokens.end(), at) != tokens.end(); };
        return {mask::build::global_tokens(pool, tokens, symmetric),
                [=](Index, Index, Index q, Index k) { return is(k) || (symmetric && is(q + offset)); }};
      }
      case 7: {
        const bool symmetric = pick(2) != 0;
        Ids flags = ids(batch * n, 0, 12);
        for (auto& f : flags) f = f == 0;
        const std::string name = table(flags, {batch, n});
        return {
            mask::build::global_tokens(pool, name, Rows::per_batch, symmetric), [=](Index b, Index, Index q, Index k) {
              const auto flag = [&](Index at) { return at >= 0 && flags[static_cast<std::size_t>(b * n + at)] != 0; };
              return flag(k) || (symmetric && flag(q + offset));
            }};
      }
      case 8: {  // in any order
        const bool own = pick(2) != 0;
        const Ids of = ids(own ? batch * n : n, 0, 4);
        const std::string name = table(of, own ? std::vector<Index>{batch, n} : std::vector<Index>{n});
        return {mask::build::documents(pool, name, own ? Rows::per_batch : Rows::shared),
                [=](Index b, Index, Index q, Index k) {
                  const Index row = own ? b * n : 0;
                  return q + offset >= 0 &&
                         of[static_cast<std::size_t>(row + q + offset)] == of[static_cast<std::size_t>(row + k)];
                }};
      }
      case 9: {
        const Ids lengths = ids(batch, 0, n + 3);
        const std::string name = table(lengths, {batch});
        return {mask::build::key_lengths(pool, name),
                [=](Index b, Index, Index, Index k) { return k < lengths[static_cast<std::size_t>(b)]; }};
      }
      case 10: {
        const Index block = 1 + pick(24), rows = (e.q_len + block - 1) / block, columns = (n + block - 1) / block;
        const bool own = pick(2) != 0;
        const Ids kept = ids((own ? heads : 1) * rows * columns, 0, 2);
        const std::string name = table(kept, {(own ? heads : 1) * rows, columns});
        return {mask::build::block_table(pool, name, block, own ? Blocks::per_head : Blocks::shared),
                [=](Index, Index h, Index q, Index k) {
                  return kept[static_cast<std::size_t>(((own ? h * rows : 0) + q / block) * columns + k / block)] != 0;
                }};
      }
      case 11: {
        const Index block = 1 + pick(24), rows = (e.q_len + block - 1) / block, columns = (n + block - 1) / block,
                    many = 1 + pick(3);
        const bool own = pick(2) != 0;
        const Ids list = ids((own ? heads : 1) * rows * many, -1, std::max<Index>(columns, 1));
        const std::string name = table(list, {(own ? heads : 1) * rows, many});
        return {mask::build::block_list(pool, name, block, many, own ? Blocks::per_head : Blocks::shared),
                [=](Index, Index h, Index q, Index k) {
                  bool hit = false;
                  for (Index i = 0; i < many; ++i)
                    hit = hit ||
                          list[static_cast<std::size_t>(((own ? h * rows : 0) + q / block) * many + i)] == k / block;
                  return hit;
                }};
      }
      case 12:
      case 13: {  // packed sequences, some of them empty, padding behind
        const Index many = 1 + pick(6), left = pick(3) ? -1 : pick(9), right = pick(2) - 1;
        const bool own = pick(2) != 0;
        Ids queries, keys;
        for (Index b = 0; b < (own ? batch : 1); ++b) {
          for (const std::int32_t v : ascending(many + 1, 1 + e.q_len / many)) queries.push_back(v);
          for (const std::int32_t v : ascending(many + 1, 1 + n / many)) keys.push_back(v);
        }
        const std::vector<Index> shape = own ? std::vector<Index>{batch, many + 1} : std::vector<Index>{many + 1};
        const std::string of_queries = table(queries, shape), of_keys = table(keys, shape);
        return {mask::build::cumulative_lengths(pool, of_queries, of_keys, left, right,
                                                own ? Rows::per_batch : Rows::shared),
                [=](Index b, Index, Index q, Index k) {
                  for (Index i = 0; i < many; ++i) {
                    const auto at = static_cast<std::size_t>((own ? b * (many + 1) : 0) + i);
                    if (q < queries[at] || q >= queries[at + 1] || k < keys[at] || k >= keys[at + 1]) continue;
                    const Index apart = (q - queries[at + 1]) - (k - keys[at + 1]);
                    return (left < 0 || apart <= left) && (right < 0 || -apart <= right);
                  }
                  return false;
                }};
      }
      default: {  // a user's: a window that widens with the head, from a table
        const Ids widths = ids(heads, 0, 30);
        const std::string name = table(widths, {heads});
        const int root = scalar::trace_mask(
            pool, [&](auto, auto h, auto q, auto k) { return (k <= q) & (q - k <= scalar::lookup<i32>(name, h)); });
        return {root, [=](Index, Index h, Index q, Index k) {
                  return k <= q && q - k <= widths[static_cast<std::size_t>(h)];
                }};
      }
    }
  }

  std::mt19937 random_;
  std::vector<std::string> names_;
  std::vector<std::unique_ptr<Ids>> memory_;
  std::vector<std::unique_ptr<std::string>> kept_;
};

std::string compare(const Tiles& tiles, Index strip, Index block, const Allowed& allowed) {
  const scalar::Extents& e = tiles.extents();
  std::vector<std::uint64_t> workspace(tiles.workspace_bytes() / 8 + 1);
  Index useful = 0;
  for (Index b = 0; b < e.batch; ++b)
    for (Index h = 0; h < e.heads; ++h)
      for (Index q0 = 0; q0 < e.q_len; q0 += strip) {
        const Index q1 = std::min(e.q_len, q0 + strip);
        std::vector<std::uint64_t> seen(static_cast<std::size_t>(e.k_len), 0);
        const std::uint64_t all = q1 - q0 == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << (q1 - q0)) - 1;
        Tiles::Stream s = tiles.stream(b, h, q0, q1, block, workspace.data());
        for (Tile t; s.next(t);) {
          std::uint64_t every = all, some = 0;
          for (Index k = t.k0; k < t.k1; ++k) {
            const std::uint64_t bits = t.full ? all : t.bits[k - t.k0];
            seen[static_cast<std::size_t>(k)] = bits;
            every &= bits;
            some |= bits;
          }
          if (some == 0) return "an empty tile";
          if (!t.full && every == all) return "a partial tile is full";
        }
        for (Index k = 0; k < e.k_len; ++k)
          for (Index q = q0; q < q1; ++q) {
            const bool want = allowed(b, h, q, k);
            useful += want;
            if (((seen[static_cast<std::size_t>(k)] >> (q - q0)) & 1) != (want ? 1u : 0u))
              return "wrong at b " + std::to_string(b) + " h " + std::to_string(h) + " q " + std::to_string(q) + " k " +
                     std::to_string(k);
          }
      }
  return tiles.count_all(strip, block).useful == useful ? "" : "wrong count";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(mask_algebra)

BOOST_AUTO_TEST_CASE(every_combination_is_exact) {
  const int rounds = test::random_rounds(2000);
  for (int i = 0; i < rounds; ++i) {
    Maker make(static_cast<unsigned>(1000 + i));
    const Part m = make.any(i % 4);
    const Tiles tiles(make.pool, m.root, make.e, make.tables);
    const Index strip = 1 + make.pick(64), block = i % 2 ? 16 * (1 + make.pick(16)) : 1 + make.pick(100);
    const std::string wrong = compare(tiles, strip, block, m.allowed);
    BOOST_REQUIRE_MESSAGE(wrong.empty(), "round " << i << ", " << make.e.q_len << " x " << make.e.k_len << ", " << wrong
                                                  << ": " << scalar::print(make.pool, m.root));
  }
}

BOOST_AUTO_TEST_SUITE_END()
