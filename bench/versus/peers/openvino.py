"""OpenVINO: graphs of its own ops, float32 (on CPUs with bfloat16 it would take that by default)."""
from __future__ import annotations

from typing import Any

import numpy as np

from .. import checkpoint
from ..workloads import Workload
from . import Arrays, Candidate, Missing


class OpenVino:
    def __init__(self, threads: int) -> None:
        try:
            import openvino
            from openvino import opset13
        except (ImportError, OSError) as problem:
            raise Missing(str(problem).splitlines()[0]) from None
        self.ov, self.ops, self.threads = openvino, opset13, threads
        self.core = openvino.Core()
        self.version = openvino.get_version().split("-")[0]

    def candidates(self, w: Workload, data: Arrays) -> list[Candidate]:
        if w.kind == "attention" and w.mask in ("dense", "causal"):
            found = [self.compiled("OpenVINO SDPA", self.attention(w), data)]
            if w.mask == "dense":
                found.append(self.compiled("OpenVINO matmul and softmax", self.written_out(w), data))
            return found
        if w.kind == "encoder":
            return [self.compiled("OpenVINO", self.encoder(w, data), {"x": data["x"]})]
        if w.kind == "bert":
            return [self.compiled("OpenVINO", self.bert(w, data), {"ids": data["ids"]})]
        return []

    def compiled(self, name: str, model: Any, inputs: Arrays) -> Candidate:
        options = {
            "INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": str(self.threads), "NUM_STREAMS": "1",
            "PERFORMANCE_HINT": "LATENCY", "ENABLE_CPU_PINNING": "NO",
        }  # fmt: skip
        request = self.core.compile_model(model, "CPU", options).create_infer_request()
        for key, array in inputs.items():
            request.set_tensor(key, self.ov.Tensor(array, shared_memory=True))
        return Candidate(name, "openvino", request.infer, lambda: np.array(request.get_output_tensor(0).data), inputs)

    def inputs(self, w: Workload) -> list[Any]:
        shapes = {"q": [w.batch, w.heads, w.q_len, w.dim], "k": [w.batch, w.heads, w.k_len, w.dim]}
        shapes["v"] = shapes["k"]
        return [self.ops.parameter(shape, np.float32, name=name) for name, shape in shapes.items()]

    def model(self, out: Any, inputs: list[Any]) -> Any:
        for node in inputs:
            node.output(0).set_names({node.get_friendly_name()})
        return self.ov.Model([out], inputs, "row")

    def attention(self, w: Workload) -> Any:
        q, k, v = self.inputs(w)
        return self.model(self.ops.scaled_dot_product_attention(q, k, v, causal=w.mask == "causal"), [q, k, v])

    def written_out(self, w: Workload) -> Any:
        ops = self.ops
        q, k, v = self.inputs(w)
        scores = ops.matmul(ops.multiply(q, np.float32(w.dim**-0.5)), k, False, True)
        return self.model(ops.matmul(ops.softmax(scores, 3), v, False, False), [q, k, v])

    def encoder(self, w: Workload, data: Arrays) -> Any:
        x = self.ops.parameter([w.batch, w.length, w.width], np.float32, name="x")
        return self.model(self.layer(w, data, x, self.ops.relu, 1e-5), [x])

    def bert(self, w: Workload, data: Arrays) -> Any:
        ops = self.ops
        ids = ops.parameter([w.batch, w.length], np.int32, name="ids")
        words = ops.gather(ops.constant(data["words"]), ids, ops.constant(np.int32(0)))
        x = self.norm(ops.add(words, ops.constant(data["positions"][None, : w.length])), data, "norm", 1e-12)
        for i in range(w.layers):
            x = self.layer(w, checkpoint.layer(data, i), x, lambda node: ops.gelu(node, "erf"), 1e-12)
        return self.model(x, [ids])

    def norm(self, node: Any, data: Arrays, name: str, eps: float) -> Any:
        ops = self.ops
        centred = ops.mvn(node, np.array([-1]), True, eps, "INSIDE_SQRT")
        return ops.add(ops.multiply(centred, ops.constant(data[f"{name}.weight"])), ops.constant(data[f"{name}.bias"]))

    def layer(self, w: Workload, data: Arrays, x: Any, activation: Any, eps: float) -> Any:
        ops = self.ops

        def linear(node: Any, name: str) -> Any:
            return ops.add(ops.matmul(node, ops.constant(data[f"{name}.weight"]), False, True), ops.constant(data[f"{name}.bias"]))

        def heads(node: Any) -> Any:
            split = ops.reshape(node, np.array([w.batch, w.length, w.heads, w.width // w.heads]), False)
            return ops.transpose(split, np.array([0, 2, 1, 3]))

        q, k, v = (heads(linear(x, f"attn.{n}")) for n in "qkv")
        mixed = ops.transpose(ops.scaled_dot_product_attention(q, k, v), np.array([0, 2, 1, 3]))
        mixed = ops.reshape(mixed, np.array([w.batch, w.length, w.width]), False)
        y = self.norm(ops.add(x, linear(mixed, "attn.out")), data, "norm1", eps)
        hidden = activation(linear(y, "mlp.up"))
        return self.norm(ops.add(y, linear(hidden, "mlp.down")), data, "norm2", eps)


def load(libraries: object, threads: int) -> OpenVino:
    return OpenVino(threads)
