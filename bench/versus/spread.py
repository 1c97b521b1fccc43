"""Medians, quantiles and means of what was measured."""
from __future__ import annotations

import math
from collections.abc import Sequence


def quantile(values: Sequence[float], p: float) -> float:
    """Linear between neighbours; p = 0 is the smallest, 1 the largest."""
    if not values:
        raise ValueError("quantile of nothing")
    ordered = sorted(values)
    at = p * (len(ordered) - 1)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (at - below) * (ordered[above] - ordered[below])


def median(values: Sequence[float]) -> float:
    return quantile(values, 0.5)


def geometric_mean(values: Sequence[float]) -> float:
    if not values:
        raise ValueError("mean of nothing")
    return math.exp(sum(math.log(v) for v in values) / len(values))
