#pragma once
// Longformer: a window, and global tokens with projections of their own (Beltagy et al. 2020).

#include <treadle/ops/attention.hpp>

#include <vector>

namespace treadle {

struct LongformerOptions {
  std::int64_t heads = 1;
  std::int64_t window = 512;            ///< keys around a query beside itself, half to each side; even
  std::vector<std::int64_t> globals{};  ///< positions of the global tokens, in any order
  std::optional<Mask> mask{};           ///< and'ed everywhere; over keys alone, such as key_lengths("lengths")
  bool bias = true;                     ///< of the projections
};

/// Self-attention of x [B, N, W]. Tokens attend by q, k, v to the window / 2 tokens on each side, themselves, and the
/// global tokens, in one softmax, each key once; global tokens attend to all tokens by projections of their own,
/// q_global, k_global, v_global (Beltagy et al. 2020, §3.1). Then the output projection. Parameters `leaf`.q, .k, .v,
/// .q_global, .k_global, .v_global, .out, each .weight [W, W] and .bias. Scores are scaled by 1/√(W / heads).
///
/// A global token that lies behind the sequence is an error when lengths are bound. Costs N·(window + 1 + G) pairs for
/// the window, G·N for the global tokens, and six projections of all tokens at most; memory is linear in N. (Released
/// models pad to multiples of the window and mask by −10000; no padding is needed here, and what is masked counts
/// exactly 0.)
constexpr Node longformer_attention(std::string_view leaf, Node x, const LongformerOptions& o,
                                    Where where = Where::current()) {
  Builder& b = *x.builder;
  if (!b.usable(x)) return {&b, {}};
  const auto shape = b.shape(x);
  const auto width = shape.size() == 3 ? b.graph().dims.constant(shape[2]) : std::nullopt;
  const auto refuse = [&](error_kind kind, Text got, Text expected) {
    b.fail(op::attention, leaf, {kind, std::move(got), std::move(expected)}, where.line());
    return Node{&b, {}};
  };
  if (!width)
    return refuse(error_kind::wrong_rank, shape_text(b.graph(), shape), "x [batch, length, width], the width a number");
  if (o.heads < 1 || *width % o.heads != 0)
    return refuse(error_kind::heads_do_not_divide_width, Text().append(o.heads).append(" heads"),
                  Text("a divisor of width ").append(*width));
  if (o.window < 0 || o.window % 2 != 0)
    return refuse(error_kind::bad_attribute, Text("a window of ").append(o.window),
                  "an even number of keys, half to each side");
  // Global tokens as ranges: [first, last], in order.
  std::vector<std::int64_t> tokens;
  for (const std::int64_t t : o.globals) {
    if (t < 0) return refuse(error_kind::bad_attribute, Text("global token ").append(t), "a position of 0 or more");
    std::size_t at = tokens.size();
    while (at > 0 && tokens[at - 1] > t) --at;
    if (at == 0 || tokens[at - 1] != t) tokens.insert(tokens.begin() + static_cast<std::ptrdiff_t>(at), t);
  }
  b.push_scope(leaf);
  const auto project = [&](std::string_view name, Node from) {
    return split_heads(linear(name, from, {.width = *width, .bias = o.bias}, where), o.heads, "", where);
  };
  AttentionOptions local, global;
  local.mask = mask::window(o.window / 2, o.window / 2);
  if (!tokens.empty()) local.mask = *local.mask | mask::global_tokens(std::span<const std::int64_t>(tokens), false);
  if (o.mask) local.mask = *local.mask & *o.mask;
  global.mask = o.mask;
  Node y = attention(project("q", x), project("k", x), project("v", x), local, where);
  if (!tokens.empty() && b.usable(y)) {
    // Rows of global tokens, and the ranges between them, each a slice.
    std::vector<Node> chosen, rows;
    for (std::size_t i = 0; i < tokens.size();) {
      std::size_t j = i + 1;
      while (j < tokens.size() && tokens[j] == tokens[j - 1] + 1) ++j;
      chosen.push_back(slice(x, 1, tokens[i], static_cast<std::int64_t>(j - i), where));
      i = j;
    }
    const Node of_globals = attention(project("q_global", concatenate(chosen, 1, where)), project("k_global", x),
                                      project("v_global", x), global, where);
    if (b.usable(of_globals)) {
      std::int64_t end = 0, used = 0;
      for (std::size_t i = 0; i < tokens.size();) {
        std::size_t j = i + 1;
        while (j < tokens.size() && tokens[j] == tokens[j - 1] + 1) ++j;
        const auto count = static_cast<std::int64_t>(j - i);
        if (tokens[i] > end) rows.push_back(slice(y, 2, end, tokens[i] - end, where));
        rows.push_back(slice(of_globals, 2, used, count, where));
        used += count;
        end = tokens[j - 1] + 1;
        i = j;
      }
      const Dim begin = b.dim_number(end);
      rows.push_back(slice_to(y, 2, begin, b.graph().dims.subtract(shape[1], begin), where));
      y = concatenate(rows, 2, where);
    } else {
      y = of_globals;
    }
  }
  y = linear("out", merge_heads(y, where), {.width = *width, .bias = o.bias}, where);
  b.pop_scope();
  return y;
}

}  // namespace treadle
