"""ONNX Runtime with the fused operators of its own domain (MultiHeadAttention, SkipLayerNormalization)."""
from __future__ import annotations

from typing import Any

import numpy as np

from .. import checkpoint
from ..workloads import Workload
from . import Arrays, Candidate, Missing

DOMAIN = "com.microsoft"


class OnnxRuntime:
    def __init__(self, threads: int) -> None:
        try:
            import onnx
            import onnxruntime
        except (ImportError, OSError) as problem:
            raise Missing(str(problem).splitlines()[0]) from None
        self.onnx, self.runtime, self.threads = onnx, onnxruntime, threads
        self.version = onnxruntime.__version__

    def candidates(self, w: Workload, data: Arrays) -> list[Candidate]:
        if w.kind == "attention" and w.mask in ("dense", "causal"):
            return [self.attention(w, data)]
        if w.kind == "encoder":
            return [self.encoder(w, data)]
        if w.kind == "bert":
            return [self.bert(w, data)]
        return []

    def attention(self, w: Workload, data: Arrays) -> Candidate:
        """Its layout is [batch, length, heads · dim]."""
        inputs = {n: np.ascontiguousarray(data[n].transpose(0, 2, 1, 3)).reshape(w.batch, -1, w.heads * w.dim) for n in "qkv"}
        node = self.onnx.helper.make_node(
            "MultiHeadAttention", list("qkv"), ["out"], domain=DOMAIN, num_heads=w.heads, unidirectional=int(w.mask == "causal")
        )
        run, out = self.session([node], {}, inputs, (w.batch, w.q_len, w.heads * w.dim))

        def result() -> Any:
            return out.reshape(w.batch, w.q_len, w.heads, w.dim).transpose(0, 2, 1, 3)

        return Candidate("ONNX Runtime", "onnxruntime", run, result, inputs)

    def encoder(self, w: Workload, data: Arrays) -> Candidate:
        make = self.onnx.helper.make_node
        weights = {name: np.ascontiguousarray(a.T) if a.ndim == 2 else a for name, a in data.items() if name != "x"}
        weights["qkv.weight"] = np.concatenate([weights.pop(f"attn.{n}.weight") for n in "qkv"], 1)
        weights["qkv.bias"] = np.concatenate([weights.pop(f"attn.{n}.bias") for n in "qkv"])
        weights["thirds"] = np.array([w.width] * 3, np.int64)

        def linear(x: str, name: str, out: str) -> list[Any]:
            return [make("MatMul", [x, f"{name}.weight"], [f"{out}.product"]), make("Add", [f"{out}.product", f"{name}.bias"], [out])]

        def add_norm(x: str, residual: str, name: str, out: str) -> Any:
            names = [x, residual, f"{name}.weight", f"{name}.bias"]
            return make("SkipLayerNormalization", names, [out], domain=DOMAIN, epsilon=1e-5)

        nodes = [
            *linear("x", "qkv", "qkv"),
            make("Split", ["qkv", "thirds"], ["q", "k", "v"], axis=-1),
            make("MultiHeadAttention", ["q", "k", "v"], ["mixed"], domain=DOMAIN, num_heads=w.heads),
            *linear("mixed", "attn.out", "projected"),
            add_norm("projected", "x", "norm1", "y"),
            *linear("y", "mlp.up", "up"),
            make("Relu", ["up"], ["hidden"]),
            *linear("hidden", "mlp.down", "down"),
            add_norm("down", "y", "norm2", "out"),
        ]
        run, out = self.session(nodes, weights, {"x": data["x"]}, w.output_shape())
        return Candidate("ONNX Runtime", "onnxruntime", run, lambda: out, data)

    def bert(self, w: Workload, data: Arrays) -> Candidate:
        """The operators that ONNX Runtime's own optimiser of BERT makes."""
        make = self.onnx.helper.make_node
        weights = {name: data[name] for name in ("words", "positions", "norm.weight", "norm.bias")}
        names = ["ids", "", "words", "positions", "", "norm.weight", "norm.bias"]
        nodes = [make("EmbedLayerNormalization", names, ["x0", "mask"], domain=DOMAIN, epsilon=1e-12)]
        for i in range(w.layers):
            own = {f"{i}.{n}": np.ascontiguousarray(a.T) if a.ndim == 2 else a for n, a in checkpoint.layer(data, i).items()}
            for part, axis in (("weight", 1), ("bias", 0)):
                own[f"{i}.qkv.{part}"] = np.concatenate([own.pop(f"{i}.attn.{n}.{part}") for n in "qkv"], axis)
            weights |= own
            p, out = f"{i}.", "out" if i + 1 == w.layers else f"x{i + 1}"

            def add_norm(x: str, residual: str, linear: str, norm: str, result: str) -> Any:
                inputs = [x, residual, f"{p}{norm}.weight", f"{p}{norm}.bias", f"{p}{linear}.bias"]
                return make("SkipLayerNormalization", inputs, [result], domain=DOMAIN, epsilon=1e-12)

            nodes += [
                make("Attention", [f"x{i}", f"{p}qkv.weight", f"{p}qkv.bias"], [f"{p}mixed"], domain=DOMAIN, num_heads=w.heads),
                make("MatMul", [f"{p}mixed", f"{p}attn.out.weight"], [f"{p}projected"]),
                add_norm(f"{p}projected", f"x{i}", "attn.out", "norm1", f"{p}y"),
                make("MatMul", [f"{p}y", f"{p}mlp.up.weight"], [f"{p}up"]),
                make("BiasGelu", [f"{p}up", f"{p}mlp.up.bias"], [f"{p}hidden"], domain=DOMAIN),
                make("MatMul", [f"{p}hidden", f"{p}mlp.down.weight"], [f"{p}down"]),
                add_norm(f"{p}down", f"{p}y", "mlp.down", "norm2", out),
            ]
        run, out = self.session(nodes, weights, {"ids": data["ids"]}, w.output_shape())
        return Candidate("ONNX Runtime", "onnxruntime", run, lambda: out, data)

    def session(self, nodes: list[Any], weights: Arrays, inputs: Arrays, shape: tuple[int, ...]) -> tuple[Any, Any]:
        """`run` and the array that it writes."""
        helper, numpy_helper, f32 = self.onnx.helper, self.onnx.numpy_helper, self.onnx.TensorProto.FLOAT
        graph = helper.make_graph(
            nodes,
            "row",
            [
                helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
                for name, array in inputs.items()
            ],
            [helper.make_tensor_value_info("out", f32, shape)],
            [numpy_helper.from_array(array, name) for name, array in weights.items()],
        )
        domains = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
        model = helper.make_model(graph, opset_imports=domains, ir_version=9)
        options = self.runtime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self.threads, 1
        options.log_severity_level = 3
        # Workers spin within a run, and leave the CPU to the next candidate behind it.
        options.add_session_config_entry("session.force_spinning_stop", "1")
        session = self.runtime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
        binding, out = session.io_binding(), np.zeros(shape, np.float32)
        for name, array in inputs.items():
            binding.bind_input(name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data)
        binding.bind_output("out", "cpu", 0, np.float32, out.shape, out.ctypes.data)
        return lambda: session.run_with_iobinding(binding), out


def load(libraries: object, threads: int) -> OnnxRuntime:
    return OnnxRuntime(threads)
