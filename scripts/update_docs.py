#!/usr/bin/env python3
"""Outputs in the docs are those of commands that stand above them.

    <!-- output: treadle explain tiny_gpt --backend simd --isa portable -->
    ```text
    …
    ```

`update_docs.py TREADLE [FILE…]` runs each command with the program TREADLE and puts its output into the block below it.
With --check nothing is written: exit code 1 and a diff if a block is not what its command prints. Without files: all of docs/.
"""
import argparse
import difflib
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^<!-- output: treadle (?P<arguments>[^\n]*?) -->\n(?P<fence>```\w*\n)(?P<text>.*?)^```$", re.M | re.S)


def output(program, arguments):
    environment = {k: v for k, v in os.environ.items() if k != "TREADLE_ISA"} | {"NO_COLOR": "1"}
    done = subprocess.run([program, *shlex.split(arguments)], capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        sys.exit(f"`treadle {arguments}` ends with {done.returncode}: {done.stderr.strip()}")
    return done.stdout.rstrip() + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="the treadle to run")
    parser.add_argument("files", nargs="*", type=pathlib.Path, help="pages (all of docs/)")
    parser.add_argument("--check", action="store_true", help="compare only")
    options = parser.parse_args()
    blocks = stale = 0
    for path in options.files or sorted((ROOT / "docs").rglob("*.md")):
        old = path.read_text(encoding="utf-8")

        def fresh(match):
            nonlocal blocks
            blocks += 1
            text = output(options.program, match["arguments"])
            return f"<!-- output: treadle {match['arguments']} -->\n{match['fence']}{text}```"

        new = BLOCK.sub(fresh, old)
        if new == old:
            continue
        stale += 1
        if options.check:
            sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True), str(path), "now"))
        else:
            path.write_text(new, encoding="utf-8")
            print(f"updated {path}")
    if options.check and stale:
        sys.exit(f"{stale} page(s) are stale: run scripts/update_docs.py {options.program}")
    if blocks == 0:
        sys.exit("no page has a block with an output: line above it")
    print(f"{blocks} outputs are what their commands print" if not stale else f"{blocks} outputs")


if __name__ == "__main__":
    main()
