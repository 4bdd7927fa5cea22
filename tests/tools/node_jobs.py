"""Small jobs for a master and workers that take turns in one process."""

import numpy as np
from reference.lda import count_visits

from dpsvi.base import Model
from dpsvi.cluster import Cluster
from dpsvi.evaluation.completion import completion_perplexity
from dpsvi.expfam.gaussian import first_statistics
from dpsvi.families.mixtures.components import Prior
from dpsvi.kernels.jit import as_items
from dpsvi.models import gaussian_mixture as gm
from dpsvi.models.lda.model import LOCAL_STEPS, make_model
from dpsvi.training.items import dense_items
from dpsvi.training.job import Job
from dpsvi.training.ledger import Ledger
from dpsvi.training.schedules import robbins_monro
from dpsvi.training.state import State

FLOAT = np.dtype(np.float32)
K, ALPHA, ETA, BATCH = 4, 0.3, 0.05, 10
# Those that apply an update as it is; common/test_strategies.py has the others, and what all share.
STRATEGIES = ["decay", "displacement"]  # the default and the paper's


def lda(corpus, local_step):
    model = make_model(corpus.n_features, K, ALPHA, ETA, local_step=local_step, n_sweeps=5, tol=0.0)
    state = State.start(model, np.random.default_rng(0), 1)
    return state, as_items(corpus.offsets, corpus.index, corpus.value, FLOAT)


def perplexity(state, corpus):
    topics = state.natural()[:, :K].astype(np.float64)
    return completion_perplexity(topics / topics.sum(axis=0), corpus, ALPHA).perplexity


def corpus_alike(corpus):
    """The perplexity of topics that are all alike."""
    return perplexity(lda(corpus, "mean_field")[0], corpus)


def mixture():
    rng = np.random.default_rng(2)
    centres = rng.normal(size=(3, 2)) * 4
    X = centres[rng.integers(3, size=200)] + rng.normal(size=(200, 2))
    prior = Prior(1.0, X.mean(axis=0), 3.0, np.cov(X.T))
    resp = rng.dirichlet(np.ones(3), size=200)
    origins, stats = first_statistics(X, resp, prior.mean)
    return State.resume(gm.make_model(1.0, prior, origins), stats.reshape(1, -1), 1), dense_items(X)


PROBLEMS = [*LOCAL_STEPS, "mixture"]


def problem(name, corpus):
    return mixture() if name == "mixture" else lda(corpus, name)


def job(
    state, items, *, n_passes=2, schedule=None, local_steps=1, batch_size=BATCH, n_shards=1,
    **options,
):  # fmt: skip
    fields = {k: options.pop(k) for k in list(options) if k in Job._fields}
    passes = Ledger(len(items.offsets) - 1, batch_size, n_passes, 5, n_shards)
    return Job(
        state, items, passes, schedule or robbins_monro(2.0, 0.7), local_steps=local_steps,
        cluster=Cluster(**options), **fields,
    )  # fmt: skip


def toy(n_items, local=count_visits, hyper=0.0):
    model = Model(
        name="toy", shape=(n_items, 3), prior=np.zeros(3, FLOAT), hyper=np.array([hyper]),
        init=lambda rng: np.zeros((n_items, 3), FLOAT), local=local, scratch=lambda longest: 0,
        learner="incremental",
    )  # fmt: skip
    items = as_items(np.arange(n_items + 1), np.arange(n_items), np.ones(n_items), FLOAT)
    return State.start(model, None, 1), items
