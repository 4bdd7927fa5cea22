"""Who takes part, and what each may choose from: three settings, so that all have equal budgets."""

from __future__ import annotations

from collections.abc import Mapping

from dpsvi import strategies

# Those who are a strategy with some of its options.
FORMS: dict[str, tuple[str, dict]] = {
    "eamsgd": ("elastic", {"momentum": 0.9}),
    "elastic synchronous": ("elastic", {"synchronous": True}),
    "incremental": ("decay", {"incremental": True}),
    "post-local": ("local_sgd", {"post_local": 0.5}),
    "pvi synchronous": ("pvi", {"synchronous": True}),
    "sgp": ("push_sum", {"tau": 0}),
}
ENTRANTS = {**{name: (name, {}) for name in strategies.names()}, **FORMS}
ENTRANTS = {name: ENTRANTS[name] for name in sorted(ENTRANTS)}

# The first one is the entrant's default.  A strategy without options of its own is tried with the
# number of local steps between two messages, which all others leave to the engine.
CHOICES: dict[str, list[dict]] = {
    "a2cid2": [{"graph": "ring"}, {"graph": "torus"}, {"local_steps": 1}],
    "decay": [{}, {"global_rate": 0.7}, {"local_steps": 2}],
    "diloco": [{}, {"momentum": 0.5, "outer_rate": 0.5}, {"momentum": 0.0, "outer_rate": 1.0}],
    "displacement": [{}, {"global_rate": 0.7}, {"global_rate": 0.5}],
    "eamsgd": [{}, {"momentum": 0.5}, {"momentum": 0.25}],
    "elastic": [{}, {"alpha": 0.2}, {"alpha": 0.5}],
    "fedavg": [{}, {"fraction": 0.25}, {"fraction": 1.0}],
    "gala": [{}, {"graph": "exponential"}, {"graph": "complete"}],
    "gap": [{}, {"period": 1}, {"period": 16}],
    "gossip": [{}, {"probability": 0.25}, {"probability": 1.0}],
    "hierarchical": [{}, {"groups": 4}, {"every": 2}],
    "momentum": [{}, {"momentum": 0.5}, {"momentum": 0.25}],
    "push_rows": [{}, {"share": 0.05, "together": 4}, {"share": 0.2, "together": 4}],
    "push_sum": [{}, {"graph": "ring"}, {"graph": "complete"}],
    "post-local": [{}, {"post_local": 0.25}, {"post_local": 0.75}],
    "pvi": [{}, {"damping": 0.5}, {"local_steps": 1}],
    "pvi synchronous": [{}, {"damping": 0.5}, {"local_steps": 1}],
    "sgp": [{}, {"graph": "ring"}, {"graph": "complete"}],
}
# Of an actor-critic, whose master has to move by less than the sum of what many workers did, and by
# default, `decay`, does as its algorithm has it.
OF_AGENT: dict[str, list[dict]] = {
    "decay": [{}, {"local_steps": 1}, {"local_steps": 16}],
    "displacement": [{}, {"global_rate": 1 / 4}, {"global_rate": 1 / 16}],
    "momentum": [
        {}, {"momentum": 0.5, "global_rate": 1 / 32}, {"momentum": 0.0, "global_rate": 1 / 16}
    ],
}  # fmt: skip
_OF_ESTIMATOR, _OF_CLUSTER = ("local_steps", "most_blind", "incremental"), ("global_rate",)


def choices(entrant: str, of_problem: Mapping[str, list[dict]]) -> list[dict]:
    """What is tried for an entrant; for one that is in no list its number of local steps.

    Parameters
    ----------
    entrant : str
    of_problem : mapping
        What a problem has instead of CHOICES.
    """
    _, fixed = ENTRANTS[entrant]
    tried = {**CHOICES, **of_problem}.get(entrant, [{}, {"local_steps": 1}, {"local_steps": 2}])
    return [{**fixed, **each} for each in tried]


def split(settings: dict) -> tuple[dict, dict]:
    """Options of the cluster, those of the strategy among them; parameters of the estimator."""
    parameters = {name: settings[name] for name in _OF_ESTIMATOR if name in settings}
    cluster = {name: settings[name] for name in _OF_CLUSTER if name in settings}
    own = {name: settings[name] for name in settings.keys() - parameters.keys() - cluster.keys()}
    return {**cluster, "strategy_options": own}, parameters


def named(settings: dict) -> str:
    """Settings as they stand in a table."""
    words = [f"{name.replace('_', ' ')} {value}" for name, value in settings.items()]
    return ", ".join(words) or "default"
