"""Growing batches with a share of adversarial images, against those without."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.special import softmax

from dpsvi import DPSGD
from dpsvi.optimize import network
from experiments.dpsgd.descent import gradient
from experiments.known_results.absa import LARGE, PASSES, SMALL, score
from experiments.known_results.claim import Outcome
from experiments.known_results.compare import Entrant, compare, median, spread, values
from experiments.known_results.digits import CLASSES, Images, error, loss, parts, start

TITLE = "Growing batches with adversarial images"
SOURCE = "Yao, Gholami, Keutzer and Mahoney (2018)"
CLAIM = (
    "Where batches grow as the curvature falls, adversarial images in each batch keep large "
    "batches from sharp minima: accuracy is as good or better, with no more updates, and the "
    "network withstands such images better."
)
SHARE, FAR = 0.2, 0.1  # of the loss of an image; how far each pixel, from 0 to 1, is moved
TRIAL = (
    f"One thread, {PASSES} passes: `DPSGD` with batches of {SMALL} that may grow up to {LARGE} "
    f"(`max_batch_size`), without and with adversarial images, each with a rate of its own. With "
    f"them a share of {SHARE:g} of the loss of each image is that of the image with every pixel "
    f"moved by {FAR:g} in the direction in which the loss grows (the fast gradient sign method). "
    "Looked at are test error, updates, and the errors on test images that are moved so."
)
ENTRANTS = {"without": 0.0, "with adversarial images": SHARE}


def moved(x, images: Images) -> np.ndarray:
    """The images, each moved to where the network errs more."""
    W, b, U, c = network.layers(x, CLASSES)
    hidden = np.tanh(images.X @ W.T + b)
    back = softmax(hidden @ U + c, axis=1)
    back[np.arange(len(images.y)), images.y] -= 1
    slope = ((back @ U.T) * (1 - hidden**2)) @ W
    return np.clip(images.X + FAR * np.sign(slope), 0.0, 1.0)


def fit(share: float, passes: int, rate: float, seed: int, tuning: bool) -> dict:
    """What a fit came to, also on images that are moved."""
    images, judged = parts()["train"], parts()["tuning" if tuning else "test"]

    def slope(x, items):
        batch = Images(images.X[items], images.y[items])
        plain = gradient(x, *batch)
        if not share:
            return plain
        return (1 - share) * plain + share * gradient(x, moved(x, batch), batch.y)

    found = DPSGD(
        learning_rate=rate, batch_size=SMALL, max_batch_size=LARGE, max_iter=passes,
        engine="serial", random_state=seed,
    ).minimize(slope, start(seed), len(images.y))  # fmt: skip
    attacked = Images(moved(found.x, judged), judged.y)
    return {
        "loss": loss(found.x, judged), "error": error(found.x, judged), "updates": found.njev,
        "attacked": error(found.x, attacked),
    }  # fmt: skip


def run(seeds, passes: int = PASSES) -> dict:
    """Both with rates of their own."""
    entrants = [Entrant(name, partial(fit, share, passes)) for name, share in ENTRANTS.items()]
    return compare(entrants, seeds, score)


def outcome(rows: dict) -> Outcome:
    """No more errors, within half a point; no more updates; fewer errors on moved images."""
    keys = {"errors": lambda run: 100 * run["error"], "updates": lambda run: run["updates"],
            "attacked": lambda run: 100 * run["attacked"]}  # fmt: skip
    found = {name: {key: median(row, of) for key, of in keys.items()} for name, row in rows.items()}
    without, having = (found[name] for name in ENTRANTS)
    return Outcome(
        [
            having["errors"] <= without["errors"] + 0.5,
            having["updates"] <= 1.05 * without["updates"],
            having["attacked"] < without["attacked"],
        ],
        f"With adversarial images the network errs on {having['errors']:.1f} % of the test images "
        f"after {having['updates']:,.0f} updates, without on {without['errors']:.1f} % after "
        f"{without['updates']:,.0f}; on moved ones on {having['attacked']:.1f} and "
        f"{without['attacked']:.1f} %.",
        ["entrant", "rate", "updates", "test error, %", "error on moved images, %"],
        [
            [name, f"{row['rate']:g}", spread(values(row, keys["updates"]), ",.0f"),
             spread(values(row, keys["errors"]), ".1f"),
             spread(values(row, keys["attacked"]), ".1f")]
            for name, row in rows.items()
        ],
    )  # fmt: skip
