#include "heat_picture.hpp"

#include "markup.hpp"

#include <treadle/backends/error.hpp>

#include <fmt/format.h>
#ifdef TREADLE_PNG
#include <png.h>
#endif

#include <algorithm>
#include <array>
#include <cmath>

namespace treadle::cli {

namespace {

using Colour = std::array<std::uint8_t, 3>;

/// 0 to 1: white to the dark blue of the page.
Colour colour(double share) {
  constexpr std::array<double, 3> light = {255, 255, 255}, dark = {8, 48, 107};
  Colour c{};
  for (std::size_t i = 0; i < 3; ++i)
    c[i] = static_cast<std::uint8_t>(std::lround(light[i] + (dark[i] - light[i]) * share));
  return c;
}

double largest(const HeatPicture& p) {
  double most = 0;
  for (const float w : p.weights)
    if (std::isfinite(w)) most = std::max(most, static_cast<double>(w));
  return most > 0 ? most : 1;
}

Colour colour_of(float weight, double most) {
  if (!std::isfinite(weight)) return {204, 121, 167};  // no number: reddish purple, which no weight has
  return colour(std::sqrt(std::max(0.0, static_cast<double>(weight)) / most));
}

std::string hex(const Colour& c) { return fmt::format("#{:02x}{:02x}{:02x}", c[0], c[1], c[2]); }

/// About as wide as it will be drawn, in letters; those of East Asia count twice.
double letters(const std::string& text) {
  double n = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0U) != 0x80U) n += byte >= 0xE3U ? 1.8 : 1;
  }
  return n;
}

double room(const std::vector<std::string>& labels, double size) {
  double most = 1;
  for (const std::string& l : labels) most = std::max(most, letters(l));
  return most * size * 0.62 + 6;
}

}  // namespace

std::string heat_svg(const HeatPicture& p) {
  const double cell = p.cell, size = std::clamp(cell * 0.75, 4.0, 11.0), left = room(p.queries, size),
               top = room(p.keys, size);
  const double width = cell * static_cast<double>(p.keys.size()), height = cell * static_cast<double>(p.queries.size());
  const double most = largest(p), scale_width = std::min(120.0, std::max(width, 60.0));
  std::string s = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.1f}\" height=\"{1:.1f}\" viewBox=\"0 0 {0:.1f} {1:.1f}\" "
      "font-family=\"Helvetica, Arial, sans-serif\" font-size=\"{2:.1f}\" fill=\"#000\">\n<title>{3}</title>\n",
      left + std::max(width, scale_width + 30) + 4, top + height + 34, size, escaped(p.title));
  s += "<g shape-rendering=\"crispEdges\">\n";
  for (std::size_t q = 0; q < p.queries.size(); ++q)
    for (std::size_t k = 0; k < p.keys.size(); ++k) {
      const float w = p.weights[q * p.keys.size() + k];
      if (w == 0) continue;  // the paper is white
      s += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>\n",
                       left + static_cast<double>(k) * cell, top + static_cast<double>(q) * cell, p.cell, p.cell,
                       hex(colour_of(w, most)));
    }
  s += fmt::format(
      "</g>\n<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"none\" stroke=\"#888\" "
      "stroke-width=\"0.5\"/>\n",
      left, top, width, height);
  for (std::size_t q = 0; q < p.queries.size(); ++q)
    s += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", left - 4,
                     top + (static_cast<double>(q) + 0.5) * cell + size * 0.35, escaped(p.queries[q]));
  for (std::size_t k = 0; k < p.keys.size(); ++k) {
    const double x = left + (static_cast<double>(k) + 0.5) * cell + size * 0.35;
    s += fmt::format("<text x=\"{0:.1f}\" y=\"{1:.1f}\" transform=\"rotate(-90 {0:.1f} {1:.1f})\">{2}</text>\n", x,
                     top - 4, escaped(p.keys[k]));
  }
  constexpr int shades = 32;
  const double y = top + height + 10;
  for (int i = 0; i < shades; ++i)
    s += fmt::format("<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"8\" fill=\"{}\"/>\n",
                     left + scale_width * i / shades, y, scale_width / shades + 0.3,
                     hex(colour(std::sqrt((i + 0.5) / shades))));
  s += fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\">0</text>\n<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{:.2g}</text>\n"
      "</svg>\n",
      left, y + 18, left + scale_width, y + 18, most);
  return s;
}

#ifdef TREADLE_PNG
std::string heat_png(const HeatPicture& p) {
  const std::size_t columns = p.keys.size(), rows = p.queries.size();
  const auto cell = static_cast<std::size_t>(p.cell);
  const double most = largest(p);
  std::vector<std::uint8_t> pixels(columns * cell * rows * cell * 3);
  for (std::size_t y = 0; y < rows * cell; ++y)
    for (std::size_t x = 0; x < columns * cell; ++x) {
      const Colour c = colour_of(p.weights[y / cell * columns + x / cell], most);
      std::copy(c.begin(), c.end(), pixels.begin() + static_cast<std::ptrdiff_t>((y * columns * cell + x) * 3));
    }
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(columns * cell);
  image.height = static_cast<png_uint_32>(rows * cell);
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t bytes = 0;
  std::string file;
  if (png_image_write_to_memory(&image, nullptr, &bytes, 0, pixels.data(), 0, nullptr) != 0) {
    file.resize(bytes);
    if (png_image_write_to_memory(&image, file.data(), &bytes, 0, pixels.data(), 0, nullptr) != 0) {
      file.resize(bytes);
      return file;
    }
  }
  throw Error(fmt::format("libpng could not write the picture: {}", static_cast<const char*>(image.message)));
}
#else
std::string heat_png(const HeatPicture&) {
  throw Error("this build has no libpng (Debian: libpng-dev): name a file that ends in .svg");
}
#endif

}  // namespace treadle::cli
