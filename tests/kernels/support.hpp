#pragma once
// What the kernel tests share: every table this CPU runs, strided tensors between guard bytes, and running a kernel in
// pieces.

#include <treadle/backends/kernel.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace kernel_test {

using namespace treadle;
using kernel::Table;
using Index = std::int64_t;

inline constexpr float quiet_nan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float infinity = std::numeric_limits<float>::infinity();

inline std::vector<const Table*> tables() {
  std::vector<const Table*> found;
  for (int i = 0; i < kernel::isa_count; ++i)
    if (const Table* t = kernel::find_table(kernel::isa_list()[i].name)) found.push_back(t);
  return found;
}

/// A tensor with `gap` unused numbers after each row of the last dim; those and both ends hold a guard value.
class Tensor {
 public:
  static constexpr float guard = -1234.5f;

  explicit Tensor(std::vector<Index> shape, Index gap = 0) {
    view.rank = static_cast<std::int32_t>(shape.size());
    Index stride = 1;
    for (int i = view.rank - 1; i >= 0; --i) {
      view.shape[static_cast<std::size_t>(i)] = shape[static_cast<std::size_t>(i)];
      view.strides[static_cast<std::size_t>(i)] = stride;
      stride *= shape[static_cast<std::size_t>(i)];
      if (i == view.rank - 1) stride += gap;
    }
    storage_.assign(static_cast<std::size_t>(stride) + 64, guard);
    view.data = storage_.data() + 32;
  }
  Tensor& normal(unsigned seed, float scale = 1.0f) {
    std::mt19937 random(seed);
    std::normal_distribution<float> n(0.0f, scale);
    each([&](float& x) { x = n(random); });
    return *this;
  }
  Tensor& fill(float x) {
    each([&](float& y) { y = x; });
    return *this;
  }
  template <class F>
  void each(F f) {
    visit(0, view.as<float>(), f);
  }
  float& at(std::initializer_list<Index> i) {
    float* p = view.as<float>();
    std::size_t d = 0;
    for (Index x : i) p += x * view.strides[d++];
    return *p;
  }
  std::vector<float> values() {
    std::vector<float> v;
    each([&](float& x) { v.push_back(x); });
    return v;
  }
  /// Whether nothing outside the elements was written.
  bool intact() {
    std::vector<float> copy = storage_;
    Tensor mirror(*this, copy);
    mirror.fill(guard);
    return std::all_of(copy.begin(), copy.end(), [](float x) { return x == guard; });
  }

  TensorView view;

 private:
  Tensor(const Tensor& other, std::vector<float>& copy) : view(other.view) { view.data = copy.data() + 32; }
  template <class F>
  void visit(int d, float* p, F& f) {
    const auto i = static_cast<std::size_t>(d);
    if (d == view.rank) return f(*p);
    for (Index k = 0; k < view.shape[i]; ++k) visit(d + 1, p + k * view.strides[i], f);
  }
  std::vector<float> storage_;
};

/// Runs all items, in pieces of `piece`; the workspace has exactly the bytes that were asked for, full of NaN.
template <class Arguments>
void run(const kernel::Kernel<Arguments>& k, const Arguments& a, std::size_t piece = ~std::size_t{0}) {
  const kernel::Work work = k.plan(a);
  std::vector<float> memory(work.workspace_bytes / 4 + 64, quiet_nan);
  void* workspace = memory.data();
  std::size_t space = memory.size() * 4;
  std::align(64, work.workspace_bytes, workspace, space);
  for (std::size_t i = 0; i < work.items; i += std::min(piece, work.items - i))
    k.run(a, i, i + std::min(piece, work.items - i), workspace);
}

/// Largest |a − b|; NaN against a number counts as infinite.
inline double distance(const std::vector<float>& a, const std::vector<double>& b) {
  BOOST_REQUIRE_EQUAL(a.size(), b.size());
  double d = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (static_cast<double>(a[i]) == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    const double e = std::fabs(static_cast<double>(a[i]) - b[i]);
    d = std::max(d, std::isnan(e) ? std::numeric_limits<double>::infinity() : e);
  }
  return d;
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

}  // namespace kernel_test
