#!/usr/bin/env python3
"""Puts a comparison of every variant into docs/attention/measured.md, between `<!-- measured -->` and `<!-- end of measured -->`.

    build/release/treadle compare --variants all --lengths 512:32768 --json bench/results/attention_variants.json \\
        --csv bench/results/attention_variants.csv
    python3 scripts/variants_report.py bench/results/attention_variants.json
"""
import json
import pathlib
import re
import sys

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "attention" / "measured.md"


def size(n):
    return f"{n / 2**20:.1f} MiB" if n >= 2**20 else f"{n / 2**10:.0f} KiB"


def shown(x, form):
    """What has no value, such as the entropy of weights that do not sum to 1, stays empty."""
    return "" if x is None else format(x, form)


def table(rows, lengths, cell):
    """A line for each variant, a column for each length; what was not run is left empty."""
    by = {(r["variant"], r["length"]): r for r in rows}
    lines = ["| variant | " + " | ".join(f"{n}" for n in lengths) + " |", "|---|" + "---|" * len(lengths)]
    for variant in dict.fromkeys(r["variant"] for r in rows):
        cells = [cell(by[variant, n]) if (variant, n) in by else "" for n in lengths]
        lines.append(f"| `{variant}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def report(data):
    rows = [r for r in data["rows"] if r["input"] == "random"]
    lengths = sorted({r["length"] for r in rows})
    dense = {r["length"]: r["median_ms"] for r in rows if r["variant"] == "dense"}
    causal = {r["length"]: r["median_ms"] for r in rows if r["variant"] == "causal"}
    exponents = {e["variant"]: e for e in data["exponents"] if e["input"] == "random"}
    first, machine = rows[0], data["machine"]

    def time(r):
        whole = (causal if r["causal"] else dense).get(r["length"])
        return f"{r['median_ms']:.3g}" + (f" ({whole / r['median_ms']:.2g}×)" if whole else "")

    last = {}
    for r in rows:
        last[r["variant"]] = r
    growth = ["| variant | time grows as N^ | planned memory at the longest | useful GFLOP/s there | of FMA peak | error there | entropy there |",
              "|---|---|---|---|---|---|---|"]
    for variant, r in last.items():
        exponent = exponents.get(variant, {}).get("exponent")
        growth.append(
            f"| `{variant}` | {shown(exponent, '.2f')} | {size(r['planned_bytes'])} at {r['length']} | {shown(r['useful_gflops'], '.0f')} "
            f"| {shown(r['fraction_of_peak'], '.0%')} | {shown(r['relative_error'], '.1e')} | {shown(r['mean_entropy'], '.2f')} |"
        )
    return "\n".join([
        f"{machine['cpu'].strip()}, {machine['cores']} cores, backend {first['backend']}, {first['isa']}, {first['threads']} threads, FMA peak "
        f"{data['peak_gflops']:.0f} GFLOP/s; {data['compiler']}, commit {data['commit']}, seed {data['seed']}, {data['date'][:10]}. "
        f"Batch {first['batch']}, {first['heads']} heads of {first['head_dim']}.",
        "", "### Milliseconds by length", "",
        "Medians; in brackets how many times faster than dense (causal variants: causal dense) attention of that length.", "",
        table(rows, lengths, time), "",
        "### Growth, memory, error", "", *growth, "",
        "### Planned memory by length", "", table(rows, lengths, lambda r: size(r["planned_bytes"])),
    ])


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    data = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    text = PAGE.read_text(encoding="utf-8")
    block = re.compile(r"(<!-- measured -->\n).*?(<!-- end of measured -->)", re.S)
    if not block.search(text):
        sys.exit(f"variants_report.py: {PAGE} has no <!-- measured --> … <!-- end of measured -->")
    PAGE.write_text(block.sub(lambda m: f"{m[1]}{report(data)}\n{m[2]}", text), encoding="utf-8")


main()
