"""A program for ``mpiexec``: fits what it is told and writes what each rank got.

``python mpi_fit.py OUT MODEL KEY=VALUE ...``; keys are parameters of the estimator or of Cluster.
With ``fits=N`` the last of so many fits counts; those before it may diverge.
"""

import json
import sys
from contextlib import suppress
from dataclasses import fields

import numpy as np

from dpsvi import DPSVIHDP, DPSVILDA, Cluster, DPSVIGaussianMixture
from dpsvi.errors import DivergedError


def problem(model):
    rng = np.random.default_rng(0)
    if model == "mixture":
        X = rng.normal(size=(4, 3))[rng.integers(4, size=3000)] * 5 + rng.normal(size=(3000, 3))
        return X, DPSVIGaussianMixture(4, batch_size=50, random_state=0)
    topics = rng.dirichlet(np.full(200, 0.05), 5)
    X = rng.poisson(50 * rng.dirichlet(np.full(5, 0.2), 1500) @ topics)
    if model == "hdp":
        return X, DPSVIHDP(5, batch_size=25, random_state=0)
    return X, DPSVILDA(5, batch_size=25, random_state=0, local_step=model)


def total(state):
    """Sum of what was learned of the items, without that of rows which all of them share."""
    return float(state.learned()[: state.model.shape[0] - state.model.common_rows].sum(dtype=float))


def steps(report):
    """Local steps of all workers that rank 0 has heard of."""
    return sum(exchange.n_steps for exchange in report.get("exchanges", ()))


def main(out, model, *settings):
    X, estimator = problem(model)
    given = {key: json.loads(value) for key, value in (pair.split("=") for pair in settings)}
    n_fits = given.pop("fits", 1)
    cluster = {f.name: given.pop(f.name) for f in fields(Cluster) if f.name in given}
    estimator.set_params(engine="mpi", cluster=Cluster(**cluster), **given)
    for _ in range(n_fits - 1):
        with suppress(DivergedError):
            estimator.fit(X[:-200])
    estimator.fit(X[:-200])
    from mpi4py import MPI

    state = estimator._state
    facts = {
        "step": state.step, "steps": steps(estimator.exchanges_),
        "items": state.items, "sum": total(state),
        "bits": state.natural().tobytes().hex()[:4000], "score": estimator.score(X[-200:]),
        "staleness": estimator.exchanges_.get("staleness", {}),
        "size": MPI.COMM_WORLD.Get_size(), "moves": getattr(estimator, "moves_", None),
    }  # fmt: skip
    with open(f"{out}-{MPI.COMM_WORLD.Get_rank()}.json", "w") as file:
        json.dump(facts, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
