"""Which strokes are handwritten digits made of?

Poisson factorisation takes the darkness of a pixel, 0 to 16, as a count, and an image as a sum of a
few components.  They are strokes, since all factors are positive and most are near 0.  Below are
four images that were not fitted to, beside the sums that explain them.
"""

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits

from dpsvi import DPSVIPoissonFactorization


def picture(small=False):
    """Components, and images beside what they are taken for."""
    X = load_digits().data
    model = DPSVIPoissonFactorization(
        16, max_iter=5 if small else 60, batch_size=128, random_state=0
    ).fit(X[:1500])  # fmt: skip
    test = X[1500:]
    explained = model.predict_ratings(test)
    figure = Figure(figsize=(8, 5), layout="constrained")
    above, below = figure.subplots(2, 1, height_ratios=[2, 1])
    parts = (model.components_ / model.components_.max(axis=1, keepdims=True)).reshape(2, 8, 8, 8)
    above.imshow(np.vstack([np.hstack(row) for row in parts]), cmap="Blues")
    above.set(xticks=[], yticks=[], title="16 components")
    pairs = [image.reshape(8, 8) for pair in zip(test, explained, strict=True) for image in pair]
    below.imshow(np.hstack(pairs[:8]), cmap="gray_r")
    below.set(xticks=[], yticks=[], title="new images, each beside its expectation")
    return figure, {
        "correlation of new images and expectations": np.corrcoef(
            test.ravel(), explained.ravel()
        )[0, 1],
        "held-out log-likelihood of an entry": model.score(test),
    }  # fmt: skip
