#pragma once
// What properties of the variants share: rounds that draw sizes and options, and the comparison of what a kernel gives
// with what the definition gives.

#include <executor/plain_variants.hpp>
#include <rounds.hpp>
#include <treadle/ops/rules.hpp>

#include <functional>
#include <limits>
#include <sstream>
#include <string>

namespace treadle::test {

/// What one round draws, all from its index, and the message that repeats it.
class Round {
 public:
  explicit Round(int index) : index_(index), numbers_{static_cast<std::uint64_t>(index) * 7919 + 1} {
    static const std::vector<std::string> all = isas();
    const auto turn = static_cast<std::size_t>(index);
    how_.isa = all[turn % all.size()];
    how_.backend = turn / all.size() % 4 == 3 ? "tbb" : "simd";
    if (how_.backend == "tbb") how_.threads = 1 + static_cast<int>(turn % 5 % 3);
    notes_ << "round " << index << ", " << how_.backend << ' ' << how_.isa;
  }

  int index() const { return index_; }
  std::uint64_t seed() const { return static_cast<std::uint64_t>(index_); }
  const BindOptions& how() const { return how_; }

  /// least … most, both possible.
  std::int64_t pick(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(numbers_.next() % static_cast<std::uint64_t>(most - least + 1));
  }
  bool maybe() { return pick(0, 1) != 0; }
  double real(double least, double most) { return least + (most - least) * (numbers_.number() + 1) / 2; }
  /// Of 1, 4, 8 or 16 lanes and what is left over.
  std::int64_t width() { return pick(0, 7) == 0 ? pick(15, 19) : pick(1, 9); }
  /// Mostly up to 40; at times 0, and at times more than a chunk or tile.
  std::int64_t length() {
    const std::int64_t kind = pick(0, 31);
    return kind == 0 ? 0 : kind < 4 ? pick(60, 140) : kind < 14 ? pick(20, 40) : pick(1, 20);
  }

  template <class T>
  T note(const char* name, T value) {
    notes_ << ", " << name << ' ' << value;
    return value;
  }
  std::string notes() const { return notes_.str(); }

  /// The round is not one after all: the definition itself hangs by a rounding.
  void skip() { skipped_ = true; }
  bool skipped() const { return skipped_; }

 private:
  int index_;
  Numbers numbers_;
  BindOptions how_;
  std::ostringstream notes_;
  bool skipped_ = false;
};

/// Rounds that are not skipped, one index after the other.
inline void property(const std::function<void(Round&)>& check) {
  const int rounds = random_rounds(2000);
  int index = 0;
  for (int done = 0; done < rounds; ++index) {
    Round r(index);
    check(r);
    if (!r.skipped()) ++done;
    if (index > 2 * rounds + 50) BOOST_FAIL("most rounds are skipped");
  }
  BOOST_TEST(index >= rounds);
}

/// q, k and v of drawn sizes, as inputs of a graph.
struct Heads {
  std::int64_t batch, kv_heads, heads, q_len, k_len, head_dim, value_dim;
  Builder g;
  Node q, k, v;

  struct Wanted {
    bool groups = true;         ///< several query heads may share a key head
    bool equal = false;         ///< as many keys as queries
    std::int64_t least = 0;     ///< keys and queries
    std::int64_t head_dim = 0;  ///< 0: drawn
  };
  Heads(Round& r, const Wanted& w)
      : batch(r.note("batch", r.pick(1, 2))),
        kv_heads(r.note("kv_heads", r.pick(1, 2))),
        heads(r.note("heads", kv_heads * (w.groups ? r.pick(1, 2) : 1))),
        q_len(r.note("q_len", std::max(w.least, r.length()))),
        k_len(r.note("k_len", w.equal || r.maybe() ? q_len : std::max(w.least, r.length()))),
        head_dim(r.note("head_dim", w.head_dim != 0 ? w.head_dim : r.width())),
        value_dim(r.note("value_dim", r.width())),
        q(g.input("q", f32, {batch, heads, q_len, head_dim})),
        k(g.input("k", f32, {batch, kv_heads, k_len, head_dim})),
        v(g.input("v", f32, {batch, kv_heads, k_len, value_dim})) {}

  double usual_scale() const { return 1 / std::sqrt(static_cast<double>(head_dim)); }
  /// A scale for an option: none, so the usual one, or drawn.
  std::optional<double> scale(Round& r) {
    if (r.maybe()) return std::nullopt;
    return r.note("scale", r.real(0.1, 1.5));
  }
  Graph finish(const Round& r) {
    Graph graph = g.finish();
    BOOST_REQUIRE_MESSAGE(!graph.error, r.notes() << ": " << mistake_of(graph));
    return graph;
  }
};

/// Every number of a rank-4 input.
template <class F>
void change(Tensors& in, const std::string& name, F f) {
  in.at(name).each([&](std::int64_t, std::byte* at) {
    float x = 0;
    std::memcpy(&x, at, sizeof x);
    x = static_cast<float>(f(static_cast<double>(x)));
    std::memcpy(at, &x, sizeof x);
  });
}
/// NaN in rows first … (the axis before the last) of every batch element, or of one.
inline void poison(Tensors& in, const std::vector<const char*>& names, std::int64_t first, std::int64_t element = -1) {
  for (const char* name : names) {
    const TensorView& v = in.at(name).view;
    const auto rank = static_cast<std::size_t>(v.rank);
    const std::int64_t row = v.shape[rank - 1], rows = v.shape[rank - 2], all = v.size() / v.shape[0];
    auto* data = v.as<float>();
    for (std::int64_t i = 0; i < v.size(); ++i)
      if (i / row % rows >= first && (element < 0 || i / all == element))
        data[i] = std::numeric_limits<float>::quiet_NaN();
  }
}
/// An i32 input [batch] of lengths from 0 to `most`; those keys and values that it hides hold NaN.
inline std::vector<std::int64_t> draw_lengths(Round& r, Tensors& in, const char* name, std::int64_t most,
                                              const std::vector<const char*>& hidden) {
  std::vector<std::int64_t> result;
  const Tensor& t = in.at(name);
  for (std::int64_t b = 0; b < t.view.size(); ++b) {
    result.push_back(r.note("length", r.pick(0, most)));
    t.view.as<std::int32_t>()[b] = static_cast<std::int32_t>(result.back());
    poison(in, hidden, result.back(), b);
  }
  return result;
}

inline Results compute(const Graph& g, const Parameters& parameters, const Tensors& in, const BindOptions& how) {
  BoundModel model(g, parameters, how);
  const Tensors out = outputs_of(g, {});
  model.run(named(in), named(out));
  return values(out);
}

inline void near(const Round& r, const std::string& name, const std::vector<double>& got,
                 const std::vector<double>& want, const std::function<bool(std::size_t)>& counts = {}) {
  if (got.size() != want.size())
    BOOST_FAIL(r.notes() << ": " << name << " has " << got.size() << " numbers, not " << want.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    if (got[i] != want[i] && !(std::abs(got[i] - want[i]) <= 1e-4 * (1 + std::abs(want[i]))) && (!counts || counts(i)))
      BOOST_FAIL(r.notes() << ": " << name << ' ' << i << " is " << got[i] << ", not " << want[i]);
}

/// What the round's kernels give against `want`, output by output; in every third round also the bits of another
/// number of threads. Returns what they gave.
inline Results expect(const Round& r, const Graph& g, const Parameters& parameters, const Tensors& in,
                      const Results& want, const std::function<bool(std::size_t)>& counts = {}) {
  Results got = compute(g, parameters, in, r.how());
  for (const auto& [name, numbers] : want) near(r, name, got.at(name), numbers, counts);
  if (r.index() % 3 == 0) {
    const BindOptions other{.backend = "tbb", .isa = r.how().isa, .threads = 1 + (r.how().threads + r.index() / 3) % 3};
    const Results again = compute(g, parameters, in, other);
    for (const auto& [name, numbers] : again)
      for (std::size_t i = 0; i < numbers.size(); ++i)
        if (numbers[i] != got.at(name)[i] && !(std::isnan(numbers[i]) && std::isnan(got.at(name)[i])))
          BOOST_FAIL(r.notes() << ": other bits on " << other.threads << " threads in " << name << ' ' << i);
  }
  return got;
}

/// In every second round: NaN in the keys and values from a drawn one on reaches no row of "y" before it. For as many
/// keys as queries and the causal form.
inline void expect_causal(Round& r, const Graph& g, const Parameters& parameters, Tensors& in, const Results& want,
                          const std::vector<const char*>& names = {"k", "v"}) {
  const TensorView &q = in.at("q").view, &v = in.at("v").view;
  const std::int64_t rows = q.shape[2], columns = v.shape[3];
  if (rows == 0 || r.index() % 2 == 0) return;
  const std::int64_t first = r.note("NaN from key", r.pick(0, rows - 1));
  poison(in, names, first);
  const Results y{{"y", want.at("y")}};
  expect(r, g, parameters, in, y, [&](std::size_t i) { return static_cast<std::int64_t>(i) / columns % rows < first; });
}

/// Dense weights [batch, heads, q_len, k_len] times values [batch, kv_heads, k_len, ·].
inline Cube weigh(const Cube& w, const Cube& v) {
  Cube out(w.batch, w.heads, w.rows, v.columns);
  const std::int64_t group = w.heads / v.heads;
  for (std::int64_t b = 0; b < w.batch; ++b)
    for (std::int64_t h = 0; h < w.heads; ++h)
      for (std::int64_t i = 0; i < w.rows; ++i)
        for (std::int64_t j = 0; j < w.columns; ++j)
          if (const double x = w(b, h, i, j); x != 0)  // hidden values may be NaN
            for (std::int64_t c = 0; c < v.columns; ++c) out(b, h, i, c) += x * v(b, h / group, j, c);
  return out;
}

}  // namespace treadle::test
