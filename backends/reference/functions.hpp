#pragma once
// Traced functions of a graph in the reference backend: bound to lengths and tables, evaluated one point at a time in
// double.

#include <treadle/graph/scalar/evaluate.hpp>
#include <treadle/ops/reference.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace treadle::reference {

class ScalarFunction {
 public:
  /// The function at `root` of `view`, which must outlive this object.
  ScalarFunction(scalar::View view, int root, std::int64_t q_len, std::int64_t k_len, std::int64_t iteration);

  /// Names of the tables that are looked up, in order of first appearance (parents first, children from left to right).
  std::vector<std::string> table_names() const;
  /// Copies a table. Throws std::invalid_argument for a rank or a dtype that no lookup reads.
  template <class T>
  void bind(const std::string& name, const Array<T>& values, DType dtype);
  /// Query and key rows for sums over features; q [B, H, N, D] and k [B, Hkv, M, D] must outlive this object.
  template <class T>
  void bind_rows(const Array<T>& q, const Array<T>& k);

  /// Throws std::invalid_argument if a lookup leaves its table somewhere (graph/scalar/check.hpp).
  void check(std::int64_t batch, std::int64_t heads, std::int64_t features = 0) const;

  bool keep(std::int64_t b, std::int64_t h, std::int64_t q, std::int64_t k) const { return value(0, b, h, q, k) != 0; }
  double score(double score, std::int64_t b, std::int64_t h, std::int64_t q, std::int64_t k) const {
    return value(score, b, h, q, k);
  }
  /// Of a function of one number.
  double feature(double x) const;
  bool uses(scalar::Uses what) const { return (view_[root_].uses & what) != 0; }

 private:
  struct Storage {
    std::string name;
    std::vector<std::int32_t> integers;
    std::vector<double> numbers;
  };
  /// Features of all rows in double, [batch, heads, length, dim].
  struct Rows {
    std::vector<std::int64_t> shape;
    std::vector<double> data;
    TensorView row(std::int64_t b, std::int64_t h, std::int64_t at);
  };
  scalar::View view_;
  int root_;
  mutable scalar::Evaluator evaluator_;  ///< one thread only
  scalar::Bindings at_;
  std::vector<std::shared_ptr<const Storage>> storage_;  ///< shared: copies of a function read the same tables
  std::vector<scalar::Table> tables_;
  std::shared_ptr<Rows> queries_, keys_;
  std::int64_t group_ = 1;  ///< query heads of one key head

  double value(double score, std::int64_t b, std::int64_t h, std::int64_t q, std::int64_t k) const;
};

/// A mask node's value: evaluated where the batch size and the heads are known, once for each pair.
template <class T>
struct LazyMask {
  std::vector<std::int64_t> shape;  ///< as the graph says; 1 where nothing else is known
  std::optional<ScalarFunction> function;
  std::shared_ptr<const Array<T>> tensor;

  /// [1 or batch, 1 or heads, q_len, k_len]: as much as the mask differs.
  const Array<T>& materialise(std::int64_t batch, std::int64_t heads) const {
    std::vector<std::int64_t> full = shape;
    if (function && function->uses(scalar::uses_b)) full[0] = std::max(full[0], batch);
    if (function && function->uses(scalar::uses_h)) full[1] = std::max(full[1], heads);
    auto found = made_.find({full[0], full[1]});
    if (found == made_.end()) {
      Position expression;
      if (function) function->check(full[0], full[1]);
      if (function)
        expression = [this](std::int64_t b, std::int64_t h, std::int64_t q, std::int64_t k) {
          return function->keep(b, h, q, k);
        };
      found = made_.emplace(std::pair{full[0], full[1]}, mask(full, expression, tensor.get())).first;
    }
    return found->second;
  }

 private:
  mutable std::map<std::pair<std::int64_t, std::int64_t>, Array<T>> made_;
};

}  // namespace treadle::reference
