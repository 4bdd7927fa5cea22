"""Python code in a process of its own, whose compiled code nobody else finds.

What is compiled in, such as a constant of a kernel, can only be changed like this.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile


def run(code: str) -> str:
    """What `code` prints; raises CalledProcessError if it fails."""
    with tempfile.TemporaryDirectory() as cache:
        return subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"NUMBA_CACHE_DIR": cache}, text=True,
            stdout=subprocess.PIPE, check=True,
        ).stdout  # fmt: skip
