// Attention and linear attention of cases as graphs.

#include "arguments.hpp"
#include "case_graphs.hpp"

#include <treadle/backends/error.hpp>
#include <treadle/ops/pooled_attention.hpp>

#include <fmt/format.h>

#include <cmath>

namespace treadle::cli {

namespace {

/// Shapes of one call; everything is brought to [batch, heads, length, dim].
struct Shapes {
  std::int64_t batch = 1, heads = 1, q_len = 0, k_len = 0, kv_heads = 1;
};

std::vector<std::int64_t> padded(std::vector<std::int64_t> shape, std::size_t rank) {
  while (shape.size() < rank) shape.insert(shape.begin(), 1);
  return shape;
}

Node strided_input(CallBuilder& b, const std::string& name, const nlohmann::json& view) {
  Feed f;
  f.name = name;
  f.data = b.values(name);
  try {
    f.shape = view.at("shape").get<std::vector<std::int64_t>>();
    f.strides = view.at("strides_elements").get<std::vector<std::int64_t>>();
    f.offset = view.value("offset", std::int64_t{0});
  } catch (const nlohmann::json::exception&) {
    throw Error(fmt::format("the view of '{}' is {}: {{shape, strides_elements, offset}} is needed", name,
                            view.dump().substr(0, 60)));
  }
  bool fits = f.shape.size() == f.strides.size();
  std::int64_t low = f.offset, high = f.offset, size = 1;
  for (std::size_t i = 0; fits && i < f.shape.size(); ++i) {
    fits = f.shape[i] >= 0;
    size *= f.shape[i];
    (f.strides[i] < 0 ? low : high) += f.strides[i] * (f.shape[i] - 1);
  }
  if (!fits || (size > 0 && (low < 0 || high >= static_cast<std::int64_t>(f.data.size()))))
    throw Error(fmt::format("the view of '{}' reaches outside its buffer of {} elements", name, f.data.size()));
  while (f.shape.size() < 4) {
    f.shape.insert(f.shape.begin(), 1);
    f.strides.insert(f.strides.begin(), 0);
  }
  return b.input(std::move(f));
}

Node tensor_input(CallBuilder& b, const std::string& name) {
  if (b.has("views") && b.call().attributes.at("views").contains(name)) {
    return strided_input(b, name, b.take("views").at(name));
  }
  return b.input(name, f32, padded(b.tensor(name).shape, 4));
}

mask::Alignment alignment(CallBuilder& b, const std::string& name) {
  const std::string a = b.text(name, "bottom_right");
  if (a == "bottom_right") return mask::Alignment::bottom_right;
  if (a == "top_left") return mask::Alignment::top_left;
  throw NotSupported(fmt::format("attribute {} {} of attention", name, a));
}

Node table_input(CallBuilder& b, const std::string& name, DType dtype, std::vector<std::int64_t> shape,
                 std::vector<double> data) {
  Feed f;
  f.name = name;
  f.dtype = dtype;
  f.shape = std::move(shape);
  f.data = std::move(data);
  return b.input(std::move(f));
}

/// Window, dilation, global tokens, causal, prefix: the rule part of the mask.
std::optional<Mask> pattern(CallBuilder& b, const Shapes& s) {
  std::optional<Mask> m;
  const bool is_causal = b.flag("causal");
  const mask::Alignment causal_at = alignment(b, "causal_alignment"), window_at = alignment(b, "window_alignment");
  b.only("window_unit", "positions");
  if (b.has("window")) {
    const auto w = b.integers("window");
    if (w.size() != 2 || w[0] < -1 || w[1] < -1)
      throw Error("attribute 'window' of attention needs [left, right], each -1 or more");
    m = window(w[0], w[1], window_at);
  }
  if (b.has("dilation")) {
    const std::int64_t step = b.integer("dilation");
    if (step < 1) throw Error("attribute 'dilation' of attention needs 1 or more");
    m = m ? dilated(*m, step, window_at) : mask::strided(step, window_at);
  }
  const bool symmetric = b.flag("global_symmetric", true);
  if (b.has("global_tokens")) {
    const auto& list = b.take("global_tokens");
    Mask global;
    if (list.is_array() && !list.empty() && list.front().is_array()) {
      std::vector<double> flags(static_cast<std::size_t>(s.batch * s.k_len));
      if (static_cast<std::int64_t>(list.size()) != s.batch)
        throw Error("attribute 'global_tokens' needs one list per batch element");
      for (std::int64_t row = 0; row < s.batch; ++row)
        for (const auto& t : list[static_cast<std::size_t>(row)]) {
          const std::int64_t at = t.is_number_integer() ? t.get<std::int64_t>() : -1;
          if (at < 0 || at >= s.k_len)
            throw Error(fmt::format("attribute 'global_tokens' has {}: a key is from 0 to {}", t.dump(), s.k_len - 1));
          flags[static_cast<std::size_t>(row * s.k_len + at)] = 1;
        }
      table_input(b, "global_flags", i32, {s.batch, s.k_len}, std::move(flags));
      global = mask::global_tokens("global_flags", mask::Rows::per_batch, symmetric);
    } else {
      global = mask::global_tokens(b.integers("global_tokens"), symmetric);
    }
    m = m ? *m | global : global;
  }
  if (b.has("prefix")) {
    Mask seen = causal(causal_at) | prefix(b.integer("prefix"));
    m = m ? *m & seen : seen;
  } else if (is_causal) {
    m = m ? *m & causal(causal_at) : causal(causal_at);
  }
  return m;
}

void narrow(std::optional<Mask>& m, const Mask& other) { m = m ? *m & other : other; }

/// Documents, key lengths, blocks: masks that come with a table.
void tables(CallBuilder& b, const Shapes& s, std::optional<Mask>& m) {
  if (b.has("mask_rule")) {
    if (b.text("mask_rule") != "same_document")
      throw NotSupported(fmt::format("attribute mask_rule {}", b.text("mask_rule")));
    const auto shape = b.tensor("document").shape;
    b.input("document", i32);
    narrow(m, mask::documents("document", shape.size() == 2 ? mask::Rows::per_batch : mask::Rows::shared));
  }
  if (b.has("key_lengths") && b.take("key_lengths").is_array()) {
    const auto lengths = b.integers("key_lengths");
    if (static_cast<std::int64_t>(lengths.size()) != s.batch)
      throw Error("attribute 'key_lengths' needs one length per batch element");
    table_input(b, "key_lengths", i32, {s.batch}, {lengths.begin(), lengths.end()});
    narrow(m, key_lengths("key_lengths"));
  } else if (b.given("key_lengths")) {
    b.ignore("key_lengths");
    b.input("key_lengths", i32);
    narrow(m, key_lengths("key_lengths"));
  }
  if (!b.has("block")) return;
  const std::int64_t block = b.integer("block");
  if (block < 1) throw Error("attribute 'block' of attention needs 1 or more");
  for (const char* how : {"window_blocks", "global_blocks", "random_blocks"})
    b.ignore(how);  // how the blocks were made
  if (b.given("block_mask")) {
    if (b.tensor("block_mask").shape.size() != 2) throw NotSupported("block_mask of another rank than 2");
    b.input("block_mask", i32);
  } else {
    const auto& lists = b.take("block_lists");
    const std::int64_t rows = (s.q_len + block - 1) / block, columns = (s.k_len + block - 1) / block;
    std::vector<double> kept(static_cast<std::size_t>(rows * columns));
    if (!lists.is_array() || static_cast<std::int64_t>(lists.size()) != rows)
      throw Error(fmt::format("attribute 'block_lists' needs one list for each of {} query blocks", rows));
    for (std::int64_t r = 0; r < rows; ++r)
      for (const auto& x : lists[static_cast<std::size_t>(r)]) {
        const std::int64_t at = x.is_number_integer() ? x.get<std::int64_t>() : -1;
        if (at < 0 || at >= columns)
          throw Error(
              fmt::format("attribute 'block_lists' has {}: a key block is from 0 to {}", x.dump(), columns - 1));
        kept[static_cast<std::size_t>(r * columns + at)] = 1;
      }
    table_input(b, "block_mask", i32, {rows, columns}, std::move(kept));
  }
  narrow(m, block_table("block_mask", block));
}

/// The boolean tensor, true keeps, of rank 2 to 4.
Node mask_tensor(CallBuilder& b, const Shapes& s) {
  if (!b.has("mask")) return {};
  const std::string how = b.text("mask");
  Feed f;
  f.name = "mask";
  f.dtype = boolean;
  f.shape = b.tensor("mask").shape;
  f.data = b.values("mask");
  if (how == "drop" || how == "key_padding_drop") {
    for (double& x : f.data) x = x == 0;
  } else if (how != "keep" && how != "key_padding_keep") {
    throw NotSupported(fmt::format("attribute mask {} of attention", how));
  }
  if (how.rfind("key_padding", 0) == 0) {
    if (f.shape != std::vector<std::int64_t>{s.batch, s.k_len})
      throw Error(fmt::format("mask has shape {}: key padding needs [batch, keys]", io::shape_text(f.shape)));
    f.shape = {s.batch, 1, 1, s.k_len};
  }
  f.shape = padded(f.shape, 2);
  return b.input(std::move(f));
}

std::optional<scalar::Function> score(CallBuilder& b, const Shapes& s) {
  std::vector<double> slopes;
  if (b.has("alibi_slopes")) {
    for (const auto& x : b.take("alibi_slopes")) slopes.push_back(x.is_number() ? x.get<double>() : 0.0);
    if (static_cast<std::int64_t>(slopes.size()) != s.heads)
      throw Error("attribute 'alibi_slopes' needs one slope per head");
  }
  const bool standard = slopes.empty() && b.flag("alibi");
  b.only("bias_alignment", "bottom_right");
  if (b.has("softcap")) {
    if (standard || !slopes.empty() || b.has("bias")) throw NotSupported("attribute softcap with a bias");
    return softcap(b.number("softcap"));
  }
  if (standard) return alibi(s.heads);
  if (slopes.empty()) return std::nullopt;
  table_input(b, "slopes", f32, {s.heads}, std::move(slopes));
  return alibi("slopes");
}

/// The weights, for the cases that list them: from primitive nodes where these can say it, else from a probe of `out`.
void weights(CallBuilder& b, Node q, Node k, Node out, const Shapes& s, const AttentionOptions& o, double factor) {
  if (!b.wants("weights")) return;
  if (o.score || o.sink.builder != nullptr || s.heads != s.kv_heads) return b.output("weights", attention_weights(out));
  Node scores = scale(matmul(q, transpose(k)), factor);
  if (o.bias.builder != nullptr) scores = scores + o.bias;
  const DimSpec n = s.q_len, m = s.k_len;
  if (o.mask_tensor.builder != nullptr)
    scores = select(mask_node(o.mask_tensor, n, m, o.mask ? &*o.mask : nullptr), scores,
                    -std::numeric_limits<double>::infinity());
  else if (o.mask)
    scores = select(mask_node(b.g, *o.mask, n, m), scores, -std::numeric_limits<double>::infinity());
  b.output("weights", softmax(scores));
}

void attention_call(CallBuilder& b) {
  b.ignore("views");
  b.ignore("enable_gqa");  // what it says is what the shapes say
  b.ignore("layout");
  if (b.has("layout") && b.text("layout") != "[length, dim]" && b.text("layout") != "[batch, heads, length, dim]")
    throw NotSupported(fmt::format("attribute layout {} of attention", b.text("layout")));
  const Node q = tensor_input(b, "q"), k = tensor_input(b, "k"), v = tensor_input(b, "v");
  const auto numbers = [&](Node x) {
    std::vector<std::int64_t> r;
    for (const Dim d : b.g.shape(x)) r.push_back(b.g.graph().dims.constant(d).value_or(0));
    return r;
  };
  const auto of_q = numbers(q), of_k = numbers(k);
  if (of_q.size() != 4 || of_k.size() != 4) throw Error("q and k of attention need [batch, heads, length, dim]");
  const Shapes s{of_q[0], of_q[1], of_q[2], of_k[2], of_k[1]};
  const double factor = b.has("scale") ? b.number("scale") : 1.0 / std::sqrt(static_cast<double>(of_q[3]));
  b.ignore("scale");

  AttentionOptions o;
  o.scale = factor;
  o.mask = pattern(b, s);
  tables(b, s, o.mask);
  o.mask_tensor = mask_tensor(b, s);
  if (b.has("bias")) {
    b.only("bias", "additive");
    o.bias = b.input("bias", f32, padded(b.tensor("bias").shape, 2));
  }
  b.ignore("bias");
  b.ignore("mask");
  if (b.given("sink")) {
    b.only("sink", true);
    o.sink = b.input("sink");
  }
  o.score = score(b, s);
  b.ignore("global_symmetric");
  const Node out = attention(q, k, v, o);
  b.output("out", out);
  if (out.valid()) b.output("lse", {out.builder, {out.value.node, 1}});
  weights(b, q, k, out, s, o, factor);
  if (b.flag("gradient")) b.ignore("gradient");
}

/// The rows from `first` on of q, k and v through linear attention with a state that starts at 0, then the rest.
Node in_two_calls(CallBuilder& b, Node q, Node k, Node v, LinearAttentionOptions o, std::int64_t first) {
  const auto number = [&](Node x, std::size_t axis) {
    return b.g.graph().dims.constant(b.g.shape(x)[axis]).value_or(0);
  };
  const std::int64_t length = number(q, 2);
  if (first < 0 || first > length || number(k, 2) != length)
    throw Error(
        fmt::format("attribute 'two_calls_split_at' is {}: 0 to the {} rows of q and k is right", first, length));
  const std::vector<std::int64_t> shape{number(q, 0), number(q, 1), number(q, 3), number(v, 3) + 1};
  o.state = b.parameter("no_state", shape,
                        std::vector<double>(static_cast<std::size_t>(shape[0] * shape[1] * shape[2] * shape[3])));
  const auto part = [&](Node x, std::int64_t begin, std::int64_t rows) { return slice(x, 2, begin, rows); };
  const auto call = [&](std::int64_t begin, std::int64_t rows) {
    return linear_attention_from(part(q, begin, rows), part(k, begin, rows), part(v, begin, rows), o);
  };
  const LinearAttentionResult before = call(0, first);
  o.state = before.state;
  return concatenate({before.out, call(first, length - first).out}, 2);
}

void linear_attention_call(CallBuilder& b) {
  b.only("layout", "[length, dim]");
  const std::string feature = b.text("feature");
  b.ignore("chunk");  // the kernel chooses its own; the result may not depend on it
  LinearAttentionOptions o;
  o.causal = b.flag("causal");
  const Node q = b.input("q", f32, padded(b.tensor("q").shape, 4)),
             k = b.input("k", f32, padded(b.tensor("k").shape, 4)),
             v = b.input("v", f32, padded(b.tensor("v").shape, 4));
  if (b.has("key_lengths")) {
    const auto lengths = b.integers("key_lengths");
    Feed f;
    f.name = "key_lengths";
    f.dtype = i32;
    f.shape = {static_cast<std::int64_t>(lengths.size())};
    f.data.assign(lengths.begin(), lengths.end());
    o.key_lengths = b.input(std::move(f));
  } else if (b.given("key_lengths")) {
    o.key_lengths = b.input("key_lengths", i32);
  }
  if (feature == "favor_plus") {
    b.only("eps", 0.0);
    b.output("out",
             favor_attention(
                 q, k, v, {.causal = o.causal, .projection = b.parameter("projection"), .key_lengths = o.key_lengths}));
    return;
  }
  o.eps = b.number("eps", 0.0);
  if (feature == "relu") {
    o.feature = activation::relu;
  } else if (feature != "elu_plus_one") {
    throw NotSupported(fmt::format("attribute feature {} of linear_attention", feature));
  }
  if (b.has("two_calls_split_at")) {
    b.output("out", in_two_calls(b, q, k, v, o, b.integer("two_calls_split_at")));
    return;
  }
  b.output("out", linear_attention(q, k, v, o));
}

void pooled_attention_call(CallBuilder& b) {
  b.only("layout", "[length, dim]");
  PooledAttentionOptions o;
  o.ratio = b.integer("ratio");
  o.causal = b.flag("causal");
  const std::string pool = b.text("pool", "mean");
  if (pool != "mean" && pool != "max") throw NotSupported(fmt::format("attribute pool {} of pooled_attention", pool));
  o.pool = pool == "max" ? reduction::max : reduction::mean;
  const Node q = tensor_input(b, "q"), k = tensor_input(b, "k"), v = tensor_input(b, "v");
  const std::vector<Dim> shape = b.g.shape(q);
  const double dim = static_cast<double>(b.g.graph().dims.constant(shape.back()).value_or(1));
  o.scale = b.has("scale") ? b.number("scale") : 1.0 / std::sqrt(dim);
  b.ignore("scale");
  b.output("out", pooled_attention(q, k, v, o));
  if (!b.wants("weights") || shape[1] != b.g.shape(k)[1]) return;
  const Node pooled = o.pool == reduction::max ? max_pooling_of_runs(k, o.ratio) : mean_pooling_of_runs(k, o.ratio);
  Node scores = scale(matmul(q, transpose(pooled)), *o.scale);
  if (o.causal && b.g.usable(scores))
    scores = select(mask_node(b.g, whole_runs_of_the_past(o.ratio), ScoreLengths{shape[2], b.g.shape(pooled)[2]}),
                    scores, -std::numeric_limits<double>::infinity());
  b.output("weights", softmax(scores));
}

/// softmax(scale · query keyᵀ) key, from primitive nodes; [batch, length, dim].
void dot_attention_call(CallBuilder& b, bool bilinear) {
  Node query = b.input("query");
  const Node key = b.input("key");
  if (bilinear) query = matmul(query, b.parameter("W"));
  const Node w = softmax(scale(matmul(query, transpose(key)), b.number("scale", 1.0)));
  b.output("weights", w);
  b.output("out", matmul(w, key));
}

}  // namespace

const std::map<std::string, CallFunction>& attention_calls() {
  static const std::map<std::string, CallFunction> calls = {
      {"attention", attention_call},
      {"linear_attention", linear_attention_call},
      {"pooled_attention", pooled_attention_call},
      {"dot_attention", [](CallBuilder& b) { dot_attention_call(b, false); }},
      {"bilinear_attention", [](CallBuilder& b) { dot_attention_call(b, true); }},
  };
  return calls;
}

}  // namespace treadle::cli
