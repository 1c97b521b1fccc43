#!/usr/bin/env python3
"""Makes the folders of FOLDERS beside it: small checkpoints with random weights, and what the PyPI package transformers (5.24, torch 2.13)
computes with them in float64: `make_transformers.py [NAME …]`."""
import json
import pathlib
import sys

import numpy as np
import torch
import transformers as hf

HERE = pathlib.Path(__file__).resolve().parent
PLAIN = {"attn_implementation": "eager"}


def ids(words, *shape):
    return torch.randint(4, words, shape)


def padded(*lengths):
    """attention_mask with padding at the end."""
    return torch.tensor([[int(i < n) for i in range(max(lengths))] for n in lengths])


def roberta():
    config = hf.RobertaConfig(vocab_size=90, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=80,
                              max_position_embeddings=34, type_vocab_size=1, pad_token_id=1, layer_norm_eps=1e-5, **PLAIN)
    mask = padded(7, 12, 9)
    return hf.RobertaForMaskedLM(config), {"input_ids": torch.where(mask == 1, ids(90, 3, 12), 1), "attention_mask": mask}


def mistral():
    # Rows of padding see tokens too: rows that see nothing are 0 here and a mean there.
    config = hf.MistralConfig(vocab_size=90, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                              intermediate_size=80, sliding_window=4, rope_parameters={"rope_type": "default", "rope_theta": 500.0}, **PLAIN)
    return hf.MistralForCausalLM(config), {"input_ids": ids(90, 2, 13), "attention_mask": padded(11, 13)}


def qwen2():
    config = hf.Qwen2Config(vocab_size=90, hidden_size=48, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
                            intermediate_size=80, use_sliding_window=True, sliding_window=5, max_window_layers=1,
                            tie_word_embeddings=True, **PLAIN)
    return hf.Qwen2ForCausalLM(config), {"input_ids": ids(90, 2, 14), "attention_mask": padded(14, 12)}


def t5_gated():
    config = hf.T5Config(vocab_size=90, d_model=32, d_kv=12, d_ff=56, num_layers=2, num_decoder_layers=1, num_heads=3,
                         feed_forward_proj="gated-gelu", tie_word_embeddings=False, **PLAIN)
    model = hf.T5ForConditionalGeneration(config)
    # Version 5 ties them all the same when it makes a model, and keeps them apart where a checkpoint of T5 1.1 holds both.
    model.lm_head.weight = torch.nn.Parameter(torch.randn(90, 32) / 6)
    model.config.tie_word_embeddings = False
    return model, {"input_ids": ids(90, 2, 10), "attention_mask": padded(10, 6), "decoder_input_ids": ids(90, 2, 7)}


def marian():
    config = hf.MarianConfig(vocab_size=90, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                             decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, max_position_embeddings=40,
                             activation_function="swish", scale_embedding=True, pad_token_id=0, decoder_start_token_id=0, **PLAIN)
    model = hf.MarianMTModel(config)
    model.final_logits_bias.normal_()
    return model, {"input_ids": ids(90, 2, 10), "attention_mask": padded(6, 10), "decoder_input_ids": ids(90, 2, 7)}


def vit_no_bias():
    config = hf.ViTConfig(image_size=24, patch_size=8, num_channels=1, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                          intermediate_size=48, qkv_bias=False, num_labels=3, **PLAIN)
    return hf.ViTForImageClassification(config), {"pixel_values": torch.randn(2, 1, 24, 24)}


FOLDERS = {
    "roberta": (roberta, {"logits": "prediction_logits"}, "positions count what is no padding, from pad_token_id + 1"),
    "mistral": (mistral, {"logits": "logits"}, "a window shorter than the sequence; padding at the end"),
    "qwen2": (qwen2, {"logits": "logits"}, "the first layer sees all, the others a window; tied; padding at the end"),
    "t5_gated": (t5_gated, {"encoder_last_hidden_state": "encoder_hidden", "logits": "logits"}, "T5 1.1: gated GELU, untied and unscaled"),
    "marian": (marian, {"encoder_last_hidden_state": "encoder_hidden", "logits": "logits"}, "sines before cosines; one table for all"),
    "vit_no_bias": (vit_no_bias, {"logits": "logits"}, "qkv_bias is false"),
}


def randomise(model, factor):
    """Biases and norms too, which begin as zeros and ones; matrices larger, for most begin small. All of it float32, as in the file."""
    with torch.no_grad():
        for p in filter(lambda p: p.requires_grad, model.parameters()):  # Marian's sinusoids stay
            p.copy_(p * factor if p.dim() > 1 else p + 0.3 * torch.randn(p.shape))


def make(name):
    torch.manual_seed(sorted(FOLDERS).index(name) + 7)
    build, outputs, note = FOLDERS[name]
    model, inputs = build()
    randomise(model, 1 if name == "t5_gated" else 4)
    folder = HERE / name
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    config = json.loads((folder / "config.json").read_text())
    if name == "t5_gated":  # as the published files have it, which say nothing of scale_decoder_outputs
        config["tie_word_embeddings"] = False
        config.pop("scale_decoder_outputs", None)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    model = model.double().eval()
    with torch.no_grad():
        found = model(**{k: v.double() if v.is_floating_point() else v for k, v in inputs.items()}, output_hidden_states=True)
    expected = {ours: found[theirs] for theirs, ours in outputs.items()}
    if "hidden_states" in found and name != "vit_no_bias":
        expected["hidden"] = found["hidden_states"][-1]
    for key, value in inputs.items():
        np.save(folder / f"{key}.npy", value.numpy() if value.is_floating_point() else value.numpy().astype(np.int32))
    for key, value in expected.items():
        np.save(folder / f"expected_{key}.npy", value.numpy().astype(np.float64))
    case = {"op": config["model_type"], "attributes": {}, "note": note, "inputs": list(inputs), "outputs": list(expected),
            "required_outputs": list(expected), "rtol": 0.0002, "atol": 2e-05}
    (folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")
    size = (folder / "model.safetensors").stat().st_size
    print(name, size, {k: tuple(v.shape) for k, v in expected.items()}, float(expected[next(iter(expected))].abs().max()))


for name in sys.argv[1:] or FOLDERS:
    make(name)
