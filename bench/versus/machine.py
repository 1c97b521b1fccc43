"""What the rows were measured on."""
from __future__ import annotations

import datetime
import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Any


def first_line(path: str, start: str = "") -> str:
    """The value behind `start` of a file of names and values."""
    try:
        for line in Path(path).read_text(encoding="utf-8").splitlines():
            if line.startswith(start):
                return re.sub(r"^[^:=]*[:=]\s*", "", line).strip().strip('"') if start else line.strip()
    except OSError:
        pass
    return ""


def caches() -> str:
    found = []
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = (first_line(str(index / name)) for name in ("level", "type", "size"))
        if kind != "Instruction":
            found.append(f"L{level}{'d' if kind == 'Data' else ''} {size}")
    return ", ".join(found)


def commit(root: Path) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def describe(root: Path) -> dict[str, Any]:
    flags = first_line("/proc/cpuinfo", "flags").split()
    return {
        "cpu": first_line("/proc/cpuinfo", "model name"),
        "vendor": first_line("/proc/cpuinfo", "vendor_id"),
        "family_model_stepping": "/".join(first_line("/proc/cpuinfo", n) for n in ("cpu family", "model\t", "stepping")),
        "isa": [f for f in flags if re.match(r"avx|amx|fma$", f)],
        "virtual_machine": "hypervisor" in flags,
        "cores": len(os.sched_getaffinity(0)),
        "caches": caches(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "load_before": os.getloadavg()[0],
        "system": first_line("/etc/os-release", "PRETTY_NAME"),
        "kernel": platform.release(),
        "libc": "-".join(platform.libc_ver()),
        "python": platform.python_version(),
        "commit": commit(root),
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
    }
