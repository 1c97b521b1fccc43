#!/usr/bin/env python3
"""How long compilers take for a user's file with a GPT in it, and what each layer adds.

Prints a table, and writes JSON next to it with --json FILE. CPU seconds of the compiler (user + system), the median of
--rounds rounds, and the most memory that it had; compilers and sizes take turns, so that a busy machine disturbs all of
them alike. The empty file has the includes alone. Growth per layer: the slope between the first and the last number of
layers. A file with one model under treadle_add_model is compiled once for each ISA: the sum stands apart. Then the longest
symbol of those objects, and the size of the largest model as a stripped program.
"""
import argparse
import json
import os
import pathlib
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def exported_limits():
    """What the CMake target exports for constant evaluation, per compiler."""
    text = (ROOT / "cmake" / "options.cmake").read_text()
    found = {n: re.search(rf"set\(TREADLE_CONSTEXPR_{n}\s+([^)]*)\)", text) for n in ("GNU", "CLANG")}
    missing = [n for n, m in found.items() if not m]
    if missing:
        sys.exit(f"run.py: no TREADLE_CONSTEXPR_{missing[0]} in cmake/options.cmake")
    return {n: m.group(1).replace('"', "").replace(";", " ").split() for n, m in found.items()}


def isa_flags():
    """Of every ISA that treadle_add_model compiles for on this machine."""
    text = (ROOT / "cmake" / "isa.cmake").read_text()
    isas = ("portable", "avx2", "avx512") if platform.machine() in ("x86_64", "AMD64") else ("portable", "neon64")
    found = {i: re.search(rf"set\(treadle_isa_flags_{i}\s+([^)]*)\)", text) for i in isas}
    missing = [i for i, m in found.items() if not m]
    if missing:
        sys.exit(f"run.py: no treadle_isa_flags_{missing[0]} in cmake/isa.cmake")
    return {i: m.group(1).replace('"', "").split() for i, m in found.items()}


def per_isa(compiler, flags, include, folder):
    """CPU seconds for one model, all ISAs together, and the most memory of one compiler in MB."""
    source = os.path.join(folder, "scored.cpp")
    pathlib.Path(source).write_text(f'''#include "{pathlib.Path(__file__).with_name("scored.hpp")}"
#include <treadle/backends/simd/model_table.hpp>
namespace treadle::kernel {{
extern const ModelTable TREADLE_ISA_TABLE;
constinit const ModelTable TREADLE_ISA_TABLE = simd::model_table<simd::TREADLE_ISA_TAG, scored::Scored>();
}}
''')
    runs = [compiled([compiler, "-std=c++20", "-O2", "-ffp-contract=off", "-fno-math-errno", f"-I{include}", *flags, *own,
                      f"-DTREADLE_ISA_TAG={isa}", f"-DTREADLE_ISA_TABLE=table_{isa}", "-c", "-o", os.path.join(folder, "isa.o"), source])
            for isa, own in isa_flags().items()]
    return sum(time for time, _ in runs), max(most for _, most in runs)


def compiled(command):
    """CPU seconds of a compiler, and the most memory of one of its processes in MB."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            output.seek(0)
            sys.exit(f"run.py: {' '.join(command)}\n{output.read().decode(errors='replace')}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def longest_symbol(file):
    names = subprocess.run(["nm", "-P", file], capture_output=True, text=True, check=True).stdout.splitlines()
    return max((len(line.split(" ")[0]) for line in names), default=0)


def stripped_bytes(compiler, file, library, folder):
    """Of a program of this object and the library."""
    program = os.path.join(folder, "program")
    command = [compiler, file, "-x", "c++", "-", "-x", "none", str(library), "-ltbb", "-s", "-o", program]
    subprocess.run(command, input="int main() {}", text=True, check=True)
    return os.path.getsize(program)


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

    library = pathlib.Path(options.build) / "libtreadle.a"
    limits = exported_limits()
    compilers = {"g++": limits["GNU"], "clang++-19": limits["CLANG"]}
    compilers = {c: flags for c, flags in compilers.items() if shutil.which(c)}
    cases = [("includes", 0)] + [("repeat", n) for n in layers] + [("unrolled", n) for n in layers]
    isas = ("one model for each ISA", 0)
    times = {(c, case): [] for c in compilers for case in [*cases, isas]}
    memory, symbols, sizes = {}, {}, {}
    folder = tempfile.TemporaryDirectory()
    for round_ in range(options.rounds):
        for compiler, flags in compilers.items():
            for kind, n in cases:
                print(f"round {round_ + 1}: {compiler} {kind} {n or ''}", file=sys.stderr, flush=True)
                file = os.path.join(folder.name, f"{kind}.o")
                command = [compiler, "-std=c++20", "-O2", f"-I{include}", *flags, "-c", "-o", file]
                if kind == "includes":
                    command += ["-x", "c++", "-include", str(include / "treadle" / "treadle.hpp"), os.devnull]
                else:
                    command += [f"-DLAYERS={n}", *(["-DUNROLLED"] if kind == "unrolled" else []),
                                str(pathlib.Path(__file__).with_name("gpt.cpp"))]
                time, most = compiled(command)
                times[compiler, (kind, n)].append(time)
                memory[compiler] = max(memory.get(compiler, 0), most)
                symbols[compiler] = max(symbols.get(compiler, 0), longest_symbol(file))
                if library.exists() and kind != "includes" and round_ == 0 and n == layers[-1]:
                    size = stripped_bytes(compiler, file, library, folder.name)
                    sizes[compiler] = max(sizes.get(compiler, 0), size)

            print(f"round {round_ + 1}: {compiler} {isas[0]}", file=sys.stderr, flush=True)
            time, most = per_isa(compiler, flags, include, folder.name)
            times[compiler, isas].append(time)
            memory[compiler] = max(memory.get(compiler, 0), most)

    rows = []
    print("| file | " + " | ".join(compilers) + " |\n|---|" + "---|" * len(compilers))
    for kind, n in [*cases, isas]:
        cells = []
        for c in compilers:
            t = times[c, (kind, n)]
            rows.append({"compiler": c, "kind": kind, "layers": n, "median_s": statistics.median(t), "least_s": min(t),
                         "most_s": max(t)})
            cells.append(f"{statistics.median(t):.2f} s")
        print(f"| {kind}{f', {n} layers' if n else ' alone' if kind == 'includes' else ''} | " + " | ".join(cells) + " |")
    for kind in ("repeat", "unrolled"):
        cells = []
        for c in compilers:
            first, last = (statistics.median(times[c, (kind, n)]) for n in (layers[0], layers[-1]))
            cells.append(f"{1000 * (last - first) / max(1, layers[-1] - layers[0]):.1f} ms")
        print(f"| growth per layer, {kind} | " + " | ".join(cells) + " |")
    for text, values, unit, scale in (("most memory of a compiler", memory, "MB", 1), ("longest symbol", symbols, "characters", 1),
                                      ("largest program, stripped", sizes, "MB", 1e-6)):
        if not values:  # the library has not been built
            continue
        print(f"| {text} | " + " | ".join(f"{values[c] * scale:.3g} {unit}" for c in compilers) + " |")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps({"rows": rows, "memory_mb": memory, "longest_symbol": symbols, "stripped_bytes": sizes}, indent=1) + "\n")


if __name__ == "__main__":
    main()
