"""What each strategy may choose from: three settings each, so that all have equal budgets."""

from __future__ import annotations

# The first one is the strategy's default.  A strategy without options of its own is tried with the
# number of local steps between two messages, which all others leave to the engine.
CHOICES: dict[str, list[dict]] = {
    "a2cid2": [{"graph": "ring"}, {"graph": "torus"}, {"local_steps": 1}],
    "decay": [{}, {"rate": 0.7}, {"local_steps": 2}],
    "diloco": [{}, {"momentum": 0.5, "outer_rate": 0.5}, {"momentum": 0.0, "outer_rate": 1.0}],
    "displacement": [{}, {"rate": 0.7}, {"rate": 0.5}],
    "elastic": [{}, {"alpha": 0.2}, {"alpha": 0.5}],
    "fedavg": [{}, {"fraction": 0.25}, {"fraction": 1.0}],
    "gala": [{}, {"graph": "exponential"}, {"graph": "complete"}],
    "gossip": [{}, {"probability": 0.25}, {"probability": 1.0}],
    "hierarchical": [{}, {"groups": 4}, {"every": 2}],
    "local_sgd": [{}, {"post_local": 0.25}, {"post_local": 0.5}],
    "momentum": [{}, {"momentum": 0.5}, {"momentum": 0.25}],
    "push_rows": [{}, {"share": 0.05, "together": 4}, {"share": 0.2, "together": 4}],
    "push_sum": [{}, {"graph": "ring"}, {"graph": "complete"}],
    "ownership": [{}, {"local_steps": 1}, {"local_steps": 2}],
    "pvi": [{}, {"local_steps": 1}, {"local_steps": 2}],
    "sda": [{}, {"local_steps": 1}, {"local_steps": 2}],
}
_LOCAL_STEPS = "local_steps"  # of the estimator, not of the strategy


def choices(strategy: str) -> list[dict]:
    """What is tried for a strategy; for one that is not in the list its number of local steps."""
    return CHOICES.get(strategy, [{}, {_LOCAL_STEPS: 1}, {_LOCAL_STEPS: 2}])


def split(settings: dict) -> tuple[dict, dict]:
    """Options of the strategy, parameters of the estimator."""
    own = {name: value for name, value in settings.items() if name != _LOCAL_STEPS}
    return own, {name: value for name, value in settings.items() if name not in own}


def named(settings: dict) -> str:
    """Settings as they stand in a table."""
    words = [f"{name.replace('_', ' ')} {value}" for name, value in settings.items()]
    return ", ".join(words) or "default"
