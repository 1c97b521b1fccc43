#!/usr/bin/env python3
"""Puts the numbers of a comparison into README.md, between the lines `<!-- numbers -->` and `<!-- end of numbers -->`.

    build/release/treadle compare --json results.json && python3 scripts/readme_table.py results.json
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


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    report = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    block = re.compile(r"(<!-- numbers -->\n).*?(<!-- end of numbers -->)", re.S)
    if not block.search(text):
        sys.exit("readme_table.py: README.md has no <!-- numbers --> … <!-- end of numbers -->")
    content = table(report)
    readme.write_text(block.sub(lambda m: f"{m[1]}{content}\n{m[2]}", text), encoding="utf-8")


main()
