// Tracing and simplification: most of it is checked by the compiler.

#include <treadle/graph/mask/masks.hpp>
#include <treadle/graph/scalar/evaluate.hpp>
#include <treadle/graph/scalar/print.hpp>

#include <boost/test/unit_test.hpp>

using namespace treadle;
using namespace treadle::scalar;

namespace {

template <class F>
constexpr Function mask_of(F f) {
  return mask_mod(f).function;
}

// Equal functions have equal roots, however they are written.
constexpr bool same(const Function& a, const Function& b) { return a == b; }

static_assert(same(mask_of([](auto, auto, auto q, auto k) { return k <= q; }),
                   mask_of([](auto, auto, auto q, auto k) { return q >= k; })));
static_assert(same(mask_of([](auto, auto, auto q, auto k) { return (k <= q) & (q < 3) & (k > 1); }),
                   mask_of([](auto, auto, auto q, auto k) { return (k > 1) & ((q < 3) & (q >= k)) & (q < 3); })));
static_assert(same(mask_of([](auto, auto, auto q, auto k) { return !(q < k); }),
                   mask_of([](auto, auto, auto q, auto k) { return k <= q; })));
static_assert(same(mask_of([](auto, auto, auto q, auto k) { return !!(q % 3 == k); }),
                   mask_of([](auto, auto, auto q, auto k) { return k == (q + 0) * 1 % 3; })));
static_assert(same(mask_of([](auto, auto, auto q, auto k) { return (k <= q) | true | (k < 3); }),
                   mask_of([](auto, auto, auto, auto) { return true; })));
static_assert(same(mask_of([](auto, auto, auto q, auto k) { return (k <= q) & ~(k <= q) & (k < 3); }),
                   mask_of([](auto, auto, auto, auto) { return false; })));
static_assert(same(mask_of([](auto, auto, auto q, auto k) { return where(k <= q, true, k < 4); }),
                   mask_of([](auto, auto, auto q, auto k) { return (k <= q) | (~(k <= q) & (k < 4)); })));
static_assert(!same(mask_of([](auto, auto, auto q, auto k) { return k <= q; }),
                    mask_of([](auto, auto, auto q, auto k) { return k < q; })));

// Constants are folded; integers round down.
static_assert(same(score_mod([](auto s, auto, auto, auto, auto) { return s * 1.0 + 0.0; }),
                   score_mod([](auto s, auto, auto, auto, auto) { return s; })));
static_assert(floor_div(-1, 2) == -1 && floor_mod(-1, 2) == 1 && floor_div(7, -2) == -4 && floor_mod(7, -2) == -1);
static_assert(floor_div(5, 0) == 0 && floor_mod(5, 0) == 0);
static_assert(score_mod([](auto, auto, auto, auto q, auto) { return q - q + 2.5; }).view()[0].number() == 2.5);
static_assert(score_mod([](auto, auto, auto, auto, auto) { return 2; }).view()[0].number() == 2.0);

// a·b + c is one fused operation, whichever way round.
constexpr Function alibi =
    score_mod([](auto score, auto, auto h, auto q, auto k) { return score - lookup("slopes", h) * abs(q - k); });
static_assert(alibi.view()[alibi.root()].op == Op::fma);
static_assert(score_mod([](auto s, auto, auto, auto, auto) { return 1.0 + s * 2.0; }).view()[2].op == Op::constant);

// What a mask depends on decides what is computed once per query or key.
static_assert((causal.view()[causal.root()].uses & (uses_q | uses_k)) == (uses_q | uses_k));
static_assert((key_lengths("n").view()[key_lengths("n").root()].uses & uses_q) == 0);

// Masks are values of a consteval model.
struct Attributes {
  int heads = 1;
  mask::Mask mask{};
  Function score{};
};
consteval int nodes_of(Attributes a) { return a.mask.function.node_count; }
static_assert(nodes_of({.heads = 12, .mask = causal & window(256, 0)}) ==
              nodes_of({.mask = window(256, 0) & causal()}));
static_assert((causal & window(256, 0)) == (window(256, 0) & causal & window(-1, 0)));
static_assert(window(-1, -1).view()[0].integer() == 1);
static_assert((causal & mask::Mask{}) == causal());

// What cannot be traced is remembered, through & | ! too; the model that uses it reports it.
static_assert(mask::mask_mod([](auto, auto, auto q, auto k) { return k < q && q < 4; }).function.misuse ==
              Misuse::and_and);
static_assert((causal & !mask::mask_mod([](auto, auto, auto q, auto k) { return k < q || q < 4; })).function.misuse ==
              Misuse::or_or);
static_assert(score_mod([](auto s, auto, auto, auto q, auto) { return q < 4 ? s : s + 1.0; }).misuse == Misuse::branch);
static_assert((causal & window(3, 3)).function.misuse == Misuse::none);

// Evaluated by the compiler.
constexpr bool allows(const mask::Mask& m, std::int64_t q, std::int64_t k, std::int64_t q_len, std::int64_t k_len) {
  return evaluate(m.view(), m.root(), {.q = q, .k = k, .q_len = q_len, .k_len = k_len}) != 0;
}
static_assert(allows(causal, 0, 3, 2, 5) && !allows(causal, 0, 4, 2, 5));
static_assert(allows(causal(mask::Alignment::top_left), 0, 0, 2, 5) &&
              !allows(causal(mask::Alignment::top_left), 0, 1, 2, 5));
static_assert(allows(window(1, 2), 3, 2, 7, 7) && allows(window(1, 2), 3, 5, 7, 7) &&
              !allows(window(1, 2), 3, 6, 7, 7));
static_assert(allows(dilated(window(4, 4), 2), 5, 1, 9, 9) && !allows(dilated(window(4, 4), 2), 5, 2, 9, 9));

// One pool: equal functions share their nodes.
static_assert([] {
  Pool pool;
  const int a = (causal & window(3, 3)).add_to(pool);
  const std::size_t size = pool.nodes.size();
  return (window(3, 3) & causal).add_to(pool) == a && pool.nodes.size() == size;
}());

std::string text(const Function& f) { return print(f.view(), f.root()); }

}  // namespace

BOOST_AUTO_TEST_SUITE(trace)

BOOST_AUTO_TEST_CASE(text_reads_like_the_source) {
  BOOST_TEST(text(mask_of([](auto, auto, auto q, auto k) { return (k <= q) & (q - k <= 256); })) ==
             "(k <= q) & ((q - k) <= 256)");
  BOOST_TEST(text(alibi) == "fma(abs(q - k), -lookup(\"slopes\", h), score)");
  BOOST_TEST(text(causal.function) == "k <= (q + (k_len - q_len))");
  BOOST_TEST(text(documents("document", mask::Rows::per_batch).function) ==
             "(0 <= (q + (k_len - q_len))) & (lookup<i32>(\"document\", b, k) == lookup<i32>(\"document\", b, "
             "max(q + (k_len - q_len), 0)))");
  BOOST_TEST(text(feature_map([](auto x) { return where(x > 0, x + 1, exp(x)); })) ==
             "where(0.0 < x, x + 1.0, exp(x))");
  BOOST_TEST(text(score_mod([](auto score, auto, auto, auto q, auto k) {
               return 30 * tanh(score / 30) + sum(q, [&](auto i) { return tanh(q[i] + k[i]); }) + iteration(q);
             })) == "iteration + fma(tanh(score / 30.0), 30.0, sum(tanh(q[i] + k[i])))");
}

BOOST_AUTO_TEST_CASE(what_cannot_be_traced_has_no_text) {
  const mask::Mask m = mask::mask_mod([](auto, auto, auto q, auto k) { return k < q && q < 4; });
  BOOST_CHECK_EXCEPTION(m.view(), std::invalid_argument, [](const std::invalid_argument& e) {
    return std::string_view(e.what()) == "a traced condition has no &&: write a & b";
  });
}

BOOST_AUTO_TEST_CASE(mistakes_have_sentences) {
  Pool pool;
  const auto trace_bad = [&](auto f) { trace_score(pool, f); };
  BOOST_CHECK_EXCEPTION(trace_bad([](auto s, auto, auto, auto, auto) { return s % 2; }), std::invalid_argument,
                        [](const auto& e) { return std::string(e.what()) == "% needs two integers"; });
  BOOST_CHECK_THROW(trace_bad([](auto s, auto, auto, auto, auto) { return s + s[s]; }), std::invalid_argument);
  BOOST_CHECK_THROW(trace_bad([](auto s, auto, auto, auto q, auto) { return s + lookup("t", q * 0.5); }),
                    std::invalid_argument);
  BOOST_CHECK_THROW(window(-2, 0), std::invalid_argument);
  BOOST_CHECK_THROW(block_table("t", 0), std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()
