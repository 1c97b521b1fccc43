#!/usr/bin/env python3
"""Includes go one way: graph <- ops <- passes <- backends <- models, io, cli. ops/ names no ISA, backends/ no model."""
import pathlib
import re
import sys

ALLOWED = {
    "graph": {"graph"},
    "ops": {"graph", "ops"},
    "passes": {"graph", "ops", "passes"},
    "backends": {"graph", "ops", "passes", "backends"},
    "io": {"graph", "ops", "passes", "backends", "io"},
    "models": {"graph", "ops", "passes", "backends", "models", "io"},
}
bad = []
root = pathlib.Path(__file__).resolve().parent.parent
for folder, allowed in ALLOWED.items():
    for path in sorted((root / folder).rglob("*.[hc]pp")):
        text = path.read_text()
        for included in re.findall(r"#include <treadle/(\w+)/", text):
            if included not in allowed:
                bad.append(f"{path.relative_to(root)}: {folder}/ may not include {included}/")
        if folder == "ops" and re.search(r"avx2|avx512|neon|xsimd", text):
            bad.append(f"{path.relative_to(root)}: ops/ names no ISA")
print("\n".join(bad) or "includes go one way")
sys.exit(1 if bad else 0)
