"""Plain C++ loops (loops.cpp): token-by-token linear attention, and a pure read of keys and values as decoding's limit."""
from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np

from ..workloads import Workload
from . import Arrays, Candidate, Missing


class Loops:
    version = "g++ -O3 -march=native -ffast-math"

    def __init__(self, library: Path, threads: int) -> None:
        try:
            self.library = ctypes.CDLL(str(library))
        except OSError as problem:
            raise Missing(str(problem)) from None
        self.threads = threads
        pointer, number = ctypes.c_void_p, ctypes.c_int64
        self.library.versus_token_loop.argtypes = [pointer] * 4 + [number, number, ctypes.c_int]
        self.library.versus_token_loop.restype = None
        self.library.versus_read.argtypes = [pointer, number, ctypes.c_int]
        self.library.versus_read.restype = ctypes.c_float

    def candidates(self, w: Workload, data: Arrays) -> list[Candidate]:
        threads = self.threads
        if w.kind == "linear_attention" and w.mask == "causal" and w.dim == 64:
            out = np.zeros(w.output_shape(), np.float32)
            loop, addresses = self.library.versus_token_loop, [data[n].ctypes.data for n in "qkv"] + [out.ctypes.data]
            heads, length = w.heads, w.length
            return [Candidate("token loop", "loop", lambda: loop(*addresses, heads, length, threads), lambda: out, data)]
        if w.kind == "attention" and w.q_len == 1:
            read = self.library.versus_read
            buffers = [(data[n].ctypes.data, data[n].size) for n in "kv"]

            def run() -> None:
                for address, size in buffers:
                    read(address, size, threads)

            return [Candidate("pure read", "read", run, None, data)]
        return []


def load(libraries: Path, threads: int) -> Loops:
    return Loops(libraries / "libversus_loops.so", threads)
