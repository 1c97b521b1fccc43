#!/usr/bin/env python3
"""Makes the folders transformer* and bahdanau beside it: small modules of torch.nn with random weights, and what they compute in float64.
Needs the PyPI packages torch (2.13), numpy and safetensors: `make_transformer.py [NAME …]`."""
import json
import math
import pathlib
import sys

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn

HERE = pathlib.Path(__file__).resolve().parent


def sinusoids(length, width):
    """§3.5 of Vaswani et al.: sines and cosines in turns."""
    angle = torch.arange(length).double()[:, None] * torch.exp(torch.arange(0, width, 2).double() * (-math.log(10000.0) / width))
    table = torch.zeros(length, width)
    table[:, 0::2], table[:, 1::2] = torch.sin(angle), torch.cos(angle)
    return table


def causal(length):
    return torch.full((length, length), True).triu(1)


class AlignedLayer(nn.Module):
    """A decoder's layer that attends to the source as Bahdanau et al. align: softmax_j(v · tanh(W s_i + U h_j))."""

    def __init__(self, c):
        super().__init__()
        width, hidden = c["d_model"], c["alignment_width"]
        self.self_attn = nn.MultiheadAttention(width, c["nhead"], batch_first=True)
        self.alignment = nn.ModuleDict({
            "W": nn.Linear(width, hidden, bias=False), "U": nn.Linear(c["encoder_width"], hidden, bias=False),
            "v": nn.Linear(hidden, 1, bias=False), "C": nn.Linear(c["encoder_width"], width, bias=False)})
        self.linear1, self.linear2 = nn.Linear(width, c["dim_feedforward"]), nn.Linear(c["dim_feedforward"], width)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(width, eps=c["layer_norm_eps"]) for _ in range(3))

    def forward(self, x, states, mask):
        x = self.norm1(x + self.self_attn(x, x, x, attn_mask=causal(x.shape[1]), need_weights=False)[0])
        a = self.alignment
        scores = a["v"](torch.tanh(a["W"](x)[:, :, None] + a["U"](states)[:, None])).squeeze(-1)
        weights = torch.softmax(scores.masked_fill(mask[:, None] == 0, -math.inf), -1)
        x = self.norm2(x + a["C"](weights @ states))
        return self.norm3(x + self.linear2(torch.relu(self.linear1(x))))


class Model(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        width, layers = c["d_model"], (c["num_encoder_layers"], c["num_decoder_layers"])
        options = {"d_model": width, "nhead": c["nhead"], "dim_feedforward": c["dim_feedforward"], "dropout": 0.0, "activation": c["activation"],
                   "layer_norm_eps": c["layer_norm_eps"], "norm_first": c["norm_first"], "batch_first": True}
        both = min(layers) > 0
        if "vocab_size" in c:
            self.embedding = nn.Embedding(c["vocab_size"], width)
        else:
            self.src_embedding, self.tgt_embedding = nn.Embedding(c["src_vocab_size"], width), nn.Embedding(c["tgt_vocab_size"], width)
        if c["position_embedding"] == "learned":
            for name in ("src_positions", "tgt_positions") if both else ("positions",):
                setattr(self, name, nn.Embedding(c["max_len"], width))
        if c["model_type"] == "bahdanau":
            self.decoder = nn.Module()
            self.decoder.layers = nn.ModuleList(AlignedLayer(c) for _ in range(layers[1]))
        elif both:
            self.transformer = nn.Transformer(num_encoder_layers=layers[0], num_decoder_layers=layers[1], **options)
            if not c["final_norm"]:
                self.transformer.encoder.norm = self.transformer.decoder.norm = None
        else:  # a decoder that attends to no source is an encoder with a causal mask
            norm = nn.LayerNorm(width, eps=c["layer_norm_eps"]) if c["final_norm"] else None
            stack = nn.TransformerEncoder(nn.TransformerEncoderLayer(**options), max(layers), norm, enable_nested_tensor=False)
            setattr(self, "encoder" if layers[0] else "decoder", stack)
        if c.get("tie_word_embeddings") is False:
            self.generator = nn.Linear(width, c.get("vocab_size") or c["tgt_vocab_size"])

    def embed(self, ids, table, positions):
        x = table(ids) * (math.sqrt(self.c["d_model"]) if self.c["scale_embedding"] else 1)
        rows = positions.weight[:ids.shape[1]] if positions else sinusoids(ids.shape[1], self.c["d_model"])
        return x + rows

    def logits(self, x):
        if hasattr(self, "generator"):
            return self.generator(x)
        return x @ (self.embedding if hasattr(self, "embedding") else self.tgt_embedding).weight.T

    def one(self, name):
        """The table of sources or targets, and of their positions."""
        table = getattr(self, "embedding", None) or getattr(self, name + "_embedding")
        return table, getattr(self, name + "_positions", getattr(self, "positions", None))

    def forward(self, input_ids=None, attention_mask=None, decoder_input_ids=None, encoder_states=None):
        padding = attention_mask == 0
        if encoder_states is not None:
            x = self.embed(decoder_input_ids, *self.one("tgt"))
            for layer in self.decoder.layers:
                x = layer(x, encoder_states, attention_mask)
            return {"decoder_hidden": x, "logits": self.logits(x)}
        source = self.embed(input_ids, *self.one("src"))
        if decoder_input_ids is not None:
            memory = self.transformer.encoder(source, src_key_padding_mask=padding)
            x = self.transformer.decoder(self.embed(decoder_input_ids, *self.one("tgt")), memory, tgt_mask=causal(decoder_input_ids.shape[1]),
                                         memory_key_padding_mask=padding)
            return {"encoder_hidden": memory, "decoder_hidden": x, "logits": self.logits(x)}
        if hasattr(self, "encoder"):
            return {"hidden": self.encoder(source, src_key_padding_mask=padding)}
        x = self.decoder(source, mask=causal(input_ids.shape[1]), src_key_padding_mask=padding)
        return {"hidden": x, "logits": self.logits(x)}


BASE = {"model_type": "transformer", "d_model": 32, "nhead": 4, "num_encoder_layers": 2, "num_decoder_layers": 2, "dim_feedforward": 64,
        "activation": "relu", "norm_first": False, "layer_norm_eps": 1e-5, "final_norm": False, "scale_embedding": True,
        "position_embedding": "sinusoidal", "vocab_size": 70, "tie_word_embeddings": True}
FOLDERS = {
    "transformer": ({}, "as in the paper: norms behind residuals, one table for sources, targets and the head; padding at the end"),
    "transformer_pre_norm": ({"norm_first": True, "final_norm": True, "activation": "gelu", "position_embedding": "learned", "max_len": 20,
                              "vocab_size": None, "src_vocab_size": 60, "tgt_vocab_size": 50, "tie_word_embeddings": False,
                              "scale_embedding": False, "num_decoder_layers": 1}, "a head of its own with a bias, learned positions"),
    "transformer_decoder": ({"num_encoder_layers": 0, "final_norm": True}, "a decoder alone; padding at the end"),
    "transformer_encoder": ({"num_decoder_layers": 0, "position_embedding": "learned", "max_len": 16, "tie_word_embeddings": None},
                            "an encoder alone, without a head"),
    "bahdanau": ({"model_type": "bahdanau", "num_encoder_layers": 0, "encoder_width": 24, "alignment_width": 20},
                 "additive attention to the encoder's states in every layer; padding at the end"),
}


def make(name):
    torch.manual_seed(sorted(FOLDERS).index(name) + 3)
    changes, note = FOLDERS[name]
    config = {k: v for k, v in {**BASE, **changes}.items() if v is not None}
    torch.set_default_dtype(torch.float32)
    model = Model(config)
    with torch.no_grad():
        for p in model.parameters():  # biases and norms too, which begin as zeros and ones
            p.copy_(torch.randn(p.shape) / math.sqrt(p.shape[-1]) * 1.5 if p.dim() > 1 else p + 0.3 * torch.randn(p.shape))
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    save_file({k: v.contiguous() for k, v in model.state_dict().items()}, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    torch.set_default_dtype(torch.float64)
    model = model.double().train()  # nothing is dropped, and no fast path taken
    mask = torch.tensor([[int(i < n) for i in range(11)] for n in (11, 7)])
    ids = {"attention_mask": mask}
    if name == "bahdanau":
        ids["encoder_states"] = torch.randn(2, 11, config["encoder_width"]).float().double()
    else:
        ids["input_ids"] = torch.randint(0, config.get("vocab_size") or config["src_vocab_size"], (2, 11))
    if config["num_encoder_layers"] and config["num_decoder_layers"] or name == "bahdanau":
        ids["decoder_input_ids"] = torch.randint(0, config.get("vocab_size") or config["tgt_vocab_size"], (2, 9))
    with torch.no_grad():
        expected = model(**ids)
    for key, value in ids.items():
        np.save(folder / f"{key}.npy", value.numpy().astype(np.float32 if value.is_floating_point() else np.int32))
    for key, value in expected.items():
        np.save(folder / f"expected_{key}.npy", value.numpy())
    case = {"op": config["model_type"], "attributes": {}, "note": note, "inputs": list(ids), "outputs": list(expected),
            "required_outputs": list(expected), "rtol": 0.0002, "atol": 2e-05}
    (folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")
    print(name, (folder / "model.safetensors").stat().st_size, {k: (tuple(v.shape), float(v.abs().max())) for k, v in expected.items()})


for name in sys.argv[1:] or FOLDERS:
    make(name)
