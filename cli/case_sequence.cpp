// Cases about positions, gated and mixed feed-forward layers, additive attention and a layer with a cache, as graphs.

#include "arguments.hpp"
#include "case_graphs.hpp"

#include <treadle/backends/error.hpp>
#include <treadle/ops/position_tables.hpp>

#include <fmt/format.h>

#include <cmath>

namespace treadle::cli {

namespace {

std::vector<std::int64_t> padded(std::vector<std::int64_t> shape, std::size_t rank) {
  while (shape.size() < rank) shape.insert(shape.begin(), 1);
  return shape;
}

// ------------------------------------------------------------------------------------------------- positions
rope_layout layout_of(const std::string& text, const std::string& op) {
  for (std::size_t i = 0; i < std::size(rope_layout_names); ++i)
    if (rope_layout_names[i] == text) return static_cast<rope_layout>(i);
  throw NotSupported(fmt::format("layout {} of {}", text, op));
}

void rope_call(CallBuilder& b) {
  RopeOptions o;
  o.base = b.number("base", 10000.0);
  o.layout = layout_of(b.text("layout"), "rope");
  o.offset = b.integer("offset", 0);
  o.rotary_dim = b.integer("rotary_dim", 0);
  const Node x = b.input("x", f32, padded(b.tensor("x").shape, 4));
  if (b.given("positions")) o.positions = b.input("positions", i64);
  b.output("out", rope(x, o));
}

/// A table that is made before the run: the graph hands it on.
void table(CallBuilder& b, std::vector<std::int64_t> shape, std::vector<double> data) {
  b.output("out", b.parameter("table", std::move(shape), std::move(data)));
}

void alibi_slopes_call(CallBuilder& b) {
  const std::int64_t heads = b.integer("heads");
  table(b, {heads}, alibi_slopes(heads));
}

void position_ids_call(CallBuilder& b) {
  std::vector<std::int32_t> ids;
  const bool by_mask = b.has("mask");
  const std::string name = by_mask ? "mask" : "ids";
  const auto shape = b.tensor(name).shape;
  const auto values = b.values(name);
  const std::int64_t length = shape.empty() ? 1 : shape.back();
  if (by_mask) {
    b.only("mask", "keep");
    std::vector<std::uint8_t> keep;
    for (const double x : values) keep.push_back(x != 0);
    ids = position_ids(keep, length);
  } else {
    ids = position_ids_after_padding(std::vector<std::int64_t>(values.begin(), values.end()), length,
                                     b.integer("from_padding_index"));
  }
  table(b, shape, {ids.begin(), ids.end()});
}

void relative_buckets_call(CallBuilder& b) {
  const RelativeBuckets o{b.integer("num_buckets"), b.integer("max_distance"), b.flag("bidirectional")};
  std::vector<double> buckets;
  if (b.given("rel")) {
    for (const double r : b.values("rel"))
      buckets.push_back(static_cast<double>(relative_bucket(static_cast<std::int64_t>(r), o)));
    table(b, b.tensor("rel").shape, std::move(buckets));
    return;
  }
  std::vector<std::int64_t> queries, keys;
  if (b.has("length")) {
    for (std::int64_t i = 0; i < b.integer("length"); ++i) queries.push_back(i);
    keys = queries;
  } else {
    queries = b.integers("query_positions");
    keys = b.integers("key_positions");
  }
  for (const std::int64_t q : queries)
    for (const std::int64_t k : keys) buckets.push_back(static_cast<double>(relative_bucket(k - q, o)));
  table(b, {static_cast<std::int64_t>(queries.size()), static_cast<std::int64_t>(keys.size())}, std::move(buckets));
}

// --------------------------------------------------------------------------------------------- feed-forward
void gated_ffn_call(CallBuilder& b) {
  const activation f = feed_forward_activation(b, b.text("activation"));
  const Node x = b.input("x");
  const Node gate = activate(b.linear(x, b.parameter("w_gate")), f), up = b.linear(x, b.parameter("w_up"));
  b.output("out", b.linear(multiply(gate, up), b.parameter("w_down")));
}

void moe_ffn_call(CallBuilder& b) {
  MoeOptions o;
  o.experts = b.integer("experts");
  o.top_k = b.integer("top_k");
  o.renormalise = b.flag("renormalise");
  o.activation = feed_forward_activation(b, b.text("activation"));
  const Node x = b.input("x"), router = b.parameter("router"), up = b.parameter("w1"), down = b.parameter("w2");
  if (b.tensor("router").shape != std::vector<std::int64_t>{o.experts, b.tensor("x").shape.back()})
    throw Error(fmt::format("router of moe_ffn has shape {}: [{} experts, width] is needed",
                            io::shape_text(b.tensor("router").shape), o.experts));
  b.output("out", moe_with(x, router, up, down, o));
}

// ------------------------------------------------------------------------------------------------- attention
/// Values are the keys; [batch, length, dim].
void additive_attention_call(CallBuilder& b) {
  const Node query = b.input("query"), key = b.input("key");
  const Node e =
      additive_scores(b.linear(query, b.parameter("W_s")), b.linear(key, b.parameter("W_h")),
                      b.parameter("v_a", {static_cast<std::int64_t>(b.values("v_a").size())}, b.values("v_a")));
  const Node w = softmax(e);
  b.output("weights", w);
  b.output("out", matmul(w, key));
}

/// One layer, whole or in steps through a cache of keys and values.
void attention_layer_call(CallBuilder& b) {
  b.only("layout", "[length, width]");
  b.only("weights", "[in, out], no bias");
  const std::int64_t heads = b.integer("heads"), kv_heads = b.integer("kv_heads", heads);
  std::vector<std::int64_t> splits;
  if (b.has("cache_split")) splits = b.integers("cache_split");
  b.ignore("cache_split");
  const auto shape = b.tensor("x").shape;
  const auto wk_shape = b.tensor("wk").shape, wv_shape = b.tensor("wv").shape;
  if (shape.size() != 2 || wk_shape.size() != 2 || wv_shape.size() != 2 || kv_heads < 1)
    throw Error("x, wk and wv of attention_layer need [length, width], [in, out] and at least one key head");
  const std::int64_t length = shape[0], width = shape[1];

  const bool cached = !splits.empty();
  const DimSpec rows = cached ? dim("rows") : DimSpec(length), past = cached ? dim("past") : DimSpec(0);
  AttentionOptions options;
  if (b.flag("causal")) options.mask = causal();
  if (b.has("scale")) options.scale = b.number("scale");
  b.ignore("scale");
  RopeOptions turn{.offset = past};
  const bool rotary = b.has("rope_base");
  if (rotary) {
    turn.base = b.number("rope_base");
    turn.layout = layout_of(b.text("rope_layout"), "attention_layer");
  }
  for (const char* name : {"rope_base", "rope_layout"}) b.ignore(name);

  const Node wq = b.parameter_transposed("wq"), wk = b.parameter_transposed("wk"), wv = b.parameter_transposed("wv"),
             wo = b.parameter_transposed("wo");
  const Node x = cached ? b.g.input("x", f32, {1, rows, width}) : b.input("x", f32, padded(shape, 3));
  if (cached) b.g.input("history", i32, {past});  // binds the dim; its values are not read
  Node q = split_heads(linear_with(x, wq), heads), k = split_heads(linear_with(x, wk), kv_heads),
       v = split_heads(linear_with(x, wv), kv_heads);
  if (rotary) {
    q = rope(q, turn);
    k = rope(k, turn);
  }
  if (cached) {
    k = append(b.g.state("keys", f32, {1, kv_heads, length, wk_shape[1] / kv_heads}), k, 2, past);
    v = append(b.g.state("values", f32, {1, kv_heads, length, wv_shape[1] / kv_heads}), v, 2, past);
  }
  b.output("out", linear_with(merge_heads(attention(q, k, v, options)), wo));
  const auto values = b.values("x");
  std::int64_t at = 0;
  for (const std::int64_t count : splits) {
    if (count < 0 || at + count > length)
      throw Error("attribute 'cache_split' of attention_layer does not add up to the length of x");
    CallStep step;
    step.dims = {{"rows", count}, {"past", at}};
    step.inputs = {{"x", f32, {1, count, width}, {values.begin() + at * width, values.begin() + (at + count) * width}},
                   {"history", i32, {at}, std::vector<double>(static_cast<std::size_t>(at))}};
    b.step(std::move(step));
    at += count;
  }
}

}  // namespace

activation feed_forward_activation(CallBuilder& b, const std::string& name) {
  if (name == "relu" || name == "reglu") return relu;
  if (name == "gelu" || name == "geglu") return gelu;
  if (name == "gelu_tanh") return gelu_tanh;
  if (name == "silu" || name == "swiglu") return silu;
  throw NotSupported(fmt::format("attribute activation {} of {}", name, b.call().op));
}

const std::map<std::string, CallFunction>& sequence_calls() {
  static const std::map<std::string, CallFunction> calls = {
      {"rope", rope_call},
      {"alibi_slopes", alibi_slopes_call},
      {"position_ids", position_ids_call},
      {"relative_buckets", relative_buckets_call},
      {"gated_ffn", gated_ffn_call},
      {"moe_ffn", moe_ffn_call},
      {"additive_attention", additive_attention_call},
      {"attention_layer", attention_layer_call},
  };
  return calls;
}

}  // namespace treadle::cli
