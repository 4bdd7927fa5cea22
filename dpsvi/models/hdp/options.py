"""What the local steps of the HDP know besides the topics and their tables."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpsvi.kernels.jit import naming_kernel


class Options(NamedTuple):
    """``Model.hyper`` of the HDP."""

    marks: np.ndarray  # (n_columns,): 1 for a topic, 0 for padding
    eta: float  # prior of the words of a topic
    tol: float  # change of the counts, as a share of the document's tokens, that ends the sweeps
    n_sweeps: int  # most sweeps over a document
    alpha: float  # alpha_0, concentration of the documents
    omega: float  # concentration of the corpus
    truncation: int  # K_d, sticks of a document


@naming_kernel
def options_of(hyper, n_columns):
    """Name what :func:`dpsvi.kernels.hyper.pack` made of :class:`Options`."""
    n = n_columns
    return Options(
        hyper[:n], hyper[n], hyper[n + 1], int(hyper[n + 2]), hyper[n + 3], hyper[n + 4],
        int(hyper[n + 5]),
    )  # fmt: skip
