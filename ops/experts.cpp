// Reference formula of the mixture of experts.

#include <treadle/ops/arrays.hpp>

#include <algorithm>
#include <cmath>

namespace treadle::reference {

/// out_t = Σ over the top_k experts e of p = softmax(router x_t): p_e · down_e(act(up_e x_t)), with a gate
/// down_e(act(gate_e x_t) · up_e x_t). Renormalised: p_e over the sum of the chosen p. Of equal ones the first is
/// chosen.
template <class T>
Array<T> moe(const Array<T>& x, const Array<T>& router, const Array<T>& up, const Array<T>& down, const Array<T>* gate,
             std::int64_t top_k, bool renormalise, activation function) {
  const std::int64_t experts = router.shape[0], width = router.shape[1], hidden = up.shape[1],
                     out_width = down.shape[1];
  const std::int64_t tokens = rows_of(x);
  std::vector<std::int64_t> shape = x.shape;
  shape.back() = out_width;
  Array<T> result = zeros<T>(shape);
  const auto in = shaped<2>(x, {tokens, width});
  const auto choose = shaped<2>(router, {experts, width});
  const auto w_up = shaped<3>(up, {experts, hidden, width});
  const auto w_gate = shaped<3>(gate != nullptr ? *gate : up, {experts, hidden, width});
  const auto w_down = shaped<3>(down, {experts, out_width, hidden});
  auto out = shaped<2>(result, {tokens, out_width});
  const auto count = static_cast<std::size_t>(experts);
  std::vector<T> logits(count), h(static_cast<std::size_t>(hidden));

  for (std::int64_t t = 0; t < tokens; ++t) {
    T sum = 0;
    for (std::int64_t e = 0; e < experts; ++e) {
      T& l = logits[static_cast<std::size_t>(e)];
      l = 0;
      for (std::int64_t c = 0; c < width; ++c) l += in(t, c) * choose(e, c);
    }
    const T largest = *std::max_element(logits.begin(), logits.end());
    for (const T l : logits) sum += std::exp(l - largest);
    std::vector<std::size_t> chosen;
    std::vector<char> taken(count, 0);
    T chosen_sum = 0;
    for (std::int64_t i = 0; i < top_k; ++i) {
      std::size_t best = count;
      for (std::size_t e = 0; e < count; ++e)
        if (!taken[e] && (best == count || logits[e] > logits[best])) best = e;
      taken[best] = 1;
      chosen.push_back(best);
      chosen_sum += std::exp(logits[best] - largest) / sum;
    }
    for (const std::size_t which : chosen) {
      const auto e = static_cast<std::int64_t>(which);
      const T p = std::exp(logits[which] - largest) / sum / (renormalise ? chosen_sum : T(1));
      for (std::int64_t j = 0; j < hidden; ++j) {
        T u = 0, g = 0;
        for (std::int64_t c = 0; c < width; ++c) {
          u += in(t, c) * w_up(e, j, c);
          if (gate != nullptr) g += in(t, c) * w_gate(e, j, c);
        }
        h[static_cast<std::size_t>(j)] = gate != nullptr ? activate(g, function) * u : activate(u, function);
      }
      for (std::int64_t c = 0; c < out_width; ++c) {
        T y = 0;
        for (std::int64_t j = 0; j < hidden; ++j) y += h[static_cast<std::size_t>(j)] * w_down(e, c, j);
        out(t, c) += p * y;
      }
    }
  }
  return result;
}

template Array<float> moe(const Array<float>&, const Array<float>&, const Array<float>&, const Array<float>&,
                          const Array<float>*, std::int64_t, bool, activation);
template Array<double> moe(const Array<double>&, const Array<double>&, const Array<double>&, const Array<double>&,
                           const Array<double>*, std::int64_t, bool, activation);

}  // namespace treadle::reference
