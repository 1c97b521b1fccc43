#!/usr/bin/env python3
"""Docs say what the code says. Checked in README.md, CONTRIBUTING.md and docs/:

  * a fenced block with a file behind its language (```cpp examples/first_model.cpp) is literally in that file; a line `…`
    stands for lines that are left out; a C++ block without a file is an error;
  * links between pages lead somewhere, and files that are named in `backquotes` exist (but for NAME, which stands for one);
  * docs/ops.md has one row for each op of graph/op.hpp, with attributes that exist, and no other;
  * docs/passes.md has a row for each pass of passes/pipeline.hpp.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = "graph|ops|passes|backends|models|io|cli|tests|bench|docs|examples|scripts|cmake"
FENCE = re.compile(r"^```(\w*)[ \t]*([^\n]*)\n(.*?)^```$", re.M | re.S)
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
FILE = re.compile(rf"`((?:{FOLDERS})/[\w./]+\.(?:hpp|cpp|h|md|py|txt|cmake|sh|json))`")
ROW = re.compile(r"^\| `(\w+)` \|(.*)\|$", re.M)

problems = []
blocks = 0


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def holds(text, block):
    """Whether the block's parts, divided by lines `…`, stand in the text one after the other, as whole lines."""
    at = 0
    text = "\n" + text
    for part in re.split(r"^[ \t]*…\n", block, flags=re.M):
        if not part:
            continue
        found = text.find("\n" + part, at)
        if found < 0:
            return False
        at = found + len(part)
    return True


def check_page(path):
    global blocks
    name, text = str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
    for block in FENCE.finditer(text):
        language, source, body = block.groups()
        line = text.count("\n", 0, block.start()) + 1
        if not source:
            if language in ("cpp", "c++"):
                problems.append(f"{name}:{line}: a C++ block without its file: write ```cpp PATH")
        elif not (ROOT / source).is_file():
            problems.append(f"{name}:{line}: there is no file '{source}'")
        elif not holds(read(source), body):
            problems.append(f"{name}:{line}: the block is not literally in {source}")
        blocks += bool(source)
    prose = FENCE.sub("", text)
    for target in LINK.findall(re.sub(r"`[^`\n]*`", "", prose)):
        if not re.match(r"\w+:", target) and not (path.parent / target).exists():
            problems.append(f"{name}: a link to '{target}', which does not exist")
    for target in FILE.findall(prose):
        if "NAME" not in target and not (ROOT / target).is_file():
            problems.append(f"{name}: names `{target}`, which does not exist")


def enumerators(name):
    """The enumerators of `enum class NAME` in graph/op.hpp."""
    found = re.search(rf"enum class {name} : std::uint8_t {{(.*?)}};", read("graph/op.hpp"), re.S)
    if not found:
        sys.exit(f"check_docs.py: graph/op.hpp has no enum class {name} as expected")
    return re.findall(r"\w+", re.sub(r"//[^\n]*", "", found.group(1)))


def check_ops():
    ops, keys = enumerators("op"), set(enumerators("key"))
    rows = dict(ROW.findall(read("docs/ops.md")))
    for op in ops:
        if op not in rows:
            problems.append(f"docs/ops.md: op '{op}' of graph/op.hpp has no row; add | `{op}` | inputs → outputs | attributes "
                            "| shape | formula |")
    for op, row in rows.items():
        if op not in ops:
            problems.append(f"docs/ops.md: row '{op}' is no op of graph/op.hpp")
        cells = re.split(r"(?<!\\)\|", row)
        if len(cells) != 4:
            problems.append(f"docs/ops.md: row '{op}' has {len(cells) + 1} cells, 5 are right")
            continue
        for key in re.findall(r"`(\w+)`", cells[1]):
            if key not in keys:
                problems.append(f"docs/ops.md: '{key}' of op '{op}' is no attribute key of graph/op.hpp")


def check_passes():
    listed = set(re.findall(r"^\s*\| (\w+)", read("passes/pipeline.hpp"), re.M))
    rows = {name for name, _ in ROW.findall(read("docs/passes.md"))}
    for name in sorted(listed - rows):
        problems.append(f"docs/passes.md: pass '{name}' of passes/pipeline.hpp has no row")
    for name in sorted(rows - listed):
        problems.append(f"docs/passes.md: '{name}' is no pass of passes/pipeline.hpp")


pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
for page in pages:
    check_page(page)
check_ops()
check_passes()
print("\n".join(problems) or f"{len(pages)} pages, {blocks} blocks quoted from files: as the code says")
sys.exit(1 if problems else 0)
