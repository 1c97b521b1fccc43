#include "crossovers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace treadle::cli {

namespace {
using Times = std::map<std::int64_t, double>;  ///< by length

Crossover crossing(const Times& mine, const Times& base, Crossover c) {
  std::vector<std::pair<double, double>> gap;  // log length, log (mine / base)
  std::vector<double> log_base;
  for (const auto& [length, t] : mine) {
    const auto b = base.find(length);
    if (b == base.end() || !(t > 0) || !(b->second > 0)) continue;
    gap.emplace_back(std::log(static_cast<double>(length)), std::log(t / b->second));
    log_base.push_back(std::log(b->second));
  }
  if (gap.empty() || gap.back().second >= 0) {
    c.text = "at no length faster than " + c.baseline;
    if (!gap.empty() && gap.size() > 1 && gap.front().second < 0)
      c.text = "faster than " + c.baseline + " at short lengths only";
    return c;
  }
  std::size_t i = gap.size() - 1;
  while (i > 0 && gap[i - 1].second < 0) --i;
  if (i == 0) {
    c.text = fmt::format("faster than {} at every length", c.baseline);
    return c;
  }
  const auto [x0, y0] = gap[i - 1];
  const auto [x1, y1] = gap[i];
  const double at = y0 / (y0 - y1);
  c.length = std::exp(x0 + at * (x1 - x0));
  c.milliseconds = std::exp(log_base[i - 1] + at * (log_base[i] - log_base[i - 1]));
  c.text = fmt::format("faster than {} from about {:.0f} tokens on", c.baseline, *c.length);
  return c;
}
}  // namespace

std::vector<Crossover> crossovers(const std::vector<Row>& rows) {
  std::map<std::pair<std::string, std::string>, Times> times;
  std::vector<std::pair<std::string, std::string>> order;
  std::map<std::string, bool> causal;
  for (const Row& r : rows) {
    const std::pair key(r.input, r.variant);
    if (!times.contains(key)) order.push_back(key);
    times[key][r.length] = r.median_ms;
    causal[r.variant] = r.causal;
  }
  std::vector<Crossover> all;
  for (const auto& key : order) {
    const std::string baseline = causal[key.second] ? "causal" : "dense";
    const auto base = times.find({key.first, baseline});
    if (key.second == baseline || base == times.end() || base->second.size() < 2) continue;
    all.push_back(crossing(times[key], base->second, {key.first, key.second, baseline, std::nullopt, 0, ""}));
  }
  return all;
}

}  // namespace treadle::cli
