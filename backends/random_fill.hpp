#pragma once
// Random numbers that are the same everywhere: the standard library's distributions are not.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <span>
#include <string_view>

namespace treadle {

/// The i-th number of splitmix64 (Steele et al. 2014): any element can be computed alone.
constexpr std::uint64_t splitmix64(std::uint64_t seed, std::uint64_t i = 0) {
  std::uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/// A seed of its own for each name (FNV-1a).
constexpr std::uint64_t seed_of(std::string_view name, std::uint64_t seed) {
  std::uint64_t h = 0xcbf29ce484222325u;
  for (char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return splitmix64(h ^ splitmix64(seed));
}

/// Uniform in [0, 1).
constexpr double uniform(std::uint64_t seed, std::uint64_t i) {
  return static_cast<double>(splitmix64(seed, i) >> 11) * 0x1p-53;
}

/// Normal numbers by Box and Muller (1958); element i depends on the seed and i alone.
inline void fill_normal(std::span<float> out, std::uint64_t seed, double deviation = 1.0, double mean = 0.0) {
  for (std::size_t i = 0; i < out.size(); i += 2) {
    const double radius = deviation * std::sqrt(-2.0 * std::log(1.0 - uniform(seed, i)));
    const double angle = 2.0 * std::numbers::pi * uniform(seed, i + 1);
    out[i] = static_cast<float>(mean + radius * std::cos(angle));
    if (i + 1 < out.size()) out[i + 1] = static_cast<float>(mean + radius * std::sin(angle));
  }
}

inline void fill_uniform(std::span<float> out, std::uint64_t seed, double low = 0.0, double high = 1.0) {
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(low + (high - low) * uniform(seed, i));
}

/// Integers in [low, high).
template <class Integer>
void fill_integers(std::span<Integer> out, std::uint64_t seed, std::int64_t low, std::int64_t high) {
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<Integer>(low + static_cast<std::int64_t>(uniform(seed, i) * static_cast<double>(high - low)));
}

}  // namespace treadle
