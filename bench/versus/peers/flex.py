"""FlexAttention, compiled; for masks that leave out whole blocks."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..workloads import BLOCK, Workload, big_bird_blocks, window_sides
from . import Arrays, Candidate, Missing


class Flex:
    def __init__(self) -> None:
        try:
            import torch
            from torch.nn.attention import flex_attention
        except (ImportError, OSError) as problem:
            raise Missing(str(problem).splitlines()[0]) from None
        self.torch, self.flex = torch, flex_attention
        self.version = torch.__version__

    def candidates(self, w: Workload, data: Arrays) -> list[Candidate]:
        if w.kind != "attention" or (w.mask != "big_bird" and not w.mask.startswith("window:")):
            return []
        torch = self.torch
        q, k, v = (torch.from_numpy(data[n]) for n in "qkv")
        mask = self.block_mask(w)
        torch._dynamo.reset()
        compiled = torch.compile(self.flex.flex_attention, dynamic=False, fullgraph=True)
        last: list[Any] = [None]

        def run() -> None:
            with torch.no_grad():
                last[0] = compiled(q, k, v, block_mask=mask)

        return [Candidate("FlexAttention", "flex", run, lambda: last[0].numpy())]

    def block_mask(self, w: Workload) -> Any:
        """From the lists of blocks: create_block_mask looks at every pair, which at 65,536 tokens is gigabytes."""
        torch = self.torch
        blocks = w.q_len // BLOCK
        if w.mask == "big_bird":
            full = big_bird_blocks(blocks)
            partial = np.zeros_like(full)
            table = torch.from_numpy(full)

            def keep(b: Any, h: Any, query: Any, key: Any) -> Any:
                return table[query // BLOCK, key // BLOCK]
        else:
            left, right = window_sides(w.mask)
            row, column = np.arange(blocks)[:, None] * BLOCK, np.arange(blocks)[None, :] * BLOCK
            last = BLOCK - 1
            some = (column <= row + last + right) & (column + last >= row - left)
            full = (column + last <= row + right) & (column >= row + last - left)
            partial = some & ~full

            def keep(b: Any, h: Any, query: Any, key: Any) -> Any:
                return (key <= query + right) & (key >= query - left)

        tensors = [t for seen in (partial, full) for t in self.lists(seen)]
        return self.flex.BlockMask.from_kv_blocks(
            tensors[0], tensors[1], tensors[2], tensors[3], BLOCK_SIZE=BLOCK, mask_mod=keep, seq_lengths=(w.q_len, w.k_len)
        )

    def lists(self, seen: Any) -> tuple[Any, Any]:
        """How many blocks each row has, and which, the rest behind them."""
        order = np.argsort(~seen, axis=1, kind="stable").astype(np.int32)
        count = seen.sum(1).astype(np.int32)
        return self.torch.from_numpy(count)[None, None], self.torch.from_numpy(order)[None, None].contiguous()


def load(libraries: object, threads: int) -> Flex:
    return Flex()
