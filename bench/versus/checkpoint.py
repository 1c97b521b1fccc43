"""The weights of a BERT checkpoint as NumPy arrays, under the names that the rows' encoder layers have."""
from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

#: Set by bench/run to the folder of all-MiniLM-L6-v2.
VARIABLE = "TREADLE_MINILM"

LAYER = {
    "attn.q": "attention.self.query", "attn.k": "attention.self.key", "attn.v": "attention.self.value",
    "attn.out": "attention.output.dense", "norm1": "attention.output.LayerNorm",
    "mlp.up": "intermediate.dense", "mlp.down": "output.dense", "norm2": "output.LayerNorm",
}  # fmt: skip


def folder() -> Path | None:
    """The checkpoint's folder, where there is one."""
    path = Path(os.environ.get(VARIABLE) or "/nonexistent")
    return path if (path / "model.safetensors").is_file() else None


def read(file: Path) -> dict[str, Any]:
    """The float32 tensors of a safetensors file."""
    import numpy as np

    data = file.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8:start]).items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = entry["data_offsets"]
            array = np.frombuffer(data, np.float32, (end - begin) // 4, start + begin)
            tensors[name] = array.reshape(entry["shape"]).copy()
    return tensors


def weights(layers: int) -> dict[str, Any]:
    """`words` [vocabulary, width]; `positions` [positions, width], to which the first segment's row is added, since all
    tokens are of it; `norm.weight`, `norm.bias`; and for layer i "i.attn.q.weight" and so on."""
    path = folder()
    if path is None:
        raise FileNotFoundError(f"{VARIABLE} names no folder with model.safetensors")
    t = read(path / "model.safetensors")
    found = {
        "words": t["embeddings.word_embeddings.weight"],
        "positions": t["embeddings.position_embeddings.weight"] + t["embeddings.token_type_embeddings.weight"][0],
    }
    for part in ("weight", "bias"):
        found[f"norm.{part}"] = t[f"embeddings.LayerNorm.{part}"]
        for i in range(layers):
            for name, published in LAYER.items():
                found[f"{i}.{name}.{part}"] = t[f"encoder.layer.{i}.{published}.{part}"]
    return found


def layer(data: dict[str, Any], i: int) -> dict[str, Any]:
    """The weights of layer i, named as those of a row of one encoder layer."""
    start = f"{i}."
    return {name.removeprefix(start): array for name, array in data.items() if name.startswith(start)}
