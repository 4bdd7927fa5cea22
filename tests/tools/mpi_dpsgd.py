"""A program for ``mpiexec``: DPSGD on digits, by a compiled objective and by a Python callable.

``python mpi_dpsgd.py OUT PASSES CLUSTER``, of which the last one is a JSON dict.
"""

import json
import sys

import numpy as np
from scipy.special import softmax
from sklearn.datasets import load_digits

from dpsvi import DPSGD, Cluster
from dpsvi.optimize import logistic

SETTINGS = dict(learning_rate=0.5, learning_decay=0.5, learning_offset=200.0, batch_size=8)
ALPHA = 0.01


def problem():
    X, y = load_digits(return_X_y=True)
    return X / 16, y


def loss(x, X, y):
    return logistic.mean_loss(x, X, y) + ALPHA / 2 * float(np.sum(x[:-1] ** 2))


def fit(engine, max_iter, **more):
    """What comes of each of the two; `more` for the optimizer."""
    X, y = problem()
    Z, one_hot = np.column_stack([X, np.ones(len(X))]), np.eye(10)[y]

    def gradient(x, items):
        found = Z[items].T @ (softmax(Z[items] @ x, axis=1) - one_hot[items]) / len(items)
        found[-1] -= ALPHA * x[-1]
        return found

    optimizer = DPSGD(
        engine=engine, max_iter=max_iter, weight_decay=ALPHA, random_state=0, **SETTINGS, **more
    )
    x0, facts = np.zeros((65, 10)), {}
    for name, arguments in (
        ("compiled", (logistic.objective(X, y, 10), x0)), ("callable", (gradient, x0, len(X))),
    ):  # fmt: skip
        result = optimizer.minimize(*arguments)
        facts[name] = {
            "x": result.x.tolist(), "loss": loss(result.x, X, y), "njev": result.njev,
            "nit": result.nit, "workers": np.unique(result.exchanges["worker"]).tolist(),
        }  # fmt: skip
    return facts


def main(out, max_iter, cluster):
    facts = fit("mpi", int(max_iter), cluster=Cluster(**json.loads(cluster)))
    from mpi4py import MPI

    with open(f"{out}-{MPI.COMM_WORLD.Get_rank()}.json", "w") as file:
        json.dump(facts, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
