#include "run.hpp"

#include <treadle/backends/random_fill.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace textbook {

using namespace treadle;

Tensors run(const Target& target, const Graph& graph, const Tensors& inputs, const Parameters& parameters) {
  const Graph better = optimise(graph);
  BoundModel model(better, parameters, {.backend = target.backend, .isa = target.isa});
  std::vector<NamedTensor> in, out;
  for (const auto& [name, numbers] : inputs) {
    TensorView view = model.input_spec(name);
    if (view.size() != static_cast<std::int64_t>(numbers.size()))
      throw Error("input '" + name + "' is given " + std::to_string(numbers.size()) + " numbers; the model wants " +
                  std::to_string(view.size()));
    view.data = const_cast<float*>(numbers.data());  // inputs are only read
    in.push_back({name, view});
  }
  Tensors results;
  for (std::int32_t n = 0; n < better.view().size(); ++n) {
    if (better.nodes[static_cast<std::size_t>(n)].op != op::output) continue;
    const std::string_view name = better.view().leaf(n);
    TensorView view = model.output_spec(name);
    Numbers& numbers = results[std::string(name)];
    numbers.assign(static_cast<std::size_t>(view.size()), std::numeric_limits<float>::quiet_NaN());
    view.data = numbers.data();
    out.push_back({name, view});
  }
  model.run(in, out);
  return results;
}

Numbers normal(std::size_t count, std::uint64_t seed) {
  Numbers numbers(count);
  fill_normal(numbers, seed);
  return numbers;
}

Numbers identity(std::int64_t n, std::int64_t count) {
  Numbers numbers(static_cast<std::size_t>(count * n * n), 0.0f);
  for (std::int64_t i = 0; i < count * n; ++i) numbers[static_cast<std::size_t>(i * n + i % n)] = 1;
  return numbers;
}

std::span<const float> row(const Numbers& matrix, std::int64_t i, std::int64_t columns) {
  return std::span(matrix).subspan(static_cast<std::size_t>(i * columns), static_cast<std::size_t>(columns));
}

double largest_difference(const Numbers& a, const Numbers& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    largest = std::isnan(d) ? std::numeric_limits<double>::infinity() : std::max(largest, d);
  }
  return largest;
}

}  // namespace textbook
