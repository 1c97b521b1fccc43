#!/usr/bin/env python3
"""Puts a run of bench/run between `<!-- versus -->` and `<!-- end of versus -->`: all rows into docs/performance.md, some into
README.md. A quick run stays out of README.md.

    bench/run
    python3 scripts/versus_table.py bench/results/NAME.json
"""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))
sys.dont_write_bytecode = True
from versus import alone, table  # noqa: E402

#: What the README shows: one row of each kind.
SHOWN = (
    "dense H8 N2048 D64", "dense H16 N1024 D128", "causal H8 N2048 D64", "window 256,0 H8 N16384 D64", "BigBird 64 H8 N4096 D64",
    "linear causal H8 N16384 D64", "product 2048x768x768", "encoder d512 h8 ff2048 B1 N512", "encoder d768 h12 ff3072 B8 N512",
    "MiniLM B8 N128", "decode H32 N32768 D64",
)  # fmt: skip


def short(report):
    lines = ["| one row of each kind | ms | of FMA peak | best peer | time / ours | PyTorch's time / ours |", "|---|---|---|---|---|---|"]
    for row in report["rows"]:
        if row["name"] in SHOWN:
            mine, best = table.ours(row), table.fastest(row, "best")
            lines.append(
                f"| {table.label(row)} | {table.milliseconds(mine)} | {mine['fraction_of_peak']:.0%} | {best['name'] if best else '–'} "
                f"| {table.ratio(row, 'best')} | {table.ratio(row, 'torch')} |"
            )
    return "\n".join(lines)


def replace(page, content):
    text = page.read_text(encoding="utf-8")
    block = re.compile(r"(<!-- versus -->\n).*?(<!-- end of versus -->)", re.S)
    if not block.search(text):
        sys.exit(f"versus_table.py: {page.name} has no <!-- versus --> … <!-- end of versus -->")
    page.write_text(block.sub(lambda m: f"{m[1]}{content}\n{m[2]}", text), encoding="utf-8")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    report = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    source = pathlib.Path(sys.argv[1]).resolve()
    name = source.relative_to(ROOT) if source.is_relative_to(ROOT) else source.name
    parts = [table.overview(report), table.encoder_mean(report), table.caption(report), alone.table(report), f"Every candidate: `{name.with_suffix('.md')}`."]
    replace(ROOT / "docs/performance.md", "\n\n".join(p for p in parts if p))
    if not report["quick"]:
        replace(ROOT / "README.md", short(report) + "\n\n" + table.caption(report))


if __name__ == "__main__":
    main()
