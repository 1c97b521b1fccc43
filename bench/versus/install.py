"""Installs the peers into the virtual environment whose Python runs this, from PyPI alone, and as little of them as runs on
CPUs. A package that cannot be installed is named and left out; the table then says so.

On x86, PyPI's torch is built with CUDA: 530 MB, and gigabytes of libraries for GPUs that it names as requirements. Its CPU
code is whole without them. So torch is installed without requirements, those that are Python are added, and small
libraries take the place of the missing ones: their functions return an error, so torch finds no GPU. A torch without CUDA,
if pip is set up to find one, is taken as it is.
"""
from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

PACKAGES = ("openvino", "onnxruntime", "ctranslate2")
TORCH = "torch==2.13.0"
TORCH_NEEDS = ("filelock", "typing-extensions>=4.10", "setuptools>=77.0.3", "sympy>=1.13.3", "networkx", "jinja2", "fsspec")


def say(text: str) -> None:
    print(f"== {text}", file=sys.stderr, flush=True)


def pip(*arguments: str) -> bool:
    command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--only-binary", ":all:", *arguments]
    return subprocess.run(command, stdout=sys.stderr, check=False).returncode == 0


def imports(module: str) -> bool:
    return subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0


def needed(library: Path) -> list[str]:
    text = subprocess.run(["readelf", "-dW", str(library)], capture_output=True, text=True, check=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.*)\]", text)


def symbols(library: Path, which: str) -> set[tuple[str, str]]:
    """Names and their versions, empty where there is none; which is --defined-only or --undefined-only."""
    text = subprocess.run(["nm", "-D", "-P", which, str(library)], capture_output=True, text=True, check=True).stdout
    return {(name, version.lstrip("@")) for name, _, version in (line.split(" ")[0].partition("@") for line in text.splitlines())}


def version_files(library: Path) -> dict[str, str]:
    """Which library each version of a needed symbol is expected from."""
    text = subprocess.run(["readelf", "-VW", str(library)], capture_output=True, text=True, check=True).stdout
    found, file = {}, ""
    for line in text.partition(".gnu.version_r")[2].splitlines():
        if match := re.search(r" File: (\S+)", line):
            file = match[1]
        elif match := re.search(r" Name: (\S+)", line):
            found[match[1]] = file
    return found


def failing_library(target: Path, names: dict[str, set[str]]) -> None:
    """A library of functions, by version, that return 100 (cudaErrorNoDevice). Nothing calls them but the question whether
    there is a GPU."""
    with tempfile.TemporaryDirectory() as scratch:
        source, versions = Path(scratch) / "failing.c", Path(scratch) / "versions"
        functions = sorted(set[str]().union(*names.values()))
        source.write_text("".join(f"int {n}(void) {{ return 100; }}\n" for n in functions), encoding="ascii")
        nodes = (f"{version} {{ global: {' '.join(f'{n};' for n in sorted(of))} }};\n" for version, of in names.items() if version and of)
        versions.write_text("".join(nodes), encoding="ascii")
        command = ["g++", "-x", "c", "-w", "-fno-builtin", "-shared", "-fPIC", str(source), "-o", str(target)]
        command += [f"-Wl,-soname,{target.name}"] + ([f"-Wl,--version-script={versions}"] if versions.stat().st_size else [])
        subprocess.run(command, check=True)


def replace_cuda(folder: Path) -> None:
    """Puts a library of functions that fail into torch's folder for each GPU library that it needs."""
    libraries = list(folder.glob("*.so*"))
    gpu = re.compile(r"lib(cu|nv|nccl)")
    missing = sorted({n for p in libraries for n in needed(p) if not (folder / n).exists() and gpu.match(n)})
    if not missing:
        return
    say(f"no GPU libraries: libraries of functions that fail stand for {', '.join(missing)}")
    there = {name for p in libraries for name, _ in symbols(p, "--defined-only")}
    names: dict[str, dict[str, set[str]]] = {file: {"": set()} for file in missing}
    for library in libraries:
        files = version_files(library)
        for name, version in symbols(library, "--undefined-only"):
            if version and files.get(version) in names:
                names[files[version]].setdefault(version, set()).add(name)
            elif not version and name not in there and re.match(r"(cu|nv|nccl)\w*$", name, re.IGNORECASE):
                names[missing[0]][""].add(name)  # whoever has it
    for file, of in names.items():
        failing_library(folder / file, of)


def install_torch() -> bool:
    if imports("torch"):
        return True
    if not (pip("--no-deps", TORCH) and pip(*TORCH_NEEDS)):
        return False
    folder = Path(sysconfig.get_paths()["purelib"]) / "torch/lib"
    try:
        replace_cuda(folder)
    except (OSError, subprocess.CalledProcessError) as problem:
        say(f"torch without GPU libraries: {problem}")
        return False
    return imports("torch")


def main() -> int:
    if sys.prefix == sys.base_prefix:
        sys.exit("install.py: for the Python of a virtual environment; bench/run makes one")
    os.environ.setdefault("PIP_NO_CACHE_DIR", "1")
    if not imports("numpy") and not pip("numpy"):
        sys.exit("install.py: numpy cannot be installed, and nothing is measured without it")
    # onnx writes the models that ONNX Runtime reads.
    failed = [package for package in (*PACKAGES, "onnx") if not imports(package) and not pip(package)]
    if not install_torch():
        failed.append("torch")
    for package in failed:
        say(f"{package} cannot be used here; the table will name what is missing")
    return 1 if failed else 0


sys.exit(main())
