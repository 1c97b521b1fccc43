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
            self.functions = ctypes.CDLL(str(library))
        except OSError as problem:
            raise Missing(str(problem)) from None
        self.threads = threads
        pointer, number = ctypes.c_void_p, ctypes.c_int64
        self.functions.versus_token_loop.argtypes = [pointer] * 4 + [number] * 3 + [ctypes.c_int]
        self.functions.versus_token_loop.restype = None
        self.functions.versus_fused_token_loop.argtypes = [pointer] * 4 + [number] * 2 + [ctypes.c_int]
        self.functions.versus_fused_token_loop.restype = None
        self.functions.versus_read.argtypes = [pointer, number, ctypes.c_int]
        self.functions.versus_read.restype = ctypes.c_float

    def candidates(self, w: Workload, data: Arrays) -> list[Candidate]:
        threads = self.threads
        if w.kind == "linear_attention" and w.mask == "causal":
            loop, fused = self.functions.versus_token_loop, self.functions.versus_fused_token_loop
            inputs, outs = [data[n].ctypes.data for n in "qkv"], [np.zeros(w.output_shape(), np.float32) for _ in range(2)]
            first, second = inputs + [outs[0].ctypes.data], inputs + [outs[1].ctypes.data]
            heads, length, dim = w.heads, w.length, w.dim
            found = [Candidate("token loop", "loop", lambda: loop(*first, heads, length, dim, threads), lambda: outs[0], data)]
            if dim == 64:
                run = lambda: fused(*second, heads, length, threads)  # noqa: E731
                found.append(Candidate("token loop, fused, D known", "fused_loop", run, lambda: outs[1], data))
            return found
        if w.kind == "attention" and w.q_len == 1:
            read = self.functions.versus_read
            buffers = [(data[n].ctypes.data, data[n].size) for n in "kv"]

            def run() -> None:
                for address, size in buffers:
                    read(address, size, threads)

            return [Candidate("pure read", "read", run, None, data)]
        return []


def load(libraries: Path, threads: int) -> Loops:
    return Loops(libraries / "libversus_loops.so", threads)
