"""Measures one row: every candidate of every peer, checked against ours, then in turn."""
from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

from . import timing
from .agreement import relative_difference
from .peers import Candidate, Peer
from .spread import median, quantile
from .workloads import Workload


def summary(
    c: Candidate, samples: timing.Samples, seconds: list[float], w: Workload, peak: float, difference: float | None
) -> dict[str, Any]:
    middle = median(seconds)
    gflops = w.useful_flops() / middle * 1e-9
    return {
        "name": c.name,
        "group": c.group,
        "median_ms": middle * 1e3,
        "p10_ms": quantile(seconds, 0.1) * 1e3,
        "p90_ms": quantile(seconds, 0.9) * 1e3,
        "least_ms": min(seconds) * 1e3,
        "undisturbed": len(samples.undisturbed),
        "repetitions": len(samples.undisturbed) + len(samples.disturbed),
        "cpu_share": median([r.cpu_seconds / max(r.seconds, 1e-9) for r in samples.all()]),
        "gflops": gflops if not c.yardstick else None,
        "fraction_of_peak": gflops / peak if not c.yardstick else None,
        "difference": difference,
        "agrees": c.yardstick or (difference is not None and difference <= w.tolerance),
    }


def measured(
    w: Workload, peers: dict[str, Peer], ours: Any, threads: int, effort: timing.Effort, progress: Callable[[str], None]
) -> dict[str, Any]:
    """The finished row. A peer that fails is named with its error and left out."""
    data = w.data()
    candidates: list[Candidate] = ours.candidates(w, data)
    failed: dict[str, str] = {}
    for name, peer in peers.items():
        progress(f"preparing {name}")
        try:
            found = peer.candidates(w, data)
            for c in found:
                c.run()
            candidates += found
        except Exception as problem:  # any error of a library is that library's row
            failed[name] = f"{type(problem).__name__}: {str(problem).strip().splitlines()[0] if str(problem).strip() else ''}"
    candidates[0].run()
    mine = candidates[0].result()
    differences: list[float | None] = [0.0]
    for c in candidates[1:]:
        differences.append(None if c.result is None else relative_difference(mine, c.result()))
    samples, peaks = timing.measure([c.run for c in candidates], threads, effort, ours.peak, progress)
    peak = median(peaks)
    counted, seconds = timing.seconds(samples, threads)
    results = [summary(c, s, t, w, peak, d) for c, s, t, d in zip(candidates, samples, seconds, differences)]
    for r in results:
        r["ratio"] = r["median_ms"] / results[0]["median_ms"]  # time(theirs) / time(ours)
    del candidates, data
    gc.collect()
    return {
        "name": w.name,
        "kind": w.kind,
        "goals": w.goals,
        "counted": counted,
        "useful_gflop": w.useful_flops() * 1e-9,
        "peak_gflops": peak,
        "peak_p10": quantile(peaks, 0.1),
        "peak_p90": quantile(peaks, 0.9),
        "results": results,
        "failed": failed,
    }
