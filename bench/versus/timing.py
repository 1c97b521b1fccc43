"""Interleaved measurement: every candidate in turn, in an order that rotates, until each has repetitions enough that
nothing disturbed."""
from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Repetition:
    seconds: float
    cpu_seconds: float  # of all threads of the process
    switches: int  # involuntary ones


@dataclass(frozen=True)
class Effort:
    """How long to measure: until every candidate has `wanted` undisturbed repetitions, at least `rounds` times around, and
    no longer than `seconds` a row."""

    wanted: int = 15
    rounds: int = 7
    seconds: float = 90.0
    turn_seconds: float = 0.03


@dataclass
class Samples:
    """Repetitions of one candidate."""

    undisturbed: list[Repetition] = field(default_factory=list)
    disturbed: list[Repetition] = field(default_factory=list)

    def all(self) -> list[Repetition]:
        return self.undisturbed + self.disturbed


def seconds(samples: list[Samples], threads: int, least: int = 3) -> tuple[str, list[list[float]]]:
    """What counts for each candidate of a row, and its name: the wall time of undisturbed repetitions. Where one candidate
    has fewer than `least`, the same holds for all, so that nobody is judged by luck: the CPU time of all repetitions on one
    thread, the wall time of all on more."""
    if all(len(s.undisturbed) >= least for s in samples):
        return "undisturbed", [[r.seconds for r in s.undisturbed] for s in samples]
    if threads == 1:
        return "cpu time", [[r.cpu_seconds for r in s.all()] for s in samples]
    return "disturbed", [[r.seconds for r in s.all()] for s in samples]


def disturbed(r: Repetition, threads: int) -> bool:
    """On one thread CPU and wall time are the same; where they differ, it waited for somebody else or another thread ran
    beside it. On more threads workers may sleep or spin, so only involuntary switches tell."""
    if threads == 1:
        return not 0.97 <= r.cpu_seconds / max(r.seconds, 1e-9) <= 1.05
    return r.switches > 2 * threads * (r.seconds / 0.1 + 1)


def once(run: Callable[[], object]) -> Repetition:
    switches = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
    cpu, wall = time.process_time(), time.perf_counter()
    run()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return Repetition(wall, cpu, resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw - switches)


def stolen_seconds() -> float:
    """Time that the hypervisor gave to others, over all CPUs."""
    try:
        with open("/proc/stat", encoding="ascii") as f:
            return int(f.readline().split()[8]) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        return 0.0


def rotated(count: int, round_: int) -> list[int]:
    """The order of a round: each candidate stands first in turn, and every other round goes backwards, so that nobody
    always runs behind the same one."""
    order = [(i + round_) % count for i in range(count)]
    return order[::-1] if round_ % 2 else order


def measure(
    runs: list[Callable[[], object]],
    threads: int,
    effort: Effort,
    yardstick: Callable[[], float],
    progress: Callable[[str], None],
) -> tuple[list[Samples], list[float]]:
    """Samples of each candidate, and the yardstick's values: it is asked before every turn."""
    samples = [Samples() for _ in runs]
    last = [once(run).seconds for run in runs]
    peaks: list[float] = []
    begin = time.perf_counter()
    round_ = 0
    while True:
        elapsed = time.perf_counter() - begin
        enough = round_ >= effort.rounds and all(len(s.undisturbed) >= effort.wanted for s in samples)
        if enough or (round_ >= 2 and elapsed > effort.seconds):
            break
        for i in rotated(len(runs), round_):
            progress(f"round {round_ + 1}, {elapsed:.0f} s")
            if threads > 1:
                time.sleep(0.05)  # the workers of the one before stop spinning
            peaks.append(yardstick())
            stolen, start = stolen_seconds(), time.perf_counter()
            if last[i] < 0.05:
                runs[i]()  # caches are another's
            turn: list[Repetition] = []
            for _ in range(max(1, min(10, int(effort.turn_seconds / max(last[i], 1e-6))))):
                turn.append(once(runs[i]))
            last[i] = turn[-1].seconds
            robbed = stolen_seconds() - stolen > 0.02 * (time.perf_counter() - start)
            for r in turn:
                (samples[i].disturbed if robbed or disturbed(r, threads) else samples[i].undisturbed).append(r)
        round_ += 1
    return samples, peaks
