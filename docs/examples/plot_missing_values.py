"""
Can I fit a mixture to rows with gaps, and how sure is it?
==========================================================

Yes: write ``nan`` where a number is missing. A Gaussian mixture uses what is there and fills in
nothing. ``credible_intervals`` says how sure it is of what it has found.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from dpsvi import DPSVIGaussianMixture

# %%
# 178 wines of three cultivars, of which the model is told nothing. Four numbers in ten are taken
# away.
wine = load_wine()
whole = StandardScaler().fit_transform(wine.data)
gone = np.random.default_rng(0).random(whole.shape) < 0.4
holes = np.where(gone, np.nan, whole)

# %%
# Components have no order, so those of the two fits are matched by the cultivar that most of their
# wines are of.
fits = {}
for name, data in {"all numbers": whole, "four in ten are missing": holes}.items():
    mixture = DPSVIGaussianMixture(3, covariance_type="diag", random_state=0).fit(data)
    table = np.zeros((3, 3), int)
    np.add.at(table, (wine.target, mixture.predict(data)), 1)
    order = table.argmax(axis=1)
    print(f"{name}: {table.max(axis=1).sum()} of 178 wines are with most of their cultivar")
    fits[name] = mixture.means_[order], mixture.credible_intervals(0.95)["means"][:, order]

# %%
# The mean of each measurement, by cultivar, with its 95 per cent interval. With gaps the intervals
# are nearly all wider, as they should be, since less is known, and most still cover what all
# numbers say.
figure, panels = plt.subplots(1, 3, figsize=(9, 4.4), sharey=True, layout="constrained")
for k, panel in enumerate(panels):
    for shift, colour, (name, (mean, (low, high))) in zip(
        (-0.15, 0.15), ("#0072b2", "#d55e00"), fits.items(), strict=True
    ):
        rows = np.arange(13) + shift
        panel.hlines(rows, low[k], high[k], color=colour, label=name)
        panel.plot(mean[k], rows, ".", color=colour)
    panel.set(title=f"cultivar {k + 1}", xlabel="standard deviations")
panels[0].set_yticks(range(13), wine.feature_names, fontsize=8)
panels[0].invert_yaxis()
figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
plt.show()
