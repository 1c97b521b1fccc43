"""One module a peer, each with `load(threads)`: a Peer, or Missing with the reason."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from ..workloads import Workload

Arrays = dict[str, Any]


class Missing(Exception):
    """A peer that cannot be used here, and why."""


@dataclass
class Candidate:
    """One way to compute a workload. `result` is what the last run gave, in the layout of the workload's output; None for a
    yardstick that computes something else."""

    name: str
    group: str
    run: Callable[[], object]
    result: Callable[[], Any] | None
    keep: object = None  # what `run` works with

    @property
    def yardstick(self) -> bool:
        return self.result is None


class Peer(Protocol):
    version: str

    def candidates(self, workload: Workload, data: Arrays) -> list[Candidate]:
        """None where it does not compute this workload."""


#: In this order: OpenVINO brings a newer oneTBB than Debian, which then serves both.
ORDER = ("openvino", "onnxruntime", "torch", "flex", "ctranslate2", "onednn", "openblas", "loops")
