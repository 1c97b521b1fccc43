#pragma once
// Dim expressions: small canonical integers made of named dims.
//
// A dim is a sum of monomials (coefficient × atoms); an atom is a named dim, ceil-div, min or max of two dims. Equal
// dims have the same index in their pool, so shapes compare by index. `DimSpec` is what people write (`patches + 1`)
// before a graph exists; the pool holds the canonical form as plain data.

#include <treadle/graph/strings.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace treadle {

/// Index of a canonical dim in its pool.
using Dim = std::int32_t;

enum class AtomKind : std::uint8_t { symbol, ceil_div, min, max };

struct DimAtom {
  AtomKind kind = AtomKind::symbol;
  std::int32_t name = -1;  ///< symbol: string id
  Dim a = -1, b = -1;      ///< operands of the other kinds
  constexpr bool operator==(const DimAtom&) const = default;
};

inline constexpr int max_degree = 5;

struct DimTerm {
  std::int64_t coefficient = 0;
  std::array<std::int16_t, max_degree> atoms{-1, -1, -1, -1, -1};  ///< sorted descending, −1 = none
  constexpr bool operator==(const DimTerm&) const = default;
};

struct DimSum {
  std::int32_t first = 0, count = 0;
};

struct DimsView {
  std::span<const DimAtom> atoms;
  std::span<const DimTerm> terms;
  std::span<const DimSum> sums;

  constexpr std::span<const DimTerm> terms_of(Dim d) const { return terms.subspan(sums[d].first, sums[d].count); }

  /// The number, if the dim has no symbols.
  constexpr std::optional<std::int64_t> constant(Dim d) const {
    const DimSum& s = sums[static_cast<std::size_t>(d)];
    if (s.count == 0) return 0;
    const DimTerm& t = terms[static_cast<std::size_t>(s.first)];
    if (s.count == 1 && t.atoms[0] < 0) return t.coefficient;
    return std::nullopt;
  }

  /// `values[atom]` holds the value of each symbol atom; other atoms are computed.
  constexpr std::int64_t evaluate(Dim d, std::span<const std::int64_t> values) const {
    std::int64_t sum = 0;
    for (const DimTerm& t : terms_of(d)) {
      std::int64_t product = t.coefficient;
      for (int a : t.atoms)
        if (a >= 0) product *= atom_value(a, values);
      sum += product;
    }
    return sum;
  }

  constexpr std::int64_t atom_value(int atom, std::span<const std::int64_t> values) const {
    const DimAtom& x = atoms[atom];
    if (x.kind == AtomKind::symbol) return values[atom];
    const std::int64_t a = evaluate(x.a, values), b = evaluate(x.b, values);
    if (x.kind == AtomKind::ceil_div) return b == 0 ? 0 : (a + b - 1) / b;
    if (x.kind == AtomKind::min) return a < b ? a : b;
    return a > b ? a : b;
  }
};

struct Dims {
  std::vector<DimAtom> atoms;
  std::vector<DimTerm> terms;
  std::vector<DimSum> sums;

  constexpr DimsView view() const {
    return {{atoms.data(), atoms.size()}, {terms.data(), terms.size()}, {sums.data(), sums.size()}};
  }
  constexpr std::optional<std::int64_t> constant(Dim d) const { return view().constant(d); }

  constexpr Dim number(std::int64_t n) {
    const DimTerm t{n, none};
    return intern(&t, n != 0 ? 1 : 0);
  }
  constexpr Dim symbol(std::int32_t name) { return atom({AtomKind::symbol, name, -1, -1}); }

  constexpr Dim add(Dim a, Dim b, std::int64_t factor = 1) {
    std::vector<DimTerm> t = copy(a);
    for (DimTerm x : copy(b)) {
      x.coefficient *= factor;
      accumulate(t, x);
    }
    return intern(t);
  }
  constexpr Dim subtract(Dim a, Dim b) { return add(a, b, -1); }
  constexpr Dim multiply(Dim a, Dim b) {
    // By a number: as most products in shape rules are.
    const std::optional<std::int64_t> x = constant(a), y = constant(b);
    if (x && y) return number(*x * *y);
    if (x && *x == 1) return b;
    if (y && *y == 1) return a;
    std::vector<DimTerm> t;
    for (const DimTerm& p : copy(a))
      for (const DimTerm& q : copy(b)) accumulate(t, product(p, q));
    return intern(t);
  }
  /// a · n. (A name of its own: an overload would take a literal for the index of a dim.)
  constexpr Dim times(Dim a, std::int64_t n) { return multiply(a, number(n)); }

  constexpr Dim ceil_div(Dim a, Dim b) {
    const auto x = constant(a), y = constant(b);
    if (y && *y == 1) return a;
    if (x && y && *y > 0) return number((*x + *y - 1) / *y);
    if (y && divisible(a, *y)) return divide(a, *y);
    return atom({AtomKind::ceil_div, -1, a, b});
  }
  constexpr Dim min(Dim a, Dim b) { return order(AtomKind::min, a, b); }
  constexpr Dim max(Dim a, Dim b) { return order(AtomKind::max, a, b); }

  /// Whether every coefficient is a multiple of n, so that a / n is again a dim.
  constexpr bool divisible(Dim a, std::int64_t n) const {
    for (const DimTerm& t : view().terms_of(a))
      if (n == 0 || t.coefficient % n != 0) return false;
    return true;
  }
  constexpr Dim divide(Dim a, std::int64_t n) {
    std::vector<DimTerm> t = copy(a);
    for (DimTerm& x : t) x.coefficient /= n;
    return intern(t);
  }

 private:
  static constexpr std::array<std::int16_t, max_degree> none{-1, -1, -1, -1, -1};

  constexpr std::vector<DimTerm> copy(Dim a) const {
    const DimSum& s = sums[static_cast<std::size_t>(a)];
    const DimTerm* first = terms.data() + s.first;
    return {first, first + s.count};
  }
  static constexpr DimTerm product(const DimTerm& x, const DimTerm& y) {
    DimTerm r{x.coefficient * y.coefficient, none};
    int i = 0, j = 0;
    for (int n = 0; n < max_degree; ++n) {
      const std::int16_t a = i < max_degree ? x.atoms[i] : std::int16_t{-1};
      const std::int16_t b = j < max_degree ? y.atoms[j] : std::int16_t{-1};
      if (a < 0 && b < 0) break;
      if (a >= b) {
        r.atoms[n] = a;
        ++i;
      } else {
        r.atoms[n] = b;
        ++j;
      }
    }
    return r;
  }
  static constexpr void accumulate(std::vector<DimTerm>& t, const DimTerm& x) {
    for (std::size_t i = 0; i < t.size(); ++i) {
      if (t[i].atoms == x.atoms) {
        t[i].coefficient += x.coefficient;
        if (t[i].coefficient == 0) t.erase(t.begin() + static_cast<std::ptrdiff_t>(i));
        return;
      }
    }
    if (x.coefficient == 0) return;
    std::size_t at = 0;
    while (at < t.size() && t[at].atoms > x.atoms) ++at;
    t.insert(t.begin() + static_cast<std::ptrdiff_t>(at), x);
  }
  constexpr Dim order(AtomKind kind, Dim a, Dim b) {
    if (a == b) return a;
    const auto x = constant(a), y = constant(b);
    if (x && y) return number((kind == AtomKind::min) == (*x < *y) ? *x : *y);
    if (a > b) return atom({kind, -1, b, a});
    return atom({kind, -1, a, b});
  }
  constexpr Dim atom(DimAtom x) {
    std::size_t i = 0;
    while (i < atoms.size() && !(atoms[i] == x)) ++i;
    if (i == atoms.size()) atoms.push_back(x);
    DimTerm t{1, none};
    t.atoms[0] = static_cast<std::int16_t>(i);
    return intern(&t, 1);
  }
  constexpr Dim intern(const std::vector<DimTerm>& t) { return intern(t.data(), static_cast<std::int32_t>(t.size())); }
  constexpr Dim intern(const DimTerm* t, std::int32_t count) {
    // Plain loops: see Strings::intern.
    const DimSum* s = sums.data();
    const DimTerm* pool = terms.data();
    for (std::int32_t i = 0, n = static_cast<std::int32_t>(sums.size()); i < n; ++i) {
      if (s[i].count != count) continue;
      const DimTerm* known = pool + s[i].first;
      std::int32_t j = 0;
      while (j < count && known[j].coefficient == t[j].coefficient && known[j].atoms == t[j].atoms) ++j;
      if (j == count) return i;
    }
    sums.push_back({static_cast<std::int32_t>(terms.size()), count});
    terms.insert(terms.end(), t, t + count);
    return static_cast<Dim>(sums.size()) - 1;
  }
};

/// What people write: `dim("patches") + 1`, `ceil_div(seq, 2)`, or a plain number. A literal value without a graph.
class DimSpec {
 public:
  constexpr DimSpec() = default;
  constexpr DimSpec(int n) : DimSpec(static_cast<std::int64_t>(n)) {}
  constexpr DimSpec(std::int64_t n) { push({Token::number, n, {}}); }
  static constexpr DimSpec symbol(std::string_view name) {
    DimSpec d;
    Step s{Token::symbol, 0, {}};
    for (std::size_t i = 0; i < name.size() && i + 1 < s.name.size(); ++i) s.name[i] = name[i];
    d.push(s);
    return d;
  }

  friend constexpr DimSpec operator+(const DimSpec& a, const DimSpec& b) { return join(a, b, Token::add); }
  friend constexpr DimSpec operator-(const DimSpec& a, const DimSpec& b) { return join(a, b, Token::subtract); }
  friend constexpr DimSpec operator*(const DimSpec& a, const DimSpec& b) { return join(a, b, Token::multiply); }
  friend constexpr DimSpec ceil_div(const DimSpec& a, const DimSpec& b) { return join(a, b, Token::ceil_div); }
  friend constexpr DimSpec min(const DimSpec& a, const DimSpec& b) { return join(a, b, Token::min); }
  friend constexpr DimSpec max(const DimSpec& a, const DimSpec& b) { return join(a, b, Token::max); }

  /// The canonical dim in a graph's pools.
  constexpr Dim intern(Dims& dims, Strings& strings) const {
    std::array<Dim, capacity> stack{};
    int top = 0;
    for (int i = 0; i < count_; ++i) {
      const Step& s = steps_[i];
      if (s.token == Token::number) {
        stack[top++] = dims.number(s.value);
        continue;
      }
      if (s.token == Token::symbol) {
        stack[top++] = dims.symbol(strings.intern(s.name.data()));
        continue;
      }
      const Dim b = stack[--top], a = stack[--top];
      Dim r = -1;
      if (s.token == Token::add) r = dims.add(a, b);
      if (s.token == Token::subtract) r = dims.subtract(a, b);
      if (s.token == Token::multiply) r = dims.multiply(a, b);
      if (s.token == Token::ceil_div) r = dims.ceil_div(a, b);
      if (s.token == Token::min) r = dims.min(a, b);
      if (s.token == Token::max) r = dims.max(a, b);
      stack[top++] = r;
    }
    return top == 1 ? stack[0] : dims.number(0);
  }

 private:
  enum class Token : std::uint8_t { number, symbol, add, subtract, multiply, ceil_div, min, max };
  struct Step {
    Token token = Token::number;
    std::int64_t value = 0;
    std::array<char, 24> name{};
  };
  static constexpr int capacity = 12;
  std::array<Step, capacity> steps_{};
  int count_ = 0;

  constexpr void push(const Step& s) {
    if (count_ == capacity) throw "a dim expression may have at most 12 terms and operators";
    steps_[count_++] = s;
  }
  static constexpr DimSpec join(const DimSpec& a, const DimSpec& b, Token token) {
    DimSpec r = a;
    for (int i = 0; i < b.count_; ++i) r.push(b.steps_[i]);
    r.push({token, 0, {}});
    return r;
  }
};

constexpr DimSpec ceil_div(const DimSpec& a, const DimSpec& b);

constexpr DimSpec dim(std::string_view name) { return DimSpec::symbol(name); }

inline constexpr DimSpec batch = dim("batch");
inline constexpr DimSpec seq = dim("seq");

}  // namespace treadle
