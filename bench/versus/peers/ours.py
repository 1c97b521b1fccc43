"""Treadle, through the C functions of treadle_library.cpp."""
from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np

from .. import checkpoint
from ..workloads import Workload
from . import Arrays, Candidate, Missing


def int64s(values: tuple[int, ...]) -> Any:
    return (ctypes.c_int64 * len(values))(*values)


class Treadle:
    def __init__(self, library: Path, threads: int) -> None:
        try:
            self.functions = ctypes.CDLL(str(library))
        except OSError as problem:
            raise Missing(str(problem)) from None
        self.threads = threads
        number = ctypes.c_int64
        for name, arguments in {
            "versus_attention": [ctypes.c_char_p] + [number] * 5,
            "versus_linear_attention": [ctypes.c_int] + [number] * 3,
            "versus_linear": [number] * 3,
            "versus_encoder_layer": [number] * 5,
            "versus_checkpoint": [ctypes.c_char_p, number, number],
        }.items():
            function = getattr(self.functions, name)
            function.argtypes, function.restype = arguments, ctypes.c_void_p
        for name in ("versus_error", "versus_isa", "versus_compiler", "versus_describe"):
            getattr(self.functions, name).restype = ctypes.c_char_p
        self.functions.versus_fma_peak.argtypes = [ctypes.c_int, ctypes.c_double]
        self.functions.versus_fma_peak.restype = ctypes.c_double
        for name in ("versus_run", "versus_free", "versus_describe", "versus_planned_bytes"):
            getattr(self.functions, name).argtypes = [ctypes.c_void_p]
        self.functions.versus_planned_bytes.restype = ctypes.c_int64
        self.functions.versus_bind.argtypes = [ctypes.c_void_p, ctypes.c_int]
        self.functions.versus_parameter.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
        self.functions.versus_tensor.argtypes = [
            ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p,
        ]  # fmt: skip
        self.isa = self.functions.versus_isa().decode()
        self.version = f"{self.isa}, g++ {self.functions.versus_compiler().decode()}"

    def peak(self, milliseconds: float = 1.0) -> float:
        """GFLOP/s of fused multiply-adds in registers."""
        return float(self.functions.versus_fma_peak(self.threads, milliseconds))

    def candidates(self, workload: Workload, data: Arrays) -> list[Candidate]:
        return [Bound(self, workload, data).candidate()]


class Bound:
    """A model with its tensors; freed with the object."""

    def __init__(self, treadle: Treadle, w: Workload, data: Arrays) -> None:
        self.functions, self.data = treadle.functions, data
        library = self.functions
        if w.kind == "attention":
            made = library.versus_attention(w.mask.encode(), w.batch, w.heads, w.q_len, w.k_len, w.dim)
        elif w.kind == "linear_attention":
            made = library.versus_linear_attention(w.mask == "causal", w.heads, w.length, w.dim)
        elif w.kind == "product":
            made = library.versus_linear(w.rows, w.inner, w.outer)
        elif w.kind == "bert":
            made = library.versus_checkpoint(str(checkpoint.folder()).encode(), w.batch, w.length)
        else:
            made = library.versus_encoder_layer(w.batch, w.length, w.width, w.heads, w.hidden)
        if not made:
            raise RuntimeError(library.versus_error().decode())
        self.model = made
        self.out = np.zeros(w.output_shape(), np.float32)
        if w.kind == "bert":  # it reads its weights itself
            self.types = np.zeros_like(data["ids"])
            self.tensor("input_ids", data["ids"], False)
            self.tensor("token_type_ids", self.types, False)
        for name, array in data.items() if w.kind != "bert" else ():
            if name == "w" or "." in name:
                full = "w.weight" if name == "w" else name
                self.check(library.versus_parameter(made, full.encode(), array.ctypes.data, array.ndim, int64s(array.shape)))
            else:
                self.tensor(name, array, False)
        self.tensor("hidden" if w.kind == "bert" else "out", self.out, True)
        self.check(library.versus_bind(made, treadle.threads))

    def tensor(self, name: str, array: Any, output: bool) -> None:
        dtype = b"i32" if array.dtype == np.int32 else b"f32"
        self.check(
            self.functions.versus_tensor(self.model, name.encode(), output, array.ctypes.data, dtype, array.ndim, int64s(array.shape))
        )

    def check(self, code: int) -> None:
        if code != 0:
            raise RuntimeError(self.functions.versus_error().decode())

    def candidate(self) -> Candidate:
        run, model, check = self.functions.versus_run, self.model, self.check
        return Candidate("treadle", "ours", lambda: check(run(model)), lambda: self.out, self)

    def __del__(self) -> None:
        if getattr(self, "model", None):
            self.functions.versus_free(self.model)


def load(libraries: Path, threads: int) -> Treadle:
    return Treadle(libraries / "libversus_treadle.so", threads)
