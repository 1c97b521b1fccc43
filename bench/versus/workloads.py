"""The rows: what is computed, from which data, how many FLOPs are useful, and which ratios are wanted."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from . import checkpoint

try:
    import numpy as np
except ImportError:  # rows can be listed, not measured
    np: Any = None

BLOCK = 64  # tokens in a block of BigBird
RANDOM_BLOCKS = 3


@dataclass(frozen=True)
class Workload:
    """`goals`: group of peers -> time(peer) / time(ours) that is wanted on one thread; `best` is the fastest peer of all,
    `peak` the fraction of the FMA peak."""

    name: str
    kind: str
    sizes: dict[str, int]
    mask: str = ""
    goals: dict[str, float] = field(default_factory=dict)
    quick: bool = False
    #: Largest difference between two right results, relative to the largest value.
    tolerance: float = 1e-4

    def __getattr__(self, name: str) -> int:
        """Sizes read as attributes: workload.heads."""
        try:
            return self.__dict__["sizes"][name]
        except KeyError:
            raise AttributeError(name) from None

    def useful_flops(self) -> float:
        """Those that the mask keeps; minimal ones for linear attention."""
        if self.kind == "attention":
            return 4.0 * self.batch * self.heads * self.dim * kept_pairs(self.mask, self.q_len, self.k_len)
        if self.kind == "linear_attention":
            return 4.0 * self.heads * self.length * self.dim**2
        if self.kind == "product":
            return 2.0 * self.rows * self.inner * self.outer
        rows = self.batch * self.length * (self.layers if self.kind == "bert" else 1)
        return rows * (8.0 * self.width**2 + 4.0 * self.width * self.hidden + 4.0 * self.length * self.width)

    def data(self) -> dict[str, Any]:
        """Inputs and weights by name; the same numbers at every call."""
        random = np.random.default_rng(1)

        def normal(*shape: int, deviation: float = 1.0) -> Any:
            return random.standard_normal(shape, dtype=np.float32) * np.float32(deviation)

        if self.kind == "attention":
            queries, keys = (self.batch, self.heads, self.q_len, self.dim), (self.batch, self.heads, self.k_len, self.dim)
            tensors = {"q": normal(*queries), "k": normal(*keys), "v": normal(*keys)}
            if self.mask == "big_bird":
                tensors["random"] = big_bird_list(self.q_len // BLOCK)
            return tensors
        if self.kind == "linear_attention":
            shape = (1, self.heads, self.length, self.dim)
            return {"q": normal(*shape), "k": normal(*shape), "v": normal(*shape)}
        if self.kind == "product":
            return {"x": normal(self.rows, self.inner), "w": normal(self.outer, self.inner, deviation=self.inner**-0.5)}
        if self.kind == "bert":
            ids = random.integers(0, self.vocabulary, (self.batch, self.length), dtype=np.int32)
            return {"ids": ids, **checkpoint.weights(self.layers)}
        width, hidden = self.width, self.hidden
        tensors = {"x": normal(self.batch, self.length, width)}
        for name, outs, ins in (
            ("attn.q", width, width), ("attn.k", width, width), ("attn.v", width, width), ("attn.out", width, width),
            ("mlp.up", hidden, width), ("mlp.down", width, hidden),
        ):
            tensors[f"{name}.weight"] = normal(outs, ins, deviation=ins**-0.5)
            tensors[f"{name}.bias"] = normal(outs, deviation=0.02)
        for name in ("norm1", "norm2"):
            tensors[f"{name}.weight"] = 1 + normal(width, deviation=0.02)
            tensors[f"{name}.bias"] = normal(width, deviation=0.02)
        return tensors

    def output_shape(self) -> tuple[int, ...]:
        if self.kind == "attention":
            return (self.batch, self.heads, self.q_len, self.dim)
        if self.kind == "linear_attention":
            return (1, self.heads, self.length, self.dim)
        if self.kind == "product":
            return (self.rows, self.outer)
        return (self.batch, self.length, self.width)


def window_sides(mask: str) -> tuple[int, int]:
    left, right = mask.removeprefix("window:").split(",")
    return int(left), int(right)


def kept_pairs(mask: str, queries: int, keys: int) -> int:
    """(query, key) pairs that a mask keeps; the last query stands at the last key."""
    if mask == "dense":
        return queries * keys
    if mask == "big_bird":
        return int(big_bird_blocks(queries // BLOCK).sum()) * BLOCK * BLOCK
    left, right = (keys, 0) if mask == "causal" else window_sides(mask)
    offset = keys - queries
    return sum(min(keys - 1, q + offset + right) - max(0, q + offset - left) + 1 for q in range(queries))


def big_bird_list(blocks: int) -> Any:
    """Random key blocks of each row [blocks, RANDOM_BLOCKS], neither global nor in the window; -1 for none."""
    random = np.random.default_rng(7)
    rows = np.full((blocks, RANDOM_BLOCKS), -1, np.int32)
    for row in range(1, blocks - 1):
        left = [b for b in range(1, blocks - 1) if abs(b - row) > 1]
        chosen = random.choice(left, size=min(RANDOM_BLOCKS, len(left)), replace=False)
        rows[row, : len(chosen)] = chosen
    return rows


def big_bird_blocks(blocks: int) -> Any:
    """Which blocks of keys each block of queries sees [blocks, blocks]: a window of three, the first and the last block
    globally, the random list."""
    row, column = np.arange(blocks)[:, None], np.arange(blocks)[None, :]
    ends = (0, blocks - 1)
    seen = (abs(row - column) <= 1) | np.isin(row, ends) | np.isin(column, ends)
    for i, chosen in enumerate(big_bird_list(blocks)):
        seen[i, chosen[chosen >= 0]] = True
    return seen


def attention(name: str, mask: str, heads: int, q_len: int, k_len: int, dim: int, quick: bool = False, **goals: float) -> Workload:
    sizes = {"batch": 1, "heads": heads, "q_len": q_len, "k_len": k_len, "dim": dim}
    return Workload(name, "attention", sizes, mask, goals, quick)


def linear(length: int, causal: bool, quick: bool = False, **goals: float) -> Workload:
    word = "causal" if causal else "whole"
    sizes = {"heads": 8, "length": length, "dim": 64}
    return Workload(f"linear {word} H8 N{length} D64", "linear_attention", sizes, word, goals, quick, tolerance=1e-3)


def product(rows: int, inner: int, outer: int, quick: bool = False, **goals: float) -> Workload:
    return Workload(f"product {rows}x{inner}x{outer}", "product", {"rows": rows, "inner": inner, "outer": outer}, "", goals, quick)


def encoder(width: int, heads: int, hidden: int, batch: int, length: int, quick: bool = False) -> Workload:
    sizes = {"width": width, "heads": heads, "hidden": hidden, "batch": batch, "length": length}
    goals = {"openvino": 0.97, "onnxruntime": 1.12}
    return Workload(f"encoder d{width} h{heads} ff{hidden} B{batch} N{length}", "encoder", sizes, "", goals, quick)


def minilm(batch: int, quick: bool = False) -> Workload:
    """all-MiniLM-L6-v2 from ids to hidden states, 128 tokens a text, nothing padded."""
    sizes = {"batch": batch, "length": 128, "layers": 6, "width": 384, "heads": 12, "hidden": 1536, "vocabulary": 30522}
    return Workload(f"MiniLM B{batch} N128", "bert", sizes, "", {"best": 1.0, "peak": 0.84}, quick)


def all_rows() -> list[Workload]:
    rows = [
        attention("dense H8 N512 D64", "dense", 8, 512, 512, 64, quick=True, best=1.10, torch=2.3, peak=0.84),
        attention("dense H8 N2048 D64", "dense", 8, 2048, 2048, 64, best=1.10, torch=2.3, peak=0.90),
        attention("dense H8 N2048 D32", "dense", 8, 2048, 2048, 32, best=1.10, torch=2.3, peak=0.82),
        attention("dense H16 N1024 D128", "dense", 16, 1024, 1024, 128, best=1.06, torch=2.3, peak=0.92),
        attention("causal H8 N512 D64", "causal", 8, 512, 512, 64, quick=True, best=2.0, peak=0.72),
        attention("causal H8 N2048 D64", "causal", 8, 2048, 2048, 64, best=1.3, peak=0.86),
    ]
    rows += [
        attention(f"window 256,0 H8 N{n} D64", "window:256,0", 8, n, n, 64, quick=n == 4096, flex=2.4, peak=0.66)
        for n in (4096, 16384, 65536)
    ]
    rows.append(attention("BigBird 64 H8 N4096 D64", "big_bird", 8, 4096, 4096, 64, quick=True, flex=2.2, peak=0.75))
    rows += [
        linear(n, True, quick=n == 1024, loop=6.0 if n >= 16384 else 4.0, torch=2.5, peak=0.45) for n in (1024, 4096, 16384, 65536)
    ]
    rows += [linear(n, False, quick=n == 1024, torch=3.0, peak=0.60) for n in (1024, 4096, 16384)]
    rows += [
        product(2048, 768, 768, onednn=1.0),
        product(2048, 768, 3072, onednn=1.0),
        product(2048, 3072, 768, onednn=1.0),
        product(128, 768, 768, quick=True, onednn=1.05),
        product(1, 768, 3072, quick=True, best=1.0),
    ]
    rows += [
        encoder(width, heads, hidden, batch, length, quick=(width, batch, length) == (512, 1, 128))
        for width, heads, hidden in ((512, 8, 2048), (768, 12, 3072))
        for length in (128, 512, 2048)
        for batch in (1, 8)
    ]
    rows += [minilm(8, quick=True), minilm(32)]
    rows += [
        attention(f"decode H{heads} N{keys} D64", "dense", heads, 1, keys, 64, quick=(heads, keys) == (8, 4096), read=0.92)
        for heads in (8, 32)
        for keys in (4096, 32768)
    ]
    return rows
