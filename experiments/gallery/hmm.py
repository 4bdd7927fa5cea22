"""Which letters are vowels?

A hidden Markov model of two states reads English, the descriptions of scikit-learn's data sets, one
letter at a time, and knows nothing of letters.  Above, the share of each letter and of the space
that one state emitted; below, what follows what.  Vowels take turns with consonants, so that is
what the states become (Cave and Neuwirth 1980, Hidden Markov models for English).
"""

import numpy as np
from matplotlib.figure import Figure
from sklearn import datasets

from dpsvi import DPSVIHMM

LETTERS = " abcdefghijklmnopqrstuvwxyz"


def read():
    """The text as numbers, 0 for whatever is no letter; runs of these count once."""
    names = "breast_cancer", "wine", "iris", "digits", "diabetes", "linnerud"
    text = " ".join(getattr(datasets, f"load_{name}")().DESCR.lower() for name in names)
    letters = "".join(c if c in LETTERS else " " for c in text)
    return np.array([LETTERS.index(c) for c in " ".join(letters.split())])


def picture(small=False):
    """Letters by state, and the transitions."""
    text = read()[: 5000 if small else None]
    hmm = DPSVIHMM(
        2, emission="categorical", n_features=27, window=100, learning_rate=0.2, random_state=0,
        max_iter=10 if small else 60,
    ).fit(text[:, None])  # fmt: skip
    weight = hmm.emissionprob_ * np.bincount(hmm.predict(text[:, None]), minlength=2)[:, None]
    share = weight / weight.sum(axis=0)
    vowel = int(share[1, LETTERS.index("e")] > 0.5)
    share, order = share[vowel], np.argsort(-share[vowel])
    figure = Figure(figsize=(8, 6), layout="constrained")
    above, below = figure.subplots(2, 1, height_ratios=[2, 1])
    colours = ["#D55E00" if LETTERS[i] in "aeiou" else "#0072B2" for i in order]
    above.bar(range(27), share[order], color=colours)
    above.set_xticks(range(27), ["␣" if i == 0 else LETTERS[i] for i in order])
    above.set(ylabel="share of the vowels' state", title="orange: a, e, i, o, u")
    states = [vowel, 1 - vowel]
    below.imshow(hmm.transmat_[states][:, states], cmap="Blues", vmin=0, vmax=1)
    below.set_xticks([0, 1], ["vowels", "rest"])
    below.set_yticks([0, 1], ["vowels", "rest"])
    below.set(title="from row to column")
    is_vowel = np.isin(list(LETTERS), list("aeiou"))
    return figure, {
        "letters on their side": float(((share > 0.5) == is_vowel)[1:].mean()),
        "a vowel after a vowel": float(hmm.transmat_[vowel, vowel]),
    }
