"""Fits of topic models whose local step raises wherever it is not compiled.

A program for ``mpiexec``, too.

``python only_compiled.py OUT``: each rank writes how many steps each kind of fit had.
"""

import json
import sys
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np

from dpsvi import DPSVIHDP, DPSVILDA
from dpsvi.families.topics.matrix import FLOAT
from dpsvi.kernels.jit import compile_local
from dpsvi.models.hdp import kept as hdp_kept
from dpsvi.models.hdp.model import LOCAL_STEPS
from dpsvi.models.lda import kept, local_steps
from dpsvi.training.loop import Loop

STEPS = {name: local_steps.get(name).local for name in local_steps.names()}
KEPT = {"keep_responsibilities": True}
KINDS = {
    **{name: (DPSVILDA, {"local_step": name}) for name in STEPS}, "kept": (DPSVILDA, KEPT),
    **{f"HDP, {name}": (DPSVIHDP, {"local_step": name}) for name in LOCAL_STEPS},
    "HDP, kept": (DPSVIHDP, KEPT),
}  # fmt: skip


def interpreted(shared, scale, hyper, items, batch, work):
    """In the place of a local step's Python code."""
    raise AssertionError("the local step runs in the interpreter")


@contextmanager
def compiled_alone():
    """In this context local steps that were compiled before do their work, and nothing else does.

    Nor does the loop of the interpreter that models have which cannot be compiled.
    """
    functions = [*STEPS.values(), kept.local, *LOCAL_STEPS.values(), hdp_kept.local]
    for function in functions:
        compile_local(function, FLOAT)
    codes = [function.__code__ for function in functions]

    def run(self, task, thread, n_steps):
        raise AssertionError("the loop runs in the interpreter")

    try:
        for function in functions:
            function.__code__ = interpreted.__code__
        with patch.object(Loop, "run", run):
            yield
    finally:
        for function, code in zip(functions, codes, strict=True):
            function.__code__ = code


def fit(kind, **options):
    """A fit of a few passes to 300 documents."""
    X = np.random.default_rng(0).poisson(0.5, (300, 40))
    estimator, given = KINDS[kind]
    return estimator(3, max_iter=4, random_state=0, **given, **options).fit(X)


def main(out):
    """Fit over MPI."""
    from mpi4py import MPI

    with compiled_alone():
        found = {kind: fit(kind, engine="mpi").n_batch_iter_ for kind in KINDS}
    with open(f"{out}-{MPI.COMM_WORLD.rank}.json", "w") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
