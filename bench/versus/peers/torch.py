"""PyTorch: SDPA, linear layers, linear attention written in tensors, encoder layers with and without the fast path."""
from __future__ import annotations

import ctypes
import mmap
import os
from typing import Any

from .. import checkpoint
from ..workloads import Workload
from . import Arrays, Candidate, Missing

CHUNK = 128  # of causal linear attention in tensors; 32, 64 and 256 were slower on an AVX-512 Xeon


class Torch:
    def __init__(self, threads: int) -> None:
        try:
            import torch
        except (ImportError, OSError) as problem:
            raise Missing(str(problem).splitlines()[0]) from None
        self.torch = torch
        torch.set_num_threads(threads)
        try:
            torch.set_num_interop_threads(1)
        except RuntimeError:
            pass  # set before
        self.version = torch.__version__
        self.unlocked = False

    def unlock_mkl(self) -> None:
        """Lets MKL take its AVX-512 path on CPUs of other vendors, in this process's memory: a measuring device that tells
        what MKL holds back there. To be called before the first product."""
        import torch

        library = ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so"))
        address = ctypes.cast(library.mkl_serv_intel_cpu_true, ctypes.c_void_p).value
        assert address is not None
        libc, page = ctypes.CDLL(None, use_errno=True), mmap.PAGESIZE
        start = address // page * page
        length = address + 6 - start
        libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        if libc.mprotect(start, length, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC) != 0:
            raise Missing("MKL's AVX-512 path cannot be forced: this system forbids it")
        ctypes.memmove(address, b"\xb8\x01\x00\x00\x00\xc3", 6)  # mov eax, 1; ret
        libc.mprotect(start, length, mmap.PROT_READ | mmap.PROT_EXEC)
        self.unlocked = True

    def candidates(self, w: Workload, data: Arrays) -> list[Candidate]:
        torch = self.torch
        tensors = {name: torch.from_numpy(array) for name, array in data.items()}
        if w.kind == "attention":
            found = self.attention(w, tensors)
        elif w.kind == "linear_attention":
            found = [self.made("torch chunks" if w.mask == "causal" else "torch", linear_attention(torch, w, tensors))]
        elif w.kind == "product":
            x, weight = tensors["x"], tensors["w"]
            found = [self.made("torch", lambda: torch.nn.functional.linear(x, weight))]
        elif w.kind == "bert":
            found = self.bert(w, tensors)
        else:
            found = self.encoder(w, tensors)
        if self.unlocked:
            for c in found:
                c.name, c.group = f"{c.name}, MKL's AVX-512 path forced", "torch_unlocked"
        return found

    def made(self, name: str, compute: Any) -> Candidate:
        torch = self.torch
        last: list[Any] = [None]

        def run() -> None:
            with torch.inference_mode():
                last[0] = compute()

        return Candidate(name, "torch", run, lambda: last[0].numpy())

    def attention(self, w: Workload, t: dict[str, Any]) -> list[Candidate]:
        if w.mask not in ("dense", "causal"):
            return []  # a dense boolean mask computes everything; flex is for this
        q, k, v, causal = t["q"], t["k"], t["v"], w.mask == "causal"
        sdpa = self.torch.nn.functional.scaled_dot_product_attention
        return [self.made("torch", lambda: sdpa(q, k, v, is_causal=causal))]

    def encoder(self, w: Workload, t: dict[str, Any]) -> list[Candidate]:
        layer, x = self.layer(w, t, "relu", 1e-5), t["x"]
        return self.both_paths(lambda: layer(x))

    def bert(self, w: Workload, t: dict[str, Any]) -> list[Candidate]:
        torch = self.torch
        layers = [self.layer(w, checkpoint.layer(t, i), "gelu", 1e-12) for i in range(w.layers)]
        functional, ids, positions = torch.nn.functional, t["ids"], t["positions"][: w.length]

        def compute() -> Any:
            x = functional.embedding(ids, t["words"]) + positions
            x = functional.layer_norm(x, (w.width,), t["norm.weight"], t["norm.bias"], 1e-12)
            for layer in layers:
                x = layer(x)
            return x

        return self.both_paths(compute)

    def layer(self, w: Workload, t: dict[str, Any], activation: str, eps: float) -> Any:
        torch = self.torch
        layer = torch.nn.TransformerEncoderLayer(
            w.width, w.heads, w.hidden, dropout=0.0, activation=activation, layer_norm_eps=eps, batch_first=True
        ).eval()
        with torch.no_grad():
            attention = layer.self_attn
            attention.in_proj_weight.copy_(torch.cat([t[f"attn.{n}.weight"] for n in "qkv"]))
            attention.in_proj_bias.copy_(torch.cat([t[f"attn.{n}.bias"] for n in "qkv"]))
            for module, name in (
                (attention.out_proj, "attn.out"), (layer.linear1, "mlp.up"), (layer.linear2, "mlp.down"),
                (layer.norm1, "norm1"), (layer.norm2, "norm2"),
            ):  # fmt: skip
                module.weight.copy_(t[f"{name}.weight"])
                module.bias.copy_(t[f"{name}.bias"])
        return layer

    def both_paths(self, forward: Any) -> list[Candidate]:
        set_fast = self.torch.backends.mha.set_fastpath_enabled

        def with_fast_path(on: bool) -> Any:
            def compute() -> Any:
                set_fast(on)
                return forward()

            return compute

        return [self.made("torch", with_fast_path(False)), self.made("torch fast path", with_fast_path(True))]


def linear_attention(torch: Any, w: Workload, t: dict[str, Any]) -> Any:
    elu = torch.nn.functional.elu
    q, k, v = t["q"], t["k"], t["v"]

    def whole() -> Any:
        phi_q, phi_k = elu(q) + 1, elu(k) + 1
        state = phi_k.transpose(-1, -2) @ v
        return (phi_q @ state) / (phi_q @ phi_k.sum(-2).unsqueeze(-1))

    def chunks() -> Any:
        shape = (w.heads, w.length // CHUNK, CHUNK, w.dim)
        phi_q, phi_k, values = (elu(q) + 1).view(shape), (elu(k) + 1).view(shape), v.view(shape)
        states, sums = phi_k.transpose(-1, -2) @ values, phi_k.sum(2)
        within = (phi_q @ phi_k.transpose(-1, -2)).tril_()
        before, sums_before = states.cumsum(1) - states, sums.cumsum(1) - sums
        denominator = within.sum(-1, keepdim=True) + phi_q @ sums_before.unsqueeze(-1)
        return ((within @ values + phi_q @ before) / denominator).view(q.shape)

    return chunks if w.mask == "causal" else whole


def load(libraries: object, threads: int) -> Torch:
    return Torch(threads)
