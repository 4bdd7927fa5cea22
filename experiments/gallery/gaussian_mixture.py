"""Which handwritten digits look alike?

A mixture of 20 Gaussians on the 16 largest principal components of scikit-learn's digits never sees
a label.  Rows are digits, columns components: a digit with several columns is written in several
ways, a column with several digits holds those that look alike.
"""

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.metrics import normalized_mutual_info_score

from dpsvi import DPSVIGaussianMixture


def picture(small=False):
    """Counts of digits in components."""
    images, digit = load_digits(return_X_y=True)
    X = PCA(16, random_state=0).fit_transform(images)
    mixture = DPSVIGaussianMixture(20, max_iter=5 if small else 60, batch_size=128, random_state=0)
    component = mixture.fit(X).predict(X)
    counts = np.zeros((10, 20))
    np.add.at(counts, (digit, component), 1)
    order = np.lexsort((-counts.max(axis=0), counts.argmax(axis=0)))
    figure = Figure(figsize=(8, 6.4), layout="constrained")
    above, below = figure.subplots(2, 1, height_ratios=[10, 2.2])
    above.imshow(counts[:, order], cmap="Blues", aspect="auto")
    above.set(yticks=range(10), xticks=[], ylabel="digit", title="points of a digit in a component")
    means = [images[component == k].mean(axis=0) if (component == k).any() else np.zeros(64)
             for k in order]  # fmt: skip
    below.imshow(np.hstack([m.reshape(8, 8) for m in means]), cmap="gray_r")
    below.set(xticks=[], yticks=[], xlabel="mean image of each component")
    return figure, {
        "components in use": float((mixture.weights_ > 0.005).sum()),
        "mutual information with the digits": normalized_mutual_info_score(digit, component),
    }
