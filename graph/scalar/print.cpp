#include <treadle/graph/scalar/print.hpp>

#include <charconv>
#include <cmath>

namespace treadle::scalar {

namespace {

const char* word(Op op) {
  switch (op) {
    case Op::score: return "score";
    case Op::b: return "b";
    case Op::h: return "h";
    case Op::q: return "q";
    case Op::k: return "k";
    case Op::q_len: return "q_len";
    case Op::k_len: return "k_len";
    case Op::x: return "x";
    case Op::feature: return "i";
    case Op::iteration: return "iteration";
    case Op::number: return "number";
    case Op::fma: return "fma";
    case Op::min: return "min";
    case Op::max: return "max";
    case Op::abs: return "abs";
    case Op::exp: return "exp";
    case Op::log: return "log";
    case Op::tanh: return "tanh";
    case Op::sqrt: return "sqrt";
    case Op::sigmoid: return "sigmoid";
    case Op::floor: return "floor";
    case Op::where: return "where";
    case Op::sum: return "sum";
    default: return nullptr;
  }
}

const char* infix(Op op) {
  switch (op) {
    case Op::add: return " + ";
    case Op::sub: return " - ";
    case Op::mul: return " * ";
    case Op::div:
    case Op::floor_div: return " / ";
    case Op::floor_mod: return " % ";
    case Op::less: return " < ";
    case Op::less_equal: return " <= ";
    case Op::equal: return " == ";
    case Op::not_equal: return " != ";
    case Op::logic_and: return " & ";
    case Op::logic_or: return " | ";
    default: return nullptr;
  }
}

class Printer {
 public:
  explicit Printer(View v) : view_(v) {}

  /// `nested`: in parentheses if it is an infix operation. `converts`: the reader converts an integer here by itself.
  void node(int i, bool nested, bool converts) {
    const Node& n = view_[i];
    if (n.op == Op::number && converts) return node(n.a, nested, false);
    if (n.is_constant()) return constant(n);
    if (const char* between = infix(n.op)) {
      if (nested) text += '(';
      if (n.op == Op::logic_and || n.op == Op::logic_or)
        chain(n, between);
      else
        operands(n, between);
      if (nested) text += ')';
      return;
    }
    switch (n.op) {
      case Op::neg:
        text += '-';
        // A minus in front of a literal is part of the literal.
        if (view_[n.a].is_constant()) return parenthesised(n.a);
        return node(n.a, true, false);
      case Op::logic_not: text += '!'; return node(n.a, true, false);
      case Op::query_value:
      case Op::key_value:
        text += n.op == Op::query_value ? "q[" : "k[";
        node(n.a, false, false);
        text += ']';
        return;
      case Op::lookup:
      case Op::searchsorted:
        text += n.op == Op::searchsorted ? "searchsorted(\"" : n.type == Type::integer ? "lookup<i32>(\"" : "lookup(\"";
        text += view_.name(n);
        text += '"';
        for (int j = 0; j < 2; ++j) {
          if (n.child(j) < 0) continue;
          text += ", ";
          node(n.child(j), false, false);
        }
        text += ')';
        return;
      default: break;
    }
    text += word(n.op);
    if (n.a >= 0) call(n);
  }

  std::string text;

 private:
  void parenthesised(int i) {
    text += '(';
    node(i, false, false);
    text += ')';
  }

  void constant(const Node& n) {
    if (n.type == Type::boolean) {
      text += n.integer() ? "true" : "false";
    } else if (n.type == Type::integer) {
      text += std::to_string(n.integer());
    } else if (!std::isfinite(n.number())) {
      text += std::isnan(n.number()) ? "nan" : n.number() < 0 ? "-inf" : "inf";
    } else {
      char digits[40];
      const auto end = std::to_chars(digits, digits + sizeof digits, n.number()).ptr;
      const std::string_view shortest(digits, static_cast<std::size_t>(end - digits));
      text += shortest;
      if (shortest.find_first_of(".e") == std::string_view::npos) text += ".0";
    }
  }

  bool is_number(int i) const { return view_[i].type == Type::number && view_[i].op != Op::number; }

  /// Two operands: a conversion may be left out if the other one is a number for sure.
  void operands(const Node& n, const char* between) {
    node(n.a, true, is_number(n.b));
    text += between;
    node(n.b, true, is_number(n.a));
  }

  void chain(const Node& n, const char* between) {
    for (int j = 0; j < 2; ++j) {
      if (j > 0) text += between;
      const Node& part = view_[n.child(j)];
      if (part.op == n.op)
        chain(part, between);
      else
        node(n.child(j), true, false);
    }
  }

  void call(const Node& n) {
    text += '(';
    switch (n.op) {
      case Op::min:
      case Op::max: operands_in_call(n.a, n.b); break;
      case Op::where:
        node(n.a, false, false);
        text += ", ";
        operands_in_call(n.b, n.c);
        break;
      default: {
        const bool converts = n.op != Op::number && n.op != Op::abs && n.op != Op::floor;
        for (int j = 0; j < 3; ++j) {
          if (n.child(j) < 0) continue;
          if (j > 0) text += ", ";
          node(n.child(j), false, converts);
        }
      }
    }
    text += ')';
  }

  void operands_in_call(int a, int b) {
    node(a, false, is_number(b));
    text += ", ";
    node(b, false, is_number(a));
  }

  View view_;
};

}  // namespace

std::string print(View view, int root) {
  Printer printer(view);
  printer.node(root, false, false);
  return printer.text;
}

}  // namespace treadle::scalar
