#pragma once
// One head's weights as a picture for a paper.

#include <cstdint>
#include <string>
#include <vector>

namespace treadle::cli {

struct HeatPicture {
  std::vector<float> weights;  ///< [queries, keys]
  std::vector<std::string> queries, keys;
  std::string title;  ///< of the SVG, for readers who cannot see it; not drawn
  int cell = 12;      ///< of a weight, in points (SVG) or pixels (PNG)
};

/// Labels on both sides, a scale of colours below; white to dark blue by the square root of the weight over the
/// largest. Text is text: it can be searched and takes the paper's font.
std::string heat_svg(const HeatPicture& picture);

/// The cells alone, as text has no place in it. Throws Error in a build without libpng.
std::string heat_png(const HeatPicture& picture);

}  // namespace treadle::cli
