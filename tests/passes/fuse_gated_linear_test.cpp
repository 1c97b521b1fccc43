#include <treadle/models/examples.hpp>
#include <treadle/passes/fuse_epilogue.hpp>
#include <treadle/passes/fuse_gated_linear.hpp>

#include "support.hpp"

using namespace treadle;

namespace {

// SwiGLU as people write it.
static_assert([] {
  Builder b;
  const Node x = b.input("x", f32, {batch, seq, 8});
  const Node gate = activate(linear("gate", x, {.width = 24, .bias = false}), silu);
  b.output("y", linear("down", gate * linear("up", x, {.width = 24, .bias = false}), {.width = 8, .bias = false}));
  const Graph g = fuse_gated_linear(fuse_epilogue(b.finish()));
  return !verify(g) && g.count(op::gated_linear) == 1 && g.count(op::linear) == 1 && g.count(op::multiply) == 0;
}());

const std::string start = R"(%0 = input "x" () : f32[batch, 4]
%1 = parameter "g" () : f32[6, 4]
%2 = parameter "u" () : f32[6, 4]
)";

}  // namespace

BOOST_AUTO_TEST_SUITE(fuse_gated_linear_pass)

BOOST_AUTO_TEST_CASE(either_side_may_be_the_gate) {
  const std::string projections =
      R"(%3 = linear "gate" (%0, %1) {has_bias=0, has_residual=0, function=silu} : f32[batch, 6]
%4 = linear "up" (%0, %2) {has_bias=0, has_residual=0, function=none} : f32[batch, 6]
)";
  const std::string expected =
      start + R"(%3 = gated_linear "gate+up" (%0, %1, %2) {has_bias=0, function=silu} : f32[batch, 6]
%4 = output "y" (%3) : f32[batch, 6]
)";
  for (const char* product : {"%5 = multiply (%3, %4) : f32[batch, 6]\n", "%5 = multiply (%4, %3) : f32[batch, 6]\n"})
    BOOST_TEST(test::run(fuse_gated_linear, start + projections + product + "%6 = output \"y\" (%5) : f32[batch, 6]\n",
                         1) == expected);
}

BOOST_AUTO_TEST_CASE(biases_and_scaled_weights) {
  BOOST_TEST(test::run(fuse_gated_linear, start + R"(%3 = parameter "gb" () : f32[6]
%4 = parameter "ub" () : f32[6]
%5 = scale (%2) {factor=2} : f32[6, 4]
%6 = linear "a" (%0, %1, %3) {has_bias=1, has_residual=0, function=none} : f32[batch, 6]
%7 = linear "b" (%0, %5, %4) {has_bias=1, has_residual=0, function=none} : f32[batch, 6]
%8 = multiply (%6, %7) : f32[batch, 6]
%9 = output "y" (%8) : f32[batch, 6]
)",
                       1) == start + R"(%3 = parameter "gb" () : f32[6]
%4 = parameter "ub" () : f32[6]
%5 = scale (%2) {factor=2} : f32[6, 4]
%6 = gated_linear "a+b" (%0, %1, %5, %3, %4) {has_bias=1, function=none} : f32[batch, 6]
%7 = output "y" (%6) : f32[batch, 6]
)");
}

BOOST_AUTO_TEST_CASE(what_is_no_gate_stays) {
  const auto stays = [](const std::string& first, const std::string& second, const std::string& more = "") {
    test::unchanged(fuse_gated_linear, start + "%3 = linear " + first + " : f32[batch, 6]\n%4 = linear " + second +
                                           " : f32[batch, 6]\n%5 = multiply (%3, %4) : f32[batch, 6]\n" + more +
                                           "%6 = output \"y\" (%5) : f32[batch, 6]\n");
  };
  const std::string silu = "(%0, %1) {has_bias=0, has_residual=0, function=silu}",
                    plain = "(%0, %2) {has_bias=0, has_residual=0, function=none}";
  stays(silu, "(%0, %2) {has_bias=0, has_residual=0, function=relu}");      // two activations
  stays(silu, plain, "%7 = output \"gate\" (%3) : f32[batch, 6]\n");        // the gate is read
  stays(silu, "(%0, %2, %3) {has_bias=0, has_residual=1, function=none}");  // not the product of two projections
  test::unchanged(fuse_gated_linear, R"(%0 = input "x" () : f32[batch, 4]
%1 = input "z" () : f32[batch, 4]
%2 = parameter "g" () : f32[6, 4]
%3 = parameter "u" () : f32[6, 4]
%4 = linear (%0, %2) {has_bias=0, has_residual=0, function=silu} : f32[batch, 6]
%5 = linear (%1, %3) {has_bias=0, has_residual=0, function=none} : f32[batch, 6]
%6 = multiply (%4, %5) : f32[batch, 6]
%7 = output "y" (%6) : f32[batch, 6]
)");
}

BOOST_AUTO_TEST_CASE(neither_product_moves_through_memory) {
  // Bytes that nodes read and write: 32 rows of width 16, hidden width 64, float32.
  const auto bytes = [](Graph g) {
    const Dim all = cost_of(g).bytes;
    return *g.dims.constant(all);
  };
  const auto model = [] {
    Builder b;
    const Node x = b.input("x", f32, {32, 16});
    b.output("y", activate(linear("gate", x, {.width = 64, .bias = false}), silu) *
                      linear("up", x, {.width = 64, .bias = false}));
    return fuse_epilogue(b.finish());
  };
  // x once instead of twice; two products written and read again, gone.
  BOOST_TEST(bytes(model()) - bytes(fuse_gated_linear(model())) == 4 * (32 * 16 + 2 * 2 * 32 * 64));
}

BOOST_AUTO_TEST_SUITE_END()
