"""Can missing pixels be told from the others?

Half of the pixels of scikit-learn's digits are hidden at random, in the images that the
factorisation is fitted to and in new ones.  What an image shows gives its factors, and these the
rest of it, as ratings of some films give those of others.
"""

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits

from dpsvi import DPSVIMatrixFactorization


def picture(small=False):
    """Images as they are, as they are shown, and as they are guessed."""
    X = load_digits().data
    shown = np.where(np.random.default_rng(0).random(X.shape) < 0.5, X, np.nan)
    model = DPSVIMatrixFactorization(
        16, max_iter=5 if small else 40, batch_size=128, random_state=0
    ).fit(shown[:1500])  # fmt: skip
    test, hidden = X[1500:], np.isnan(shown[1500:])
    guess = model.predict_ratings(shown[1500:])
    figure = Figure(figsize=(8, 3.4), layout="constrained")
    rows = {"as it is": test, "shown": shown[1500:], "guessed": np.clip(guess, 0, 16)}
    for axes, (name, images) in zip(figure.subplots(3, 1), rows.items(), strict=True):
        axes.imshow(np.hstack(images[:10].reshape(10, 8, 8)), cmap="gray_r", vmin=0, vmax=16)
        axes.set(xticks=[], yticks=[], ylabel=name, facecolor="mistyrose")
    means = np.broadcast_to(np.nanmean(shown[:1500], axis=0), test.shape)
    return figure, {
        "rmse of hidden pixels": np.sqrt(((guess - test)[hidden] ** 2).mean()),
        "rmse of the mean of each pixel": np.sqrt(((means - test)[hidden] ** 2).mean()),
    }
