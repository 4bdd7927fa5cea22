"""What the literature proves of each entrant; docs/strategies.md has the sources."""

from __future__ import annotations

NOTHING = "nothing in this form"
PROVED: dict[str, str] = {
    "a2cid2": "converges on connected graphs",
    "decay": NOTHING,
    "diloco": NOTHING,
    "displacement": "gradients fall, smooth objectives, bounded staleness",
    "downpour": "gradients fall, smooth objectives, bounded staleness",
    "eamsgd": NOTHING,
    "elastic": "where it is stable, on a quadratic",
    "elastic synchronous": "where it is stable, on a quadratic",
    "fedavg": "converges, strongly convex",
    "gala": "nodes stay near each other",
    "gap": NOTHING,
    "gossip": NOTHING,
    "hierarchical": NOTHING,
    "incremental": NOTHING,
    "local_sgd": "linear speed-up, strongly convex",
    "momentum": NOTHING,
    "ownership": NOTHING,
    "post-local": NOTHING,
    "push_rows": NOTHING,
    "push_sum": "as fast as exact means, smooth objectives",
    "pvi": "fixed points are those of batch inference",
    "pvi synchronous": "fixed points are those of batch inference",
    "sda": "exact where local posteriors are, in one pass",
    "sgp": "as fast as exact means, smooth objectives",
}
