#pragma once
// From which length on a variant is faster than dense attention.

#include "report.hpp"

#include <optional>
#include <string>
#include <vector>

namespace treadle::cli {

struct Crossover {
  std::string input, variant, baseline;
  std::optional<double> length;  ///< none: no two measured lengths have it between them
  double milliseconds = 0;       ///< of both, there
  std::string text;              ///< one clause that says so
};

/// Of every variant of every input that has at least two lengths, against `dense`; of causal ones, against `causal`.
/// Between two lengths, times are taken to be straight in logarithms; of several crossings the last counts.
std::vector<Crossover> crossovers(const std::vector<Row>& rows);

}  // namespace treadle::cli
