"""Fitted models in files."""

from __future__ import annotations

from os import PathLike
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dpsvi.files import io


class Saving:
    """The part of an estimator that writes and reads models.

    Their files are named by `_kind`.  What they hold besides parameters, clocks and names is
    ``_content() -> (arrays, dict)``, and ``_restore(arrays, meta)`` takes it over.
    """

    _kind: str

    def __getstate__(self) -> dict[str, Any]:
        """What copies and pickles hold: numbers and names, as files do, and none of our functions.

        So skops asks to trust the class of the estimator alone.  A fit that has not ended, which a
        callback may copy, has no such content yet: it is copied as it is.
        """
        held = dict(super().__getstate__())
        if hasattr(self, "_state") and hasattr(self, "n_iter_"):
            arrays, meta = self._content()
            held["_content_of_state"] = arrays, {"step": held.pop("_state").step, **meta}
        return held

    def __setstate__(self, held: dict[str, Any]) -> None:
        held = dict(held)
        content = held.pop("_content_of_state", None)
        super().__setstate__(held)
        if content is not None:
            # With the parameters of the fit: they may have been set to others since.
            fitted = object.__new__(type(self))
            vars(fitted).update(vars(self) | self._started)
            fitted._restore(*content)
            self._state = fitted._state

    def save(self, path: str | PathLike[str]) -> None:
        """Write ``model.safetensors`` and ``model.json`` into the folder `path`.

        Parameters
        ----------
        path : str or path
            A folder; it is made if need be, and a model in it replaced.

        Raises
        ------
        NotFittedError
        ValueError, TypeError
            Parameters were set since the fit that :meth:`load` would refuse.
        OSError
            It cannot be written; a model that was there is kept.

        Examples
        --------
        >>> import numpy as np
        >>> from dpsvi import DPSVIGaussianMixture
        >>> X = np.random.default_rng(0).normal(size=(200, 2)) + np.repeat([[0], [9]], 100, axis=0)
        >>> mixture = DPSVIGaussianMixture(2, random_state=0).fit(X)
        >>> mixture.save("two")
        >>> bool(np.allclose(DPSVIGaussianMixture.load("two").means_, mixture.means_))
        True
        """
        check_is_fitted(self, "_state")
        arrays, more = self._content()
        params = io.plain_params(self) | self._started  # as they were when the fit started
        type(self)(**params).check_params()
        io.save_model(
            path,
            kind=self._kind,
            arrays=arrays,
            meta={
                "params": params, "step": self._state.step, "n_seen": self._n_seen,
                "n_iter": self.n_iter_,
                "feature_names": list(getattr(self, "feature_names_in_", ())), **more,
            },
        )  # fmt: skip

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read what :meth:`save` wrote; `partial_fit` and `warm_start` go on from it.

        Parameters
        ----------
        path : str or path

        Returns
        -------
        A fitted estimator of this class.

        Raises
        ------
        FileNotFoundError
            The folder holds no model.
        ModelFormatError
            It is damaged, of another kind, or written by a newer version.

        Examples
        --------
        >>> import numpy as np
        >>> from dpsvi import DPSVIGaussianMixture
        >>> X = np.random.default_rng(0).normal(size=(200, 2)) + np.repeat([[0], [9]], 100, axis=0)
        >>> mixture = DPSVIGaussianMixture(2, random_state=0).fit(X)
        >>> mixture.save("two")
        >>> DPSVIGaussianMixture.load("two").n_components
        2
        """
        arrays, meta = io.load_model(path, kind=cls._kind)
        with io.reading(path):
            self = cls(**meta["params"])
            self.check_params()
            self._note_fixed(going_on=False)
            meta.setdefault("n_seen", meta.get("items"))  # of files that only counted visits
            io.check_counts(meta, "step", "n_seen", "n_iter")
            self._n_seen = meta["n_seen"]
            names = meta["feature_names"]
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise TypeError("feature_names is no list of texts")
            if names:
                self.feature_names_in_ = np.array(names, dtype=object)
            self._restore(arrays, meta)
            self.n_iter_, self.n_batch_iter_ = meta["n_iter"], meta["step"]
        self.history_, self.interrupted_, self.exchanges_ = [], 0, {}
        return self
