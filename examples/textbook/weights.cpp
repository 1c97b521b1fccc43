// Scaled dot-product attention with numbers that a pencil can follow.

#include "chapter.hpp"
#include "dot_product.hpp"

#include <cmath>

namespace textbook {
namespace {

using namespace treadle;

/// The mixture alone, for weights that are given.
Graph mixture(std::int64_t keys, std::int64_t width) {
  Builder g;
  const Node weights = g.input("weights", f32, {1, keys}), v = g.input("v", f32, {keys, width});
  g.output("out", matmul(weights, v));
  return g.finish();
}

void write(Page& page, const Target& target) {
  const Tensors a = run(target, dot_product({.keys = 3, .width = 3, .value_width = 2, .scale = 1 / std::sqrt(3.0)}),
                        {{"q", {1, 0, 1}}, {"k", {1, 0, 1, 0, 1, 1, 1, 1, 0}}, {"v", {2, 3, 1, 4, 5, 2}}});
  page.as_printed("A: q kᵀ", a.at("products"), "2 1 1");
  page.as_printed("A: weights", a.at("weights"), "0.471 0.264 0.264");
  page.as_printed("A: output", a.at("out"), "2.53 3.00");
  page.rounding("A: |attention node − written out|", largest_difference(a.at("out"), a.at("written_out")), 1e-6);

  const Tensors b = run(target, dot_product({.keys = 2, .width = 2, .value_width = 2, .scale = 1 / std::sqrt(2.0)}),
                        {{"q", {2, 1}}, {"k", {1, 2, 2, 1}}, {"v", {3, 1, 2, 4}}});
  page.as_printed("B: q kᵀ", b.at("products"), "4 5");
  page.as_printed("B: weights", b.at("weights"), "0.330 0.670");
  page.as_printed("B: output", b.at("out"), "2.330 3.009");
  page.rounding("B: |attention node − written out|", largest_difference(b.at("out"), b.at("written_out")), 1e-6);
  page.as_printed("B: output, weights rounded first",
                  run(target, mixture(2, 2), {{"weights", {0.330f, 0.670f}}, {"v", {3, 1, 2, 4}}}).at("out"),
                  "2.330 3.010");

  page.as_printed("C: output",
                  run(target, mixture(3, 2), {{"weights", {0.5f, 0.3f, 0.2f}}, {"v", {1, 2, 3, 4, 5, 6}}}).at("out"),
                  "2.4 3.4");
  page.note("3.010 for B is what comes out where a text rounds the weights to [0.330, 0.670] before it multiplies.");
}

}  // namespace

const Chapter chapter::weights = {
    "weights", "Attention by hand",
    "A: q = [1,0,1], rows of K [1,0,1] [0,1,1] [1,1,0], rows of V [2,3] [1,4] [5,2], d_k = 3\n"
    "B: q = [2,1], K [1,2] [2,1], V [3,1] [2,4], d_k = 2\n"
    "C: weights [0.5,0.3,0.2] over V [1,2] [3,4] [5,6]\n"
    "weights = softmax(q Kᵀ / √d_k), output = weights · V",
    "Vaswani et al. 2017, eq. 1", write};

}  // namespace textbook
