"""How many groups are in this cloud, if nobody says so?

A Dirichlet-process mixture may use up to 30 components and is shown ever more of a cloud that seven
Gaussians made.  Left: 90 % contours of the components that hold more than half a percent
of the whole cloud.  Right: how many there are; the line is the truth.  Two of the seven lie over
each other, and are taken for one.
"""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse

from dpsvi import DPSVIDPMixture


def picture(small=False):
    """Contours of the components in use, and their number over the size of the data."""
    rng = np.random.default_rng(3)
    centres, widths = rng.uniform(-10, 10, (7, 2)), rng.uniform(0.4, 1.2, (7, 2))
    z = rng.integers(7, size=6000)
    X = centres[z] + widths[z] * rng.normal(size=(6000, 2))
    sizes = [50, 200, 1000] if small else [30, 50, 100, 200, 500, 1000, 2000, 4000, 6000]
    used = []
    for n in sizes:
        mixture = DPSVIDPMixture(30, max_iter=100, batch_size=64, random_state=0).fit(X[:n])
        held = mixture.weights_ > 0.005
        used.append(int(held.sum()))
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(*X[: sizes[-1]].T, ".", markersize=1, color="#999999")
    for mean, covariance in zip(mixture.means_[held], mixture.covariances_[held], strict=True):
        values, vectors = np.linalg.eigh(covariance)
        angle = np.degrees(np.arctan2(*vectors[::-1, 1]))
        width, height = 2 * np.sqrt(4.605 * values[::-1])
        left.add_patch(Ellipse(mean, width, height, angle=angle, fill=False, color="#0072B2"))
    left.set_aspect("equal")
    right.plot(sizes, used, "o-", color="#0072B2")
    right.axhline(7, color="#999999", linewidth=0.8)
    right.set(xscale="log", xlabel="points", ylabel="components in use", ylim=(0, None))
    return figure, {"components in use at the end": used[-1], "in truth": 7}
