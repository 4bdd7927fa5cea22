"""Draws from the fitted posterior, and of data: the same methods for all models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dpsvi.errors import check_number


class Sampling:
    """The part of an estimator that draws from the posterior of its global parameters.

    A model defines ``_draw_posterior(n_samples, rng) -> dict``: draws of all that
    :meth:`posterior_samples` is to offer.  The name of a quantity is that of its fitted attribute
    without the last underscore, and its shape is that of the attribute behind `n_samples`.

    For data it defines ``_like(X, **more)``, all that drawn data are to have from X, which it
    validates, and ``_draw_data(draw, like, rng)``: data given one draw of the parameters.
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

    def posterior_predictive(
        self, X: Any, n_samples: int = 100, random_state: Any = None, **more: Any
    ) -> Iterator[Any]:
        """Draw data that the fitted model believes in, to compare with those that there are.

        Each data set has parameters of its own, drawn from the posterior.  Points have new
        components, sequences new states and documents new topics; users keep their factors, drawn
        from what is known of them.  Compare what matters to you, a largest value, a share of
        zeros, between these and the real data (Gelman, Meng, Stern 1996): a model that is good
        enough makes data that look alike there.

        Parameters
        ----------
        X : as in `fit`
            The data to be like: as many points, sequences of these lengths, documents of as many
            words, users who rate the same items.  Regressions take its rows as they are, and rows
            whose `groups` the fit did not know have new coefficients.
        n_samples : int, >= 1, default=100
        random_state : int, RandomState, Generator or None, default=None
            None is the parameter of the estimator.
        **more
            `lengths` of sequences, `groups` of rows, as in `fit`.

        Yields
        ------
        ndarray or csr_array
            Data in the form of X; counts and ratings as sparse matrices, of regressions y.  One
            after the other, so that only one has to be in memory.

        Raises
        ------
        NotFittedError
        ValueError, TypeError
            A parameter or X is not allowed.

        References
        ----------
        Gelman, Meng, Stern (1996), Statistica Sinica 6.

        Examples
        --------
        Which largest value does a normal distribution expect among 500 numbers?  Not this one:

        >>> import numpy as np
        >>> from dpsvi import DPSVIGaussianMixture
        >>> X = np.random.default_rng(0).standard_t(2, size=(500, 1))
        >>> mixture = DPSVIGaussianMixture(random_state=0).fit(X)
        >>> largest = [drawn.max() for drawn in mixture.posterior_predictive(X, 200)]
        >>> float(np.mean(np.array(largest) >= X.max()))
        0.0
        """
        check_is_fitted(self, "_state")
        check_number("n_samples", n_samples, low=1, integer=True)
        like, rng = self._like(X, **more), self._sampler(random_state)
        draws = self._draw_posterior(n_samples, rng)
        return (
            self._draw_data({name: array[i] for name, array in draws.items()}, like, rng)
            for i in range(n_samples)
        )

    def to_arviz(self, n_samples: int = 1000, random_state: Any = None) -> Any:
        """Give :meth:`posterior_samples` to ArviZ, for its tables, plots and files.

        Parameters
        ----------
        n_samples, random_state : as in :meth:`posterior_samples`

        Returns
        -------
        arviz.InferenceData (a DataTree in ArviZ 1)
            With a group ``posterior`` of one chain.  The draws are independent of each other:
            diagnostics of chains say nothing about the fit.

        Raises
        ------
        ImportError
            ArviZ is not installed.
        ValueError, TypeError, NotFittedError, NotImplementedError
            As :meth:`posterior_samples`.

        Examples
        --------
        >>> import numpy as np
        >>> from dpsvi import DPSVIGaussianMixture
        >>> X = np.random.default_rng(0).normal(size=(200, 2)) + np.repeat([[0], [9]], 100, axis=0)
        >>> mixture = DPSVIGaussianMixture(2, random_state=0).fit(X)
        >>> mixture.to_arviz(100).posterior["means"].shape
        (1, 100, 2, 2)
        """
        draws = self.posterior_samples(n_samples, random_state)
        try:
            import arviz
        except ImportError as error:
            raise ImportError("to_arviz needs ArviZ: pip install 'dpsvi[arviz]'") from error
        posterior = {name: array[None] for name, array in draws.items()}
        if int(arviz.__version__.split(".")[0]) < 1:
            return arviz.from_dict(posterior=posterior)
        return arviz.from_dict({"posterior": posterior})

    def _draw_posterior(self, n_samples: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        raise NotImplementedError(
            f"{type(self).__name__} does not say how to draw from its posterior: "
            "it defines no _draw_posterior(n_samples, rng)"
        )

    def _like(self, X: Any, **more: Any) -> Any:
        raise NotImplementedError(
            f"{type(self).__name__} does not say how to draw data: it defines no _like(X)"
        )

    def _draw_data(self, draw: dict[str, np.ndarray], like: Any, rng: np.random.Generator) -> Any:
        raise NotImplementedError(
            f"{type(self).__name__} does not say how to draw data: "
            "it defines no _draw_data(draw, like, rng)"
        )
