"""CTranslate2: encoders. It takes ids only, so for a single layer each row of x is the embedding of an id of its own; looking
them up is part of its time, one read and one write of x."""
from __future__ import annotations

import tempfile
from typing import Any

import numpy as np

from .. import checkpoint
from ..workloads import Workload
from . import Arrays, Candidate, Missing


class CTranslate2:
    def __init__(self, threads: int) -> None:
        try:
            import ctranslate2
        except (ImportError, OSError) as problem:
            raise Missing(str(problem).splitlines()[0]) from None
        self.module, self.threads = ctranslate2, threads
        self.version = ctranslate2.__version__

    def candidates(self, w: Workload, data: Arrays) -> list[Candidate]:
        if w.kind not in ("encoder", "bert"):
            return []
        bert = w.kind == "bert"
        with tempfile.TemporaryDirectory() as folder:
            (self.save_bert if bert else self.save_layer)(w, data, folder)
            encoder = self.module.Encoder(folder, "cpu", compute_type="float32", intra_threads=self.threads, inter_threads=1)
        ids = data["ids"] if bert else np.arange(w.batch * w.length, dtype=np.int32).reshape(w.batch, w.length)
        view = self.module.StorageView.from_array(ids)
        lengths = self.module.StorageView.from_array(np.full(w.batch, w.length, np.int32))
        last: list[Any] = [None]

        def run() -> None:
            last[0] = encoder.forward_batch(view, lengths).last_hidden_state

        return [Candidate("CTranslate2", "ctranslate2", run, lambda: np.array(last[0]), (encoder, ids))]

    def save_layer(self, w: Workload, data: Arrays, folder: str) -> None:
        specs = self.module.specs
        layers = specs.TransformerEncoderSpec(1, w.heads, pre_norm=False, activation=specs.Activation.RELU)
        model = specs.TransformerEncoderModelSpec(layers, pooling_layer=False)
        layers.scale_embeddings = False
        layers.embeddings[0].weight = data["x"].reshape(-1, w.width)
        layers.position_encodings.encodings = np.zeros((w.length, w.width), np.float32)
        self.fill(layers.layer[0], data)
        self.save(model, w.batch * w.length, 1e-5, folder)

    def save_bert(self, w: Workload, data: Arrays, folder: str) -> None:
        specs = self.module.specs
        activation = specs.Activation.GELU
        layers = specs.TransformerEncoderSpec(w.layers, w.heads, pre_norm=False, activation=activation, layernorm_embedding=True)
        model = specs.TransformerEncoderModelSpec(layers, pooling_layer=False)
        layers.scale_embeddings = False
        layers.embeddings[0].weight = data["words"]
        layers.position_encodings.encodings = data["positions"]
        layers.layernorm_embedding.gamma, layers.layernorm_embedding.beta = data["norm.weight"], data["norm.bias"]
        for i in range(w.layers):
            self.fill(layers.layer[i], checkpoint.layer(data, i))
        self.save(model, w.vocabulary, 1e-12, folder)

    def fill(self, layer: Any, data: Arrays) -> None:
        attention, ffn = layer.self_attention, layer.ffn
        attention.linear[0].weight = np.concatenate([data[f"attn.{n}.weight"] for n in "qkv"])
        attention.linear[0].bias = np.concatenate([data[f"attn.{n}.bias"] for n in "qkv"])
        for part, name in ((attention.linear[1], "attn.out"), (ffn.linear_0, "mlp.up"), (ffn.linear_1, "mlp.down")):
            part.weight, part.bias = data[f"{name}.weight"], data[f"{name}.bias"]
        for norm, name in ((attention.layer_norm, "norm1"), (ffn.layer_norm, "norm2")):
            norm.gamma, norm.beta = data[f"{name}.weight"], data[f"{name}.bias"]

    def save(self, model: Any, words: int, eps: float, folder: str) -> None:
        model.config.layer_norm_epsilon = eps
        model.register_vocabulary([str(i) for i in range(words)])
        model.config.unk_token = "0"
        model.validate()
        model.save(folder)


def load(libraries: object, threads: int) -> CTranslate2:
    return CTranslate2(threads)
