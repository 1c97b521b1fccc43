// The other ops of cases as graphs: norms, products, layouts, feed-forward, whole layers.

#include "arguments.hpp"
#include "case_graphs.hpp"

#include <treadle/backends/error.hpp>

#include <fmt/format.h>

namespace treadle::cli {

namespace {

// ----------------------------------------------------------------------------------------------------- norms
void layer_norm_call(CallBuilder& b) {
  Node gamma, beta;
  if (b.given("gamma")) gamma = b.parameter("gamma");
  if (b.given("beta")) beta = b.parameter("beta");
  b.output("out", b.layer_norm(b.input("x"), gamma, beta, b.number("eps")));
}

void rms_norm_call(CallBuilder& b) {
  NodeSpec s = rule::spec(op::rms_norm, "", b.g, Where::current());
  std::vector<Node> inputs{b.input("x")};
  if (b.given("gamma")) inputs.push_back(b.parameter("gamma"));
  s.attributes = {integer(key::has_weight, inputs.size() > 1), integer(key::has_bias, 0),
                  number(key::eps, b.number("eps"))};
  b.output("out", b.g.add(s, inputs, infer_norm));
}

// --------------------------------------------------------------------------------------- products and lookups
void matmul_call(CallBuilder& b) {
  const auto rank = std::max(b.tensor("a").shape.size(), b.tensor("b").shape.size());
  b.output("out", matmul(b.input("a", f32, with_front(b.tensor("a").shape, rank)),
                         b.input("b", f32, with_front(b.tensor("b").shape, rank))));
}

void tied_logits_call(CallBuilder& b) { b.output("out", linear_with(b.input("h"), b.parameter("table"))); }

void embedding_call(CallBuilder& b) { b.output("out", embedding_with(b.parameter("table"), b.input("ids", i32))); }

void bert_embeddings_call(CallBuilder& b) {
  const auto ids = b.tensor("ids").shape;
  const std::int64_t width = b.tensor("token_table").shape.back(), length = ids.back();
  if (b.tensor("position_table").shape[0] < length)
    throw Error("position_table of bert_embeddings has fewer rows than there are ids");
  Node x = embedding_with(b.parameter("token_table"), b.input("ids", i32));
  const Node table = b.parameter("position_table");
  x = add(x, slice(table, 0, 0, length));
  if (b.given("segment_ids")) {
    x = add(x, embedding_with(b.parameter("segment_table"), b.input("segment_ids", i32)));
  } else {  // all 0
    const auto rows = b.values("segment_table");
    x = add(x, b.parameter("segment_table", {width}, {rows.begin(), rows.begin() + width}));
  }
  Node gamma, beta;
  if (b.given("gamma")) gamma = b.parameter("gamma");
  if (b.given("beta")) beta = b.parameter("beta");
  b.output("out", b.layer_norm(x, gamma, beta, b.number("eps")));
}

void sinusoidal_positions_call(CallBuilder& b) {
  const std::int64_t length = b.integer("length"), width = b.integer("d_model");
  b.output("out", sinusoidal_positions(b.g, length, width, {.base = b.number("base")}));
}

// ---------------------------------------------------------------------------------------------------- layouts
void split_heads_call(CallBuilder& b) { b.output("out", split_heads(b.input("x"), b.integer("heads"))); }

void merge_heads_call(CallBuilder& b) {
  const std::int64_t heads = b.integer("heads");
  const auto& shape = b.tensor("x").shape;
  if (shape.size() < 3 || shape[shape.size() - 3] != heads)
    throw Error(fmt::format("x of merge_heads has shape {}: [..., {} heads, length, dim] is needed",
                            io::shape_text(shape), heads));
  b.output("out", merge_heads(b.input("x")));
}

/// One row of a joint projection, cut into the heads of q, k and v in the given order.
void split_qkv_call(CallBuilder& b) {
  const std::string layout = b.text("layout");
  const std::int64_t heads = b.integer("query_heads"), kv = b.integer("kv_heads"), dim = b.integer("head_dim");
  const auto& shape = b.tensor("x").shape;
  if (kv < 1 || heads % kv != 0 || shape.size() != 1 || shape[0] != (heads + 2 * kv) * dim)
    throw Error(fmt::format("x of split_qkv has shape {}: one row of {} is needed", io::shape_text(shape),
                            (heads + 2 * kv) * dim));
  const Node x = b.input("x", f32, std::vector<std::int64_t>{1, shape[0]});
  std::vector<Node> q, k, v;
  std::int64_t at = 0;
  const auto next = [&](std::vector<Node>& into, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i, at += dim) into.push_back(slice(x, 1, at, dim));
  };
  if (layout == "blocked") {
    next(q, heads);
    next(k, kv);
    next(v, kv);
  } else if (layout == "per_head" || layout == "per_group") {
    if (layout == "per_head" && heads != kv)
      throw Error("layout per_head of split_qkv needs as many key heads as query heads");
    for (std::int64_t i = 0; i < kv; ++i) {
      next(q, heads / kv);
      next(k, 1);
      next(v, 1);
    }
  } else {
    throw NotSupported(fmt::format("attribute layout {} of split_qkv", layout));
  }
  b.output("q", concatenate(q, 0));
  b.output("k", concatenate(k, 0));
  b.output("v", concatenate(v, 0));
}

// --------------------------------------------------------------------------------------------- feed-forward
void ffn_call(CallBuilder& b) {
  const activation f = feed_forward_activation(b, b.text("activation"));
  Node b1, b2;
  if (b.given("b1")) b1 = b.parameter("b1");
  if (b.given("b2")) b2 = b.parameter("b2");
  b.output("out", b.linear(activate(b.linear(b.input("x"), b.parameter("w1"), b1), f), b.parameter("w2"), b2));
}

// ----------------------------------------------------------------------------------------------- whole layers
void encoder_layer_call(CallBuilder& b) {
  b.only("layout", "[length, width]");
  b.only("weights", "[in, out], no bias");
  b.ignore("norms");  // says which norm belongs to which sublayer
  const std::int64_t heads = b.integer("heads");
  const double eps = b.number("eps");
  const std::string order = b.text("norm");
  const activation f = feed_forward_activation(b, b.text("ffn"));
  if (order != "pre_norm" && order != "post_norm")
    throw NotSupported(fmt::format("attribute norm {} of encoder_layer", order));
  AttentionOptions options;
  if (b.flag("causal")) options.mask = causal();
  if (b.has("scale")) options.scale = b.number("scale");
  b.ignore("scale");
  const Node gamma1 = b.parameter("gamma1"), beta1 = b.parameter("beta1"), gamma2 = b.parameter("gamma2"),
             beta2 = b.parameter("beta2");
  const Node wq = b.parameter_transposed("wq"), wk = b.parameter_transposed("wk"), wv = b.parameter_transposed("wv"),
             wo = b.parameter_transposed("wo"), w1 = b.parameter_transposed("w1"), w2 = b.parameter_transposed("w2");
  const auto attend = [&](Node x) {
    const Node q = split_heads(linear_with(x, wq), heads), k = split_heads(linear_with(x, wk), heads),
               v = split_heads(linear_with(x, wv), heads);
    return linear_with(merge_heads(attention(q, k, v, options)), wo);
  };
  const auto feed_forward = [&](Node x) { return linear_with(activate(linear_with(x, w1), f), w2); };
  Node x = b.input("x", f32, with_front(b.tensor("x").shape, 3));
  if (order == "pre_norm") {
    x = x + attend(b.layer_norm(x, gamma1, beta1, eps));
    x = x + feed_forward(b.layer_norm(x, gamma2, beta2, eps));
  } else {
    x = b.layer_norm(x + attend(x), gamma1, beta1, eps);
    x = b.layer_norm(x + feed_forward(x), gamma2, beta2, eps);
  }
  b.output("out", x);
}

/// torch.nn.TransformerEncoderLayer and TransformerDecoderLayer, one of each.
struct TorchLayers {
  CallBuilder& b;
  std::int64_t width, heads;
  double eps;
  activation f;
  bool norm_first;

  Node linear(const std::string& name, Node x) {
    return b.linear(x, b.parameter(name + ".weight"), b.parameter(name + ".bias"));
  }
  Node norm(const std::string& name, Node x) {
    return b.layer_norm(x, b.parameter(name + ".weight"), b.parameter(name + ".bias"), eps);
  }
  /// The part of the joint projection: 0 queries, 1 keys, 2 values.
  Node project(const std::string& name, Node x, int part) {
    const auto cut = [&](const std::string& leaf, std::int64_t rows, std::int64_t columns) {
      const auto all = b.values(name + leaf);
      if (static_cast<std::int64_t>(all.size()) != 3 * rows * columns)
        throw Error(fmt::format("'{}{}' has {} numbers: {} are needed", name, leaf, all.size(), 3 * rows * columns));
      const auto first = all.begin() + part * rows * columns;
      return std::vector<double>(first, first + rows * columns);
    };
    const std::string which = name + "." + "qkv"[part];
    const Node weight = b.parameter(which + ".weight", {width, width}, cut(".in_proj_weight", width, width));
    return split_heads(b.linear(x, weight, b.parameter(which + ".bias", {width}, cut(".in_proj_bias", width, 1))),
                       heads);
  }
  Node attend(const std::string& name, Node x, Node memory, AttentionOptions o) {
    const Node q = project(name, x, 0), k = project(name, memory, 1), v = project(name, memory, 2);
    return linear(name + ".out_proj", merge_heads(attention(q, k, v, o)));
  }
  Node feed_forward(const std::string& name, Node x) {
    return linear(name + ".linear2", activate(linear(name + ".linear1", x), f));
  }
  template <class Sublayer>
  Node residual(const std::string& norm_name, Node x, Sublayer sublayer) {
    if (norm_first) return x + sublayer(norm(norm_name, x));
    return norm(norm_name, x + sublayer(x));
  }
};

void encoder_decoder_layer_call(CallBuilder& b) {
  TorchLayers t{b,
                b.integer("d_model"),
                b.integer("heads"),
                b.number("eps"),
                feed_forward_activation(b, b.text("activation")),
                b.flag("norm_first")};
  b.ignore("ffn");  // the hidden width, which the weights have too
  b.only("src_padding", "drop");
  b.only("cross_attention_padding", "src_padding");
  b.only("in_proj_order", "q,k,v");
  Feed padding;
  padding.name = "src_padding";
  padding.dtype = boolean;
  padding.data = b.values("src_padding");
  for (double& x : padding.data) x = x == 0;
  const auto& shape = b.tensor("src_padding").shape;
  if (shape.size() != 2)
    throw Error(fmt::format("src_padding has shape {}: [batch, length] is needed", io::shape_text(shape)));
  padding.shape = {shape[0], 1, 1, shape[1]};
  AttentionOptions keep, self;
  const Node src = b.input("src"), tgt = b.input("tgt");
  keep.mask_tensor = b.input(std::move(padding));
  if (b.flag("decoder_causal")) self.mask = causal();

  Node x = t.residual("encoder.norm1", src, [&](Node y) { return t.attend("encoder.self_attn", y, y, keep); });
  x = t.residual("encoder.norm2", x, [&](Node y) { return t.feed_forward("encoder", y); });
  b.output("memory", x);
  const Node memory = x;
  x = t.residual("decoder.norm1", tgt, [&](Node y) { return t.attend("decoder.self_attn", y, y, self); });
  x = t.residual("decoder.norm2", x, [&](Node y) { return t.attend("decoder.multihead_attn", y, memory, keep); });
  x = t.residual("decoder.norm3", x, [&](Node y) { return t.feed_forward("decoder", y); });
  b.output("out", x);
}

}  // namespace

const std::map<std::string, CallFunction>& layer_calls() {
  static const std::map<std::string, CallFunction> calls = {
      {"layer_norm", layer_norm_call},
      {"rms_norm", rms_norm_call},
      {"matmul", matmul_call},
      {"tied_logits", tied_logits_call},
      {"embedding", embedding_call},
      {"bert_embeddings", bert_embeddings_call},
      {"sinusoidal_positions", sinusoidal_positions_call},
      {"split_heads", split_heads_call},
      {"merge_heads", merge_heads_call},
      {"split_qkv", split_qkv_call},
      {"ffn", ffn_call},
      {"encoder_layer", encoder_layer_call},
      {"encoder_decoder_layer", encoder_decoder_layer_call},
  };
  return calls;
}

}  // namespace treadle::cli
