#pragma once
// Graphs as text, and back. The text is what `explain` prints and what tests of passes compare.
//
//   %0 = input "tokens" () : i32[batch, seq]
//   %1 = parameter "wte.weight" () : f32[50257, 768]
//   %2 = embedding "wte" (%1, %0) : f32[batch, seq, 768]
//   %6 = repeat "h" (%2) {times=12, carried=1, captured=0, states=0, sides=0} region {
//     %3 = region_input () {index=0} : f32[batch, seq, 768]
//     %4 = parameter "h.#" "proj.weight" () : f32[768, 768]
//     %5 = linear "h.#" "proj" (%3, %4) {has_bias=0, has_residual=0, function=none} : f32[batch, seq, 768]
//     results (%5)
//   } : f32[batch, seq, 768]
//   %7 = output "hidden" (%6) : f32[batch, seq, 768]
//
// One name is the leaf, two are scope and leaf. `%7#1` is output 1 of node 7. A number is the node's place in the
// canonical order (a repeat stands directly behind its body), so text is stable: printing what was parsed gives the
// same text. Dims are expressions (`patches + 1`, `2*batch*seq`, `ceil_div(seq, 4)`), traced functions stand between
// backquotes, one integer per iteration is written `[1, 2, 3]`, and `//` starts a comment. Source lines of the model
// are not printed.

#include <treadle/graph/graph.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace treadle {

std::string to_text(GraphView g);

/// `patches + 1`: terms in alphabetical order, the constant last, however the dim was made.
std::string to_text(GraphView g, Dim d);
/// `f32[batch, seq, 768]`
std::string to_text(GraphView g, Value v);
/// The value of an attribute of node `node`: `gelu_tanh`, `[0, 1, 3, 2]`, `past`, `0.5`, or the text of a traced
/// function.
std::string to_text(GraphView g, std::int32_t node, const Attribute& a);
/// The number that each node has in the text.
std::vector<std::int32_t> text_numbers(GraphView g);
/// `h.#.attn.q.weight`: scope and leaf, "#" where a repeat's iteration stands; empty if the node has neither.
std::string dotted_name(GraphView g, std::int32_t node);
/// `linear "h.#.attn" "q"`: what to call a node in a message.
std::string node_name(GraphView g, std::int32_t node);

/// Throws std::invalid_argument with the line, what is wrong and what would be right.
Graph parse_graph(std::string_view text);

}  // namespace treadle
