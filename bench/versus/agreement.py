"""Whether two results are the same but for rounding."""
from __future__ import annotations

from typing import Any


def relative_difference(ours: Any, theirs: Any) -> float:
    """The largest difference over the largest value; infinite where shapes differ or something is not finite."""
    import numpy as np

    if ours.shape != theirs.shape:
        return float("inf")
    if ours.size == 0:
        return 0.0
    if not (np.isfinite(ours).all() and np.isfinite(theirs).all()):
        return float("inf")
    scale = float(np.abs(theirs).max())
    difference = float(np.abs(ours - theirs).max())
    return difference / scale if scale > 0 else (0.0 if difference == 0 else float("inf"))
