"""The report as Markdown and CSV. Knows nothing but the JSON of __main__.py, and needs nothing but Python."""
from __future__ import annotations

import csv
import io
from typing import Any

from . import alone
from .spread import geometric_mean

Row = dict[str, Any]

#: Groups of candidates that are no peers but yardsticks and baselines.
BASELINES = ("loop", "fused_loop", "read")


def ours(row: Row) -> Row:
    return next(r for r in row["results"] if r["group"] == "ours")


def fastest(row: Row, group: str) -> Row | None:
    """The fastest that agrees, of a group or, for `best`, of all peers."""
    fit = [
        r for r in row["results"]
        if r["agrees"] and (r["group"] == group or (group == "best" and r["group"] not in ("ours", *BASELINES)))
    ]  # fmt: skip
    return min(fit, key=lambda r: r["ratio"], default=None)


def milliseconds(r: Row) -> str:
    """Median (10th to 90th percentile)."""
    return f"{r['median_ms']:.3g} ({r['p10_ms']:.3g}–{r['p90_ms']:.3g})"


def label(row: Row) -> str:
    """The row's name, marked where the machine was too busy for undisturbed repetitions."""
    return row["name"] + {"undisturbed": "", "cpu time": " (CPU time)", "disturbed": " (disturbed)"}[row["counted"]]


def goal(row: Row, group: str, wanted: float) -> str:
    """One goal and whether the row meets it."""
    if group == "peak":
        reached: float | None = ours(row)["fraction_of_peak"]
        text, value = f"peak ≥ {wanted:.0%}", f"{reached:.0%}"
    else:
        peer = fastest(row, group)
        reached = peer["ratio"] if peer else None
        text, value = f"{group} ≥ {wanted:.2f}", f"{reached:.2f}" if reached is not None else "not measured"
    if reached is None:
        return f"{text}: {value}"
    return f"{text}: {'met' if reached >= wanted else f'**missed, {value}**'}"


def ratio(row: Row, group: str) -> str:
    """How many times faster ours is; nothing where disturbed threads would be compared."""
    peer = fastest(row, group)
    if peer is None:
        return "–"
    return "busy" if row["counted"] == "disturbed" else f"{peer['ratio']:.2f}"


def overview(report: Row) -> str:
    """One line a row: ours, the best peer, stock PyTorch, and the goals."""
    columns = ["row", "ours ms", "useful GFLOP/s", "of FMA peak", "best peer", "ratio", "PyTorch ratio", "goals"]
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for row in report["rows"]:
        mine, best, torch = ours(row), fastest(row, "best"), ratio(row, "torch")
        if fastest(row, "torch_unlocked"):
            torch += f" ({ratio(row, 'torch_unlocked')})"
        goals = "; ".join(goal(row, g, v) for g, v in row["goals"].items()) if report["threads"] == 1 else ""
        lines.append(
            f"| {label(row)} | {milliseconds(mine)} | {mine['gflops']:.0f} | {mine['fraction_of_peak']:.0%} "
            f"| {best['name'] if best else '–'} | {ratio(row, 'best')} | {torch} | {goals} |"
        )
    return "\n".join(lines)


def details(report: Row) -> str:
    """One line a candidate of every row."""
    lines = ["| row | | ms | undisturbed | of FMA peak | time / ours | largest difference |", "|---|---|---|---|---|---|---|"]
    for row in report["rows"]:
        for r in row["results"]:
            fraction = f"{r['fraction_of_peak']:.0%}" if r["fraction_of_peak"] is not None else "–"
            difference = "–" if r["difference"] is None else f"{r['difference']:.0e}{'' if r['agrees'] else ' **disagrees**'}"
            lines.append(
                f"| {label(row)} | {r['name']} | {milliseconds(r)} | {r['undisturbed']}/{r['repetitions']} | {fraction} "
                f"| {r['ratio']:.2f} | {'' if r['group'] == 'ours' else difference} |"
            )
        for peer, problem in row["failed"].items():
            lines.append(f"| {label(row)} | {peer} | failed: {problem.replace('|', '/')} | | | | |")
    return "\n".join(lines)


def caption(report: Row) -> str:
    m = report["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in report["versions"].items())
    threads = f"{report['threads']} thread{'s' if report['threads'] != 1 else ''}"
    parts = [
        f"{m['cpu'].strip()} (family/model/stepping {m['family_model_stepping']}, {m['caches']}"
        f"{', virtual machine' if m['virtual_machine'] else ''}), {m['cores']} cores, {m['system']}, {threads}, float32; load average "
        f"{m['load_before']:.1f} before the run; commit {m['commit']}, {m['date'][:10]}"
        + (", a quick run: few rows and repetitions" if report["quick"] else "")
        + (", interrupted" if report.get("interrupted") else "")
        + ".",
        f"{versions}.",
    ]
    if report["missing"]:
        parts.append("Missing: " + "; ".join(f"{name} ({why})" for name, why in report["missing"].items()) + ".")
    if m["vendor"] != "AuthenticAMD":
        parts.append("PyTorch's MKL takes its AVX-512 path by itself on this vendor's CPUs, so there is one PyTorch figure.")
    else:
        parts.append("PyTorch as it is; in brackets with MKL's AVX-512 path forced, which MKL does not take on this vendor's CPUs.")
    return "\n".join(parts)


def encoder_mean(report: Row) -> str:
    ratios = [p["ratio"] for row in report["rows"] if row["kind"] == "encoder" and (p := fastest(row, "openvino"))]
    if not ratios:
        return ""
    return f"Encoder layers against OpenVINO: geometric mean of {len(ratios)} shapes {geometric_mean(ratios):.2f} (wanted 1.05)."


def markdown(report: Row) -> str:
    explanation = (
        "Medians (10th to 90th percentile) of undisturbed repetitions. Where too few were, for everybody in that row: (CPU time) of "
        "all repetitions on one thread, or (disturbed) the fastest third of all. Ratios are time(theirs) / time(ours) of the same "
        "run: above 1, Treadle is faster. `bench/run` made this file; docs/performance.md says how."
    )
    title = f"# Treadle and its peers, {report['threads']} thread{'s' if report['threads'] != 1 else ''}"
    parts = [title, caption(report), explanation, overview(report), encoder_mean(report), "## Every candidate", details(report)]
    if report.get("alone"):
        parts += ["## Treadle alone", alone.table(report)]
    return "\n\n".join(p for p in parts if p) + "\n"


def as_csv(report: Row) -> str:
    columns = [
        "name", "group", "median_ms", "p10_ms", "p90_ms", "least_ms", "undisturbed", "repetitions", "cpu_share", "gflops",
        "fraction_of_peak", "ratio", "difference", "agrees",
    ]  # fmt: skip
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["row", *columns, "counted", "peak_gflops", "threads"])
    for row in report["rows"]:
        for r in row["results"]:
            writer.writerow([row["name"], *(r[c] for c in columns), row["counted"], row["peak_gflops"], report["threads"]])
    return out.getvalue()
