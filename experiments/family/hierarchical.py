"""Hierarchical regressions: dpsvi beside stochastic variational inference by NumPyro.

The score is the mean log predictive density of held-out rows of the groups that were trained on, in
nats.  NumPyro's model has the same likelihood, a population without correlations between the
coefficients (the data have none) and a fully factorised Gaussian guide; Adam runs on 256 groups a
step for half a minute, at several rates and at one that falls.  Its compilation is not counted, as
ours is not.
"""

from __future__ import annotations

import time
from functools import partial

import numpy as np

from experiments.family.recorder import point, recorded

_BATCH = 256  # groups in a step of NumPyro's
_SECONDS, _QUICK_SECONDS = 30.0, 2.0
_RATES = {
    "0.003": 0.003, "0.01": 0.01, "0.03": 0.03,
    "0.03 / sqrt(1 + step / 200)": lambda step: 0.03 / (1 + step / 200) ** 0.5,
}  # fmt: skip


def draw(rng, n_groups, n_rows, n_features, probit: bool):
    """X, y, groups of training rows, and of 20 held-out rows a group."""
    mean, spread = rng.normal(size=n_features), rng.uniform(0.1, 0.6, size=n_features)
    beta = mean + spread * rng.normal(size=(n_groups, n_features))
    intercept = rng.normal(size=n_groups)

    def rows(n):
        groups = np.repeat(np.arange(n_groups), n)
        X = rng.normal(size=(len(groups), n_features))
        y = np.einsum("nd,nd->n", X, beta[groups]) + intercept[groups]
        y += rng.normal(size=len(y))
        return {"X": X, "y": (y > 0).astype(int) if probit else y, "groups": groups}

    return rows(n_rows), rows(20)


def log_density(mean, variance, y) -> float:
    """Of y under N(mean, variance)."""
    return float(np.mean(-0.5 * np.log(2 * np.pi * variance) - 0.5 * (y - mean) ** 2 / variance))


def log_probability(mean, variance, y) -> float:
    """Of y in {0, 1} under a probit model whose linear predictor is N(mean, variance)."""
    from scipy.special import log_ndtr

    return float(np.mean(log_ndtr((2 * y - 1) * mean / np.sqrt(1 + variance))))


def run(seed: int, quick: bool, corpus=None) -> list[dict]:
    """Both models on a million rows; NumPyro only where it is installed."""
    sizes = (200, 50, 4) if quick else (5_000, 200, 8)
    return _problem(sizes, seed, quick, False) + _problem(sizes, seed, quick, True)


def _problem(sizes, seed, quick, probit):
    from dpsvi import DPSVIHierarchicalProbit, DPSVIHierarchicalRegressor

    train, test = draw(np.random.default_rng(seed), *sizes, probit)
    name = "probit" if probit else "linear"
    problem = f"{name}, {sizes[0]:,} groups of {sizes[1]} rows, {sizes[2]} features"

    def score(fitted):
        if probit:
            proba = fitted.predict_proba(test["X"], test["groups"])
            return np.log(proba[np.arange(len(proba)), test["y"]]).mean()
        mean, std = fitted.predict(test["X"], test["groups"], return_std=True)
        return log_density(mean, std**2, test["y"])

    ours = DPSVIHierarchicalProbit if probit else DPSVIHierarchicalRegressor
    rows = recorded(
        ours(n_jobs=2, max_iter=5, evaluate_every=0.25, random_state=seed), score, problem,
        "2 threads", **train,
    )  # fmt: skip
    try:
        import numpyro  # noqa: F401
    except ImportError:
        return rows
    for label, rate in list(_RATES.items())[-1 if quick else 0 :]:
        add = partial(point, problem, "NumPyro", f"Adam {label}")
        limit = _QUICK_SECONDS if quick else _SECONDS
        rows += [add(*found) for found in _numpyro(train, test, sizes, seed, probit, rate, limit)]
    return rows


def _numpyro(train, test, sizes, seed, probit, rate, limit):
    """Seconds and score after one pass, two and so on, later after ever more at a time."""
    import jax
    import numpyro
    import numpyro.distributions as dist
    from jax import numpy as jnp
    from numpyro.infer import SVI, Trace_ELBO

    n_groups, n_rows, d = sizes[0], sizes[1], sizes[2] + 1
    design = np.column_stack([np.ones(len(train["X"])), train["X"]])
    X = jnp.asarray(design.reshape(n_groups, n_rows, d))
    y = jnp.asarray(train["y"].reshape(n_groups, n_rows), dtype=X.dtype)
    batch = min(_BATCH, n_groups)

    def model():
        mu = numpyro.sample("mu", dist.Normal(jnp.zeros(d), 10.0).to_event(1))
        spread = numpyro.sample("spread", dist.HalfNormal(jnp.ones(d)).to_event(1))
        noise = 1.0 if probit else numpyro.sample("noise", dist.HalfNormal(5.0))
        with numpyro.plate("groups", n_groups, subsample_size=batch) as chosen:
            beta = numpyro.sample("beta", dist.Normal(mu, spread).to_event(1))
            line = jnp.einsum("gnd,gd->gn", X[chosen], beta)
            if probit:
                log_p = jax.scipy.special.log_ndtr((2 * y[chosen] - 1) * line).sum(axis=-1)
                numpyro.factor("y", log_p)
            else:
                numpyro.sample("y", dist.Normal(line, noise).to_event(1), obs=y[chosen])

    def guide():
        positive = dist.constraints.positive

        def normal(name, shape):
            loc = numpyro.param(f"{name}_loc", jnp.zeros(shape))
            return loc, numpyro.param(f"{name}_scale", jnp.full(shape, 0.1), constraint=positive)

        numpyro.sample("mu", dist.Normal(*normal("mu", d)).to_event(1))
        numpyro.sample("spread", dist.LogNormal(*normal("spread", d)).to_event(1))
        if not probit:
            numpyro.sample("noise", dist.LogNormal(*normal("noise", ())))
        loc, scale = normal("beta", (n_groups, d))
        with numpyro.plate("groups", n_groups, subsample_size=batch) as chosen:
            numpyro.sample("beta", dist.Normal(loc[chosen], scale[chosen]).to_event(1))

    svi = SVI(model, guide, numpyro.optim.Adam(rate), Trace_ELBO())
    n_steps = max(1, n_groups // batch)

    @jax.jit
    def a_pass(state):
        return jax.lax.fori_loop(0, n_steps, lambda _, s: svi.update(s)[0], state)

    held = np.column_stack([np.ones(len(test["X"])), test["X"]])

    def score(state):
        fitted = {name: np.asarray(v) for name, v in svi.get_params(state).items()}
        loc, scale = (fitted[f"beta_{part}"][test["groups"]] for part in ("loc", "scale"))
        mean, variance = (held * loc).sum(axis=1), (held**2 * scale**2).sum(axis=1)
        if probit:
            return log_probability(mean, variance, test["y"])
        noise = np.exp(2 * fitted["noise_loc"] + 2 * fitted["noise_scale"] ** 2)
        return log_density(mean, variance + noise, test["y"])

    state = svi.init(jax.random.PRNGKey(seed))
    jax.block_until_ready(a_pass(state))  # compiles
    seconds, passes = 0.0, 0
    while seconds < limit:
        at_once, started = 1 + passes // 50, time.perf_counter()
        for _ in range(at_once):
            state = a_pass(state)
        jax.block_until_ready(state)
        seconds, passes = seconds + time.perf_counter() - started, passes + at_once
        yield seconds, score(state)
