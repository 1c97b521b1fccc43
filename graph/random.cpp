#include <treadle/graph/random.hpp>

#include <treadle/graph/mask/masks.hpp>

#include <bit>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace treadle {
namespace {

using Shape = std::vector<Dim>;

class Generator {
 public:
  Generator(std::uint64_t seed, const RandomOptions& o) : random_(seed * 2 + 1), options_(o) {
    g_.regions.push_back({});
    batch_ = symbol("batch");
    seq_ = symbol("seq");
    memory_len_ = symbol("memory");
    past_ = symbol("past");
    levels_.push_back({});
    tokens_ = source(op::input, "tokens", i32, {batch_, seq_});
    x_ = source(op::input, "x", f32, {batch_, seq_, n(8)});
    memory_ = source(op::input, "memory", f32, {batch_, memory_len_, n(8)});
    lengths_ = source(op::input, "lengths", i32, {batch_});
    if (o.states) source(op::input, "past_tokens", i32, {past_});
    keep_ = source(op::input, "keep", boolean, {seq_, seq_});
    bias_ = source(op::input, "bias", f32, {seq_, seq_});
  }

  Graph run() {
    here().pool.push_back(x_);
    here().pool.push_back(embedded());
    for (int i = 0; i < options_.pieces; ++i) piece();
    const int outputs = 1 + pick(3);
    for (int i = 0; i < outputs; ++i) {
      const Value v = i == 0 ? here().pool.back() : any();
      node(op::output, {v}, {}, {shape(v)}, "y" + std::to_string(i));
    }
    for (std::size_t i = 0; i < sides_.size(); ++i)
      if (chance(70)) node(op::output, {sides_[i]}, {}, {shape(sides_[i])}, "side" + std::to_string(i));
    return std::move(g_);
  }

 private:
  struct Capture {
    Value outer, inner;
  };
  struct Level {
    std::int32_t region = 0;
    std::int32_t scope = -1;
    std::int64_t carried = 0;
    std::vector<Value> pool;  ///< f32 [batch, seq, width]
    std::vector<Capture> captures, states;
  };

  Graph g_;
  std::uint64_t random_;
  RandomOptions options_;
  std::vector<Level> levels_;
  std::vector<Value> sides_;  ///< of repeats in the main region
  Dim batch_, seq_, memory_len_, past_;
  Value tokens_, x_, memory_, lengths_, keep_, bias_;
  int names_ = 0;

  // --- chance (splitmix64) ------------------------------------------------------------------------------------
  std::uint64_t next() {
    std::uint64_t z = (random_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  int pick(int count) { return static_cast<int>(next() % static_cast<std::uint64_t>(count)); }
  bool chance(int percent) { return pick(100) < percent; }

  // --- nodes --------------------------------------------------------------------------------------------------
  Level& here() { return levels_.back(); }
  Dim n(std::int64_t value) { return g_.dims.number(value); }
  Dim symbol(std::string_view name) { return g_.dims.symbol(g_.strings.intern(name)); }
  Shape shape(Value v) const {
    const auto s = g_.view().shape(v);
    return {s.begin(), s.end()};
  }
  Value node(op o, std::vector<Value> inputs, std::vector<Attribute> attributes, std::vector<Shape> outputs,
             const std::string& leaf = "", DType dtype = f32) {
    NodeSpec s;
    s.op = o;
    s.region = here().region;
    s.scope = o == op::output ? -1 : here().scope;
    if (!leaf.empty()) s.leaf = g_.strings.intern(leaf);
    for (Value& v : inputs) v = reach(v, levels_.size() - 1);
    s.inputs = std::move(inputs);
    s.attributes = std::move(attributes);
    for (Shape& x : outputs) s.outputs.push_back({dtype, std::move(x)});
    return {add_node(g_, s), 0};
  }
  Value source(op o, const std::string& leaf, DType dtype, const Shape& dims) {
    return node(o, {}, {}, {dims}, leaf, dtype);
  }
  Value parameter(const Shape& dims, const char* kind = "weight") {
    return source(op::parameter, "p" + std::to_string(names_++) + "." + kind, f32, dims);
  }
  /// Where the region at `level` sees an outer value: captured through every repeat in between.
  Value reach(Value v, std::size_t level) {
    if (g_.nodes[v.node].region == levels_[level].region) return v;
    const Value outer = reach(v, level - 1);
    for (const Capture& c : levels_[level].captures)
      if (c.outer == outer) return c.inner;
    const auto index = levels_[level].carried + static_cast<std::int64_t>(levels_[level].captures.size());
    const Value inner = region_input(outer, levels_[level].region, index);
    levels_[level].captures.push_back({outer, inner});
    return inner;
  }
  Value region_input(Value outer, std::int32_t region, std::int64_t index, bool slice = false) {
    NodeSpec s;
    s.op = op::region_input;
    s.region = region;
    s.attributes = {integer(key::index, index)};
    Shape dims = shape(outer);
    if (slice) dims.erase(dims.begin());
    s.outputs = {{g_.view().info(outer).dtype, dims}};
    return {add_node(g_, s), 0};
  }

  Value any() { return here().pool[static_cast<std::size_t>(pick(static_cast<int>(here().pool.size())))]; }
  /// A value of the pool with this shape, or an invalid one.
  Value alike(Value v) {
    std::vector<Value> fit;
    for (Value w : here().pool)
      if (shape(w) == shape(v)) fit.push_back(w);
    return fit.empty() ? Value{} : fit[static_cast<std::size_t>(pick(static_cast<int>(fit.size())))];
  }
  std::int64_t width(Value v) { return *g_.dims.constant(shape(v).back()); }
  std::int64_t random_width() { return 4 * (1 + pick(3)); }

  Value unary(op o, Value x, std::vector<Attribute> attributes = {}) {
    return node(o, {x}, std::move(attributes), {shape(x)});
  }
  Value scaled(Value x, double factor) { return unary(op::scale, x, {number(key::factor, factor)}); }
  Value activated(Value x) {
    const activation safe[] = {activation::relu,     activation::gelu, activation::gelu_tanh, activation::silu,
                               activation::sigmoid,  activation::tanh, activation::erf,       activation::elu_plus_one,
                               activation::softplus, activation::elu,  activation::quick_gelu};
    return unary(op::activation, x, {integer(key::function, static_cast<std::int64_t>(safe[pick(11)]))});
  }
  Value linear(Value x, std::int64_t out, bool bias) {
    Shape dims = shape(x);
    std::vector<Value> inputs{x, parameter({n(out), dims.back()})};
    if (bias) inputs.push_back(parameter({n(out)}, "bias"));
    dims.back() = n(out);
    return node(op::linear, inputs,
                {integer(key::has_bias, bias), integer(key::has_residual, 0), integer(key::function, 0)}, {dims});
  }
  Value norm(Value x) {
    const bool layer = chance(50), weight = chance(80), bias = layer && weight;
    std::vector<Value> inputs{x};
    if (weight) inputs.push_back(parameter({shape(x).back()}));
    if (bias) inputs.push_back(parameter({shape(x).back()}, "bias"));
    return node(layer ? op::layer_norm : op::rms_norm, inputs,
                {integer(key::has_weight, weight), integer(key::has_bias, bias), number(key::eps, 1e-5)}, {shape(x)});
  }
  Value sum(Value a, Value b) { return node(op::add, {a, b}, {}, {shape(a)}); }
  Value transposed(Value x) {
    Shape dims = shape(x);
    std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
    return node(op::transpose, {x},
                {integer(key::perm, dims.size() == 4 ? 0 + 8 * 1 + 64 * 3 + 512 * 2 : 0 + 8 * 2 + 64 * 1)}, {dims});
  }
  Value matmul(Value a, Value b) {
    Shape dims = shape(a);
    dims.back() = shape(b).back();
    return node(op::matmul, {a, b}, {}, {dims});
  }
  Value split(Value x, std::int64_t heads) {
    const Shape s = shape(x);
    return node(op::split_heads, {x}, {integer(key::heads, heads)}, {{s[0], n(heads), s[1], n(width(x) / heads)}});
  }
  Value merge(Value x) {
    const Shape s = shape(x);
    return node(op::merge_heads, {x}, {}, {{s[0], s[2], n(*g_.dims.constant(s[1]) * width(x))}});
  }
  Value embedded() {
    const Value table = parameter({n(11), n(8)});
    Value x = node(op::embedding, {table, tokens_}, {}, {{batch_, seq_, n(8)}});
    if (chance(25)) x = scaled(x, 2.5);
    if (chance(50)) {
      const Value learned = parameter({n(16), n(8)});
      x = sum(x, node(op::positions, {learned}, {dim_attribute(key::offset, n(0)), dim_attribute(key::length, seq_)},
                      {{seq_, n(8)}}));
    }
    if (chance(50))
      x = sum(x, node(op::sinusoidal_positions, {},
                      {dim_attribute(key::offset, n(0)), dim_attribute(key::length, seq_), number(key::base, 10000)},
                      {{seq_, n(8)}}));
    if (chance(50)) x = norm(x);
    return x;
  }

  // --- masks and attention ------------------------------------------------------------------------------------
  Value mask(Dim k_len) {
    scalar::Pool& pool = g_.scalars;
    std::vector<Value> inputs;
    const bool tensor = k_len == seq_ && chance(25);
    if (tensor) inputs.push_back(keep_);
    int root = chance(60) ? mask::build::causal(pool) : mask::build::window(pool, pick(3), chance(50) ? -1 : pick(3));
    if (chance(25)) root = scalar::build::logic(pool, scalar::Op::logic_or, root, mask::build::prefix(pool, pick(3)));
    if (chance(20)) root = scalar::build::logic(pool, scalar::Op::logic_and, root, mask::build::strided(pool, 2));
    bool by_order = false;  // a table that is computed
    if (options_.masks_with_tables && chance(40)) {
      by_order = k_len == seq_ && chance(30);
      const int kept =
          by_order ? scalar::trace_mask(
                         pool, [](auto b, auto, auto q, auto k) { return scalar::lookup<i32>("order", b, k) <= q + 1; })
                   : mask::build::key_lengths(pool, "lengths");
      root = scalar::build::logic(pool, scalar::Op::logic_and, root, kept);
    }
    std::vector<Attribute> attributes{integer(key::has_tensor, tensor), scalar_attribute(key::expression, root)};
    Dim batch_len = n(1);
    if (pool[root].uses & scalar::uses_table) {
      inputs.push_back(by_order ? token_order() : lengths_);
      batch_len = shape(lengths_)[0];
      attributes.push_back(dim_attribute(key::b_len, batch_len));
    }
    attributes.push_back(dim_attribute(key::q_len, seq_));
    attributes.push_back(dim_attribute(key::k_len, k_len));
    return node(op::mask, inputs, attributes, {{batch_len, n(1), seq_, k_len}}, "", boolean);
  }
  /// Positions by token: ids are integers, so no rounding changes the order.
  Value token_order() { return node(op::argsort, {tokens_}, {}, {{batch_, seq_}}, "", i64); }
  Value attention(Value q, Value k, Value v, double scale) {
    const bool has_mask = chance(60), has_bias = shape(k)[2] == seq_ && chance(25), has_sink = chance(15);
    std::vector<Value> inputs{q, k, v};
    if (has_mask) inputs.push_back(mask(shape(k)[2]));
    if (has_bias) inputs.push_back(chance(50) ? bias_ : relative_bias(*g_.dims.constant(shape(q)[1])));
    if (has_sink) inputs.push_back(parameter({shape(q)[1]}, "sink"));
    Shape out = shape(q);
    out[3] = shape(v)[3];
    std::vector<Attribute> attributes{number(key::scale, scale), integer(key::has_mask, has_mask),
                                      integer(key::has_bias, has_bias), integer(key::has_sink, has_sink)};
    const Value y = node(op::attention, inputs, attributes, {out, {out[0], out[1], out[2]}});
    if (chance(75)) return y;
    // Weights, or a summary of them, times the output.
    inputs[2] = {y.node, 1};
    const bool all = shape(k)[2] == seq_ && chance(40);
    attributes.push_back(integer(key::probe, static_cast<std::int64_t>(all ? probe::weights : probe::entropy)));
    Shape seen{out[0], out[1], out[2]};
    if (all) {
      seen.push_back(seq_);
      return matmul(node(op::attention_probe, inputs, attributes, {seen}), y);
    }
    const Value entropy = node(op::attention_probe, inputs, attributes, {seen});
    seen.push_back(n(1));
    return node(op::multiply, {y, node(op::reshape, {entropy}, {}, {seen})}, {}, {out});
  }
  Value relative_bias(std::int64_t heads) {
    return node(op::relative_bias, {parameter({n(4), n(heads)}, "relative")},
                {integer(key::max_distance, 5), integer(key::causal, 0), integer(key::top_left, pick(2)),
                 dim_attribute(key::q_len, seq_), dim_attribute(key::k_len, seq_)},
                {{n(1), n(heads), seq_, seq_}});
  }
  Value rotated(Value x) {
    const std::int64_t dim = *g_.dims.constant(shape(x).back());
    const bool from_past = options_.states && chance(30);
    std::vector<Attribute> attributes{number(key::base, 100), integer(key::layout, pick(2)),
                                      dim_attribute(key::offset, from_past ? past_ : n(pick(3))),
                                      integer(key::rotary_dim, chance(50) ? 2 : dim), integer(key::has_positions, 0)};
    if (chance(30)) {
      attributes.push_back(integer(key::scaling, 1 + pick(5)));
      attributes.push_back(number(key::factor, 2));
      attributes.push_back(integer(key::original_length, 4));
      attributes.push_back(number(key::low, 0.1));
      attributes.push_back(number(key::high, 0.5));
      attributes.push_back(dim_attribute(key::length, seq_));
    }
    return node(op::rope, {x}, attributes, {shape(x)});
  }
  Value features(Value x, Value projection) {
    Shape out = shape(x);
    out.back() = shape(projection)[0];
    return node(op::random_features, {x, projection}, {number(key::scale, 0.8)}, {out});
  }
  Value favor_attention(Value q, Value k, Value v) {
    const std::int64_t dim = *g_.dims.constant(shape(q).back());
    const Value w =
        node(op::random_projection, {},
             {integer(key::features, 5), integer(key::head_dim, dim), integer(key::seed, pick(3))}, {{n(5), n(dim)}});
    Shape out = shape(q);
    out[3] = shape(v)[3];
    const bool causal = shape(k)[2] == seq_ && chance(50);
    return node(op::linear_attention, {features(q, w), features(k, w), v},
                {integer(key::causal, causal), number(key::eps, 0),
                 integer(key::function, static_cast<std::int64_t>(activation::exp)), integer(key::has_mask, 0)},
                {out});
  }
  /// softmax(v·tanh(q_i + k_j)) x.
  Value additive_attention(Value x) {
    const Value q = linear(x, 3, chance(50)), k = linear(x, 3, false), v = parameter({n(3)}, "score");
    Shape scores = shape(x);
    scores[2] = scores[1];
    return matmul(unary(op::softmax, node(op::additive_scores, {q, k, v}, {}, {scores})), x);
  }
  Value experts(Value x) {
    const std::int64_t count = 2 + pick(3);
    const bool gated = chance(50);
    const Dim e = n(count), hidden = n(3), w = shape(x).back();
    std::vector<Value> inputs{x, parameter({e, w}, "router"), parameter({e, hidden, w}, "up"),
                              parameter({e, w, hidden}, "down")};
    if (gated) inputs.push_back(parameter({e, hidden, w}, "gate"));
    return node(op::moe, inputs,
                {integer(key::top_k, 1 + pick(2)), integer(key::renormalise, pick(2)),
                 integer(key::function, static_cast<std::int64_t>(activation::silu)), integer(key::has_gate, gated)},
                {shape(x)});
  }
  /// Retention, gates, the delta rule; keys of length below 1 keep it stable.
  Value recurrent_attention(Value q, Value k, Value v) {
    const auto apply = [&](activation f, Value x) {
      return unary(op::activation, x, {integer(key::function, static_cast<std::int64_t>(f))});
    };
    k = unary(op::softmax, k);
    const bool gate = chance(70), beta = chance(50), state = chance(30);
    std::vector<Value> inputs{q, k, v};
    if (gate && chance(50)) {
      inputs.push_back(scaled(apply(activation::softplus, q), -0.5));
    } else if (gate) {
      inputs.push_back(node(op::constant, {}, {number(key::value, -0.125)}, {{n(1), shape(q)[1], n(1), n(1)}}));
    }
    const Shape steps{shape(q)[0], shape(q)[1], shape(q)[2]};
    if (beta) inputs.push_back(apply(activation::sigmoid, node(op::logsumexp, {q}, {}, {steps})));
    if (state) inputs.push_back(matmul(transposed(k), v));
    Shape out = shape(q), after = shape(q);
    out[3] = after[3] = shape(v)[3];
    after[2] = shape(q)[3];
    return node(op::recurrent_attention, inputs,
                {number(key::scale, 0.5), integer(key::has_gate, gate), integer(key::has_beta, beta),
                 integer(key::has_state, state)},
                {out, after});
  }
  /// f(x) for a function that a user might write: x where it is positive, x/4 elsewhere.
  Value mapped(Value x) {
    scalar::Pool& pool = g_.scalars;
    const int root = scalar::trace_feature(pool, [](auto v) { return where(v > 0.0, v, v * 0.25); });
    return node(op::map, {x}, {scalar_attribute(key::expression, root)}, {shape(x)});
  }
  Value linear_attention(Value q, Value k, Value v) {
    if (chance(30)) return favor_attention(q, k, v);
    if (shape(k)[2] == seq_ && chance(35)) return recurrent_attention(q, k, v);
    Shape out = shape(q);
    out[3] = shape(v)[3];
    const bool causal = shape(k)[2] == seq_ && chance(50), lengths = chance(25);
    std::vector<Value> inputs{q, k, v};
    if (lengths) inputs.push_back(lengths_);
    return node(
        op::linear_attention, inputs,
        {integer(key::causal, causal), number(key::eps, 1e-3),
         integer(key::function, static_cast<std::int64_t>(activation::elu_plus_one)), integer(key::has_mask, lengths)},
        {out});
  }
  /// softmax(scale(q kᵀ) + mask) v from primitive nodes, in one of the ways that people write it.
  Value written_out(Value q, Value k, Value v, double factor) {
    const int where = pick(5);  // the scale: on q, on k, on kᵀ, after, nowhere
    if (where == 0) q = scaled(q, factor);
    if (where == 1) k = scaled(k, factor);
    k = transposed(k);
    if (where == 2) k = scaled(k, factor);
    Value s = matmul(q, k);
    if (where == 3) s = scaled(s, factor);
    const Dim k_len = shape(k).back();
    const int layers = pick(3);
    for (int i = 0; i < layers; ++i) {
      const bool heads = shape(s).size() == 4;
      if (heads && chance(45)) {
        const Value m = mask(k_len), bias = node(op::mask_to_bias, {m}, {}, {shape(m)});
        s = node(op::add, chance(50) ? std::vector<Value>{s, bias} : std::vector<Value>{bias, s}, {}, {shape(s)});
      } else if (heads && chance(60)) {
        s = node(op::select, {mask(k_len), s}, {number(key::value, -std::numeric_limits<double>::infinity())},
                 {shape(s)});
      } else if (k_len == seq_ && chance(60)) {
        s = sum(s, bias_);
      } else {
        s = scaled(s, 0.75);
      }
    }
    const Value weights = unary(op::softmax, s);
    if (chance(10) && k_len == seq_) probe(s);  // a second reader: must not be fused away
    return matmul(weights, v);
  }
  /// (φ(q) φ(k)ᵀ where causal) v, divided by the same sum of ones, in the ways that equations put it.
  Value written_out_linear(Value q, Value k, Value v) {
    const activation f = chance(70) ? activation::elu_plus_one : activation::relu;
    const auto phi = [&](Value x) {
      return unary(op::activation, x, {integer(key::function, static_cast<std::int64_t>(f))});
    };
    Shape column(shape(k).size(), n(1));
    column[column.size() - 2] = shape(k)[column.size() - 2];
    const Value ones = node(op::constant, {}, {number(key::value, 1)}, {column});
    const bool heads = shape(q).size() == 4;
    const Value left = phi(q), keys = transposed(phi(k));
    Value above, below;
    if (chance(35)) {
      above = matmul(left, matmul(keys, v));
      below = matmul(left, matmul(keys, ones));
    } else {
      Value s = matmul(left, keys);
      if (heads && shape(k)[2] != memory_len_ && chance(60)) {
        const Dim k_len = shape(k)[2];
        const Value mask =
            node(op::mask, {},
                 {integer(key::has_tensor, 0), scalar_attribute(key::expression, mask::build::causal(g_.scalars)),
                  dim_attribute(key::q_len, seq_), dim_attribute(key::k_len, k_len)},
                 {{n(1), n(1), seq_, k_len}}, "", boolean);
        s = node(op::select, {mask, s}, {number(key::value, 0)}, {shape(s)});
      }
      above = matmul(s, v);
      below = matmul(s, ones);
    }
    // relu may leave nothing to divide by.
    if (f == activation::relu || chance(30))
      below = sum(below, node(op::constant, {}, {number(key::value, 0.5)}, {Shape{n(1)}}));
    const auto apply = [&](activation g, Value x) {
      return unary(op::activation, x, {integer(key::function, static_cast<std::int64_t>(g))});
    };
    const Value inverse = apply(activation::exp, scaled(apply(activation::log, below), -1));
    return node(op::multiply, chance(50) ? std::vector<Value>{above, inverse} : std::vector<Value>{inverse, above}, {},
                {shape(above)});
  }
  /// Makes something of the pool depend on a scores matrix.
  void probe(Value scores) {
    if (shape(scores).size() != 3) return;
    const Value bounded = unary(op::softmax, scores);
    here().pool.push_back(matmul(bounded, any()));
  }
  /// Appends to a state of its own, with one slice per iteration inside a repeat of the main region.
  Value cached(Value x) {
    if (!options_.states || levels_.size() > 2) return x;
    Shape dims = shape(x);
    const Dim rows = dims[2];
    dims[2] = n(24);
    Value state;
    const std::string leaf = "state" + std::to_string(names_++);
    if (levels_.size() == 1) {
      state = source(op::state, leaf, f32, dims);
    } else {
      NodeSpec s;
      s.op = op::state;
      s.leaf = g_.strings.intern(leaf);
      Shape stacked = dims;
      stacked.insert(stacked.begin(), n(times_));
      s.outputs = {{f32, stacked}};
      const Value outer{add_node(g_, s), 0};
      state = region_input(outer, here().region, 0, true);  // numbered when the repeat is closed
      here().states.push_back({outer, state});
    }
    dims[2] = g_.dims.add(past_, rows);
    return node(op::append, {state, x}, {integer(key::axis, 2), dim_attribute(key::offset, past_)}, {dims});
  }
  Value attention_layer(Value x) {
    const std::int64_t heads = std::int64_t{1} << pick(3), dim = 2 * (1 + pick(2));
    const bool cross = chance(25), bias = chance(50);
    const Value other = cross ? memory_ : x;
    if (options_.written_out && chance(15)) {  // no heads: rank 3
      const Value q = linear(x, dim, bias), k = linear(other, dim, bias), v = linear(other, dim, bias);
      return linear(chance(25) ? written_out_linear(q, k, v) : written_out(q, k, v, 0.7), width(x), bias);
    }
    const bool named = !options_.written_out || chance(50);
    const std::int64_t kv_heads = named && chance(30) ? 1 : heads;
    const int where = pick(12);  // a scale on q or k, before or after the heads are split
    const auto maybe = [&](Value v, int at) { return where == at ? scaled(v, 0.6) : v; };
    Value q = maybe(split(maybe(linear(x, heads * dim, bias), 0), heads), 1);
    Value k = maybe(split(maybe(linear(other, kv_heads * dim, bias), 2), kv_heads), 3),
          v = split(linear(other, kv_heads * dim, bias), kv_heads);
    if (chance(20)) {
      q = rotated(q);
      k = rotated(k);
    }
    if (!cross && chance(20)) {
      k = cached(k);
      v = cached(v);
    }
    Value y;
    if (!named) {
      y = chance(25) ? written_out_linear(q, k, v) : written_out(q, k, v, 0.7);
    } else if (kv_heads == heads && (shape(k)[2] == seq_ || shape(k)[2] == memory_len_) && chance(25)) {
      y = linear_attention(q, k, v);
    } else {
      y = attention(q, k, v, 0.5);
    }
    return linear(merge(y), width(x), bias);
  }

  // --- pieces -------------------------------------------------------------------------------------------------
  std::int64_t times_ = 1;  ///< of the repeat in the main region

  void piece() {
    const Value x = any();
    Value y;
    switch (pick(29)) {
      case 0: y = linear(x, random_width(), chance(50)); break;
      case 1: {
        y = activated(linear(x, random_width(), chance(50)));
        if (chance(50)) y = linear(y, random_width(), chance(50));
        break;
      }
      case 2: y = sum(linear(x, width(x), false), parameter({shape(x).back()}, "bias")); break;
      case 3: {
        const Value f = linear(activated(linear(x, random_width(), true)), width(x), chance(50));
        y = chance(50) ? sum(x, f) : sum(f, x);
        break;
      }
      case 4:
      case 5:
      case 6: {
        const Value a = attention_layer(chance(50) ? norm(x) : x);
        y = chance(60) && shape(a) == shape(x) ? sum(x, a) : a;
        break;
      }
      case 7: y = norm(x); break;
      case 8: {
        const Value other = alike(x);
        y = chance(50) ? sum(x, other)
                       : unary(op::activation, node(op::multiply, {x, other}, {}, {shape(x)}),
                               {integer(key::function, static_cast<std::int64_t>(activation::tanh))});
        break;
      }
      case 9: y = chance(50) ? unary(op::softmax, x) : scaled(activated(x), 0.5); break;
      case 10: {
        const Value t = transposed(x);
        y = chance(50) ? transposed(t) : unary(op::softmax, matmul(x, matmul(t, x)));
        break;
      }
      case 11: {
        Shape dims = shape(x);
        const Value z = any();
        dims.back() = n(width(x) + width(z));
        const Value both = node(op::concatenate, {x, z}, {integer(key::axis, 2)}, {dims});
        dims.back() = n(4);
        y = node(op::slice, {both},
                 {integer(key::axis, 2), dim_attribute(key::begin, n(2)), dim_attribute(key::length, n(4))}, {dims});
        break;
      }
      case 12: y = twice(x); break;
      case 13: y = with_scale(x); break;
      case 14: y = part(x); break;
      case 15: y = gated(x); break;
      case 16: {  // a residual stream without a projection in front
        const Value other = alike(x), s = sum(x, chance(50) ? other : norm(other));
        here().pool.push_back(s);
        y = norm(s);
        break;
      }
      case 17: y = additive_attention(x); break;
      case 18: y = experts(x); break;
      case 22: y = chance(50) ? unary(op::log_softmax, x) : unary(op::softcap, x, {number(key::factor, 1.5)}); break;
      case 23: y = chosen(x); break;
      case 24: y = reshaped(x); break;
      case 25: y = gathered(x); break;
      case 26: y = pooled(x); break;
      case 27: y = sum(x, small_constant(width(x))); break;
      case 28: y = mapped(x); break;
      default: y = static_cast<int>(levels_.size()) <= options_.depth ? repeat() : norm(x); break;
    }
    here().pool.push_back(y);
  }
  Value gated(Value x) {
    const std::int64_t wide = random_width();
    const bool bias = chance(50);
    Value gate = linear(x, wide, bias), up = linear(chance(90) ? x : alike(x), wide, chance(90) ? bias : !bias);
    if (chance(80)) gate = activated(gate);
    if (chance(10)) up = activated(up);
    if (chance(30)) std::swap(gate, up);
    return linear(node(op::multiply, {gate, up}, {}, {shape(gate)}), width(x), chance(50));
  }
  /// Arithmetic on constants: a row of this width.
  Value small_constant(std::int64_t wide) {
    const Shape row{n(wide)};
    const auto full = [&](double value) { return node(op::constant, {}, {number(key::value, value)}, {row}); };
    Value c = full(0.5);
    if (chance(70)) {
      const Value table =
          node(op::sinusoidal_positions, {},
               {dim_attribute(key::offset, n(pick(40))), dim_attribute(key::length, n(1)), number(key::base, 10000)},
               {{n(1), n(wide)}});
      c = node(op::add, {table, c}, {}, {shape(table)});
    }
    c = chance(50) ? scaled(c, 0.25) : node(op::multiply, {c, full(0.75)}, {}, {shape(c)});
    return c;
  }
  /// A scale beside parameters that can take it.
  Value with_scale(Value x) {
    const double factor = chance(50) ? 0.5 : -0.75;
    switch (pick(4)) {
      case 0: return scaled(linear(x, random_width(), chance(50)), factor);
      case 1: return linear(scaled(x, factor), random_width(), chance(50));
      case 2: return scaled(norm(x), factor);
      default: {  // read by two projections
        const Value s = scaled(x, factor);
        return sum(activated(linear(s, 8, chance(50))), activated(linear(s, 8, chance(50))));
      }
    }
  }
  /// One position of the sequence (or the first element of the batch) after nodes that work position by position, added
  /// to all.
  Value part(Value x) {
    Value y = x;
    for (int i = 1 + pick(3); i > 0; --i) {
      const Value z = chance(30) ? scaled(y, 0.5) : chance(50) ? norm(y) : activated(linear(y, width(y), chance(50)));
      y = chance(30) ? sum(y, z) : z;
    }
    Shape dims = shape(y);
    const bool rows = chance(70);
    dims[rows ? 1 : 0] = n(1);
    const Dim begin = rows && chance(70) ? g_.dims.subtract(seq_, n(1)) : n(0);
    const Value one = node(
        op::slice, {y},
        {integer(key::axis, rows ? 1 : 0), dim_attribute(key::begin, begin), dim_attribute(key::length, n(1))}, {dims});
    return sum(x, one);
  }
  /// A table's rows, chosen by the largest of a row: always the last, which no rounding changes.
  Value chosen(Value x) {
    Shape dims = shape(x);
    const Value small = scaled(unary(op::activation, x, {function(activation::sigmoid)}), 0.25);
    dims.back() = n(1);
    Value last =
        node(op::slice, {x}, {integer(key::axis, 2), dim_attribute(key::begin, n(0)), dim_attribute(key::length, n(1))},
             {dims});
    last = unary(op::activation, last, {function(activation::relu)});
    last = unary(op::activation, last, {function(activation::elu_plus_one)});
    dims.back() = n(width(x) + 1);
    const Value row = node(op::concatenate, {small, last}, {integer(key::axis, 2)}, {dims});
    if (chance(30)) {  // the largest alone, or all of them
      const Value kept =
          node(op::top_k_mask, {row}, {integer(key::top_k, chance(50) ? 1 : width(x) + 1)}, {shape(row)}, "", boolean);
      return linear(node(op::select, {kept, row}, {number(key::value, 0.5)}, {shape(row)}), 8, false);
    }
    const Value ids = node(op::argmax, {row}, {}, {{batch_, seq_}}, "", i64);
    if (levels_.size() == 1) {
      sides_.push_back(node(op::logsumexp, {row}, {}, {{batch_, seq_}}));
      sides_.push_back(
          node(op::cross_entropy, {row, ids},
               {integer(key::reduction, static_cast<std::int64_t>(reduction::mean)), integer(key::ignore_index, -100)},
               {Shape{}}));
    }
    return node(op::embedding, {parameter({n(width(x) + 1), n(8)}), ids}, {}, {{batch_, seq_, n(8)}});
  }
  static Attribute function(activation a) { return integer(key::function, static_cast<std::int64_t>(a)); }
  Value reshape(Value x, const Shape& dims) { return node(op::reshape, {x}, {}, {dims}); }
  Value constant(const std::vector<double>& numbers, DType dtype) {
    const auto first = static_cast<std::int64_t>(g_.tables.size()), count = static_cast<std::int64_t>(numbers.size());
    for (double v : numbers) g_.tables.push_back(std::bit_cast<std::int64_t>(v));
    return node(op::constant, {}, {data_attribute(key::data, first, count)}, {{n(count)}}, "", dtype);
  }
  /// Something done in another shape.
  Value reshaped(Value x) {
    const Shape dims = shape(x);
    if (chance(50)) {
      const Value pairs = reshape(x, {batch_, seq_, n(width(x) / 2), n(2)});
      return reshape(chance(50) ? activated(pairs) : unary(op::softmax, pairs), dims);
    }
    const Value flat = linear(reshape(chance(30) ? transposed(x) : x, {g_.dims.multiply(batch_, seq_), dims.back()}),
                              random_width(), chance(50));
    return reshape(flat, {batch_, seq_, shape(flat).back()});
  }
  /// Columns by constant ids, some of them dropped, and one number added.
  Value gathered(Value x) {
    if (chance(25))  // the sequence in the order of its tokens
      return node(op::gather, {x, token_order()}, {integer(key::axis, 1), integer(key::batch_dims, 1)}, {shape(x)});
    std::vector<double> ids, keep;
    const std::int64_t count = random_width();
    for (std::int64_t i = 0; i < count; ++i) ids.push_back(pick(static_cast<int>(width(x))));
    for (std::int64_t i = 0; i < count; ++i) keep.push_back(chance(75) ? 1 : 0);
    const Shape dims{batch_, seq_, n(count)};
    Value y = node(op::gather, {x, constant(ids, chance(50) ? i32 : i64)},
                   {integer(key::axis, 2), integer(key::batch_dims, 0)}, {dims});
    if (chance(50)) y = node(op::dropout, {y, constant(keep, boolean)}, {number(key::p, 0.25)}, {dims});
    if (chance(50)) y = sum(y, node(op::constant, {}, {number(key::value, 0.5)}, {{seq_, n(count)}}));
    return y;
  }
  /// x beside one vector for its sequence.
  Value pooled(Value x) {
    const Value whole = x;
    const reduction hows[] = {reduction::mean, reduction::max, reduction::first};
    const reduction how = hows[pick(3)];
    bool lengths = how != reduction::first && chance(50);
    if (chance(30)) {  // runs first
      Shape runs = shape(x);
      runs[1] = g_.dims.ceil_div(runs[1], n(3));
      lengths = false;
      x = node(op::pool, {x},
               {integer(key::reduction, static_cast<std::int64_t>(chance(50) ? reduction::mean : reduction::max)),
                integer(key::has_mask, 0), dim_attribute(key::length, n(3))},
               {runs});
    }
    std::vector<Value> inputs{x};
    if (lengths) inputs.push_back(lengths_);
    const Shape dims = shape(x);
    const Value one = node(op::pool, inputs,
                           {integer(key::reduction, static_cast<std::int64_t>(how)), integer(key::has_mask, lengths)},
                           {{dims[0], dims[2]}});
    return sum(whole, reshape(one, {dims[0], n(1), dims[2]}));
  }
  /// The same computed two times.
  Value twice(Value x) {
    const int factor = 1 + pick(3);
    const auto once = [&] { return unary(op::softmax, scaled(x, 0.25 * factor)); };
    const Value a = once(), b = once();
    return sum(a, b);
  }
  Value repeat() {
    std::vector<Value> carried{any()};
    if (chance(30)) carried.push_back(any());
    const std::vector<Value> outer_pool = here().pool;
    const std::int64_t times = 1 + pick(3);
    if (levels_.size() == 1) times_ = times;

    Level level;
    level.region = static_cast<std::int32_t>(g_.regions.size());
    level.scope = g_.strings.intern((here().scope < 0 ? "" : std::string(g_.strings[here().scope]) + ".") + "r" +
                                    std::to_string(names_++) + ".#");
    level.carried = static_cast<std::int64_t>(carried.size());
    g_.regions.push_back({here().region, -1, {}});
    std::vector<Value> inner;
    for (Value v : carried) inner.push_back(region_input(v, level.region, static_cast<std::int64_t>(inner.size())));
    level.pool = inner;
    levels_.push_back(level);
    if (chance(50))
      here().pool.push_back(
          reach(outer_pool[static_cast<std::size_t>(pick(static_cast<int>(outer_pool.size())))], levels_.size() - 1));
    const int pieces = 1 + pick(4);
    for (int i = 0; i < pieces; ++i) piece();

    std::vector<Value> results;
    for (Value v : inner) {
      Value last = here().pool.back();
      if (shape(last) != shape(v)) last = linear(last, width(v), true);
      results.push_back(norm(chance(70) ? sum(v, last) : last));
    }
    std::vector<Value> sides;
    while (chance(30)) sides.push_back(any());
    return close(carried, results, sides, times);
  }
  Value close(const std::vector<Value>& carried, std::vector<Value> results, const std::vector<Value>& sides,
              std::int64_t times) {
    const Level closed = here();
    levels_.pop_back();
    std::vector<Value> inputs = carried;
    for (const Capture& c : closed.captures) inputs.push_back(c.outer);
    for (const Capture& c : closed.states) {
      g_.attributes[static_cast<std::size_t>(g_.nodes[c.inner.node].attributes.first)].integer =
          static_cast<std::int64_t>(inputs.size());
      inputs.push_back(c.outer);
    }
    results.insert(results.end(), sides.begin(), sides.end());
    for (const Capture& c : closed.states) results.push_back(c.inner);
    g_.regions[closed.region].results = {static_cast<std::int32_t>(g_.edges.size()),
                                         static_cast<std::int32_t>(results.size())};
    g_.edges.insert(g_.edges.end(), results.begin(), results.end());
    std::vector<Shape> outputs;
    for (std::size_t i = 0; i < results.size(); ++i) {
      Shape s = shape(results[i]);
      if (i >= carried.size()) s.insert(s.begin(), n(times));
      outputs.push_back(s);
    }
    const auto size = [](const auto& v) { return static_cast<std::int64_t>(v.size()); };
    const Value made = node(op::repeat, inputs,
                            {integer(key::times, times), integer(key::carried, size(carried)),
                             integer(key::captured, size(closed.captures)), integer(key::states, size(closed.states)),
                             integer(key::sides, size(sides)), integer(key::region, closed.region)},
                            outputs);
    g_.regions[closed.region].repeat_node = made.node;
    if (levels_.size() == 1)
      for (std::size_t i = 0; i < sides.size(); ++i)
        sides_.push_back({made.node, static_cast<std::int32_t>(carried.size() + i)});
    for (std::size_t i = 1; i < carried.size(); ++i) here().pool.push_back({made.node, static_cast<std::int32_t>(i)});
    return made;
  }
};

}  // namespace

Graph random_graph(std::uint64_t seed, const RandomOptions& options) { return Generator(seed, options).run(); }

}  // namespace treadle
