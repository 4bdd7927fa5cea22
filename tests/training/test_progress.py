"""What a fit shows while it runs, on a terminal or elsewhere."""

import re
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from tools.lda_cases import make

from dpsvi.training import progress

CLOCK = r"[\d.]+ s of training, without compiling and scoring"
LINE = rf"dpsvi: lda: 3 of 3 passes, {CLOCK}, [\d,]+ documents/s, perplexity [\d.]+\n"
SHOWN = """
import sys
import numpy as np
from dpsvi import DPSVILDA

X = np.random.default_rng(0).poisson(1.0, size=(60, 20))
DPSVILDA(2, max_iter=3, validation_size=10, verbose=int(sys.argv[1])).fit(X)
"""


@pytest.mark.parametrize("verbose", [0, 1])
def test_progress_is_a_line_where_there_is_no_terminal(verbose):
    argv = [sys.executable, "-c", SHOWN, str(verbose)]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == ""
    shown = re.sub(r"dpsvi: [\w.]+: compil.*\n", "", done.stderr)  # the machine may be new, or busy
    assert re.fullmatch(LINE if verbose else "", shown), done.stderr


@pytest.mark.parametrize("kept", [False, True])
def test_progress_is_shown_now_and_then(X, kept, capsys, monkeypatch):
    """Of all phases of a fit, and of no pass twice."""
    monkeypatch.setattr(progress, "_LINE_SECONDS", 0.0)
    told = []

    def wait_for_a_line(event):
        for _ in range(2):  # the first may have been on its way
            seen = len(told)
            while len(told) == seen:
                time.sleep(0.01)
                told.extend(capsys.readouterr().err.splitlines())
        assert told[-1].startswith(f"dpsvi: lda: {round(event.epoch)} of 3 passes")

    model = make(
        max_iter=3, verbose=1, keep_responsibilities=kept, local_step="collapsed",
        callbacks=[wait_for_a_line],
    )  # fmt: skip
    model.fit(X)
    told += capsys.readouterr().err.splitlines()
    passes = [float(re.search(r": ([\d.]+) of 3 passes", line)[1]) for line in told]
    assert passes == sorted(passes) and passes[-1] == 3


class _Shell:
    config = {"IPKernelApp": {}}


@pytest.mark.parametrize("widgets", [False, True])
def test_a_notebook_has_a_bar_if_it_has_widgets(widgets, monkeypatch):
    import tqdm.notebook

    notebook = SimpleNamespace(get_ipython=lambda: _Shell)
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setattr(tqdm.notebook, "IProgress", object if widgets else None)
    assert progress._bar() is (tqdm.notebook.tqdm if widgets else None)


@pytest.mark.parametrize(
    ("passes", "said"), [(3, "3"), (0.12345, "0.1235"), (999.96, "1000"), (60_000, "60,000")]
)
def test_many_passes_are_written_out(passes, said):
    assert progress._number(passes) == said
