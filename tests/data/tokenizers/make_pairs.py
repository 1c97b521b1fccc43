#!/usr/bin/env python3
"""Writes pairs.json into the folders of FOLDERS beside it: pairs of texts, and what the PyPI package tokenizers makes of them with the
folder's tokenizer.json (no limit, and limits that cut one text or both)."""
import json
import pathlib

from tokenizers import Tokenizer

HERE = pathlib.Path(__file__).resolve().parent
FOLDERS = ["word_piece", "roberta", "llama2"]
LONG = "In the beginning God created the heaven and the earth."
PAIRS = [(LONG, "And the earth was without form, and void"), ("the earth", LONG), (LONG, LONG), (LONG, "void"), ("", LONG), ("", ""),
         ("light [SEP] </s>", "naïve 東京 <mask>")]

for folder in FOLDERS:
    tokenizer = Tokenizer.from_file(str(HERE / folder / "tokenizer.json"))
    rows = []
    for first, second in PAIRS:
        for most in (0, 12, 7):
            tokenizer.no_truncation()
            if most:
                tokenizer.enable_truncation(most)
            e = tokenizer.encode(first, second)
            rows.append({"first": first, "second": second, "max_length": most, "ids": e.ids, "types": e.type_ids})
    text = "[\n" + ",\n".join(json.dumps(r, ensure_ascii=True) for r in rows) + "\n]\n"
    (HERE / folder / "pairs.json").write_text(text, encoding="utf-8")
