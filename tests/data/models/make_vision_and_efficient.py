"""Writes the folders that MAKERS names, beside this file.

    python3 make_vision_and_efficient.py [NAME ...]

Random weights of tiny models, results in float64: of the Transformers library (5.24) where it has the model, else of
the modules below, which follow the papers' equations. Needs torch, transformers, safetensors and numpy.
"""

import json
import math
import pathlib
import sys

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn

HERE = pathlib.Path(__file__).parent


def randomise(module, seed):
    """Weights that let every part count: attention that is not flat, norms and biases that are not 1 and 0."""
    g = torch.Generator().manual_seed(seed)
    for name, p in sorted(module.named_parameters()):
        noise = torch.randn(p.shape, generator=g)
        if p.dim() == 0:
            continue
        if p.dim() == 1 and name.endswith("weight"):
            p.data = 1 + 0.2 * noise
        elif "embedding" in name and p.dim() == 2:
            p.data = 0.6 * noise
        elif p.dim() == 1 or "bias" in name:
            p.data = 0.2 * noise
        else:
            p.data = 1.2 * noise / math.sqrt(p[0].numel())
    return module.eval()


def write(name, config, weights, inputs, outputs, note):
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    weights = {k: v.detach().to(torch.float32).contiguous().clone() for k, v in weights.items()}
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    for k, v in inputs.items():
        np.save(folder / f"{k}.npy", v.numpy())
    for k, v in outputs.items():
        v = np.ascontiguousarray(v.detach().numpy())
        assert v.dtype == np.float64, k
        np.save(folder / f"expected_{k}.npy", v)
    case = {"op": config["model_type"], "attributes": {}, "note": note, "inputs": list(inputs), "outputs": list(outputs),
            "required_outputs": list(outputs), "rtol": 2e-4, "atol": 2e-5}
    (folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")
    print(name, sum(f.stat().st_size for f in folder.iterdir()) // 1024, "KiB")


def plain(config):
    """A config without what only says where it comes from."""
    drop = {"_name_or_path", "transformers_version", "torch_dtype", "dtype", "architectures", "id2label", "label2id"}
    return {k: plain(v) if isinstance(v, dict) else v for k, v in config.items() if k not in drop}


def unshared(model):
    """The state dict without the copies of tied weights, as save_pretrained writes it."""
    seen, out = set(), {}
    for k, v in model.state_dict().items():
        if v.data_ptr() in seen:
            continue
        seen.add(v.data_ptr())
        out[k] = v
    return out


def ids(seed, shape, vocabulary, least=0):
    return torch.randint(least, vocabulary, shape, generator=torch.Generator().manual_seed(seed))


def bigbird_random():
    """Training mode without dropout: the random blocks that it draws are an input."""
    from transformers import BigBirdConfig, BigBirdForPreTraining

    config = BigBirdConfig(vocab_size=60, hidden_size=24, num_hidden_layers=1, num_attention_heads=3, intermediate_size=32,
                           max_position_embeddings=96, block_size=8, num_random_blocks=2, hidden_dropout_prob=0.0,
                           attention_probs_dropout_prob=0.0)
    model = randomise(BigBirdForPreTraining(config), 13).bert
    weights = unshared(model)
    model.double().train()
    attention = model.encoder.layer[0].attention.self
    draw, drawn = attention._bigbird_block_rand_mask_with_head, []
    attention._bigbird_block_rand_mask_with_head = lambda **k: drawn.append(draw(**k)) or drawn[-1]
    tokens = ids(14, (1, 93), 60, 1)
    with torch.no_grad():
        hidden = model(tokens).last_hidden_state
    # [heads, blocks - 2, random]; the first and the last block of queries see everything.
    blocks = torch.tensor(np.pad(np.stack(drawn[0]), ((0, 0), (1, 1), (0, 0)))).reshape(-1, 2).to(torch.int64)
    write("bigbird_random", plain(config.to_dict()), weights, {"input_ids": tokens, "random_blocks": blocks}, {"hidden": hidden},
          "random blocks of each head and block of queries as the library draws them in training")


def bigbird(name, kind, length):
    from transformers import BigBirdConfig, BigBirdForPreTraining

    config = BigBirdConfig(vocab_size=90, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
                           max_position_embeddings=96, attention_type=kind, block_size=8, num_random_blocks=2,
                           rescale_embeddings=kind == "original_full", use_bias=kind == "block_sparse", hidden_dropout_prob=0.0,
                           attention_probs_dropout_prob=0.0)
    model = randomise(BigBirdForPreTraining(config), 1)
    weights = unshared(model)
    model.double()
    mask = torch.ones(2, length, dtype=torch.int64)
    mask[1, length - 13:] = 0
    inputs = {"input_ids": ids(2, (2, length), 90, 1), "token_type_ids": ids(3, (2, length), 2), "attention_mask": mask}
    with torch.no_grad():
        out = model(**inputs)
        hidden = model.bert(**inputs).last_hidden_state
    assert model.bert.attention_type == kind
    outputs = {"hidden": hidden, "prediction_logits": out.prediction_logits,
               "seq_relationship_logits": out.seq_relationship_logits}
    note = ("evaluation mode: every random block is block 0, counted once more for each" if kind == "block_sparse" else
            "dense attention; scaled embeddings, no biases in queries, keys and values")
    write(name, plain(config.to_dict()), weights, inputs, outputs, note)


def clip():
    from transformers import CLIPConfig, CLIPModel

    text = {"vocab_size": 99, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
            "max_position_embeddings": 20, "eos_token_id": 98, "bos_token_id": 97, "projection_dim": 24}
    vision = {"hidden_size": 40, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 5, "image_size": 24,
              "patch_size": 8, "projection_dim": 24}
    config = CLIPConfig(text_config=text, vision_config=vision, projection_dim=24)
    model = randomise(CLIPModel(config), 4)
    weights = unshared(model)
    model.double()
    # Text ends at the first token 98; behind it stand more of them, as the tokenizer pads.
    tokens = ids(5, (3, 11), 97)
    mask = torch.ones(3, 11, dtype=torch.int64)
    for row, end in enumerate((10, 6, 3)):
        tokens[row, 0] = 97
        tokens[row, end:] = 98
        mask[row, end + 1:] = 0
    pixels = torch.randn(2, 3, 24, 24, generator=torch.Generator().manual_seed(6))
    with torch.no_grad():
        out = model(input_ids=tokens, attention_mask=mask, pixel_values=pixels.double())
    outputs = {k: getattr(out, k) for k in ("text_embeds", "image_embeds", "logits_per_text", "logits_per_image")}
    outputs["text_hidden"] = out.text_model_output.last_hidden_state
    outputs["image_hidden"] = out.vision_model_output.last_hidden_state
    write("clip", plain(config.to_dict()), weights, {"input_ids": tokens, "attention_mask": mask, "pixel_values": pixels},
          outputs, "embeds have length 1; text_hidden is after the last norm, image_hidden before it")


def detr():
    from transformers import DetrConfig
    from transformers.models.detr.modeling_detr import DetrDecoder, DetrEncoder, DetrMLPPredictionHead

    config = DetrConfig(d_model=32, encoder_layers=2, decoder_layers=2, encoder_ffn_dim=48, decoder_ffn_dim=48,
                        encoder_attention_heads=4, decoder_attention_heads=4, num_queries=7, num_labels=5, dropout=0.0)

    class Head(nn.Module):  # DetrForObjectDetection behind its backbone
        def __init__(self):
            super().__init__()
            self.model = nn.Module()
            self.model.query_position_embeddings = nn.Embedding(config.num_queries, config.d_model)
            self.model.encoder = DetrEncoder(config)
            self.model.decoder = DetrDecoder(config)
            self.class_labels_classifier = nn.Linear(config.d_model, config.num_labels + 1)
            self.bbox_predictor = DetrMLPPredictionHead(config.d_model, config.d_model, 4, 3)

    model = randomise(Head(), 7)
    # The names of published checkpoints, which the library turns into those of its modules.
    weights = {}
    for k, v in model.state_dict().items():
        weights[k.replace(".o_proj.", ".out_proj.").replace(".mlp.fc", ".fc")] = v
    weights["model.input_projection.weight"] = torch.zeros(32, 8, 1, 1)
    weights["model.input_projection.bias"] = torch.zeros(32)
    weights["model.backbone.conv_encoder.model.conv1.weight"] = torch.zeros(4, 3, 7, 7)
    model.double()
    g = torch.Generator().manual_seed(8)
    features, positions = torch.randn(2, 12, 32, generator=g), torch.randn(2, 12, 32, generator=g)
    mask = torch.ones(2, 12, dtype=torch.int64)
    mask[1, [3, 7, 8, 9, 10, 11]] = 0
    with torch.no_grad():
        memory = model.model.encoder(inputs_embeds=features.double(), attention_mask=mask,
                                     spatial_position_embeddings=positions.double()).last_hidden_state
        queries = model.model.query_position_embeddings.weight.unsqueeze(0).repeat(2, 1, 1)
        hidden = model.model.decoder(inputs_embeds=torch.zeros_like(queries), encoder_hidden_states=memory,
                                     encoder_attention_mask=mask, spatial_position_embeddings=positions.double(),
                                     object_queries_position_embeddings=queries).last_hidden_state
        outputs = {"encoder_hidden": memory, "hidden": hidden, "logits": model.class_labels_classifier(hidden),
                   "pred_boxes": model.bbox_predictor(hidden).sigmoid()}
    c = plain(config.to_dict())
    c.pop("backbone_config", None)
    c["id2label"] = {str(i): f"LABEL_{i}" for i in range(5)}
    write("detr", c, weights, {"inputs_embeds": features, "spatial_position_embeddings": positions, "attention_mask": mask},
          outputs, "features behind the backbone and its projection are given; those that the mask leaves out are rows too")


def funnel(name, length, **options):
    from transformers import FunnelConfig, FunnelForMaskedLM

    config = FunnelConfig(vocab_size=80, block_sizes=[2, 1, 2], num_decoder_layers=1, d_model=24, n_head=3, d_head=8, d_inner=40,
                          hidden_act="gelu_new", hidden_dropout=0.0, attention_dropout=0.0, activation_dropout=0.0, **options)
    model = randomise(FunnelForMaskedLM(config), 9)
    for k, p in model.named_parameters():
        if k.endswith("r_kernel"):
            p.data *= 2
        if k.endswith("seg_embed"):
            p.data *= 3
    weights = unshared(model)
    model.double()
    types = torch.zeros(2, length, dtype=torch.int64)
    types[:, 0] = 2
    types[0, 6:] = 1
    types[1, 4:] = 1
    mask = torch.ones(2, length, dtype=torch.int64)
    mask[1, 9:] = 0
    inputs = {"input_ids": ids(10, (2, length), 80, 1), "token_type_ids": types, "attention_mask": mask}
    with torch.no_grad():
        whole = model.funnel(**inputs)
        encoder = model.funnel.encoder(model.funnel.embeddings(inputs["input_ids"]), attention_mask=mask.double(),
                                       token_type_ids=types).last_hidden_state
        logits = model(**inputs).logits
    write(name, plain(config.to_dict()), weights, inputs,
          {"encoder_hidden": encoder, "hidden": whole.last_hidden_state, "logits": logits},
          "encoder_hidden: after the last block, a quarter of the rows")


class Attention(nn.Module):
    """Katharopoulos et al. 2020, eq. 9 with elu + 1, or Choromanski et al. 2021, eq. 5 with positive features."""

    def __init__(self, width, heads, features, eps):
        super().__init__()
        self.heads, self.features, self.eps = heads, features, eps
        for name in ("query_projection", "key_projection", "value_projection", "out_projection"):
            setattr(self, name, nn.Linear(width, width))
        if features:
            self.projection = nn.Parameter(torch.randn(features, width // heads))

    def split(self, x):
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)

    def phi(self, x):
        if not self.features:
            return nn.functional.elu(x) + 1
        x = x / x.shape[-1] ** 0.25
        return torch.exp(x @ self.projection.T - (x * x).sum(-1, keepdim=True) / 2) / math.sqrt(self.features)

    def forward(self, x):
        q, k = self.phi(self.split(self.query_projection(x))), self.phi(self.split(self.key_projection(x)))
        v = self.split(self.value_projection(x))
        weights = (q @ k.transpose(-1, -2)).tril()
        y = weights @ v / (weights.sum(-1, keepdim=True) + self.eps)
        return self.out_projection(y.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, width, heads, hidden, features, eps):
        super().__init__()
        self.attention = Attention(width, heads, features, eps)
        self.linear1, self.linear2 = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x):
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.linear2(nn.functional.gelu(self.linear1(x))))


class LinearTransformer(nn.Module):
    def __init__(self, vocabulary, width, layers, heads, hidden, positions, features, eps):
        super().__init__()
        self.word_embeddings = nn.Embedding(vocabulary, width)
        self.position_embeddings = nn.Embedding(positions, width)
        self.layers = nn.ModuleList(Layer(width, heads, hidden, features, eps) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.word_embeddings(tokens) + self.position_embeddings.weight[: tokens.shape[1]]
        for layer in self.layers:
            x = layer(x)
        hidden = self.norm(x)
        return hidden, self.lm_head(hidden)


def linear_transformer(name, features):
    sizes = {"vocab_size": 70, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
             "max_position_embeddings": 80}
    eps = 0.0 if features else 1e-6
    model = randomise(LinearTransformer(*sizes.values(), features, eps), 11)
    for k, p in model.named_parameters():
        if k.endswith("attention.projection"):
            p.data *= math.sqrt(p.shape[1])
    weights = unshared(model)
    model.double()
    tokens = ids(12, (2, 61), 70)
    with torch.no_grad():
        hidden, logits = model(tokens)
    config = {"model_type": name, **sizes, "hidden_act": "gelu", "layer_norm_eps": 1e-5, "tie_word_embeddings": False}
    config.update({"num_features": features} if features else {"attention_eps": eps})
    write(name, config, weights, {"input_ids": tokens}, {"hidden": hidden, "logits": logits}, "causal; results after the last norm")


MAKERS = {
    "bigbird": lambda: bigbird("bigbird", "block_sparse", 83),
    "bigbird_random": bigbird_random,
    "bigbird_full": lambda: bigbird("bigbird_full", "original_full", 29),
    "clip": clip,
    "detr": detr,
    "funnel": lambda: funnel("funnel", 13),
    "funnel_max": lambda: funnel("funnel_max", 16, pooling_type="max", attention_type="factorized"),
    "linear_transformer": lambda: linear_transformer("linear_transformer", 0),
    "performer": lambda: linear_transformer("performer", 20),
}

if __name__ == "__main__":
    for chosen in sys.argv[1:] or MAKERS:
        MAKERS[chosen]()
