#pragma once
// Expressions as text: `(k <= q) & ((q - k) <= 256)`. parse.hpp reads it back.

#include <treadle/graph/scalar/expression.hpp>

#include <string>

namespace treadle::scalar {

/// The function at `root`, in the notation that trace.hpp accepts in C++: conversions of integers to numbers are left
/// out where the reader puts them back, numbers have a point or an exponent, the index of a sum is `i`.
std::string print(View view, int root);
/// Of a pool that the root's own computation may have grown: print(pool, derivative(pool, …)).
inline std::string print(const Pool& pool, int root) { return print(pool.view(), root); }

}  // namespace treadle::scalar
