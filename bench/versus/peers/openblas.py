"""OpenBLAS from Debian. It packs its operands at every call; the weight is given as [in, out], which suits it best."""
from __future__ import annotations

import ctypes
import ctypes.util

import numpy as np

from ..workloads import Workload
from . import Arrays, Candidate, Missing

ROW_MAJOR, PLAIN, TRANSPOSED = 101, 111, 112


class OpenBlas:
    def __init__(self, threads: int) -> None:
        name = ctypes.util.find_library("openblas")
        if name is None:
            raise Missing("Debian's libopenblas-dev is not installed")
        self.functions = ctypes.CDLL(name)
        self.functions.openblas_set_num_threads(threads)
        self.functions.openblas_get_config.restype = ctypes.c_char_p
        integer, number, pointer = ctypes.c_int, ctypes.c_float, ctypes.c_void_p
        self.functions.cblas_sgemm.argtypes = (
            [integer] * 6 + [number, pointer, integer, pointer, integer, number, pointer, integer]
        )
        self.functions.cblas_sgemm.restype = None
        self.functions.cblas_sgemv.argtypes = [integer] * 4 + [number, pointer, integer, pointer, integer, number, pointer, integer]
        self.functions.cblas_sgemv.restype = None
        self.version = self.functions.openblas_get_config().decode().strip().removeprefix("OpenBLAS ")

    def candidates(self, w: Workload, data: Arrays) -> list[Candidate]:
        if w.kind != "product":
            return []
        x, out = data["x"], np.zeros(w.output_shape(), np.float32)
        rows, inner, outer = w.rows, w.inner, w.outer
        weight = np.ascontiguousarray(data["w"].T)
        gemm, gemv = self.functions.cblas_sgemm, self.functions.cblas_sgemv
        a, b, c, given = x.ctypes.data, weight.ctypes.data, out.ctypes.data, data["w"].ctypes.data

        def matrix() -> None:
            gemm(ROW_MAJOR, PLAIN, PLAIN, rows, outer, inner, 1.0, a, inner, b, outer, 0.0, c, outer)

        def vector() -> None:
            gemv(ROW_MAJOR, PLAIN, outer, inner, 1.0, given, inner, a, 1, 0.0, c, 1)

        run, name = (vector, "OpenBLAS gemv") if rows == 1 else (matrix, "OpenBLAS")
        return [Candidate(name, "openblas", run, lambda: out, (x, weight, data))]


def load(libraries: object, threads: int) -> OpenBlas:
    return OpenBlas(threads)
