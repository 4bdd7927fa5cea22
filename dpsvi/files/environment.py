"""Facts about the machine and the installed packages, for logs and result files."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from dpsvi import __version__

PACKAGES = ("numpy", "numba", "scipy", "scikit-learn", "safetensors")


def environment() -> dict:
    """Return what a fit runs in: versions, host, hardware."""
    machine = hardware()
    return {
        "version": __version__, "python": platform.python_version(), "host": platform.node(),
        "cores": machine["cores"], "hardware": machine, "versions": versions(PACKAGES),
    }  # fmt: skip


def now() -> str:
    """The time to the minute, UTC."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def hardware() -> dict:
    """Return processor, cores this process may use, memory (GiB), system and load at present.

    A load average (runnable processes, mean of the last minute) well above 0 at the start means
    that something else was running too, and that times are too long.
    """
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "cores_of_machine": os.cpu_count(),
        "memory_gib": _memory_gib(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "load_average": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
    }


def versions(packages: Iterable[str]) -> dict:
    """Return the version of each distribution; None for one that is not installed."""
    return {name: _version(name) for name in packages}


def _version(package):
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _processor():
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        fields = (line.partition(":") for line in cpuinfo.read_text().splitlines())
        names = [value.strip() for key, _, value in fields if key.strip() == "model name"]
        if names:
            return names[0]
    return platform.processor() or platform.machine()


def _memory_gib():
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, ValueError, OSError):
        return None
