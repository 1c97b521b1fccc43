#include "compare_page.hpp"

#include "crossovers.hpp"
#include "page.hpp"
#include "peak.hpp"

#include <algorithm>
#include <utility>

namespace treadle::cli {

namespace {
constexpr std::int64_t longest_map = 1024;  // tokens: more give tiles too small to see

/// Read bandwidth of the second level of cache and of the memory, GB/s.
Json bandwidths(int threads) {
  Json list = Json::array();
  const auto add = [&](const char* name, std::int64_t bytes) {
    if (bytes <= 0) return;
    list.push_back(
        {{"name", name}, {"gigabytes_per_second", read_bandwidth(static_cast<std::size_t>(bytes), threads, 100)}});
  };
  add("L2 read", cache_bytes(2) / 2);
  add("memory read", std::int64_t{128} << 20);
  return list;
}
}  // namespace

void ComparePage::add(const std::string& input, const Variant& variant, const AttentionShape& shape,
                      const Measurement& m, const Accuracy& accuracy) {
  for (const KernelTime& k : m.kernels)
    kernels_.push_back({{"input", input},
                        {"variant", variant.name},
                        {"length", shape.length},
                        {"kernel", k.kernel},
                        {"op", k.op},
                        {"flops", k.flops},
                        {"bytes", k.bytes},
                        {"milliseconds", k.milliseconds}});
  heads_.push_back({{"input", input},
                    {"variant", variant.name},
                    {"length", shape.length},
                    {"error", accuracy.head_errors},
                    {"entropy", accuracy.head_entropies}});
  const auto there =
      std::find_if(masks_.begin(), masks_.end(), [&](const MaskMap& x) { return x.variant == variant.name; });
  if (there != masks_.end() && (there->length >= shape.length || there->length >= longest_map)) return;
  AttentionShape seen = shape;
  seen.length = std::min(shape.length, longest_map);
  constexpr std::int64_t usual_strip = 16, usual_block = 32;
  const bool tiled = m.tile_queries > 0 && m.tile_keys > 0;
  auto map = mask_map(variant, seen, tiled ? std::min<std::int64_t>(m.tile_queries, 64) : usual_strip,
                      tiled ? std::min<std::int64_t>(m.tile_keys, 256) : usual_block);
  if (!map) return;
  if (there != masks_.end())
    *there = std::move(*map);
  else
    masks_.push_back(std::move(*map));
}

void ComparePage::add_weights(const std::vector<Variant>& variants, const AttentionShape& shape, const Tensors& tensors,
                              const MeasureOptions& options) {
  for (const Variant& v : variants)
    if (const auto map = variant_weights(v, shape, tensors, options)) weights_.push_back(to_json_object(*map));
}

std::string ComparePage::html(const Report& report, const std::string& title) {
  if (bandwidths_.is_null()) bandwidths_ = bandwidths(report.rows.empty() ? 1 : report.rows.front().threads);
  Json page = {{"kind", "compare"}, {"title", title}};
  page["head"] = report_head(report.machine, report.seed, report.date);
  page["head"]["peak_gflops"] = report.peak_gflops;
  const Json results = to_json_object(report);
  page["rows"] = results["rows"];
  page["exponents"] = results["exponents"];
  page["crossovers"] = Json::array();
  for (const Crossover& c : crossovers(report.rows))
    page["crossovers"].push_back({{"input", c.input},
                                  {"variant", c.variant},
                                  {"baseline", c.baseline},
                                  {"length", c.length ? Json(*c.length) : Json()},
                                  {"milliseconds", c.milliseconds},
                                  {"text", c.text}});
  page["roofline"] = {{"peak_gflops", report.peak_gflops}, {"bandwidths", bandwidths_}, {"kernels", kernels_}};
  page["heads"] = heads_;
  page["masks"] = Json::array();
  for (const MaskMap& m : masks_) page["masks"].push_back(to_json_object(m));
  page["attention"] = weights_;
  page["files"] = {{"csv", to_csv(report)}, {"json", to_json(report)}};
  return make_page(page);
}

}  // namespace treadle::cli
