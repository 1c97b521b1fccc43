#pragma once
// A model's parameters by full name, and random ones.

#include <treadle/backends/dim_values.hpp>
#include <treadle/graph/graph.hpp>
#include <treadle/graph/tensor.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace treadle {

/// One tensor that a graph wants, with its shape in numbers. Inside a repeat there is one per iteration.
struct ParameterInfo {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int32_t node = -1;
};

/// Every parameter of the graph by full name, in the order of the nodes, iterations of repeats counted up, innermost
/// fastest. Throws Error if a shape needs a named dim that `dims` does not have.
std::vector<ParameterInfo> parameter_names(GraphView graph, const DimValues& dims = {});

/// Name → f32 tensor, borrowed from the caller or owned. Copies share what is owned.
class Parameters {
 public:
  /// Borrows memory that must outlive this object. Throws Error if it is not f32.
  void set(std::string name, const TensorView& tensor);
  /// Keeps the data. Throws Error if the shape does not hold exactly `data.size()` elements.
  void own(std::string name, std::vector<std::int64_t> shape, std::vector<float> data);
  /// The tensor, or a view without data if the name is not there.
  TensorView find(std::string_view name) const;
  bool contains(std::string_view name) const { return find(name).data != nullptr; }
  std::size_t size() const { return tensors_.size(); }
  std::vector<std::string> names() const;

  /// One tensor for each parameter of the graph, the same on every compiler and standard library. A tensor depends on
  /// its name, its shape and the seed only, so passes that keep names keep values. Matrices: normal with deviation
  /// 1/√(last dim); vectors named weight or gamma (gains of norms): 1; other vectors (biases): normal with deviation
  /// 0.02.
  static Parameters random(GraphView graph, std::uint64_t seed, const DimValues& dims = {});

 private:
  struct Entry {
    TensorView view;
    std::shared_ptr<const std::vector<float>> storage;  ///< null if borrowed
  };
  std::map<std::string, Entry, std::less<>> tensors_;
};

}  // namespace treadle
