#include <treadle/graph/scalar/expression.hpp>

#include <stdexcept>

namespace treadle::scalar {

void fail(const char* sentence) { throw std::invalid_argument(sentence); }

}  // namespace treadle::scalar
