"""Which of forty small wards does really better?

Made-up recoveries in 40 wards of 4 to 60 patients, with the age of each patient.  Raw rates of the
smallest wards are the highest and the lowest; the hierarchical model tells chance from difference.
"""

import numpy as np
from matplotlib.figure import Figure
from scipy.special import ndtr

from dpsvi import DPSVIHierarchicalProbit


def picture(small=False):
    """Raw rates and posterior probabilities against the truth."""
    rng = np.random.default_rng(1)
    sizes = rng.integers(4, 61, size=40)
    quality = 0.3 + 0.35 * rng.normal(size=40)
    ward = np.repeat(np.arange(40), sizes)
    age = rng.normal(size=len(ward))
    y = (rng.random(len(ward)) < ndtr(quality[ward] - 0.5 * age)).astype(int)
    model = DPSVIHierarchicalProbit(max_iter=10 if small else 100, batch_size=8, random_state=0)
    model.fit(age[:, None], y, groups=ward)
    raw = np.array([y[ward == j].mean() for j in range(40)])
    found = model.predict_proba(np.zeros((40, 1)), groups=np.arange(40))[:, 1]
    truth = ndtr(quality)
    figure = Figure(figsize=(6, 5.2), layout="constrained")
    axes = figure.subplots()
    axes.plot([0.2, 1], [0.2, 1], color="#999999", linewidth=0.8)
    axes.scatter(truth, raw, s=sizes, color="#999999", label="raw rate")
    axes.scatter(truth, found, s=sizes, color="#0072B2", label="hierarchical, age 0")
    axes.set(xlabel="true probability of recovery at mean age", ylabel="estimate")
    axes.legend(frameon=False)
    return figure, {
        "error of the raw rates": np.sqrt(np.mean((raw - truth) ** 2)),
        "error of the model": np.sqrt(np.mean((found - truth) ** 2)),
    }
