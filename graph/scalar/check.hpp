#pragma once
// Whether tables are large enough for the positions that they are looked up at, before anything runs.

#include <treadle/graph/scalar/table.hpp>

namespace treadle::scalar {

/// Throws std::invalid_argument with a sentence if some lookup's index leaves its table at a point of [0, batch) ×
/// [0, heads) × [0, q_len) × [0, k_len): which table, how large it is, what is needed. Looks at the shapes of `tables`
/// alone, in time that does not depend on the lengths.
///
/// Not refused, and 0 outside the table: an index that comes from another table, a lookup in a branch of where(), which
/// the condition may guard, and an index that is found outside at none of the points that intervals lead to.
void check_lookups(View view, int root, const Extents& extents, std::span<const Table> tables);

}  // namespace treadle::scalar
