#include <treadle/backends/routing_kernels.hpp>

#include <algorithm>
#include <cmath>

namespace treadle::kernel {
namespace {

constexpr std::int64_t table_rows = 32, tokens_each = 64;  // of one work item

std::size_t items(std::int64_t n, std::int64_t each) { return static_cast<std::size_t>((n + each - 1) / each); }

Work plan_rotary(const RotaryTable& a) { return {items(a.out.shape[0], table_rows), 0}; }

void run_rotary(const RotaryTable& a, std::size_t first, std::size_t last, void*) {
  const std::int64_t end = std::min(static_cast<std::int64_t>(last) * table_rows, a.out.shape[0]);
  for (std::int64_t r = static_cast<std::int64_t>(first) * table_rows; r < end; ++r) {
    const std::int64_t at = r * a.positions.strides[0];
    const double position = a.positions.dtype == DType::i64
                                ? static_cast<double>(a.positions.as<const std::int64_t>()[at])
                                : static_cast<double>(a.positions.as<const std::int32_t>()[at]);
    rotary_row(a, static_cast<double>(a.offset) + position, a.out.as<float>() + r * a.out.strides[0]);
  }
}

Work plan_choose(const ChooseExperts& a) { return {items(a.logits.shape[0], tokens_each), 0}; }

void run_choose(const ChooseExperts& a, std::size_t first, std::size_t last, void*) {
  const std::int64_t experts = a.logits.shape[1], top_k = a.experts.shape[1];
  const std::int64_t end = std::min(static_cast<std::int64_t>(last) * tokens_each, a.logits.shape[0]);
  for (std::int64_t t = static_cast<std::int64_t>(first) * tokens_each; t < end; ++t) {
    const float* logits = a.logits.as<const float>() + t * a.logits.strides[0];
    auto* chosen = a.experts.as<std::int32_t>() + t * a.experts.strides[0];
    float* weights = a.weights.as<float>() + t * a.weights.strides[0];
    for (std::int64_t i = 0; i < top_k; ++i) {
      const auto taken = [&](std::int64_t e) { return std::find(chosen, chosen + i, e) != chosen + i; };
      std::int64_t best = -1;
      for (std::int64_t e = 0; e < experts; ++e)
        if (!taken(e) && (best < 0 || logits[e] > logits[best])) best = e;
      chosen[i] = static_cast<std::int32_t>(best);
    }
    const float largest = logits[chosen[0]];
    float sum = 0;
    if (a.renormalise) {
      for (std::int64_t i = 0; i < top_k; ++i) sum += std::exp(logits[chosen[i]] - largest);
    } else {
      for (std::int64_t e = 0; e < experts; ++e) sum += std::exp(logits[e] - largest);
    }
    for (std::int64_t i = 0; i < top_k; ++i) weights[i] = std::exp(logits[chosen[i]] - largest) / sum;
  }
}

Work plan_group(const GroupByExpert&) { return {1, 0}; }

/// Counting sort, which keeps the order of the tokens.
void run_group(const GroupByExpert& a, std::size_t first, std::size_t last, void*) {
  if (first >= last) return;
  const std::int64_t count = a.starts.shape[0] - 1, tokens = a.experts.shape[0], top_k = a.experts.shape[1];
  auto* starts = a.starts.as<std::int32_t>();
  const auto* experts = a.experts.as<const std::int32_t>();
  auto* rows = a.rows.as<std::int32_t>();
  auto* from = a.tokens.as<std::int32_t>();
  std::fill_n(starts, count + 1, 0);
  for (std::int64_t i = 0; i < tokens * top_k; ++i) ++starts[experts[i] + 1];
  for (std::int64_t e = 0; e < count; ++e) starts[e + 1] += starts[e];
  // Each start moves to its expert's end while the places are given out, and is then moved back by one expert.
  for (std::int64_t i = 0; i < tokens * top_k; ++i) {
    const std::int32_t place = starts[experts[i]]++;
    rows[i] = place;
    from[place] = static_cast<std::int32_t>(i / top_k);
  }
  for (std::int64_t e = count; e > 0; --e) starts[e] = starts[e - 1];
  starts[0] = 0;
}

}  // namespace

void rotary_row(const RotaryTable& t, double position, float* out) {
  const std::int64_t half = t.rotary_dim / 2;
  for (std::int64_t i = 0; i < half; ++i) {
    const double angle = position * t.frequencies[i];
    const auto c = static_cast<float>(std::cos(angle) * t.magnitude),
               s = static_cast<float>(std::sin(angle) * t.magnitude);
    const std::int64_t first = t.interleaved ? 2 * i : i, second = t.interleaved ? first + 1 : i + half;
    out[first] = c;
    out[second] = c;
    out[t.rotary_dim + first] = -s;
    out[t.rotary_dim + second] = s;
  }
}

const Kernel<RotaryTable> rotary_table{"rotary_table", plan_rotary, run_rotary};
const Kernel<ChooseExperts> choose_experts{"choose_experts", plan_choose, run_choose};
const Kernel<GroupByExpert> group_by_expert{"group_by_expert", plan_group, run_group};

}  // namespace treadle::kernel
