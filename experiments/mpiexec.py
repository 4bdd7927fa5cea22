"""Experiments in processes of their own, on several ranks by the ``mpiexec`` beside Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT_MAY = {  # containers have no other user
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}


def launcher(n_ranks: int) -> list[str]:
    """What goes before a command that is to run on so many ranks; 0: without an MPI."""
    if not n_ranks:
        return []
    words = [str(Path(sys.executable).parent / "mpiexec"), "-n", str(n_ranks)]
    if "Open MPI" in subprocess.check_output([words[0], "--version"], text=True):
        words[1:1] = ["--oversubscribe", "--bind-to", "none"]
    return words


def start(n_ranks: int, module: str, *arguments, folder: Path | None = None) -> subprocess.Popen:
    """Start ``python -m module arguments`` on so many ranks, in a folder; 0: without an MPI."""
    return subprocess.Popen(
        [*launcher(n_ranks), sys.executable, "-m", module, *map(str, arguments)],
        env={**os.environ, **ROOT_MAY}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        cwd=folder,
    )  # fmt: skip


def finish(process: subprocess.Popen, seconds: float = 600) -> Any:
    """The JSON object or list that a process printed last; it is ended after so many seconds.

    Launchers may print lines of their own behind it.

    Raises
    ------
    RuntimeError
        The process failed or printed no such thing; what it wrote to stderr.
    subprocess.TimeoutExpired
    """
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    results = [line for line in out.splitlines() if line.startswith(("{", "["))]
    if process.returncode or not results:
        raise RuntimeError(err)
    return json.loads(results[-1])
