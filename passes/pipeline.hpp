#pragma once
// The pipeline: what happens to every model between its declaration and its execution.

#include <treadle/passes/fold_constants.hpp>
#include <treadle/passes/fold_scales.hpp>
#include <treadle/passes/fuse_add_norm.hpp>
#include <treadle/passes/fuse_attention.hpp>
#include <treadle/passes/fuse_embedding.hpp>
#include <treadle/passes/fuse_epilogue.hpp>
#include <treadle/passes/fuse_gated_linear.hpp>
#include <treadle/passes/fuse_linear_attention.hpp>
#include <treadle/passes/merge_common_subexpressions.hpp>
#include <treadle/passes/merge_qkv.hpp>
#include <treadle/passes/move_slices_up.hpp>
#include <treadle/passes/remove_dead_nodes.hpp>
#include <treadle/passes/steps.hpp>

namespace treadle {

/// The optimised graph. `observer(report, before, after)` is called after each pass;
/// a graph with an error stays as it is. `without`: a pass to leave out, to see what it is good for.
template <class Observer = no_observer, class Without = all_passes>
constexpr Graph optimise(Graph g, Observer&& observer = {}, Without without = {}) {
  // clang-format off
  return Steps(std::move(g), observer, without)
         | remove_dead_nodes            // first: later passes count readers, and dead ones would count
         | merge_common_subexpressions  // masks and transposes written twice must be one before patterns are matched
         | fold_constants               // equal constants are one by now; what is folded need not be looked through
         | move_slices_up               // before the fusions: they need not look through slices
         | fuse_attention               // before anything changes the products that it looks for
         | fuse_linear_attention        // as above; its reciprocal holds a scale, which must still be one
         | fold_scales                  // after attention took the scales on its products; one left would hide an epilogue
         | fuse_epilogue                // before merging: a slice would stand between a projection and its activation
         | fuse_gated_linear            // the gate has its activation; merging would join bilinear halves first
         | fuse_embedding               // before the norm of its sum finds another partner
         | fuse_add_norm                // the additions that no projection took
         | merge_qkv                    // what is left without an epilogue
         | merge_common_subexpressions  // slices, transposes and reshapes that the fusions made
         | remove_dead_nodes;           // last: nothing unused reaches the memory plan
  // clang-format on
}

}  // namespace treadle
