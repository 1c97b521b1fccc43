#pragma once
// Masks that are drawn with their meaning, and the weights of softmax attention from the definition.

#include "property.hpp"

namespace treadle::test {

/// A mask and what it means.
struct DrawnMask {
  std::optional<Mask> mask{};
  std::function<bool(std::int64_t b, std::int64_t i, std::int64_t j)> keep = [](auto, auto, auto) { return true; };
  bool padded = false;
  std::vector<std::int64_t> lengths{};

  DrawnMask(Round& r, Builder& g, std::int64_t batch, std::int64_t q_len, std::int64_t k_len) {
    const std::int64_t shift = k_len - q_len;  // the last query stands at the last key
    switch (r.note("mask", r.pick(0, 4))) {
      case 0: break;
      case 1:
        mask = causal;
        keep = [=](auto, auto i, auto j) { return j <= i + shift; };
        break;
      case 2: {
        const std::int64_t left = r.note("left", r.pick(0, 9)), right = r.note("right", r.pick(0, 9));
        mask = window(left, right);
        keep = [=](auto, auto i, auto j) { return i + shift - j <= left && j - i - shift <= right; };
        break;
      }
      case 3:
        g.input("lengths", i32, {batch});
        mask = key_lengths("lengths");
        padded = true;
        keep = [this](auto b, auto, auto j) { return j < lengths[static_cast<std::size_t>(b)]; };
        break;
      default:
        mask = mask_mod([](auto, auto, auto q, auto k) { return (q + k) % 3 != 1; });
        keep = [](auto, auto i, auto j) { return (i + j) % 3 != 1; };
    }
  }
  DrawnMask(const DrawnMask&) = delete;
  DrawnMask& operator=(const DrawnMask&) = delete;
  void draw(Round& r, Tensors& in, std::int64_t k_len, const std::vector<const char*>& hidden) {
    if (padded) lengths = draw_lengths(r, in, "lengths", k_len, hidden);
  }
};

/// softmax over the keys that are kept, with a sink in the denominator for each head if there is one.
template <class Score>
Cube softmax_weights(const Cube& q, std::int64_t keys, const DrawnMask& mask, Score score,
                     const std::vector<double>& sink = {}) {
  Cube w(q.batch, q.heads, q.rows, keys);
  for (std::int64_t b = 0; b < q.batch; ++b)
    for (std::int64_t h = 0; h < q.heads; ++h)
      for (std::int64_t i = 0; i < q.rows; ++i) {
        double sum = sink.empty() ? 0 : std::exp(sink[static_cast<std::size_t>(h)]);  // scores are small here
        for (std::int64_t j = 0; j < keys; ++j)
          if (mask.keep(b, i, j)) sum += w(b, h, i, j) = std::exp(score(b, h, i, j));
        for (std::int64_t j = 0; j < keys && sum > 0; ++j) w(b, h, i, j) /= sum;
      }
  return w;
}

inline double dot(const Cube& q, const Cube& k, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
  double sum = 0;
  for (std::int64_t c = 0; c < q.columns; ++c) sum += q(b, h, i, c) * k(b, h / (q.heads / k.heads), j, c);
  return sum;
}

}  // namespace treadle::test
