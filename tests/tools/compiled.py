"""Compile what every model and engine needs; several processes that do so at once share the work.

``python compiled.py`` leaves the kernels in numba's cache.  Each part of the work has a file there
that is locked while a process is at it, and not empty when it is done.
"""

import fcntl
import os
import sys
import warnings
from pathlib import Path

import numpy as np

import dpsvi
from dpsvi.models.lda import local_steps
from dpsvi.rl import ActorCritic

EVERYTHING = "everything.compiled"  # nothing is left to do where this file is


def member(name):
    """Fit and ask a model of the family."""
    import members

    found = members.get(name)
    data = found.data(np.random.default_rng(0), 40)
    for engine in ("threads", "simulated"):
        model = found.estimator(engine=engine, max_iter=1).fit(**data)
    found.answer(model, data)


def topics(estimator, step):
    """Fit and ask a topic model."""
    X = np.random.default_rng(0).poisson(1.0, (60, 20))
    for engine in ("threads", "simulated"):
        model = estimator(2, engine=engine, local_step=step, validation_size=10, max_iter=2).fit(X)
    model.transform(X)
    model.score(X)


def actor_critic():
    """Train and ask an actor-critic."""
    for engine in ("threads", "simulated"):
        agent = ActorCritic(engine=engine, local_steps=1, n_games=1, n_moves=1).fit(4)
    agent.evaluate(1)


def parts():
    """Names and functions."""
    import members

    for estimator in (dpsvi.DPSVILDA, dpsvi.DPSVIHDP):
        steps = local_steps.names() if estimator is dpsvi.DPSVILDA else ("collapsed", "mean_field")
        for step in steps:
            yield f"{estimator.__name__}-{step}", lambda e=estimator, s=step: topics(e, s)
    yield "actor-critic", actor_critic
    for name in members.names():
        yield name, lambda name=name: member(name)


def main():
    warnings.simplefilter("ignore")  # of fits of one pass
    folder = Path(os.environ["NUMBA_CACHE_DIR"])
    folder.mkdir(parents=True, exist_ok=True)
    work = dict(parts())
    for wait in (False, True):  # first what nobody is at, then what others have not ended
        for name, compile_part in work.items():
            with open(folder / f"{name}.compiled", "a") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
                except BlockingIOError:
                    continue
                if not file.tell():
                    compile_part()
                    file.write("compiled\n")
    (folder / EVERYTHING).touch()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))  # members
    main()
