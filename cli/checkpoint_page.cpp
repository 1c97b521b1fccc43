#include "checkpoint_page.hpp"

#include "checkpoint_weights.hpp"
#include "page.hpp"

#include <treadle/backends/error.hpp>
#include <treadle/io/file.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace treadle::cli {

namespace {

/// The first lines of a text that are not blank, as one.
std::string beginning(const std::string& text) {
  constexpr std::size_t enough = 300;  // letters: more than fit in 64 tokens
  std::string start;
  for (const char c : text) {
    const bool blank = c == '\n' || c == '\r' || c == '\t' || c == ' ';
    if (blank && (start.empty() || start.back() == ' ')) continue;
    if (start.size() >= enough && blank) break;
    start += blank ? ' ' : c;
  }
  return start;
}

}  // namespace

std::string checkpoint_page(const CheckpointPlan& plan, const Json& results, const std::string& csv) {
  Json page = {{"kind", "checkpoint"}, {"title", "Attention compared inside a model"}};
  page["head"] = results;
  page["head"].erase("rows");
  page["rows"] = results["rows"];
  page["attention"] = Json::array();
  const ModelInput input = sentence_input(plan.folder, beginning(io::read_text(plan.text)), "", 48);
  constexpr std::size_t most_maps = 4;
  const auto add = [&](const std::string& name, const AttentionVariant& attention) {
    BindOptions bind = plan.bind;
    bind.trace = nullptr;
    for (WeightMap& m : checkpoint_weights(plan.folder, input, bind, attention)) {
      m.name = name + ": " + m.name;
      page["attention"].push_back(to_json_object(m));
    }
  };
  add("dense", {});
  for (const Variant& v : plan.variants) {
    if (page["attention"].size() >= most_maps) break;
    if (v.name == "dense" || v.weights != Variant::Weights::softmax || v.table || v.at_shape) continue;
    try {
      add(v.name, v.attention);
    } catch (const Error&) {
      continue;  // it has no weights of single pairs
    }
  }
  page["files"] = {{"csv", csv}, {"json", results.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"}};
  return make_page(page);
}

}  // namespace treadle::cli
