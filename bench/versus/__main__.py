"""The command line behind bench/run, which builds what this needs and sets the environment."""
from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from . import alone, checkpoint, machine, rows, table, timing, workloads
from .peers import ORDER, Missing, Peer
from .peers import ours as ours_module

ROOT = Path(__file__).resolve().parents[2]


def say(text: str, end: str = "\n") -> None:
    """Progress: a line that the next one overwrites on a terminal, plain lines elsewhere."""
    sys.stderr.write(f"\r\x1b[K{text}{end}" if sys.stderr.isatty() else f"{text}\n")
    sys.stderr.flush()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench/run",
        description="Measures Treadle and its peers on this machine, interleaved in one process, and writes a table to bench/results.",
    )
    parser.add_argument("--quick", action="store_true", help="one small row of each kind and few repetitions")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="threads for everybody (default 1)")
    parser.add_argument("--rows", default="", metavar="REGEX", help="only rows whose name matches, such as 'dense|causal'")
    parser.add_argument("--peers", default="", metavar="NAMES", help=f"only these, by commas: {', '.join(ORDER)}")
    parser.add_argument("--out", type=Path, metavar="PATH", help="results without their ending (default: bench/results/CPU-threads)")
    parser.add_argument("--seconds", type=float, metavar="S", help="longest time for a row (default 90, quick 10)")
    parser.add_argument("--alone", action="store_true", help="only what has no peer, again, into the results of an earlier run")
    parser.add_argument("--list", action="store_true", help="print the rows and stop")
    parser.add_argument("--libraries", type=Path, default=ROOT / "build/versus/bench/versus", help=argparse.SUPPRESS)
    parser.add_argument("--unlocked", action="store_true", help=argparse.SUPPRESS)
    a = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    if not 1 <= a.threads <= cores:
        parser.error(f"--threads {a.threads}: this process has {cores} cores")
    if unknown := [p for p in filter(None, a.peers.split(",")) if p not in ORDER]:
        parser.error(f"--peers: {', '.join(unknown)} unknown; there are {', '.join(ORDER)}")
    return a


def load(a: argparse.Namespace) -> tuple[dict[str, Peer], dict[str, str], dict[str, str]]:
    """Peers, their versions, and those that are missing with the reason."""
    wanted = list(filter(None, a.peers.split(","))) or list(ORDER)
    peers: dict[str, Peer] = {}
    missing: dict[str, str] = {}
    for name in (n for n in ORDER if n in wanted):
        say(f"loading {name}", "")
        try:
            peer = importlib.import_module(f".peers.{name}", __package__).load(a.libraries, a.threads)
            if name == "torch" and a.unlocked:
                peer.unlock_mkl()
            peers[name] = peer
        except Missing as problem:
            missing[name] = str(problem)
            say(f"{name} is missing: {problem}")
    return peers, {name: peer.version for name, peer in peers.items()}, missing


def write(report: dict[str, Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    for ending, text in (
        ("json", json.dumps(report, indent=1, ensure_ascii=False) + "\n"), ("csv", table.as_csv(report)), ("md", table.markdown(report)),
    ):  # fmt: skip
        part = path.with_name(f"{path.name}.{ending}.part")  # whoever interrupts finds the last whole file
        part.write_text(text, encoding="utf-8")
        part.replace(path.with_name(f"{path.name}.{ending}"))


def default_path(a: argparse.Namespace, cpu: str) -> Path:
    slug = re.sub(r"[^a-z0-9]+", "-", re.sub(r"\((r|tm)\)|processor|cpu", "", cpu.lower())).strip("-") or "unknown"
    return ROOT / "bench/results" / f"{slug}-{a.threads}-thread{'s' if a.threads != 1 else ''}{'-quick' if a.quick else ''}"


def add_unlocked(report: dict[str, Any], a: argparse.Namespace) -> None:
    """On AMD: PyTorch again in a process with MKL's AVX-512 path forced, beside ours there; its ratios are of that process."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "unlocked"
        command = [sys.executable, "-m", __package__, "--unlocked", "--peers", "torch", "--threads", str(a.threads), "--out", str(out)]
        command += ["--libraries", str(a.libraries), "--rows", a.rows] + (["--quick"] if a.quick else [])
        command += ["--seconds", str(a.seconds)] if a.seconds else []
        say("PyTorch again, with MKL's AVX-512 path forced")
        if subprocess.run(command, check=False).returncode != 0:
            report["missing"]["torch with MKL's AVX-512 path forced"] = "that process failed"
            return
        other = {row["name"]: row for row in json.loads(out.with_suffix(".json").read_text(encoding="utf-8"))["rows"]}
    for row in report["rows"]:
        row["results"] += [r for r in other.get(row["name"], {"results": []})["results"] if r["group"] == "torch_unlocked"]


def add_alone(report: dict[str, Any], a: argparse.Namespace, isa: str) -> None:
    found, missing = alone.measured(a.libraries.parent / "kernels", isa, lambda text: say(f"Treadle alone: {text}"))
    report["alone"] = found
    report["missing"] = {n: why for n, why in report["missing"].items() if n not in alone.PROGRAMS} | missing


def alone_again(a: argparse.Namespace, path: Path, isa: str) -> int:
    file = path.with_name(f"{path.name}.json")
    if not file.exists():
        sys.exit(f"bench/run: --alone adds to {file}, which is not there: run bench/run without it first")
    report = json.loads(file.read_text(encoding="utf-8"))
    add_alone(report, a, isa)
    write(report, path)
    print(alone.table(report))
    return 0


def main() -> int:
    a = arguments()
    for name in (signal.SIGINT, signal.SIGTERM):  # also where the shell that started this ignores them
        signal.signal(name, signal.default_int_handler)
    chosen = [w for w in workloads.all_rows() if re.search(a.rows, w.name) and (not a.quick or w.quick or a.rows)]
    if a.list:
        print("\n".join(w.name for w in chosen))
        return 0
    without_weights = checkpoint.folder() is None and not a.alone and any(w.kind == "bert" for w in chosen)
    if without_weights:
        chosen = [w for w in chosen if w.kind != "bert"]
        say("all-MiniLM-L6-v2 could not be fetched: its rows are missing")
    if not chosen:
        sys.exit(f"bench/run: no row matches --rows '{a.rows}'; --list prints them")
    peers, versions, missing = load(a) if not a.alone else ({}, {}, {})
    if without_weights:
        missing["MiniLM"] = "its weights could not be fetched"
    try:
        treadle = ours_module.load(a.libraries, a.threads)
    except Missing as problem:
        sys.exit(f"bench/run: {problem}")
    about = machine.describe(ROOT)
    path = a.out or default_path(a, about["cpu"])
    if a.alone:
        return alone_again(a, path, treadle.isa)
    if about["load_before"] > 0.5:
        say(f"other programs are running (load average {about['load_before']:.1f}): rows that they disturb will say so")
    report: dict[str, Any] = {
        "machine": about, "threads": a.threads, "quick": a.quick, "versions": {"treadle": treadle.version, **versions},
        "missing": missing, "rows": [],
    }  # fmt: skip
    effort = timing.Effort(wanted=5, rounds=3, seconds=a.seconds or 10.0) if a.quick else timing.Effort(seconds=a.seconds or 90.0)
    try:
        for i, w in enumerate(chosen):
            label, last = f"[{i + 1}/{len(chosen)}] {w.name}", [0.0]

            def progress(text: str) -> None:
                if sys.stderr.isatty() or time.monotonic() - last[0] > 10:
                    last[0] = time.monotonic()
                    say(f"{label}: {text}", "")

            row = rows.measured(w, peers, treadle, a.threads, effort, progress)
            report["rows"].append(row)
            write(report, path)
            say(f"{label}: " + ", ".join(f"{r['name']} {r['median_ms']:.3g} ms" for r in row["results"]))
            for name, problem in row["failed"].items():
                say(f"    {name} failed: {problem}")
        if not a.rows and not a.unlocked:
            add_alone(report, a, treadle.isa)
        if about["vendor"] == "AuthenticAMD" and "torch" in peers and not a.unlocked:
            add_unlocked(report, a)
    except KeyboardInterrupt:
        report["interrupted"] = True
        say("interrupted: the finished rows are written")
    if report["rows"]:
        write(report, path)
    if not a.unlocked:
        print(table.markdown(report))
        say(f"written: {path}.json, .csv, .md")
    return 130 if report.get("interrupted") else 0


sys.exit(main())
