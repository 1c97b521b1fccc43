// Sinusoidal positions: the table, and why a shift is a rotation.

#include "chapter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace textbook {
namespace {

using namespace treadle;

constexpr std::int64_t width = 4, length = 512;

/// The table, the dot products of its rows, and how far the rotated table is from the one that starts `shift` later.
Graph table(std::int64_t shift) {
  Builder g;
  const Node rotation = g.input("rotation", f32, {width, width});
  const Node here = sinusoidal_positions(g, length, width),
             there = sinusoidal_positions(g, length, width, {.offset = shift});
  g.output("table", here);
  g.output("products", matmul(here, transpose(here)));
  g.output("rotated_minus_shifted", matmul(here, rotation) + scale(there, -1));
  g.output("rotation_twice", matmul(rotation, transpose(rotation)));
  return g.finish();
}

/// [sin(p + k)ω, cos(p + k)ω] = [sin pω, cos pω] · [cos kω, −sin kω; sin kω, cos kω]: one block for each frequency.
Numbers rotation_by(std::int64_t shift) {
  Numbers r(width * width, 0.0f);
  for (std::int64_t i = 0; i < width; i += 2) {
    const double angle =
        static_cast<double>(shift) / std::pow(10000.0, static_cast<double>(i) / static_cast<double>(width));
    const auto at = [&](std::int64_t y, std::int64_t x) -> float& {
      return r[static_cast<std::size_t>((i + y) * width + i + x)];
    };
    at(0, 0) = at(1, 1) = static_cast<float>(std::cos(angle));
    at(1, 0) = static_cast<float>(std::sin(angle));
    at(0, 1) = -at(1, 0);
  }
  return r;
}

double largest(const Numbers& numbers) { return largest_difference(numbers, Numbers(numbers.size(), 0.0f)); }

void write(Page& page, const Target& target) {
  const Tensors t = run(target, table(1), {{"rotation", rotation_by(1)}});
  const Numbers& rows = t.at("table");
  page.as_printed("PE(0)", row(rows, 0, width), "0 1 0 1");
  page.as_printed("PE(1)", row(rows, 1, width), "0.8415 0.5403 0.0100 0.99995");
  page.as_printed("PE(2)", row(rows, 2, width), "0.9093 -0.4161 0.0200 0.9998");
  page.at_most("largest |value| of 512 positions", largest(rows), 1, 4);

  // PE(p) · PE(q) = Σ cos((p − q)ω): 2 where p = q. Less everywhere else means that no two rows are equal.
  const Numbers& products = t.at("products");
  double same = 0, other = -2, spread = 0;
  for (std::int64_t p = 0; p < length; ++p) {
    for (std::int64_t q = 0; q < length; ++q) {
      const double x = products[static_cast<std::size_t>(p * length + q)];
      const std::int64_t distance = std::abs(p - q);
      if (distance == 0)
        same = std::max(same, std::abs(x - 2));
      else
        other = std::max(other, x);
      spread = std::max(spread, std::abs(x - static_cast<double>(products[static_cast<std::size_t>(distance)])));
    }
  }
  page.rounding("|PE(p)·PE(p) − 2|, p < 512", same, 1e-6);
  page.close("largest PE(p)·PE(q), p ≠ q: 19 apart", other, std::cos(19.0) + std::cos(0.19), 1e-4, 4);
  page.rounding("|PE(p)·PE(q) − PE(0)·PE(|p−q|)|", spread, 1e-5);

  for (const std::int64_t shift : {1, 7, 100}) {
    const Tensors r = shift == 1 ? t : run(target, table(shift), {{"rotation", rotation_by(shift)}});
    page.rounding(fmt::format("|PE(p) R − PE(p + {})|, p < 512", shift), largest(r.at("rotated_minus_shifted")), 1e-5);
    page.rounding(fmt::format("|R Rᵀ − I| of R for {}", shift),
                  largest_difference(r.at("rotation_twice"), identity(width)), 1e-6);
  }
}

}  // namespace

const Chapter chapter::positions = {
    "positions", "Sinusoidal positions, d_model = 4",
    "PE(p, 2i) = sin(p ω_i), PE(p, 2i+1) = cos(p ω_i), ω_i = 10000^(−2i/d_model)\n"
    "PE(p + k) = PE(p) R_k, where R_k turns each pair by k ω_i and does not depend on p",
    "Vaswani et al. 2017, §3.5", write};

}  // namespace textbook
