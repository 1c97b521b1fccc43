#pragma once
// Dim expressions to numbers, with every overflow found: what absurd lengths run into before anything is allocated.

#include <treadle/graph/graph.hpp>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace treadle::plan {

class Sizes {
 public:
  /// Throws Error for names that the graph does not have and lengths below 0.
  Sizes(GraphView graph, const std::map<std::string, std::int64_t>& values);

  /// Throws Error: a named dim without a value, a negative result, arithmetic beyond 64 bits.
  std::int64_t operator()(Dim d) const;
  std::vector<std::int64_t> operator()(std::span<const Dim> shape) const;
  std::int64_t attribute(std::int32_t node, key k, std::int64_t otherwise = 0) const;

 private:
  std::int64_t evaluate(Dim d) const;
  std::int64_t atom(int index) const;

  GraphView graph_;
  std::vector<std::int64_t> values_;
  std::vector<char> bound_;
};

/// Product of sizes. Throws Error if it does not fit into 63 bits.
std::int64_t checked_multiply(std::int64_t a, std::int64_t b);
std::int64_t checked_add(std::int64_t a, std::int64_t b);

}  // namespace treadle::plan
