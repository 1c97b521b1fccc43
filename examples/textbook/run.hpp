#pragma once
// How a chapter runs a model: a graph made at run time goes through the passes, is bound to the chosen backend, and
// runs once.

#include <treadle/treadle.hpp>

#include <map>
#include <string>
#include <vector>

namespace textbook {

using Numbers = std::vector<float>;
using Tensors = std::map<std::string, Numbers>;  ///< by name of the input or output, row-major

/// Where the models of a chapter run.
struct Target {
  std::string backend, isa;  ///< isa empty: the best that there is, or none (reference)
};

/// All outputs of the graph, whose dims are numbers. Throws treadle::Error.
Tensors run(const Target& target, const treadle::Graph& graph, const Tensors& inputs,
            const treadle::Parameters& parameters = {});

/// Standard normal numbers, the same everywhere (Box and Muller 1958 over splitmix64).
Numbers normal(std::size_t count, std::uint64_t seed);

/// `count` identity matrices of size n × n.
Numbers identity(std::int64_t n, std::int64_t count = 1);

/// Row i of a matrix with so many columns.
std::span<const float> row(const Numbers& matrix, std::int64_t i, std::int64_t columns);

/// The largest |a − b|; infinite if there are not equally many, or one is no number.
double largest_difference(const Numbers& a, const Numbers& b);

}  // namespace textbook
