#pragma once
// What the executor's tests share: random inputs by the graph's declarations, runs on a backend, and the float64
// oracle.

#include <treadle/backends/bound_model.hpp>
#include <treadle/backends/kernel.hpp>
#include <treadle/backends/reference/reference.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace treadle::test {

/// splitmix64.
struct Numbers {
  std::uint64_t state;
  std::uint64_t next() {
    std::uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  double number() { return static_cast<double>(next() >> 11) * 0x1p-52 - 1; }
};

/// A tensor that owns its memory; `strided`: with gaps and in another order of dims, so that no two dims lie end to
/// end.
struct Tensor {
  std::vector<std::byte> memory;
  TensorView view;

  Tensor() = default;
  Tensor(DType dtype, std::vector<std::int64_t> shape, bool strided = false) {
    view = dense_view(nullptr, dtype, shape);
    std::int64_t stride = 1;
    if (strided) {
      for (int i = 0; i < view.rank; ++i) {  // first dim fastest
        stride *= 2;
        view.strides[static_cast<std::size_t>(i)] = stride;
        stride *= std::max<std::int64_t>(shape[static_cast<std::size_t>(i)], 1);
      }
    } else {
      stride = view.size();
    }
    memory.assign(static_cast<std::size_t>(stride + 2) * size_of(dtype), std::byte{0x7f});
    view.data = memory.data();
  }
  Tensor(Tensor&&) = default;
  Tensor& operator=(Tensor&&) = default;

  template <class F>
  void each(F f) const {
    for (std::int64_t i = 0; i < view.size(); ++i) {
      std::int64_t rest = i, at = 0;
      for (int d = view.rank - 1; d >= 0; --d) {
        const auto k = static_cast<std::size_t>(d);
        at += rest % view.shape[k] * view.strides[k];
        rest /= view.shape[k];
      }
      f(i, view.as<std::byte>() + at * static_cast<std::int64_t>(size_of(view.dtype)));
    }
  }
  void set(double (*value)(void*, DType), void* context) {
    each([&](std::int64_t, std::byte* to) {
      const double x = value(context, view.dtype);
      if (view.dtype == f32) *reinterpret_cast<float*>(to) = static_cast<float>(x);
      if (view.dtype == f64) *reinterpret_cast<double*>(to) = x;
      if (view.dtype == i32) *reinterpret_cast<std::int32_t*>(to) = static_cast<std::int32_t>(x);
      if (view.dtype == i64) *reinterpret_cast<std::int64_t*>(to) = static_cast<std::int64_t>(x);
      if (view.dtype == boolean) *reinterpret_cast<std::uint8_t*>(to) = x != 0 ? 1 : 0;
    });
  }
};

using Tensors = std::map<std::string, Tensor>;
using Lengths = std::vector<NamedSize>;

inline DimValues values_of(const Lengths& dims) {
  DimValues v;
  for (const NamedSize& s : dims) v[std::string(s.name)] = s.value;
  return v;
}

/// Numbers in [−1, 1); ids from 0 to 4, booleans that mostly keep. The same values whatever the strides.
inline Tensors inputs_of(GraphView g, const Lengths& dims, std::uint64_t seed, bool strided = false) {
  Tensors tensors;
  Numbers numbers{seed};
  const BoundDims bound(g, values_of(dims));
  for (std::int32_t n = 0; n < g.size(); ++n) {
    if (g.nodes[n].op != op::input) continue;
    Tensor t(g.info({n, 0}).dtype, bound(g.shape({n, 0})), strided);
    t.set(
        [](void* p, DType type) {
          auto& r = *static_cast<Numbers*>(p);
          return type == f32       ? r.number()
                 : type == boolean ? static_cast<double>(r.next() % 4 != 0)
                                   : static_cast<double>(r.next() % 5);
        },
        &numbers);
    tensors.emplace(std::string(g.leaf(n)), std::move(t));
  }
  return tensors;
}

inline Tensors outputs_of(GraphView g, const Lengths& dims, bool strided = false, DType dtype = f32) {
  Tensors tensors;
  const BoundDims bound(g, values_of(dims));
  for (std::int32_t n = 0; n < g.size(); ++n)
    if (g.nodes[n].op == op::output) {
      const DType declared = g.info(g.inputs(n)[0]).dtype;
      tensors.emplace(std::string(g.leaf(n)),
                      Tensor(declared == f32 ? dtype : declared, bound(g.shape(g.inputs(n)[0])), strided));
    }
  return tensors;
}

inline std::vector<NamedTensor> named(const Tensors& tensors) {
  std::vector<NamedTensor> list;
  for (const auto& [name, t] : tensors) list.push_back({name, t.view});
  return list;
}

inline std::vector<double> values(const Tensor& t) {
  std::vector<double> v;
  const reference::Array<double> a = reference::from_view<double>(t.view);
  v.assign(a.data.begin(), a.data.end());
  return v;
}
inline std::map<std::string, std::vector<double>> values(const Tensors& tensors) {
  std::map<std::string, std::vector<double>> v;
  for (const auto& [name, t] : tensors) v[name] = values(t);
  return v;
}
using Results = std::map<std::string, std::vector<double>>;

inline Results run(GraphView g, const Parameters& parameters, const Lengths& dims, const BindOptions& options,
                   std::uint64_t seed, bool strided_in = false, bool strided_out = false) {
  BoundModel model(g, parameters, options);
  model.bind_dims(dims);
  const Tensors in = inputs_of(g, dims, seed, strided_in);
  Tensors out = outputs_of(g, dims, strided_out, options.float64 ? f64 : f32);
  model.run(named(in), named(out));
  return values(out);
}
inline Results oracle(GraphView g, const Parameters& parameters, const Lengths& dims, std::uint64_t seed) {
  return run(g, parameters, dims, {.backend = "reference", .float64 = true}, seed);
}

/// The largest |a − b| / max(1, |b|); infinite if they are not comparable.
inline double difference(const Results& a, const Results& b) {
  if (a.size() != b.size()) return INFINITY;
  double worst = 0;
  for (const auto& [name, x] : a) {
    const auto found = b.find(name);
    if (found == b.end() || found->second.size() != x.size()) return INFINITY;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double p = x[i], q = found->second[i];
      if (p == q) continue;
      const double d = std::abs(p - q) / std::max(1.0, std::abs(q));
      worst = std::isnan(d) ? INFINITY : std::max(worst, d);
    }
  }
  return worst;
}

inline std::vector<std::string> isas() {
  std::vector<std::string> list;
  for (int i = 0; i < kernel::isa_count; ++i)
    if (kernel::isa_list()[i].compiled && kernel::isa_list()[i].supported)
      list.emplace_back(kernel::isa_list()[i].name);
  return list;
}

/// The message of the Error that `f` throws; empty if none.
template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}

}  // namespace treadle::test
