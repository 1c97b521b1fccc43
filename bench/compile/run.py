#!/usr/bin/env python3
"""How long compilers take for a user's file with a GPT in it, and what each layer adds.

Prints a table, and writes JSON next to it with --json FILE. CPU seconds of the compiler (user + system), the median of
--rounds rounds; compilers and sizes take turns, so that a busy machine disturbs all of them alike. The empty file has
the includes alone. Growth per layer: the slope between the first and the last number of layers.
"""
import argparse
import json
import os
import pathlib
import re
import resource
import shutil
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def exported_limits():
    """What the CMake target exports for constant evaluation, per compiler."""
    text = (ROOT / "cmake" / "options.cmake").read_text()
    found = {n: re.search(rf"set\(TREADLE_CONSTEXPR_{n}\s+([^)]*)\)", text) for n in ("GNU", "CLANG")}
    missing = [n for n, m in found.items() if not m]
    if missing:
        sys.exit(f"run.py: no TREADLE_CONSTEXPR_{missing[0]} in cmake/options.cmake")
    return {n: m.group(1).replace('"', "").replace(";", " ").split() for n, m in found.items()}


def seconds(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"run.py: {' '.join(command)}\n{done.stderr}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", default="1,12,24,48", help="numbers of layers, from few to many (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--build", default=str(ROOT / "build" / "release"), help="a build tree, for its include folder")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    try:
        layers = [int(n) for n in options.layers.split(",")]
    except ValueError:
        parser.error(f"--layers is a list of numbers such as 1,12,48, not {options.layers}")
    include = pathlib.Path(options.build) / "include"
    if not (include / "treadle" / "treadle.hpp").exists():
        parser.error(f"{include} has no treadle/treadle.hpp: configure first (cmake --preset release)")

    limits = exported_limits()
    compilers = {"g++": limits["GNU"], "clang++-19": limits["CLANG"]}
    compilers = {c: flags for c, flags in compilers.items() if shutil.which(c)}
    cases = [("includes", 0)] + [("repeat", n) for n in layers] + [("unrolled", n) for n in layers]
    times = {(c, case): [] for c in compilers for case in cases}
    for round_ in range(options.rounds):
        for compiler, flags in compilers.items():
            for kind, n in cases:
                print(f"round {round_ + 1}: {compiler} {kind} {n or ''}", file=sys.stderr, flush=True)
                command = [compiler, "-std=c++20", "-O2", f"-I{include}", *flags, "-c", "-o", os.devnull]
                if kind == "includes":
                    command += ["-x", "c++", "-include", str(include / "treadle" / "treadle.hpp"), os.devnull]
                else:
                    command += [f"-DLAYERS={n}", *(["-DUNROLLED"] if kind == "unrolled" else []),
                                str(pathlib.Path(__file__).with_name("gpt.cpp"))]
                times[compiler, (kind, n)].append(seconds(command))

    rows = []
    print("| file | " + " | ".join(compilers) + " |\n|---|" + "---|" * len(compilers))
    for kind, n in cases:
        cells = []
        for c in compilers:
            t = times[c, (kind, n)]
            rows.append({"compiler": c, "kind": kind, "layers": n, "median_s": statistics.median(t), "least_s": min(t),
                         "most_s": max(t)})
            cells.append(f"{statistics.median(t):.2f} s")
        print(f"| {kind}{f', {n} layers' if n else ' alone'} | " + " | ".join(cells) + " |")
    for kind in ("repeat", "unrolled"):
        cells = []
        for c in compilers:
            first, last = (statistics.median(times[c, (kind, n)]) for n in (layers[0], layers[-1]))
            cells.append(f"{1000 * (last - first) / max(1, layers[-1] - layers[0]):.1f} ms")
        print(f"| growth per layer, {kind} | " + " | ".join(cells) + " |")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps({"rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
