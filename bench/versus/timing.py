"""Interleaved measurement: every candidate in turn, in an order that rotates, until each has repetitions enough that
nothing disturbed."""
from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Repetition:
    seconds: float
    cpu_seconds: float  # of all threads of the process
    waited: float = 0.0  # seconds in which a thread could have run and another program had the CPU; more than one thread only


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
    has fewer than `least`, the same holds for all, so that nobody is judged by luck: on one thread the CPU time of all
    repetitions; on more the fastest third of all, since threads that spin for each other suffer most from others."""
    if all(len(s.undisturbed) >= least for s in samples):
        return "undisturbed", [[r.seconds for r in s.undisturbed] for s in samples]
    if threads == 1:
        return "cpu time", [[r.cpu_seconds for r in s.all()] for s in samples]
    walls = [sorted(r.seconds for r in s.all()) for s in samples]
    return "disturbed", [w[: max(1, len(w) // 3)] for w in walls]


def disturbed(r: Repetition, threads: int) -> bool:
    """On one thread CPU and wall time are the same; where they differ, it waited for somebody else or another thread ran
    beside it. On more threads workers may sleep or spin; then what they waited for a CPU tells."""
    if threads == 1:
        return not 0.97 <= r.cpu_seconds / max(r.seconds, 1e-9) <= 1.05
    return r.waited > 0.03 * r.seconds


def waited_seconds() -> float:
    """Time that threads of this process were ready and did not run, so far (Linux: second number of schedstat)."""
    total = 0
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/schedstat", encoding="ascii") as f:
                total += int(f.read().split()[1])
        except (OSError, IndexError):  # that thread has ended, or this kernel does not count
            pass
    return total * 1e-9


def once(run: Callable[[], object], threads: int = 1) -> Repetition:
    waited = waited_seconds() if threads > 1 else 0.0
    cpu, wall = time.process_time(), time.perf_counter()
    run()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return Repetition(wall, cpu, max(0.0, waited_seconds() - waited) if threads > 1 else 0.0)


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
                turn.append(once(runs[i], threads))
            last[i] = turn[-1].seconds
            robbed = stolen_seconds() - stolen > 0.02 * (time.perf_counter() - start)
            for r in turn:
                (samples[i].disturbed if robbed or disturbed(r, threads) else samples[i].undisturbed).append(r)
        round_ += 1
    return samples, peaks
