"""Serial and threaded fits need nothing that macOS or Windows lacks."""

import subprocess
import sys
from pathlib import Path

import pytest

ELSEWHERE = Path(__file__).parent / "tools" / "elsewhere.py"


@pytest.mark.parametrize("threads", [1, 2])
def test_a_fit_on_a_system_with_fewer_calls(threads, tmp_path):
    """Checkpoints, the run folder and what reads it again, too."""
    rows = ["6", "4", "18"]
    rows += [f"{d} {w} {d + w}" for d in range(1, 7) for w in (1 + d % 2, 3, 4)]
    corpus, out = tmp_path / "docword.some.txt", tmp_path / "run"
    corpus.write_text("\n".join(rows) + "\n")
    commands = [
        ["fit", "lda", "--corpus", corpus, "--topics", 2, "--threads", threads, "--passes", 3,
         "--checkpoint-seconds", 0.001, "--out", out],
        ["info", out],
        ["transform", out, "--corpus", corpus, "--out", tmp_path / "theta.npy"],
    ]  # fmt: skip
    for command in commands:
        done = subprocess.run(
            [sys.executable, ELSEWHERE, *map(str, command)], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "theta.npy").is_file()
