#!/usr/bin/env python3
"""Includes go one way: graph <- ops <- passes <- backends <- models, io, cli. ops/ names no ISA, backends/ names no model."""
import pathlib
import re
import sys

ALLOWED = {
    "graph": {"graph"},
    "ops": {"graph", "ops"},
    "passes": {"graph", "ops", "passes"},
    "backends": {"graph", "ops", "passes", "backends"},
    "io": {"graph", "ops", "passes", "backends", "io"},
    "models": {"graph", "ops", "passes", "backends", "io", "models"},
}
NAMES = {"ops": r"avx|neon|sse\d|xsimd", "backends": r"\b(gpt|bert|llama|t5|vit|longformer|minilm)"}
bad = []
root = pathlib.Path(__file__).resolve().parent.parent
for folder, allowed in ALLOWED.items():
    for path in sorted(p for p in (root / folder).rglob("*") if p.suffix in {".hpp", ".cpp", ".h"}):
        text = path.read_text()
        for included in re.findall(r'#include [<"]treadle/(\w+)/', text):
            if included not in allowed:
                bad.append(f"{path.relative_to(root)}: {folder}/ may not include {included}/")
        for included in re.findall(r'#include "([^"]*\.\./[^"]*)"', text):
            bad.append(f"{path.relative_to(root)}: write <treadle/...> for {included}")
        for name in re.findall(NAMES.get(folder, "$^"), text, re.IGNORECASE):
            bad.append(f"{path.relative_to(root)}: {folder}/ does not name '{name}'")
print("\n".join(bad) or "includes go one way")
sys.exit(1 if bad else 0)
