#!/usr/bin/env python3
"""Puts measured numbers into README.md: between `<!-- numbers -->` and `<!-- end of numbers -->` those of a comparison, between
`<!-- kernels -->` and `<!-- end of kernels -->` those of the attention benchmark.

    build/release/treadle compare --json results.json
    build/release/bench/kernels/bench_attention --benchmark_format=json > kernels.json
    python3 scripts/readme_table.py results.json kernels.json
"""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def size(n):
    return f"{n / 2**20:.1f} MiB" if n >= 2**20 else f"{n / 2**10:.0f} KiB"


def milliseconds(row):
    """Median (10th to 90th percentile), three digits."""
    return f"{row['median_ms']:.3g} ({row['p10_ms']:.3g}–{row['p90_ms']:.3g})"


def table(report):
    rows = report["rows"]
    lengths = sorted({r["length"] for r in rows if r["input"] == "random"})
    if not lengths:
        sys.exit("readme_table.py: no rows on random inputs; run treadle compare without --qkv")
    middle, longest = lengths[len(lengths) // 2], lengths[-1]
    exponents = {e["variant"]: e["exponent"] for e in report["exponents"] if e["input"] == "random"}
    errors = {r["variant"]: r["relative_error"] for r in rows if r["input"] != "random"}
    by = {(r["variant"], r["length"]): r for r in rows if r["input"] == "random"}
    first = rows[-1]
    lines = [
        f"| variant | ms at {middle} | ms at {longest} | useful GFLOP/s | of FMA peak | grows as N^ | memory | error |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for variant in dict.fromkeys(r["variant"] for r in rows):
        a, b = by.get((variant, middle)), by.get((variant, longest))
        if a is None or b is None:  # interrupted
            continue
        exponent = f"{exponents[variant]:.2f}" if variant in exponents else ""
        error = f"{errors[variant]:.1e}" if variant in errors else ""
        lines.append(
            f"| `{variant}` | {milliseconds(a)} | {milliseconds(b)} | {b['useful_gflops']:.0f} | {b['fraction_of_peak']:.0%} "
            f"| {exponent} | {size(b['planned_bytes'])} | {error} |"
        )
    m = report["machine"]
    lines += [
        "",
        f"{m['cpu'].strip()}, {m['cores']} cores, backend {first['backend']}, {first['isa']}, {first['threads']} threads, FMA peak "
        f"{report['peak_gflops']:.0f} GFLOP/s; {report['compiler']}, commit {report['commit']}, seed {report['seed']}, "
        f"{report['date'][:10]}. Batch {first['batch']}, {first['heads']} heads of {first['head_dim']}.",
    ]
    return "\n".join(lines)


def kernels(report):
    """GFLOP/s and the fraction of the FMA peak, one row for each ISA and kind, one column a length."""
    rows = {}
    for b in report["benchmarks"]:
        isa, keys, length, head_dim = b["name"].split("/")
        if head_dim == "64":
            rows.setdefault((isa, keys), {})[int(length)] = f"{b['GFLOP/s']:.0f} ({b['fraction']:.0%})"
    lengths = sorted({length for row in rows.values() for length in row})
    lines = ["| useful GFLOP/s (of FMA peak) | " + " | ".join(f"length {n}" for n in lengths) + " |", "|---|" + "---|" * len(lengths)]
    for (isa, keys), row in rows.items():
        lines.append(f"| {isa}, {keys} | " + " | ".join(row.get(n, "") for n in lengths) + " |")
    return "\n".join(lines)


def replaced(text, mark, content):
    block = re.compile(rf"(<!-- {mark} -->\n).*?(<!-- end of {mark} -->)", re.S)
    if not block.search(text):
        sys.exit(f"readme_table.py: README.md has no <!-- {mark} --> … <!-- end of {mark} -->")
    return block.sub(lambda m: f"{m[1]}{content}\n{m[2]}", text)


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    reports = [json.loads(pathlib.Path(name).read_text(encoding="utf-8")) for name in sys.argv[1:]]
    readme = ROOT / "README.md"
    text = replaced(readme.read_text(encoding="utf-8"), "numbers", table(reports[0]))
    if len(reports) == 2:
        text = replaced(text, "kernels", kernels(reports[1]))
    readme.write_text(text, encoding="utf-8")


main()
