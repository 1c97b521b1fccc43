// What a softmax makes of a multiple of the identity.

#include "chapter.hpp"
#include "dot_product.hpp"

#include <cmath>

namespace textbook {
namespace {

void write(Page& page, const Target& target) {
  const treadle::Graph model =
      dot_product({.queries = 2, .keys = 2, .width = 2, .value_width = 2, .scale = 1 / std::sqrt(2.0)});
  const Tensors a = run(target, model, {{"q", identity(2)}, {"k", {2, 0, 0, 2}}, {"v", identity(2)}});
  page.as_printed("K = 2 I: Q Kᵀ", a.at("products"), "2 0 0 2");
  page.as_printed("K = 2 I: weights, row 1", row(a.at("weights"), 0, 2), "0.804 0.196");
  page.as_printed("K = 2 I: weights, row 2", row(a.at("weights"), 1, 2), "0.196 0.804");
  page.as_printed("K = 2 I: output, both rows", a.at("out"), "0.804 0.196 0.196 0.804");
  page.more_than("K = 2 I: how far the output is from I", largest_difference(a.at("out"), identity(2)), 0.19, 4);

  const Tensors b = run(target, model, {{"q", identity(2)}, {"k", {2, 0, 2, 2}}, {"v", identity(2)}});
  page.as_printed("K = [2,0] [2,2]: Q Kᵀ", b.at("products"), "2 2 0 2");
  page.as_printed("K = [2,0] [2,2]: weights, row 1", row(b.at("weights"), 0, 2), "0.5 0.5");
  page.as_printed("K = [2,0] [2,2]: weights, row 2", row(b.at("weights"), 1, 2), "0.196 0.804");
  page.note(
      "a text may print the identity here. softmax(√2, 0) = [0.804, 0.196] is not the identity: a softmax of\n"
      "finite scores never gives a 0, and scores 1.414 apart give weights in the ratio e^1.414 = 4.11 to 1.");
}

}  // namespace

const Chapter chapter::identity = {"identity", "Keys that are twice the identity",
                                   "Q = V = I (2 × 2), scores divided by √2 = 1.414\n"
                                   "softmax(1.414, 0) = [e^1.414, 1] / (e^1.414 + 1)",
                                   "Vaswani et al. 2017, eq. 1", write};

}  // namespace textbook
