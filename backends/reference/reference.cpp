#include <treadle/backends/reference/reference.hpp>

#include <treadle/backends/names.hpp>
#include <treadle/backends/reference/functions.hpp>
#include <treadle/ops/rotary.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>
#include <unordered_map>
#include <utility>

namespace treadle::reference {
namespace {

/// What stands behind a value: an array, a state's storage, or a mask that is evaluated where it is used (a mask node
/// does not know how many batch elements and heads there are).
template <class T>
struct Held {
  std::shared_ptr<const Array<T>> array;
  std::shared_ptr<Array<T>> storage;  ///< of a state: the same object as `array`, open to append
  std::shared_ptr<const LazyMask<T>> mask;
};

template <class T>
Held<T> hold(Array<T> a) {
  return {std::make_shared<const Array<T>>(std::move(a)), nullptr, nullptr};
}
/// Held, but owned by the caller.
template <class T>
Held<T> borrow(const Array<T>& a) {
  return {std::shared_ptr<const Array<T>>(std::shared_ptr<const void>(), &a), nullptr, nullptr};
}
template <class T>
Held<T> hold_state(Array<T> a) {
  auto storage = std::make_shared<Array<T>>(std::move(a));
  return {storage, storage, nullptr};
}

template <class T>
class Interpreter {
 public:
  using Find = std::function<Held<T>(const std::string& name)>;

  Interpreter(GraphView graph, const DimValues& dims, const Tensors<T>& inputs, Find parameter, Tensors<T>* states)
      : g_(graph), dims_(graph, dims), inputs_(inputs), parameter_(std::move(parameter)), given_states_(states) {
    nodes_of_.resize(graph.regions.size());
    for (std::int32_t n = 0; n < graph.size(); ++n)
      nodes_of_[static_cast<std::size_t>(graph.nodes[static_cast<std::size_t>(n)].region)].push_back(n);
  }

  Tensors<T> run() {
    Frame main;
    run_region(0, main);
    if (given_states_ != nullptr)
      for (auto& [name, state] : states_) (*given_states_)[name] = std::move(*state.storage);
    return std::move(outputs_);
  }

 private:
  /// One execution of a region.
  struct Frame {
    std::vector<Held<T>> arguments;
    std::vector<std::int64_t> iterations;  ///< of the enclosing repeats, outermost first
    std::unordered_map<std::int32_t, std::vector<Held<T>>> values;
  };

  GraphView g_;
  BoundDims dims_;
  const Tensors<T>& inputs_;
  Find parameter_;
  Tensors<T>* given_states_;
  std::map<std::string, Held<T>> states_;
  Tensors<T> outputs_;
  std::vector<std::vector<std::int32_t>> nodes_of_;

  void run_region(std::int32_t region, Frame& frame) {
    for (const std::int32_t n : nodes_of_[static_cast<std::size_t>(region)]) {
      std::vector<Held<T>> results;
      try {
        results = evaluate_node(n, frame);
      } catch (const std::out_of_range& e) {
        throw Error(describe(g_, n) + ": " + e.what());
      } catch (const std::invalid_argument& e) {
        throw Error(describe(g_, n) + ": " + e.what());
      }
      check_shapes(n, results);
      frame.values[n] = std::move(results);
    }
  }

  // --- what nodes read --------------------------------------------------------------------------------------
  const Held<T>& held(Frame& frame, Value v) const {
    return frame.values.at(v.node)[static_cast<std::size_t>(v.output)];
  }
  const Array<T>& array(Frame& frame, Value v) const {
    const Held<T>& h = held(frame, v);
    return h.mask != nullptr ? h.mask->materialise(1, 1) : *h.array;
  }
  /// A boolean value where `batch` and `heads` are known.
  const Array<T>& mask_array(Frame& frame, Value v, std::int64_t batch, std::int64_t heads) const {
    const Held<T>& h = held(frame, v);
    return h.mask != nullptr ? h.mask->materialise(batch, heads) : *h.array;
  }
  std::int64_t integer(std::int32_t n, key k, const Frame& frame) const {
    const Attribute* a = g_.find(n, k);
    if (a != nullptr && a->kind == AttributeKind::table) return g_.get_integer_at(n, k, frame.iterations.back());
    return dims_.attribute(n, k);
  }

  void check_shapes(std::int32_t n, const std::vector<Held<T>>& results) const {
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i].array == nullptr) continue;
      const std::vector<std::int64_t> wanted = dims_(g_.shape({n, static_cast<std::int32_t>(i)}));
      if (results[i].array->shape != wanted)
        throw Error(describe(g_, n) + " gives " + shape_text(results[i].array->shape) + "; the graph says " +
                    shape_text(wanted));
    }
  }

  // --- sources ----------------------------------------------------------------------------------------------
  static std::string names_in(const Tensors<T>& tensors) {
    std::string text;
    for (const auto& t : tensors) text += (text.empty() ? "" : ", ") + t.first;
    return text.empty() ? "none" : text;
  }
  Held<T> checked(std::int32_t n, const std::string& name, Held<T> h) const {
    const std::vector<std::int64_t> wanted = dims_(g_.shape({n, 0}));
    const std::string what = std::string(treadle::name(g_.nodes[static_cast<std::size_t>(n)].op)) + " '" + name + "'";
    if (h.array->shape != wanted)
      throw Error(what + " has shape " + shape_text(h.array->shape) + "; the graph wants " + shape_text(wanted));
    if (h.array->size() != elements(wanted))
      throw Error(what + " has " + std::to_string(h.array->size()) + " values; its shape " + shape_text(wanted) +
                  " holds " + std::to_string(elements(wanted)));
    return h;
  }
  Held<T> input(std::int32_t n) const {
    const std::string name = full_name(g_, n);
    const auto found = inputs_.find(name);
    if (found == inputs_.end())
      throw Error("input '" + name + "' is missing; give it with shape " + shape_text(dims_(g_.shape({n, 0}))) +
                  " (given: " + names_in(inputs_) + ")");
    return checked(n, name, borrow(found->second));
  }
  Held<T> parameter(std::int32_t n, const Frame& frame) const {
    const std::string name = full_name(g_, n, frame.iterations);
    const Held<T> found = parameter_(name);
    if (found.array == nullptr)
      throw Error("parameter '" + name + "' is missing; give it with shape " + shape_text(dims_(g_.shape({n, 0}))));
    return checked(n, name, found);
  }
  Held<T> state(std::int32_t n) {
    const std::string name = full_name(g_, n);
    Held<T> h = hold_state(zeros<T>(dims_(g_.shape({n, 0}))));
    if (given_states_ != nullptr) {
      const auto found = given_states_->find(name);
      if (found != given_states_->end()) {
        checked(n, name, borrow(found->second));
        *h.storage = found->second;
      }
    }
    states_[name] = h;
    return h;
  }

  // --- structure --------------------------------------------------------------------------------------------
  /// The slice of one iteration, and back.
  static Array<T> slice_of(const Array<T>& stacked, std::int64_t i) {
    Array<T> out;
    out.shape.assign(stacked.shape.begin() + 1, stacked.shape.end());
    const std::int64_t size = elements(out.shape);
    out.data.assign(stacked.data.begin() + i * size, stacked.data.begin() + (i + 1) * size);
    return out;
  }
  static void put_slice(Array<T>& stacked, std::int64_t i, const Array<T>& slice) {
    std::copy(slice.data.begin(), slice.data.end(), stacked.data.begin() + i * slice.size());
  }

  std::vector<Held<T>> repeat(std::int32_t n, Frame& outer) {
    const std::int64_t times = integer(n, key::times, outer);
    const auto region = static_cast<std::int32_t>(g_.get_integer(n, key::region));
    const auto carried = static_cast<std::size_t>(g_.get_integer(n, key::carried));
    const auto captured = static_cast<std::size_t>(g_.get_integer(n, key::captured));
    const auto states = static_cast<std::size_t>(g_.get_integer(n, key::states));
    const auto sides = static_cast<std::size_t>(g_.get_integer(n, key::sides));
    std::vector<Held<T>> arguments;
    for (const Value v : g_.inputs(n)) arguments.push_back(held(outer, v));
    const std::vector<Held<T>> stacked(arguments.end() - static_cast<std::ptrdiff_t>(states), arguments.end());
    for (const Held<T>& s : stacked)
      if (s.storage == nullptr) throw Error(describe(g_, n) + ": a state of a repeat must be a state of the model");

    std::vector<Array<T>> stacks;
    for (std::int64_t i = 0; i < times; ++i) {
      for (std::size_t s = 0; s < states; ++s)
        arguments[carried + captured + s] = hold_state(slice_of(*stacked[s].array, i));
      Frame frame;
      frame.arguments = arguments;
      frame.iterations = outer.iterations;
      frame.iterations.push_back(i);
      run_region(region, frame);

      const auto results = g_.results(region);
      for (std::size_t c = 0; c < carried; ++c) arguments[c] = held(frame, results[c]);
      for (std::size_t s = 0; s < sides; ++s) {
        const Array<T>& value = array(frame, results[carried + s]);
        if (i == 0) {
          std::vector<std::int64_t> shape = value.shape;
          shape.insert(shape.begin(), times);
          stacks.push_back(zeros<T>(shape));
        }
        put_slice(stacks[s], i, value);
      }
      for (std::size_t s = 0; s < states; ++s)
        put_slice(*stacked[s].storage, i, *frame.arguments[carried + captured + s].storage);
    }

    std::vector<Held<T>> out(arguments.begin(), arguments.begin() + static_cast<std::ptrdiff_t>(carried));
    for (Array<T>& s : stacks) out.push_back(hold(std::move(s)));
    out.insert(out.end(), stacked.begin(), stacked.end());
    return out;
  }

  Array<T> append_to_state(std::int32_t n, Frame& frame) {
    const Held<T> target = held(frame, g_.inputs(n)[0]);
    if (target.storage == nullptr) throw Error(describe(g_, n) + ": append writes into a state, and this is none");
    const Array<T>& rows = array(frame, g_.inputs(n)[1]);
    const auto axis = static_cast<std::size_t>(integer(n, key::axis, frame));
    if (g_.inputs(n).size() == 3)
      return append(*target.storage, rows, static_cast<int>(axis), array(frame, g_.inputs(n)[2]));
    const std::int64_t offset = integer(n, key::offset, frame), end = offset + rows.shape[axis],
                       room = target.array->shape[axis];
    if (offset < 0 || end > room)
      throw Error(describe(g_, n) + ": rows " + std::to_string(offset) + " to " + std::to_string(end) +
                  " do not fit; the state has room for " + std::to_string(room));
    return append(*target.storage, rows, static_cast<int>(axis), offset);
  }

  Array<T> slice_node(std::int32_t n, Frame& frame) {
    const Array<T>& x = array(frame, g_.inputs(n)[0]);
    const std::int64_t axis = integer(n, key::axis, frame), begin = integer(n, key::begin, frame);
    const std::int64_t length = integer(n, key::length, frame), size = x.shape[static_cast<std::size_t>(axis)];
    if (begin < 0 || length < 0 || begin + length > size)
      throw Error(describe(g_, n) + ": [" + std::to_string(begin) + ", " + std::to_string(begin + length) +
                  ") is outside a dim of " + std::to_string(size));
    return slice(x, static_cast<int>(axis), begin, length);
  }

  // --- masks and attention ----------------------------------------------------------------------------------
  /// The traced function of node `n`, its tables bound from inputs `first_table` on.
  ScalarFunction function_of(std::int32_t n, std::size_t first_table, std::int64_t q_len, std::int64_t k_len,
                             Frame& frame) {
    const std::int64_t iteration = frame.iterations.empty() ? 0 : frame.iterations.back();
    ScalarFunction f(g_.scalars, static_cast<int>(g_.get_integer(n, key::expression)), q_len, k_len, iteration);
    const auto tables = g_.inputs(n).subspan(first_table);
    const std::vector<std::string> names = f.table_names();
    if (tables.size() < names.size())
      throw Error(describe(g_, n) + " looks up " + std::to_string(names.size()) + " tables and is given " +
                  std::to_string(tables.size()));
    for (std::size_t i = 0; i < names.size(); ++i) {
      // By the name of the graph's input where the table is one, so that no rewriting of the expression mixes tables
      // up.
      std::size_t at = i;
      for (std::size_t t = 0; t < tables.size(); ++t)
        if (source_name(tables[t]) == names[i]) at = t;
      f.bind(names[i], array(frame, tables[at]), g_.info(tables[at]).dtype);
    }
    return f;
  }
  /// The leaf name of the source behind a value, followed out of the repeats that captured it; empty if it is computed.
  std::string_view source_name(Value v) const {
    while (g_.nodes[static_cast<std::size_t>(v.node)].op == op::region_input) {
      const std::int32_t region = g_.nodes[static_cast<std::size_t>(v.node)].region;
      const std::int32_t node = g_.regions[static_cast<std::size_t>(region)].repeat_node;
      v = g_.inputs(node)[static_cast<std::size_t>(g_.get_integer(v.node, key::index))];
    }
    const op o = g_.nodes[static_cast<std::size_t>(v.node)].op;
    return o == op::input || o == op::parameter || o == op::state ? g_.leaf(v.node) : std::string_view();
  }

  Held<T> mask_node(std::int32_t n, Frame& frame) {
    auto mask = std::make_shared<LazyMask<T>>();
    mask->shape = dims_(g_.shape({n, 0}));
    const bool has_tensor = g_.get_integer(n, key::has_tensor) != 0;
    if (has_tensor) mask->tensor = held(frame, g_.inputs(n)[0]).array;
    if (g_.find(n, key::expression) != nullptr)
      mask->function =
          function_of(n, has_tensor ? 1 : 0, integer(n, key::q_len, frame), integer(n, key::k_len, frame), frame);
    return {nullptr, nullptr, std::move(mask)};
  }

  /// Attention, or a probe of it, whose third input is the log-sum-exp.
  std::vector<Held<T>> attention_node(std::int32_t n, Frame& frame) {
    const auto in = g_.inputs(n);
    const bool probed = g_.nodes[static_cast<std::size_t>(n)].op == op::attention_probe;
    std::size_t next = 3;
    AttentionInputs<T> a{array(frame, in[0]), array(frame, in[1]), array(frame, in[2])};
    if (g_.get_integer(n, key::has_mask) != 0) a.mask = &mask_array(frame, in[next++], a.q.shape[0], a.q.shape[1]);
    if (g_.get_integer(n, key::has_bias) != 0) a.bias = &array(frame, in[next++]);
    if (g_.get_integer(n, key::has_sink) != 0) a.sink = &array(frame, in[next++]);
    a.scale = g_.get_number(n, key::scale, 1);
    if (g_.find(n, key::expression) != nullptr) {
      auto f = std::make_shared<ScalarFunction>(function_of(n, next, a.q.shape[2], a.k.shape[2], frame));
      f->bind_rows(a.q, a.k);
      f->check(a.q.shape[0], a.q.shape[1], a.q.shape[3]);
      a.score = [f](T s, std::int64_t b, std::int64_t h, std::int64_t q, std::int64_t k) {
        return static_cast<T>(f->score(static_cast<double>(s), b, h, q, k));
      };
    }
    const std::int64_t heads = a.q.shape[1], kv_heads = a.k.shape[1];
    if (kv_heads == 0 || heads % kv_heads != 0)
      throw Error(describe(g_, n) + ": " + std::to_string(heads) + " query heads and " + std::to_string(kv_heads) +
                  " key heads; the query heads must be a multiple of the key heads");
    if (probed) {
      const auto what = static_cast<probe>(g_.get_integer(n, key::probe));
      AttentionProbe<T> r = attention_probe(a, array(frame, in[2]), what, g_.get_integer(n, key::top_k));
      if (what == probe::top_k) return {hold(std::move(r.indices)), hold(std::move(r.largest))};
      return {hold(std::move(what == probe::weights ? r.weights : what == probe::entropy ? r.entropy : r.column_sums))};
    }
    AttentionOutputs<T> result = attention(a);
    return {hold(std::move(result.out)), hold(std::move(result.lse))};
  }

  // --- every op ---------------------------------------------------------------------------------------------
  std::vector<Held<T>> evaluate_node(std::int32_t n, Frame& frame) {
    const auto in = g_.inputs(n);
    const auto x = [&](std::size_t i) -> const Array<T>& { return array(frame, in[i]); };
    std::size_t next = 0;  // of the optional inputs
    const auto optional = [&](key k) -> const Array<T>* { return g_.get_integer(n, k) != 0 ? &x(next++) : nullptr; };
    const auto function = static_cast<activation>(integer(n, key::function, frame));
    const double eps = g_.get_number(n, key::eps);

    switch (g_.nodes[static_cast<std::size_t>(n)].op) {
      case op::input: return {input(n)};
      case op::parameter: return {parameter(n, frame)};
      case op::state: return {state(n)};
      case op::constant: {
        Array<T> out = zeros<T>(dims_(g_.shape({n, 0})));
        const bool truth = g_.info({n, 0}).dtype == DType::boolean;
        for (std::size_t i = 0; i < out.data.size(); ++i) {
          const double v = g_.constant_element(n, static_cast<std::int64_t>(i));
          out.data[i] = truth ? static_cast<T>(v != 0) : static_cast<T>(v);
        }
        return {hold(std::move(out))};
      }
      case op::region_input: return {frame.arguments.at(static_cast<std::size_t>(g_.get_integer(n, key::index)))};
      case op::repeat: return repeat(n, frame);
      case op::output: outputs_[std::string(g_.leaf(n))] = x(0); return {};
      case op::append: return {hold(append_to_state(n, frame))};
      case op::embedding: return {hold(embedding(x(0), x(1)))};
      case op::gather:
        return {hold(gather(x(0), x(1), integer(n, key::axis, frame), g_.get_integer(n, key::batch_dims)))};
      case op::positions:
        return {hold(positions(x(0), integer(n, key::offset, frame), integer(n, key::length, frame)))};
      case op::sinusoidal_positions:
        return {hold(sinusoidal_positions<T>(integer(n, key::offset, frame), integer(n, key::length, frame),
                                             dims_(g_.shape({n, 0})[1]), g_.get_number(n, key::base, 10000)))};
      case op::concatenate: {
        std::vector<const Array<T>*> parts;
        for (std::size_t i = 0; i < in.size(); ++i) parts.push_back(&x(i));
        return {hold(concatenate(parts, static_cast<int>(integer(n, key::axis, frame))))};
      }
      case op::slice: return {hold(slice_node(n, frame))};
      case op::transpose: {
        std::vector<int> perm;
        std::int64_t digits = g_.get_integer(n, key::perm);
        for (std::int64_t i = 0; i < x(0).rank(); ++i, digits /= 8) perm.push_back(static_cast<int>(digits % 8));
        return {hold(transpose(x(0), perm))};
      }
      case op::reshape: return {hold(Array<T>{dims_(g_.shape({n, 0})), x(0).data})};
      case op::split_heads: return {hold(split_heads(x(0), integer(n, key::heads, frame)))};
      case op::merge_heads: return {hold(merge_heads(x(0)))};
      case op::add: return {hold(add(x(0), x(1)))};
      case op::multiply: return {hold(multiply(x(0), x(1)))};
      case op::scale: return {hold(scale(x(0), g_.get_number(n, key::factor, 1)))};
      case op::dropout: return {hold(dropout(x(0), x(1), g_.get_number(n, key::p)))};
      case op::linear: {
        next = 2;
        const Array<T>* bias = optional(key::has_bias);
        const Array<T>* residual = optional(key::has_residual);
        return {hold(linear(x(0), x(1), bias, residual, function))};
      }
      case op::matmul: return {hold(matmul(x(0), x(1)))};
      case op::softcap: return {hold(softcap(x(0), g_.get_number(n, key::factor, 1)))};
      case op::activation: return {hold(activate(x(0), function, g_.get_number(n, key::alpha, 1)))};
      case op::softmax: return {hold(softmax(x(0)))};
      case op::log_softmax: return {hold(log_softmax(x(0)))};
      case op::logsumexp: return {hold(logsumexp(x(0)))};
      case op::argmax: return {hold(argmax(x(0)))};
      case op::argsort: return {hold(argsort(x(0)))};
      case op::top_k_mask: return {hold(top_k_mask(x(0), g_.get_integer(n, key::top_k)))};
      case op::cross_entropy:
        return {hold(cross_entropy(x(0), x(1), static_cast<reduction>(integer(n, key::reduction, frame)),
                                   g_.get_integer(n, key::ignore_index, -100)))};
      case op::pool: {
        next = 1;
        const auto how = static_cast<reduction>(integer(n, key::reduction, frame));
        if (g_.find(n, key::length) != nullptr)
          return {hold(pool_runs(x(0), std::max<std::int64_t>(integer(n, key::length, frame), 1), how))};
        const Array<T>* lengths = optional(key::has_mask);
        return {hold(pool(x(0), lengths, how))};
      }
      case op::mask: return {mask_node(n, frame)};
      case op::mask_to_bias: return {hold(mask_to_bias(x(0)))};
      case op::select: {
        const std::vector<std::int64_t>& shape = x(1).shape;
        const std::size_t rank = shape.size();
        const Array<T>& mask = mask_array(frame, in[0], rank < 4 ? 1 : shape[rank - 4], rank < 3 ? 1 : shape[rank - 3]);
        return {hold(select(mask, x(1), g_.get_number(n, key::value)))};
      }
      case op::relative_bias:
        return {hold(
            relative_bias(x(0), integer(n, key::q_len, frame), integer(n, key::k_len, frame),
                          {x(0).shape[0], g_.get_integer(n, key::max_distance), g_.get_integer(n, key::causal) == 0},
                          g_.get_integer(n, key::top_left) != 0))};
      case op::attention:
      case op::attention_probe: return attention_node(n, frame);
      case op::linear_attention: {
        next = 3;
        const Array<T>* lengths = optional(key::has_mask);
        const Array<T>* before = optional(key::has_state);
        const bool causal = g_.get_integer(n, key::causal) != 0;
        if (before == nullptr) return {hold(linear_attention(x(0), x(1), x(2), lengths, function, causal, eps))};
        Array<T> after = *before;
        Array<T> out = linear_attention(x(0), x(1), x(2), lengths, function, causal, eps, &after);
        return {hold(std::move(out)), hold(std::move(after))};
      }
      case op::recurrent_attention: {
        next = 3;
        const Array<T>* gate = optional(key::has_gate);
        const Array<T>* beta = optional(key::has_beta);
        const Array<T>* before = optional(key::has_state);
        Array<T> state = before != nullptr ? *before : zeros<T>(dims_(g_.shape({n, 1})));
        Array<T> out = recurrent_attention(
            RecurrentInputs<T>{x(0), x(1), x(2), gate, beta, g_.get_number(n, key::scale, 1)}, state);
        return {hold(std::move(out)), hold(std::move(state))};
      }
      case op::map: {
        const ScalarFunction f = function_of(n, 1, 0, 0, frame);
        Array<T> out = x(0);
        for (T& e : out.data) e = static_cast<T>(f.feature(static_cast<double>(e)));
        return {hold(std::move(out))};
      }
      case op::rope: {
        next = 1;
        const Array<T>* given = optional(key::has_positions);
        const std::int64_t length = g_.find(n, key::length) != nullptr ? integer(n, key::length, frame) : 0;
        return {hold(rope(x(0), given, rotary_angles(g_, n, length),
                          static_cast<rope_layout>(g_.get_integer(n, key::layout)), integer(n, key::offset, frame)))};
      }
      case op::additive_scores: return {hold(additive_scores(x(0), x(1), x(2)))};
      case op::random_projection:
        return {hold(random_projection<T>(g_.get_integer(n, key::features), g_.get_integer(n, key::head_dim),
                                          g_.get_integer(n, key::seed)))};
      case op::random_features: return {hold(random_features(x(0), x(1), g_.get_number(n, key::scale, 1)))};
      case op::moe: {
        next = 4;
        const Array<T>* gate = optional(key::has_gate);
        return {hold(moe(x(0), x(1), x(2), x(3), gate, g_.get_integer(n, key::top_k),
                         g_.get_integer(n, key::renormalise) != 0, function))};
      }
      case op::layer_norm: {
        next = 1;
        const Array<T>* gamma = optional(key::has_weight);
        const Array<T>* beta = optional(key::has_bias);
        return {hold(layer_norm(x(0), gamma, beta, eps))};
      }
      case op::rms_norm: {
        next = 1;
        const Array<T>* gamma = optional(key::has_weight);
        return {hold(rms_norm(x(0), gamma, eps))};
      }
      case op::add_layer_norm: {
        next = 2;
        const Array<T>* gamma = optional(key::has_weight);
        const Array<T>* beta = optional(key::has_bias);
        Array<T> sum = add(x(0), x(1)), rows = layer_norm(sum, gamma, beta, eps);
        return {hold(std::move(sum)), hold(std::move(rows))};
      }
      case op::add_rms_norm: {
        next = 2;
        const Array<T>* gamma = optional(key::has_weight);
        Array<T> sum = add(x(0), x(1)), rows = rms_norm(sum, gamma, eps);
        return {hold(std::move(sum)), hold(std::move(rows))};
      }
      case op::embedding_sum: {
        next = 3;
        const Array<T>* gamma = optional(key::has_weight);
        const Array<T>* beta = optional(key::has_bias);
        Array<T> sum = add(scale(embedding(x(0), x(1)), g_.get_number(n, key::factor, 1)), x(2));
        const std::int64_t normalise = g_.get_integer(n, key::normalise);
        if (normalise == 1) sum = layer_norm(sum, gamma, beta, eps);
        if (normalise == 2) sum = rms_norm(sum, gamma, eps);
        return {hold(std::move(sum))};
      }
      case op::gated_linear: {
        const bool bias = g_.get_integer(n, key::has_bias) != 0;
        const Array<T>*gate_bias = bias ? &x(3) : nullptr, *up_bias = bias ? &x(4) : nullptr;
        return {hold(multiply(linear<T>(x(0), x(1), gate_bias, nullptr, function), linear<T>(x(0), x(2), up_bias)))};
      }
    }
    throw Error(describe(g_, n) + ": the reference does not know this op");
  }
};

}  // namespace

template <class T>
Tensors<T> evaluate(GraphView graph, const DimValues& dims, const Tensors<T>& inputs, const Tensors<T>& parameters,
                    Tensors<T>* states) {
  const auto find = [&](const std::string& name) -> Held<T> {
    const auto found = parameters.find(name);
    return found == parameters.end() ? Held<T>{} : borrow(found->second);
  };
  return Interpreter<T>(graph, dims, inputs, find, states).run();
}

template <class T>
Tensors<T> evaluate(GraphView graph, const DimValues& dims, const Tensors<T>& inputs, const Parameters& parameters,
                    Tensors<T>* states) {
  const auto find = [&](const std::string& name) -> Held<T> {
    const TensorView found = parameters.find(name);
    return found.data == nullptr ? Held<T>{} : hold(from_view<T>(found));
  };
  return Interpreter<T>(graph, dims, inputs, find, states).run();
}

template Tensors<float> evaluate(GraphView, const DimValues&, const Tensors<float>&, const Tensors<float>&,
                                 Tensors<float>*);
template Tensors<double> evaluate(GraphView, const DimValues&, const Tensors<double>&, const Tensors<double>&,
                                  Tensors<double>*);
template Tensors<float> evaluate(GraphView, const DimValues&, const Tensors<float>&, const Parameters&,
                                 Tensors<float>*);
template Tensors<double> evaluate(GraphView, const DimValues&, const Tensors<double>&, const Parameters&,
                                  Tensors<double>*);

}  // namespace treadle::reference
