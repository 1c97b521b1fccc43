#!/usr/bin/env python3
"""Makes what lies beside it: `make.py TEXT`, TEXT being an English text a verse a line (the King James Version).

A GPT-2 of two layers of width 32, trained for a moment on the first lines of the text with the tokenizer of ../tokenizers/gpt2, and
perplexities of the lines behind them: text.txt. expected.json holds them by context, stride and window of the attention, computed in
float64 by the few lines of GPT-2 below, which are checked against the Transformers library. Needs the PyPI packages torch,
transformers, tokenizers and safetensors, which no build and no test needs.
"""
import json
import math
import pathlib
import shutil
import sys

import torch
from tokenizers import Tokenizer
from transformers import GPT2Config, GPT2LMHeadModel

HERE = pathlib.Path(__file__).resolve().parent
CONTEXT = 64


def logits(state, config, ids, window):
    """[length, vocabulary]; a query sees `window` keys, itself among them, or all before it."""
    def norm(x, name):
        centred = x - x.mean(-1, keepdim=True)
        return centred / (centred.square().mean(-1, keepdim=True) + config.layer_norm_epsilon).sqrt() * state[f"{name}.weight"] + state[f"{name}.bias"]

    def linear(x, name):
        return x @ state[f"{name}.weight"] + state[f"{name}.bias"]

    n, at = len(ids), torch.arange(len(ids))
    distance = at[:, None] - at[None, :]
    seen = (distance >= 0) & (distance < window) if window else distance >= 0
    x = state["transformer.wte.weight"][ids] + state["transformer.wpe.weight"][:n]
    for layer in range(config.n_layer):
        p = f"transformer.h.{layer}"
        q, k, v = (t.view(n, config.n_head, -1).transpose(0, 1) for t in linear(norm(x, f"{p}.ln_1"), f"{p}.attn.c_attn").chunk(3, -1))
        scores = (q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])).masked_fill(~seen, -math.inf)
        x = x + linear((scores.softmax(-1) @ v).transpose(0, 1).reshape(n, -1), f"{p}.attn.c_proj")
        h = linear(norm(x, f"{p}.ln_2"), f"{p}.mlp.c_fc")
        h = 0.5 * h * (1 + torch.tanh(math.sqrt(2 / math.pi) * (h + 0.044715 * h**3)))
        x = x + linear(h, f"{p}.mlp.c_proj")
    return norm(x, "transformer.ln_f") @ state["transformer.wte.weight"].T


def perplexity(state, config, ids, context, stride, window):
    """Windows of `context` tokens, each `stride` further; a token counts in the first window that holds it, but for the first of all."""
    total, counted, done = 0.0, 0, 0
    for begin in range(0, len(ids), stride):
        end = min(begin + context, len(ids))
        scores = logits(state, config, ids[begin:end], window).log_softmax(-1)
        for i in range(max(done, begin + 1), end):
            total -= scores[i - 1 - begin, ids[i]].item()
            counted += 1
        done = end
        if end == len(ids):
            break
    return math.exp(total / counted), counted


def main():
    lines = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()
    learnt, text = "\n".join(lines[:300]) + "\n", "\n".join(lines[300:312]) + "\n"
    tokenizer = Tokenizer.from_file(str(HERE.parent / "tokenizers/gpt2/tokenizer.json"))
    config = GPT2Config(
        vocab_size=tokenizer.get_vocab_size(), n_positions=CONTEXT, n_embd=32, n_layer=2, n_head=2, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0
    )
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = GPT2LMHeadModel(config)
    ids = torch.tensor(tokenizer.encode(learnt).ids)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(300):
        start = torch.randint(0, len(ids) - CONTEXT, (16,))
        batch = torch.stack([ids[s : s + CONTEXT] for s in start])
        loss = model(batch, labels=batch).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval().save_pretrained(HERE / "gpt2", safe_serialization=True)
    (HERE / "gpt2/generation_config.json").unlink(missing_ok=True)
    shutil.copy(HERE.parent / "tokenizers/gpt2/tokenizer.json", HERE / "gpt2/tokenizer.json")
    (HERE / "text.txt").write_text(text, encoding="utf-8")

    model.double()
    state = model.state_dict()
    ids = torch.tensor(tokenizer.encode(text).ids)
    with torch.no_grad():
        theirs = model(ids[None, :CONTEXT]).logits[0]
        assert (logits(state, config, ids[:CONTEXT], 0) - theirs).abs().max() < 1e-10
        cases = []
        for context, stride, window in ((64, 32, 0), (64, 64, 0), (48, 7, 0), (64, 32, 8), (64, 32, 1)):
            value, counted = perplexity(state, config, ids, context, stride, window)
            cases.append({"context": context, "stride": stride, "window": window, "perplexity": value, "counted": counted})
    (HERE / "expected.json").write_text(json.dumps({"tokens": len(ids), "cases": cases}, indent=1) + "\n", encoding="utf-8")


main()
