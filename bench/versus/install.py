"""Installs the peers into the virtual environment whose Python runs this, from PyPI alone, and as little of them as runs on
CPUs. A package that cannot be installed is named and left out; the table then says so.

On x86, PyPI's torch is built with CUDA: 530 MB, and gigabytes of libraries for GPUs that it names as requirements. Its CPU
code is whole without them. So torch is installed without requirements, those that are Python are added, and a small
library takes the place of the missing ones: every function of it returns an error, so torch finds no GPU. A torch without
CUDA, if pip is set up to find one, is taken as it is.
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


def symbols(library: Path, which: str) -> set[str]:
    """Names without versions: which is --defined-only or --undefined-only."""
    text = subprocess.run(["nm", "-D", "-P", which, str(library)], capture_output=True, text=True, check=True).stdout
    return {line.split(" ")[0].split("@")[0] for line in text.splitlines()}


def replace_cuda(folder: Path) -> None:
    """Puts one library of functions that fail into torch's folder, under the name of each one that is missing there."""
    libraries = [p for p in folder.glob("*.so*") if not p.is_symlink()]
    own = {p.name for p in libraries}
    gpu = re.compile(r"lib(cu|nv|nccl)")
    missing = sorted({n for p in libraries for n in needed(p) if n not in own and gpu.match(n)})
    if not missing:
        return
    say(f"no GPU libraries: a library of functions that fail stands for {', '.join(missing)}")
    wanted = set[str]().union(*(symbols(p, "--undefined-only") for p in libraries))
    there = set[str]().union(*(symbols(p, "--defined-only") for p in libraries))
    names = sorted(n for n in wanted - there if re.match(r"(cu|nv|nccl|Cu)[A-Za-z0-9_]*$", n))
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "no_gpu.c"
        # 999: cudaErrorUnknown. Nothing calls these but the question whether there is a GPU.
        source.write_text("".join(f"int {n}(void) {{ return 999; }}\n" for n in names), encoding="ascii")
        target = folder / "libno_gpu.so"
        command = ["g++", "-x", "c", "-w", "-fno-builtin", "-shared", "-fPIC", str(source), "-o", str(target)]
        subprocess.run(command, check=True)
    for name in missing:
        (folder / name).symlink_to(target.name)


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
