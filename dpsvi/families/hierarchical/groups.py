"""Labels of groups as numbers, and those of other rows as numbers of the same groups."""

from __future__ import annotations

import numpy as np


def factorise(groups, n_samples):
    """Labels and, for each row, the number of its label; None and zeros without groups."""
    if groups is None:
        return None, np.zeros(n_samples, dtype=np.int64)
    given, groups = groups, np.asarray(groups)
    if groups.shape not in ((n_samples,), (n_samples, 1)):
        raise ValueError(f"groups must have shape ({n_samples},) as X has, got {groups.shape}")
    if groups.dtype.kind == "U" and isinstance(given, list | tuple):  # NumPy writes numbers out
        other = [g for g in np.array(given, dtype=object).flat if not isinstance(g, str)]
        if other:
            raise ValueError(
                f"groups must be numbers or text, all of one kind: got text and {other[0]!r}"
            )
    try:
        labels, code = np.unique(groups.ravel(), return_inverse=True)
    except TypeError as error:
        raise ValueError(f"groups must be numbers or text, all of one kind: {error}") from None
    kinds = str, int, float, np.number, np.bool_
    if labels.dtype.kind not in "biufOUT" or not all(isinstance(g, kinds) for g in labels.tolist()):
        raise ValueError(f"groups must be numbers or text, got {labels[0]!r} ({labels.dtype})")
    if any(label != label for label in labels.tolist()):
        raise ValueError("groups has missing labels (NaN)")
    return labels, code


def places(labels, known):
    """The number of each of the `labels` among the `known` ones, -1 for one that is not there.

    Text where numbers are known, or the reverse, is an error: none would be found.
    """
    asked = labels.tolist()
    if isinstance(asked[0], str) != isinstance(known[0], str):
        raise ValueError(
            f"groups must be labels of the kind that fit got, as {known[0]!r}; got {asked[0]!r}"
        )
    place = {label: i for i, label in enumerate(known)}
    return np.array([place.get(label, -1) for label in asked])
