"""Does body weight matter to diabetes at every age?

442 patients (scikit-learn's diabetes data), a regression of the disease's progress on body mass
index and blood pressure in each of twelve groups of age and sex.  Least squares in each group alone
scatters; the hierarchical model pulls groups together, small ones most.
"""

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression

from dpsvi import DPSVIHierarchicalRegressor


def picture(small=False):
    """Slope of the body mass index in every group, two ways."""
    frame, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    X = frame[["bmi", "bp"]].to_numpy()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = y.to_numpy()
    decade = np.clip(frame["age"] // 10, 2, 7).astype(int)
    groups = np.array([f"{d}0s, {s:.0f}" for d, s in zip(decade, frame["sex"], strict=True)])
    model = DPSVIHierarchicalRegressor(max_iter=10 if small else 200, batch_size=4, random_state=0)
    model.fit(X, y, groups=groups)
    labels = list(model.groups_)
    alone = [LinearRegression().fit(X[groups == g], y[groups == g]).coef_[0] for g in labels]
    # The slope is a difference of two predictions.
    ours = [
        np.diff(model.predict(np.array([[0.0, 0.0], [1.0, 0.0]]), groups=[g, g]))[0] for g in labels
    ]
    figure = Figure(figsize=(8.5, 4.2), layout="constrained")
    axes = figure.subplots()
    place = np.arange(len(labels))
    axes.plot(place, alone, "o", color="#999999", label="each group alone")
    axes.plot(place, ours, "o", color="#0072B2", label="hierarchical")
    axes.axhline(model.coef_[0], color="#0072B2", linewidth=0.8, label="population")
    sizes = [(groups == g).sum() for g in labels]
    axes.set_xticks(place, [f"{g}\n{n}" for g, n in zip(labels, sizes, strict=True)], fontsize=8)
    axes.set(
        ylabel="progress per deviation of BMI", xlabel="age, code of sex, and number of patients"
    )
    axes.legend(frameon=False)
    return figure, {
        "deviation of the slopes alone": np.std(alone), "hierarchical": np.std(ours),
        "population slope": model.coef_[0],
    }  # fmt: skip
