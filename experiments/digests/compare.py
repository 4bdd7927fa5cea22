"""Digests of arrays, and how far the arrays of two sides are from each other."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np

from experiments.digests.sides import Numbers

LARGEST = 1e-5  # relative difference that passes


def digest(array: np.ndarray) -> dict:
    """SHA-256, shape, type, sum and Euclidean norm of an array, in values that JSON can hold."""
    wide = array.astype(np.float64)
    return {
        "sha256": hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest(),
        "shape": list(array.shape),
        "dtype": str(array.dtype),
        "sum": float(wide.sum()),
        "norm": float(np.linalg.norm(wide)),
    }


def difference(a: np.ndarray, b: np.ndarray) -> float:
    """The largest ``|a - b|`` over the largest ``|a|``; 0 only for the same bits.

    It is infinite where shapes or types differ, or one side has a NaN or infinity that the other
    has not.
    """
    if a.shape != b.shape or a.dtype != b.dtype:
        return np.inf
    if a.tobytes() == b.tobytes():
        return 0.0
    a, b = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(invalid="ignore"):
        apart = np.where(a == b, 0.0, np.abs(a - b))
        apart[np.isnan(a) & np.isnan(b)] = 0.0
    if not np.isfinite(apart).all():
        return np.inf
    size = float(np.abs(a[np.isfinite(a)]).max(initial=0.0))
    tiny = float(np.finfo(np.float64).tiny)  # signs of zeros and bits of NaNs are differences, too
    return max(float(apart.max()) / max(size, tiny), tiny)


class Row(NamedTuple):
    """One fit of both sides.

    Parameters
    ----------
    fit : str
    difference : float
        The largest of all arrays that both sides have.
    where : str
        The array that it is found in; empty if all are equal to the bit.
    missing : list of str
        Arrays, or the whole fit, that only one side has: which side lacks it, and why.
    """

    fit: str
    difference: float
    where: str
    missing: list[str]

    @property
    def passes(self) -> bool:
        """Whether nothing is missing and no difference is too large."""
        return not self.missing and self.difference <= LARGEST

    @property
    def verdict(self) -> str:
        """Its cell of the table."""
        found = [f"missing {text}" for text in self.missing]
        if self.where:
            found.append(f"{self.difference:.1e} ({self.where})")
        return "; ".join(found) or "equal to the bit"


def compare(names, there: Numbers, here: Numbers) -> list[Row]:
    """Compare the numbers of two sides, fit by fit."""
    rows = []
    for name in names:
        a, b = (_of_fit(name, side.arrays) for side in (there, here))
        missing = [
            f"{side}: {numbers.errors[name]}"
            for side, numbers in (("there", there), ("here", here))
            if name in numbers.errors
        ]
        if not missing:
            missing += [f"here: {key}" for key in sorted(a.keys() - b.keys())]
            missing += [f"there: {key}" for key in sorted(b.keys() - a.keys())]
            if not a.keys() | b.keys():
                missing.append("on both sides: all arrays")
        apart = {key: difference(a[key], b[key]) for key in sorted(a.keys() & b.keys())}
        where = max(apart, key=apart.get, default="")
        largest = apart.get(where, 0.0)
        rows.append(Row(name, largest, where if largest else "", missing))
    return rows


def _of_fit(name, arrays) -> dict[str, np.ndarray]:
    prefix = f"{name}/"
    return {key.removeprefix(prefix): a for key, a in arrays.items() if key.startswith(prefix)}


def table(rows: list[Row]) -> str:
    """Verdicts as Markdown."""
    lines = ["| fit | here and there |", "|---|---|"]
    return "\n".join([*lines, *(f"| {row.fit} | {row.verdict} |" for row in rows)])
