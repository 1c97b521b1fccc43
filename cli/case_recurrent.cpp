// Retention, gated linear attention and the delta rule of cases as graphs.

#include "arguments.hpp"
#include "case_graphs.hpp"

#include <treadle/backends/error.hpp>
#include <treadle/ops/recurrent_attention.hpp>

#include <fmt/format.h>

namespace treadle::cli {

namespace {

/// [.., length, dim] with ones in front; gates of a lower rank too.
Node rows(CallBuilder& b, const std::string& name) { return b.input(name, f32, with_front(b.tensor(name).shape, 4)); }

void recurrent_call(CallBuilder& b) {
  b.only("layout", "[batch, heads, length, dim]");
  b.ignore("chunk");  // the kernel chooses its own; the result may not depend on it
  const Node q = rows(b, "q"), k = rows(b, "k"), v = rows(b, "v");
  std::optional<double> scale;
  if (b.has("scale")) scale = b.number("scale");
  RecurrentOptions o{.scale = scale};
  if (b.given("state")) o.state = rows(b, "state");
  RecurrentResult r{};
  if (b.call().op == "retention") {
    RetentionOptions retained{.scale = scale, .state = o.state};
    if (b.has("decays"))
      for (const auto& x : b.take("decays")) {
        if (!x.is_number())
          throw Error(fmt::format("attribute 'decays' of retention has {}: numbers are right", x.dump()));
        retained.decays.push_back(x.get<double>());
      }
    r = retention(q, k, v, retained);
  } else {
    if (b.given("log_gate")) o.log_gate = rows(b, "log_gate");
    if (b.given("beta")) o.beta = b.input("beta", f32, with_front(b.tensor("beta").shape, 3));
    const std::string needed = b.call().op == "gated_linear_attention" ? "log_gate" : "beta";
    if (!b.given(needed)) throw Error(fmt::format("{} needs the input '{}'", b.call().op, needed));
    r = recurrent_attention(q, k, v, o);
  }
  b.output("out", r.out);
  b.output("state", r.state);
}

}  // namespace

const std::map<std::string, CallFunction>& recurrent_calls() {
  static const std::map<std::string, CallFunction> calls = {{"retention", recurrent_call},
                                                            {"gated_linear_attention", recurrent_call},
                                                            {"delta_rule", recurrent_call},
                                                            {"gated_delta_rule", recurrent_call}};
  return calls;
}

}  // namespace treadle::cli
