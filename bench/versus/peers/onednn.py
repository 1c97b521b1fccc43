"""oneDNN from Debian, weights in its own order (onednn.cpp)."""
from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np

from ..workloads import Workload
from . import Arrays, Candidate, Missing


class OneDnn:
    def __init__(self, library: Path) -> None:
        if not library.exists():
            raise Missing("Debian's libdnnl-dev is not installed")
        try:
            self.functions = ctypes.CDLL(str(library))
        except OSError as problem:
            raise Missing(str(problem)) from None
        self.functions.versus_onednn_error.restype = ctypes.c_char_p
        self.functions.versus_onednn_product.argtypes = [ctypes.c_int] + [ctypes.c_int64] * 3 + [ctypes.c_void_p] * 3
        self.functions.versus_onednn_product.restype = ctypes.c_void_p
        self.functions.versus_onednn_run.argtypes = [ctypes.c_void_p]
        self.functions.versus_onednn_free.argtypes = [ctypes.c_void_p]
        number = self.functions.versus_onednn_version()
        self.version = f"{number // 10000}.{number // 100 % 100}.{number % 100}"

    def candidates(self, w: Workload, data: Arrays) -> list[Candidate]:
        if w.kind != "product":
            return []
        return [Product(self, kind, w, data).candidate() for kind in (0, 1)]


class Product:
    def __init__(self, peer: OneDnn, kind: int, w: Workload, data: Arrays) -> None:
        self.functions, self.kind, self.data = peer.functions, kind, data
        self.out = np.zeros(w.output_shape(), np.float32)
        self.product = self.functions.versus_onednn_product(
            kind, w.rows, w.inner, w.outer, data["x"].ctypes.data, data["w"].ctypes.data, self.out.ctypes.data
        )
        if not self.product:
            raise RuntimeError(self.functions.versus_onednn_error().decode())

    def candidate(self) -> Candidate:
        run, product = self.functions.versus_onednn_run, self.product
        name = ("oneDNN matmul", "oneDNN inner product")[self.kind]
        return Candidate(name, "onednn", lambda: run(product), lambda: self.out, self)

    def __del__(self) -> None:
        if getattr(self, "product", None):
            self.functions.versus_onednn_free(self.product)


def load(libraries: Path, threads: int) -> OneDnn:
    return OneDnn(libraries / "libversus_onednn.so")  # threads: OMP_NUM_THREADS, set by bench/run
