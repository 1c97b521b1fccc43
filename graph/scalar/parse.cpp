#include <treadle/graph/scalar/parse.hpp>

#include <treadle/graph/scalar/build.hpp>

#include <charconv>
#include <limits>
#include <stdexcept>

namespace treadle::scalar {

namespace {

struct Stop {
  ParseError error;
};

struct Infix {
  std::string_view token;
  Op op;
  int level;
  bool swapped = false;
};

class Parser {
 public:
  Parser(Pool& pool, std::string_view text) : pool_(pool), text_(text) {}

  int all() {
    const int root = expression(0);
    skip();
    if (at_ != text_.size()) stop("expected the end of the expression");
    return root;
  }

  std::size_t position() const { return at_; }

 private:
  [[noreturn]] void stop(std::string what) const { throw Stop{{at_, std::move(what)}}; }

  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) ++at_;
  }
  bool peek(std::string_view token) {
    skip();
    return text_.substr(at_).starts_with(token);
  }
  bool take(std::string_view token) {
    if (!peek(token)) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) stop("expected '" + std::string(token) + "'");
  }

  /// Longer tokens first.
  static constexpr Infix infixes[] = {
      {"|", Op::logic_or, 0},   {"&", Op::logic_and, 1},   {"==", Op::equal, 2},
      {"!=", Op::not_equal, 2}, {"<=", Op::less_equal, 3}, {">=", Op::less_equal, 3, true},
      {"<", Op::less, 3},       {">", Op::less, 3, true},  {"+", Op::add, 4},
      {"-", Op::sub, 4},        {"*", Op::mul, 5},         {"/", Op::div, 5},
      {"%", Op::floor_mod, 5},
  };
  static constexpr int levels = 6;

  const Infix* infix(int level) {
    for (const Infix& i : infixes)
      if (peek(i.token)) return i.level == level ? &i : nullptr;
    return nullptr;
  }

  int combine(const Infix& i, int a, int b) {
    switch (i.level) {
      case 0:
      case 1: return build::logic(pool_, i.op, a, b);
      case 2:
      case 3: return i.swapped ? build::comparison(pool_, i.op, b, a) : build::comparison(pool_, i.op, a, b);
      default: return build::arithmetic(pool_, i.op, a, b);
    }
  }

  int expression(int level) {
    if (level == levels) return prefix();
    int a = expression(level + 1);
    while (const Infix* i = infix(level)) {
      at_ += i->token.size();
      if (peek("&") || peek("|")) stop("write & and |, once");
      a = combine(*i, a, expression(level + 1));
    }
    return a;
  }

  static bool digit(char c) { return c >= '0' && c <= '9'; }
  static bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

  int prefix() {
    const Depth depth(*this);
    if (take("!")) return build::logic_not(pool_, prefix());
    if (take("-")) {
      skip();
      if (at_ < text_.size() && (digit(text_[at_]) || text_[at_] == '.')) return literal(true);
      return build::unary(pool_, Op::neg, prefix());
    }
    if (take("(")) {
      const int inside = expression(0);
      expect(")");
      return inside;
    }
    skip();
    if (at_ < text_.size() && (digit(text_[at_]) || text_[at_] == '.')) return literal(false);
    return name();
  }

  int literal(bool negative) {
    std::size_t end = at_;
    bool integer = true;
    while (end < text_.size()) {
      const char c = text_[end];
      const bool exponent_sign = (c == '-' || c == '+') && (text_[end - 1] == 'e' || text_[end - 1] == 'E');
      if (!digit(c) && c != '.' && c != 'e' && c != 'E' && !exponent_sign) break;
      integer = integer && digit(c);
      ++end;
    }
    const std::string digits = (negative ? "-" : "") + std::string(text_.substr(at_, end - at_));
    const char* first = digits.data();
    const char* last = first + digits.size();
    int node = -1;
    if (integer) {
      std::int64_t v = 0;
      const auto [p, error] = std::from_chars(first, last, v);
      if (error != std::errc{} || p != last) stop("'" + digits + "' does not fit an integer of 64 bits");
      node = pool_.constant(v);
    } else {
      double v = 0;
      const auto [p, error] = std::from_chars(first, last, v);
      if (error != std::errc{} || p != last) stop("'" + digits + "' is not a number");
      node = pool_.constant(v);
    }
    at_ = end;
    return node;
  }

  std::string_view identifier() {
    skip();
    const std::size_t first = at_;
    while (at_ < text_.size() && (letter(text_[at_]) || (at_ > first && digit(text_[at_])))) ++at_;
    return text_.substr(first, at_ - first);
  }

  int name() {
    const std::size_t start = at_;
    const std::string_view word = identifier();
    if (word.empty()) stop("expected a value");
    struct Leaf {
      std::string_view word;
      Op op;
    };
    static constexpr Leaf leaves[] = {{"score", Op::score}, {"b", Op::b}, {"h", Op::h},
                                      {"q", Op::q},         {"k", Op::k}, {"q_len", Op::q_len},
                                      {"k_len", Op::k_len}, {"x", Op::x}, {"iteration", Op::iteration}};
    if ((word == "q" || word == "k") && take("[")) {
      if (!inside_sum_) stop("q[i] and k[i] stand inside sum");
      const int index = expression(0);
      expect("]");
      return build::feature_of(pool_, word == "q" ? Op::q : Op::k, index);
    }
    for (const Leaf& leaf : leaves)
      if (leaf.word == word) return build::leaf(pool_, leaf.op);
    if (word == "i") {
      if (!inside_sum_) stop("i stands inside sum");
      return build::leaf(pool_, Op::feature);
    }
    if (word == "true" || word == "false") return pool_.constant(word == "true");
    if (word == "inf") return pool_.constant(std::numeric_limits<double>::infinity());
    if (word == "nan") return pool_.constant(std::numeric_limits<double>::quiet_NaN());
    if (word == "lookup" || word == "searchsorted") return lookup(word == "searchsorted");
    if (word == "sum") return sum();
    if (word == "fma" || word == "where") {
      expect("(");
      const int a = expression(0);
      expect(",");
      const int b = expression(0);
      expect(",");
      const int c = expression(0);
      expect(")");
      return word == "fma" ? build::fma(pool_, a, b, c) : build::where(pool_, a, b, c);
    }
    if (word == "min" || word == "max") {
      expect("(");
      const int a = expression(0);
      expect(",");
      const int b = expression(0);
      expect(")");
      return build::arithmetic(pool_, word == "min" ? Op::min : Op::max, a, b);
    }
    static constexpr Leaf unaries[] = {{"abs", Op::abs},     {"exp", Op::exp},      {"log", Op::log},
                                       {"tanh", Op::tanh},   {"sqrt", Op::sqrt},    {"sigmoid", Op::sigmoid},
                                       {"floor", Op::floor}, {"number", Op::number}};
    for (const Leaf& unary : unaries) {
      if (unary.word != word) continue;
      expect("(");
      const int a = expression(0);
      expect(")");
      return unary.op == Op::number ? build::to_number(pool_, a) : build::unary(pool_, unary.op, a);
    }
    at_ = start;
    stop("'" + std::string(word) + "' is not a name in expressions");
  }

  int lookup(bool search) {
    DType type = DType::f32;
    if (!search && take("<")) {
      if (take("i32"))
        type = DType::i32;
      else
        expect("f32");
      expect(">");
    }
    expect("(");
    expect("\"");
    const std::size_t end = text_.find('"', at_);
    if (end == std::string_view::npos) stop("the name of a table ends with a quote");
    const std::string_view table = text_.substr(at_, end - at_);
    at_ = end + 1;
    expect(",");
    const int index = expression(0);
    int column = -1;
    if (take(",")) column = expression(0);
    expect(")");
    if (search) return build::searchsorted(pool_, table, column >= 0 ? column : index, column >= 0 ? index : -1);
    return build::lookup(pool_, type, table, index, column);
  }

  int sum() {
    expect("(");
    if (inside_sum_) stop("a sum inside a sum is not supported");
    inside_sum_ = true;
    const int body = expression(0);
    inside_sum_ = false;
    expect(")");
    return build::sum(pool_, body);
  }

  /// Text comes from files: nesting is bounded, so that no file can exhaust the stack.
  struct Depth {
    explicit Depth(Parser& p) : parser(p) {
      if (++parser.depth_ > 200) parser.stop("more than 200 levels of nesting");
    }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    ~Depth() { --parser.depth_; }
    Parser& parser;
  };

  Pool& pool_;
  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool inside_sum_ = false;
};

}  // namespace

Parsed parse(Pool& pool, std::string_view text, std::optional<Type> type) {
  // In a pool of its own: an error leaves the caller's as it was.
  Pool scratch;
  Parser parser(scratch, text);
  try {
    int root = parser.all();
    if (type && *type != scratch[root].type) {
      if (*type == Type::number && scratch[root].type == Type::integer)
        root = build::to_number(scratch, root);
      else
        return {-1, {0, *type == Type::boolean ? "expected a condition" : "expected a number, not a condition"}};
    }
    return {import(pool, scratch, root), {}};
  } catch (const Stop& e) {
    return {-1, e.error};
  } catch (const std::invalid_argument& e) {
    return {-1, {parser.position(), e.what()}};
  }
}

}  // namespace treadle::scalar
