#pragma once
// Rotary positions (Su et al. 2021).

#include <treadle/ops/position_tables.hpp>
#include <treadle/ops/rule.hpp>

namespace treadle {

namespace rule {
/// The rules of a scaling; true if one is broken.
constexpr bool bad_scaling(const NodeSpec& s, Failure& f) {
  const auto get = [&](key k) { return find(s, k) != nullptr ? find(s, k)->number : k == key::base ? 10000.0 : 0.0; };
  const auto bad = [&](const char* got, const char* expected) {
    fail(f, error_kind::bad_attribute, got, expected);
    return true;
  };
  const double base = get(key::base), factor = get(key::factor), low = get(key::low), high = get(key::high);
  const auto finite = [](double x) { return x - x == 0; };
  if (!finite(base) || base <= 0) return bad("the base", "a finite base above 0");
  const auto kind = static_cast<rope_scaling>(get_integer(s, key::scaling));
  if (kind == rope_scaling::none) return false;
  if (!finite(factor) || factor < 1) return bad("the factor of the scaling", "a finite factor of at least 1");
  if (kind == rope_scaling::linear || kind == rope_scaling::ntk) return false;
  if (get_integer(s, key::original_length) < 1) return bad("original_length of the scaling", "at least 1 position");
  if (kind == rope_scaling::dynamic_ntk) return false;
  if (!finite(low) || !finite(high) || low <= 0 || low >= high)
    return bad("the bounds of the scaling", "0 < low < high, both finite");
  if (kind == rope_scaling::yarn && base <= 1) return bad("the base", "a base above 1 for this scaling");
  if (!finite(get(key::magnitude)) || get(key::magnitude) < 0)
    return bad("the magnitude of the scaling", "a finite magnitude above 0, or 0 for the default");
  return false;
}
}  // namespace rule

constexpr Outputs infer_rope(Graph& g, const NodeSpec& s, const Inputs& in, Failure& f) {
  const auto& x = in[0].shape;
  if (x.size() != 4) return rule::fail(f, error_kind::wrong_rank, shape_text(g, x), "[batch, heads, length, head_dim]");
  const std::int64_t rotary = rule::get_integer(s, key::rotary_dim);
  const auto head_dim = g.dims.constant(x[3]);
  if (rotary < 2 || rotary % 2 != 0 || !head_dim || rotary > *head_dim) {
    Text expected("an even number");
    if (head_dim) expected.append(" from 2 to head_dim ").append(*head_dim);
    return rule::fail(f, error_kind::bad_attribute, Text("rotary_dim ").append(rotary), expected);
  }
  if (rule::get_integer(s, key::has_positions) != 0) {
    const OutputSpec& p = in[1];
    if (p.dtype != i32 && p.dtype != i64)
      return rule::fail(f, error_kind::wrong_dtype, name(p.dtype), "i32 or i64 positions");
    const bool shared = p.shape.size() == 1 && p.shape[0] == x[2];
    const bool own = p.shape.size() == 2 && p.shape[0] == x[0] && p.shape[1] == x[2];
    if (!shared && !own)
      return rule::fail(f, error_kind::shape_mismatch, Text("positions ").append(shape_text(g, p.shape).view()),
                        "[length] or [batch, length] of x");
  }
  if (rule::bad_scaling(s, f)) return {};
  return rule::one(x);
}

/// Four multiplications and two additions a pair.
constexpr Dim flops_rope(Graph& g, const NodeSpec& s, const Inputs& in) {
  const auto& x = in[0].shape;
  return g.dims.times(g.dims.multiply(g.dims.multiply(x[0], x[1]), x[2]), 3 * rule::get_integer(s, key::rotary_dim));
}

/// How the frequencies change for sequences longer than those that a model was trained on; made by the functions below,
/// defined by rotary_frequencies (ops/position_tables.hpp).
struct RopeScaling {
  rope_scaling kind = rope_scaling::none;
  double factor = 1;                 ///< how many times longer, at least 1
  std::int64_t original_length = 0;  ///< positions that the model was trained on
  double low = 0, high = 0;          ///< turns over original_length: divided below `low`, kept above `high`
  double magnitude = 0;              ///< of cosines and sines; 0: the scaling's own
  DimSpec length = 0;                ///< of the whole sequence, for dynamic_ntk; 0: offset + length of x
};

/// Position interpolation: position / factor (Chen et al. 2023).
constexpr RopeScaling linear_scaling(double factor) { return {.kind = rope_scaling::linear, .factor = factor}; }
/// NTK-aware: base · factor^(d/(d−2)) (bloc97 2023; Peng et al. 2024, §3.1).
constexpr RopeScaling ntk_scaling(double factor) { return {.kind = rope_scaling::ntk, .factor = factor}; }
/// NTK-aware with a factor that grows with the sequence, and 1 up to original_length. Angles depend on the length: keys
/// that a cache keeps were turned by those of their time (as in the Transformers library).
constexpr RopeScaling dynamic_ntk_scaling(double factor, std::int64_t original_length, DimSpec length = 0) {
  return {.kind = rope_scaling::dynamic_ntk, .factor = factor, .original_length = original_length, .length = length};
}
struct YarnOptions {
  double beta_fast = 32, beta_slow = 1;  ///< turns over the original length: kept above, divided below
  double attention_factor = 0;           ///< 0: 0.1 ln(factor) + 1
};
/// By parts: fast pairs keep their frequency, slow ones are interpolated; q·k grows by attention_factor² (Peng et al.
/// 2024, §3.2–3.4).
constexpr RopeScaling yarn_scaling(double factor, std::int64_t original_length, YarnOptions o = {}) {
  return {.kind = rope_scaling::yarn,
          .factor = factor,
          .original_length = original_length,
          .low = o.beta_slow,
          .high = o.beta_fast,
          .magnitude = o.attention_factor};
}
/// Llama 3.1's: as yarn's parts, but linear in the number of turns and without a temperature.
constexpr RopeScaling llama3_scaling(double factor = 8, std::int64_t original_length = 8192, double low = 1,
                                     double high = 4) {
  return {.kind = rope_scaling::llama3, .factor = factor, .original_length = original_length, .low = low, .high = high};
}

struct RopeOptions {
  double base = 10000;
  rope_layout layout = rope_layout::half;
  DimSpec offset = 0;           ///< position of the first row: with a cache, the rows that it holds
  std::int64_t rotary_dim = 0;  ///< the first channels, which rotate (even); 0: all
  Node positions{};             ///< i32 or i64 [length] or [batch, length]; added to the offset
  RopeScaling scaling{};
};

/// Turns pair i of a row at position p by p · base^(−2i/rotary_dim): (a, b) → (a cos − b sin, a sin + b cos). A pair is
/// (i, i + rotary_dim/2) in layout half, (2i, 2i + 1) interleaved. x [batch, heads, length, head_dim]; channels from
/// rotary_dim on stay as they are. Angles are made in double, so that late positions keep their digits (Su et al. 2021,
/// eq. 34).
constexpr Node rope(Node x, RopeOptions o = {}, Where where = Where::current()) {
  Builder& b = *x.builder;
  if (!b.usable(x)) return {&b, {}};
  const auto shape = b.shape(x);
  const auto head_dim = shape.empty() ? std::nullopt : b.graph().dims.constant(shape.back());
  NodeSpec s = rule::spec(op::rope, "", b, where);
  std::vector<Node> inputs{x};
  const bool positions = o.positions.builder != nullptr;
  if (positions) inputs.push_back(o.positions);
  s.attributes = {number(key::base, o.base), integer(key::layout, static_cast<std::int64_t>(o.layout)),
                  dim_attribute(key::offset, b.intern(o.offset)),
                  integer(key::rotary_dim, o.rotary_dim != 0 ? o.rotary_dim
                                           : head_dim        ? *head_dim
                                                             : 0),
                  integer(key::has_positions, positions)};
  if (o.scaling.kind == rope_scaling::none) return b.add(s, inputs, infer_rope);
  s.attributes.push_back(integer(key::scaling, static_cast<std::int64_t>(o.scaling.kind)));
  s.attributes.push_back(number(key::factor, o.scaling.factor));
  s.attributes.push_back(integer(key::original_length, o.scaling.original_length));
  s.attributes.push_back(number(key::low, o.scaling.low));
  s.attributes.push_back(number(key::high, o.scaling.high));
  s.attributes.push_back(number(key::magnitude, o.scaling.magnitude));
  if (o.scaling.kind == rope_scaling::dynamic_ntk) {
    Dim length = b.intern(o.scaling.length);
    if (length == b.dim_number(0)) {
      if (positions) {
        b.fail(op::rope, "", {error_kind::bad_attribute, "dynamic_ntk with given positions", "a length of the scaling"},
               where.line());
        return {&b, {}};
      }
      if (shape.size() == 4) length = b.graph().dims.add(b.intern(o.offset), shape[2]);
    }
    s.attributes.push_back(dim_attribute(key::length, length));
  }
  return b.add(s, inputs, infer_rope);
}

/// What the angles of rope node n are made of; `length` is the value of its attribute of that name, 0 without one.
inline RotaryAngles rotary_angles(GraphView g, std::int32_t n, std::int64_t length) {
  return {g.get_number(n, key::base, 10000),
          g.get_integer(n, key::rotary_dim),
          static_cast<rope_scaling>(g.get_integer(n, key::scaling)),
          g.get_number(n, key::factor, 1),
          g.get_integer(n, key::original_length),
          g.get_number(n, key::low),
          g.get_number(n, key::high),
          g.get_number(n, key::magnitude),
          length};
}

}  // namespace treadle
