#!/usr/bin/env python3
"""Writes backends/simd/tanh_table.hpp: R(a) = tanh(a) / a on [0, 9.02], in sixteen intervals.

t = scale * a + offset maps the range to [1.5, 6), where an exponent's lowest bit and three bits of the fraction number
sixteen intervals. A base in the middle of each is chosen so that R(base) is (nearly) a float; the other coefficients are
minimax, fitted again after each is rounded. Needs numpy: python3 scripts/tanh_table.py > backends/simd/tanh_table.hpp
"""
import numpy as np

DEGREE, OFFSET, LAST = 5, 1.5, 9.02
SCALE = float(np.float32((3 * OFFSET - 0.02) / LAST))


def ratio(a):
    a = np.asarray(a, dtype=np.longdouble)
    return np.where(a < 1e-8, 1, np.tanh(a) / np.where(a < 1e-8, 1, a))


def fit(fixed, u, y, width):
    """Minimax of the relative error (Lawson's weights) with the first coefficients fixed."""
    powers = np.vander(u / width, DEGREE + 1, increasing=True)[:, len(fixed):]
    known = sum(c * u**i for i, c in enumerate(fixed))
    weights = np.ones(len(u))
    for _ in range(300):
        by = np.sqrt(weights) / y
        free = np.linalg.lstsq(powers * by[:, None], (y - known) * by, rcond=None)[0]
        weights *= np.abs(powers @ free + known - y) / y + 1e-300
        weights /= weights.sum()
    return list(fixed) + list(free / width ** np.arange(len(fixed), DEGREE + 1))


def interval(first, last):
    base = 0.0
    if first > 0:
        middle = np.float32((first + last) / 2)
        near = (middle + np.arange(-3000, 3001) * np.spacing(middle) * 64).astype(np.float32)
        exact = ratio(near)
        base = float(near[np.argmin(np.abs(exact - exact.astype(np.float32)) / exact)])
    a = (first + last) / 2 + (last - first) / 2 * np.cos((np.arange(400) + 0.5) * np.pi / 400)
    y = ratio(a).astype(float)
    coefficients = [float(np.float32(ratio(base)))]
    for done in range(1, DEGREE + 1):
        coefficients = fit([float(np.float32(c)) for c in coefficients[:done]], a - base, y, last - first)
    return base, coefficients


def row(values):
    return "{" + ", ".join(f"{np.float32(v):.8e}f" for v in values) + "}"


def main():
    bases, table, t = np.zeros(16), np.zeros((DEGREE + 1, 16)), OFFSET
    while t < 4 * OFFSET:
        width = 2.0 ** np.floor(np.log2(t)) / 8
        i = int(np.float32(t).view(np.uint32) >> 20) % 16
        bases[i], table[:, i] = interval((t - OFFSET) / SCALE, (t + width - OFFSET) / SCALE)
        t += width
    print("#pragma once")
    print("// R(a) = tanh(a) / a by interval of scale * a + offset; see tanh in math.hpp. Written by scripts/tanh_table.py.\n")
    print("namespace treadle::simd::tanh_table {\n")
    print(f"inline constexpr int degree = {DEGREE};")
    print(f"inline constexpr float last = {LAST}f;  // from here on tanh is 1")
    print(f"inline constexpr float scale = {SCALE:.8e}f, offset = {OFFSET}f;")
    print(f"alignas(64) inline constexpr float base[16] = {row(bases)};")
    print(f"alignas(64) inline constexpr float coefficients[degree + 1][16] = {{{','.join(map(row, table))}}};\n")
    print("}  // namespace treadle::simd::tanh_table")


main()
