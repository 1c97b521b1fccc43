"""What has no peer: the Google Benchmark programs of bench/kernels, their counters, and what is wanted of them."""
from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: Program, its rows, what each shows.
PROGRAMS = {
    "bench_load": "a checkpoint's loading beside reading its file and packing, and the peak of memory over the file's size",
    "bench_passes": "time and traffic without a pass over with it",
    "bench_scores": "speed of plain attention that is left with a score function",
    "bench_small": "cost of a node, error against float64, memory",
    "bench_threads": "time with one thread over time with two",
}

#: Pattern of "program/row", counter, least or most, value. Patterns without a match on this machine ask for nothing.
GOALS: tuple[tuple[str, str, str, float], ...] = (
    (r"bench_load/.*", "over_read_and_pack", "most", 1.1),
    (r"bench_load/.*", "peak_over_file", "most", 2.2),
    (r"bench_scores/.*_and_mask/D\d+", "inlined", "least", 0.60),
    (r"bench_scores/.*_and_mask/D\d+", "in_tiles", "least", 0.60),
    (r"bench_scores/.*ALiBi/D64", "inlined", "least", 0.93),
    (r"bench_scores/.*ALiBi/D64", "in_tiles", "least", 0.85),
    (r"bench_scores/.*softcap/D64", "inlined", "least", 0.87),
    (r"bench_scores/.*softcap/D64", "in_tiles", "least", 0.80),
    (r"bench_scores/.*(ALiBi|softcap)/D128", "inlined", "least", 0.93),
    (r"bench_scores/.*(ALiBi|softcap)/D128", "in_tiles", "least", 0.88),
    (r"bench_small/nodes/additions", "ns_per_node", "most", 100),
    (r"bench_small/accuracy/2048/64", "max_error", "most", 2e-6),
    (r"bench_small/accuracy/2048/64", "rms_error", "most", 6e-8),
    (r"bench_small/memory/16384", "workspace_KB", "most", 128),
    (r"bench_threads/.*", "ratio", "least", 1.85),
)


def goals(row: str) -> list[tuple[str, str, float]]:
    return [(counter, side, value) for pattern, counter, side, value in GOALS if re.fullmatch(pattern, row)]


def met(counters: dict[str, float], counter: str, side: str, value: float) -> bool:
    return counters[counter] >= value if side == "least" else counters[counter] <= value


def counters_of(output: str, isa: str) -> dict[str, dict[str, float]]:
    """By row, from Google Benchmark's JSON; rows of other ISAs than the best one are left out."""
    known = {"family_index", "per_family_instance_index", "repetitions", "repetition_index", "threads", "iterations", "real_time", "cpu_time"}
    rows = {}
    for b in json.loads(output)["benchmarks"]:
        name = re.sub(r"/(iterations:\d+|real_time)", "", b["name"])
        if name.split("/")[0] in ("avx512", "avx2", "neon64", "portable") and name.split("/")[0] != isa:
            continue
        rows[name] = {key: value for key, value in b.items() if isinstance(value, float) and key not in known}
    return rows


def measured(folder: Path, isa: str, progress: Callable[[str], None]) -> tuple[dict[str, dict[str, float]], dict[str, str]]:
    """Counters by "program/row", and the programs that are missing with the reason."""
    found: dict[str, dict[str, float]] = {}
    missing: dict[str, str] = {}
    for program in PROGRAMS:
        if program == "bench_threads" and len(os.sched_getaffinity(0)) < 2:
            missing[program] = "this process has one core"
            continue
        progress(program)
        try:
            done = subprocess.run([folder / program, "--benchmark_format=json"], capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError) as problem:
            missing[program] = str(problem)
            continue
        for name, counters in counters_of(done.stdout, isa).items():
            found[f"{program}/{name}"] = counters
    return found, missing


def table(report: dict[str, Any]) -> str:
    if not report.get("alone"):
        return ""
    lines = []
    for program, what in PROGRAMS.items():
        if not any(row.startswith(program + "/") for row in report["alone"]):
            continue
        lines += [f"### `{program}`: {what}", "", "| row | | goals |", "|---|---|---|"]
        for row, counters in report["alone"].items():
            if not row.startswith(program + "/"):
                continue
            values = ", ".join(f"{name} {value:.3g}" for name, value in counters.items())
            wanted = "; ".join(
                f"{counter} {'≥' if side == 'least' else '≤'} {value:g}: {'met' if met(counters, counter, side, value) else '**missed**'}"
                for counter, side, value in goals(row)
            )
            lines.append(f"| {row.removeprefix(program + '/')} | {values} | {wanted} |")
        lines.append("")
    return "\n".join(lines).strip()
