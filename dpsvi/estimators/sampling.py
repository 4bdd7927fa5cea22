"""Draws from the fitted posterior: the same two methods for all models."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dpsvi.errors import check_number


class Sampling:
    """The part of an estimator that draws from the posterior of its global parameters.

    A model defines ``_draw_posterior(n_samples, rng) -> dict``: draws of all that
    :meth:`posterior_samples` is to offer.  The name of a quantity is that of its fitted attribute
    without the last underscore, and its shape is that of the attribute behind `n_samples`.
    """

    def posterior_samples(
        self, n_samples: int = 100, random_state: Any = None
    ) -> dict[str, np.ndarray]:
        """Draw the parameters of the model from their variational posterior.

        Every draw is of all quantities together: what depends on each other in the posterior, as a
        mean on its covariance, does so in the draws.  The notes of the class say which quantities
        there are.  Parameters of single items, as the topic proportions of documents, are not
        among them: a fitted model does not keep these.

        Parameters
        ----------
        n_samples : int, >= 1, default=100
            All draws are in memory: `n_samples` times the fitted arrays.
        random_state : int, RandomState, Generator or None, default=None
            None is the parameter of the estimator.

        Returns
        -------
        dict of str to ndarray
            By the name of the fitted attribute without its last underscore, of shape
            (n_samples, ...), where the dots are the shape of the attribute.

        Raises
        ------
        NotFittedError
        ValueError, TypeError
            A parameter is not allowed.
        NotImplementedError
            The model does not say how to draw from its posterior.

        Examples
        --------
        >>> import numpy as np
        >>> from dpsvi import DPSVIGaussianMixture
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> mixture = DPSVIGaussianMixture(n_components=3, random_state=0).fit(X)
        >>> draws = mixture.posterior_samples(50)
        >>> list(draws)
        ['weights', 'means', 'covariances', 'precisions']
        >>> draws["means"].shape
        (50, 3, 2)
        """
        check_is_fitted(self, "_state")
        check_number("n_samples", n_samples, low=1, integer=True)
        draws = self._draw_posterior(n_samples, self._sampler(random_state))
        dtype = vars(self).get("_dtype")  # topic models have none: their attributes have one type
        if dtype is None:
            return draws
        return {name: array.astype(dtype, copy=False) for name, array in draws.items()}

    def credible_intervals(
        self, level: float = 0.9, n_samples: int = 1000, random_state: Any = None
    ) -> dict[str, np.ndarray]:
        """Where each parameter is with this probability: quantiles of :meth:`posterior_samples`.

        Both tails have the same probability, and each number has an interval of its own.

        Parameters
        ----------
        level : float in (0, 1], default=0.9
            1 is from the least to the largest draw.
        n_samples, random_state : as in :meth:`posterior_samples`
            More draws make the ends more exact.  1,000 draws of many topics of a large vocabulary
            may not fit into memory.

        Returns
        -------
        dict of str to ndarray
            Lower and upper ends, of shape (2, ...), by the same names.

        Raises
        ------
        ValueError, TypeError, NotFittedError, NotImplementedError
            As :meth:`posterior_samples`; `level` is not allowed.

        Examples
        --------
        >>> import numpy as np
        >>> from dpsvi import DPSVIGaussianMixture
        >>> X = np.random.default_rng(0).normal(size=(1000, 1))
        >>> mixture = DPSVIGaussianMixture(random_state=0).fit(X)
        >>> mixture.credible_intervals(0.95)["means"].round(1).ravel()
        array([-0.1,  0. ])
        """
        check_number("level", level, low=0, high=1, open_low=True)
        ends = [(1 - level) / 2, (1 + level) / 2]
        draws = self.posterior_samples(n_samples, random_state)
        return {
            name: np.quantile(array, ends, axis=0, overwrite_input=True).astype(array.dtype)
            for name, array in draws.items()
        }

    def _draw_posterior(self, n_samples: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        raise NotImplementedError(
            f"{type(self).__name__} does not say how to draw from its posterior: "
            "it defines no _draw_posterior(n_samples, rng)"
        )
