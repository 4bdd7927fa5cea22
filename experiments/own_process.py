"""Python code in a process of its own.

What is compiled in, such as a constant of a kernel, can only be changed like this.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile


def run(code: str, changed: bool = True) -> str:
    """What `code` prints; raises CalledProcessError if it fails.

    Where it has `changed` what kernels are compiled from, nobody else finds the compiled code.
    """
    with tempfile.TemporaryDirectory() as cache:
        env = os.environ | ({"NUMBA_CACHE_DIR": cache} if changed else {})
        return subprocess.run(
            [sys.executable, "-c", code], env=env, text=True, stdout=subprocess.PIPE, check=True
        ).stdout
