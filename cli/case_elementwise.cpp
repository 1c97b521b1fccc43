// Functions of one tensor as graphs: activations, softcap, softmax and its relatives; and the loss.

#include "case_graphs.hpp"

#include <treadle/backends/error.hpp>

#include <fmt/format.h>

namespace treadle::cli {

namespace {

/// The function by name, with the constants that the case may name.
Node elementwise(CallBuilder& b, const std::string& name, Node x) {
  if (name == "elu") return elu(x, b.number("elu_alpha", 1.0));
  if (name == "quick_gelu") b.only("quick_gelu", 1.702);
  if (name == "softplus") b.only("softplus_beta", 1.0);
  for (int i = 1; i < activation_count; ++i)
    if (activation_names[i] == name) return activate(x, static_cast<activation>(i));
  throw NotSupported(fmt::format("op {}", name));
}

void elementwise_call(CallBuilder& b) {
  b.output("out", elementwise(b, b.call().op, b.input("x", f32, with_front(b.tensor("x").shape, 1))));
}

void activations_call(CallBuilder& b) {
  const Node x = b.input("x");
  for (const io::Expected& e : b.call().outputs) b.output(e.name, elementwise(b, e.name, x));
}

void softcap_call(CallBuilder& b) { b.output("out", softcap(b.input("x"), b.number("softcap"))); }

/// Ops over the last dim, for cases that may name the one before it.
void over_axis(CallBuilder& b, Node (*function)(Node), bool keeps_the_axis) {
  const auto rank = static_cast<std::int64_t>(b.tensor("x").shape.size());
  std::int64_t axis = b.integer("axis", -1);
  if (axis < 0) axis += rank;
  const Node x = b.input("x");
  if (axis == rank - 1)
    b.output("out", function(x));
  else if (axis == rank - 2)
    b.output("out", keeps_the_axis ? transpose(function(transpose(x))) : function(transpose(x)));
  else
    throw NotSupported(fmt::format("attribute axis {} of {}", axis, b.call().op));
}
void softmax_call(CallBuilder& b) {
  over_axis(b, [](Node x) { return softmax(x); }, true);
}
void log_softmax_call(CallBuilder& b) {
  over_axis(b, [](Node x) { return log_softmax(x); }, true);
}
void logsumexp_call(CallBuilder& b) {
  over_axis(b, [](Node x) { return logsumexp(x); }, false);
}

void cross_entropy_call(CallBuilder& b) {
  CrossEntropyOptions o;
  const std::string how = b.text("reduction", "mean");
  if (how == "mean")
    o.reduction = reduction::mean;
  else if (how == "sum")
    o.reduction = reduction::sum;
  else if (how == "none")
    o.reduction = reduction::none;
  else
    throw NotSupported(fmt::format("attribute reduction {} of cross_entropy", how));
  o.ignore_index = b.integer("ignore_index", o.ignore_index);
  b.output("loss", cross_entropy(b.input("logits"), b.input("target", i64), o));
}

/// `training`: with the case's pattern; else nothing is dropped.
void dropout_call(CallBuilder& b) {
  const double p = b.number("p");
  const Node x = b.input("x");
  b.output("out", b.flag("training") ? dropout(x, b.input("keep", boolean), p) : dropout(x, p));
}

}  // namespace

const std::map<std::string, CallFunction>& elementwise_calls() {
  static const std::map<std::string, CallFunction> calls = [] {
    std::map<std::string, CallFunction> c = {
        {"activations", activations_call},
        {"dropout", dropout_call},
        {"softcap", softcap_call},
        {"softmax", softmax_call},
        {"log_softmax", log_softmax_call},
        {"logsumexp", logsumexp_call},
        {"cross_entropy", cross_entropy_call},
    };
    for (int i = 1; i < activation_count; ++i) c[std::string(activation_names[i])] = elementwise_call;
    return c;
  }();
  return calls;
}

}  // namespace treadle::cli
