"""Latent Dirichlet allocation by DPSVI.

Model: ``beta_k ~ Dir(eta)``, ``theta_d ~ Dir(alpha)``, ``z_dn ~ theta_d``, ``w_dn ~ beta_{z_dn}``.
Symbols: ``components_`` is lam of shape (K, V), gamma and phi are local, rho is the step size,
``learning_offset`` tau_0, ``learning_decay`` kappa, ``batch_size`` S, ``total_samples`` N,
``doc_topic_prior`` alpha, ``topic_word_prior`` eta, ``n_jobs`` p, ``local_steps`` B.
The global step is (52); the local steps are described in `dpsvi.models.lda_steps`.
"""

from __future__ import annotations

import numbers
import time
from typing import NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dpsvi import evaluate, io
from dpsvi.checks import check_choice, check_number
from dpsvi.engine_parameters import engine_parameters
from dpsvi.estimator import Monitor, unchanged_on_error, with_callbacks
from dpsvi.jit import as_items
from dpsvi.models.lda_steps.model import FLOAT, LOCAL_STEPS, make_model, with_responsibilities
from dpsvi.models.lda_steps.responsibilities import sum_kept
from dpsvi.svi import State
from dpsvi.topic_model import TopicModel


class Defaults(NamedTuple):
    """What a local step wants, measured on `nyt` and `wiki` (experiments/results/defaults)."""

    eta: float
    sweeps: int
    batch_size: int


# Batches of twice the size end 2 % lower on nyt and 2 % higher on wiki (collapsed), but their
# statistics leave the cache that two threads share: on wiki 1.5 to 1.8 times the speed of one
# thread instead of 1.85.
DEFAULTS = {"collapsed": Defaults(0.01, 10, 64), "mean_field": Defaults(0.1, 5, 128)}
# Stochastic passes before responsibilities are kept.  On a large corpus they replace some twenty
# slow first passes (wiki, 30,000 documents: 4677 after 3 passes, else 4639 after 25).  On a small
# one they commit topics too early (nyt, 7,000 documents, 90 passes: 1995-2023, else 1938-1952).
BURN_IN, MANY_STEPS = 3, 200
TINY = float(np.finfo(np.float32).tiny)  # a prior below it is 0 in the kernels
RESUM_PASSES = 32  # between exact sums of what is kept


@engine_parameters("documents", max_iter=10, learning_decay=0.7, learning_offset=4.0)
class DPSVILDA(TopicModel):
    """Latent Dirichlet allocation, fitted by (asynchronous) stochastic variational inference.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics K, 1 to 65,535.
    doc_topic_prior : float, array of shape (n_components,), "auto" or None, default="auto"
        Dirichlet prior alpha of the topic proportions, > 0; ``"auto"`` learns one value a topic.
        None is ``1 / n_components``, where learning starts.
    topic_word_prior : float, "auto" or None, default="auto"
        Dirichlet prior eta of the words of a topic, > 0; ``"auto"`` learns it.  None is 0.01 for
        the collapsed and 0.1 for the mean-field local step, where learning starts.
    local_step : {"collapsed", "mean_field"}, default="collapsed"
        How a document is explained by the current topics.  ``"mean_field"`` is the paper's eq.
        (44), ``"collapsed"`` is stochastic CVB0 (Foulds et al. 2013): faster, and lower
        perplexity on every corpus measured.
    warm_documents : bool, default=False
        Remember gamma of each document between passes (4 K bytes a document).
    keep_responsibilities : bool, default=False
        Batch CVB0 (Asuncion et al. 2009): keep the responsibilities of every (document, word) pair
        (2 K bytes each) and leave a token's own count out.  The best perplexity where it fits in
        memory, after 50 passes or more; collapsed step only.  A corpus of 200 batches or more
        begins with 3 stochastic passes.
    batch_size : int or None, default=None
        Documents in a step, S.  None is 64 for the collapsed and 128 for the mean-field step.
    max_doc_update_iter : int or None, default=None
        Most inner iterations on a document in a step.  None is 10 for the collapsed and 5 for the
        mean-field step: stopping early is faster *and* gives lower perplexity.
    mean_change_tol : float, default=0.01
        Mean change of gamma that ends them.
    grow_vocabulary : bool, default=False
        Let `partial_fit` add words; otherwise they are an error.
    {engine}

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features_in_)
        Dirichlet parameters of the topics, positive, prior included.
    doc_topic_prior_ : ndarray of shape (n_components,)
    topic_word_prior_ : float
    exp_dirichlet_component_ : ndarray of shape (n_components, n_features_in_)
        exp(E[log beta]).
    bound_ : float
        Variational perplexity (A) of at most 1,000 training documents.
    history_ : list of dict
        ``step, docs, epoch, seconds, rate`` of every evaluation, and with `validation_size`
        ``perplexity, log_likelihood, unigram_perplexity, score``.
    interrupted_ : int
        0, or the exit status (130 for Ctrl-C) of the signal that ended the fit early.
    n_iter_, n_batch_iter_ : int
        Passes and steps done.
    vocabulary_ : tuple of str or None
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Ctrl-C ends `fit` after the step it is in: the model so far is kept, a warning says so, and
    ``interrupted_`` is not 0.  Any other exception leaves the estimator as it was before.

    `perplexity` and `score` are held-out document completion (:mod:`dpsvi.evaluate`), not the
    bound that scikit-learn's estimator reports; ``perplexity(X, kind="bound")`` is that.

    References
    ----------
    Mohamad, Alamri, Bouchachia (2022), Machine Learning, doi:10.1007/s10994-022-06243-3.
    Hoffman, Blei, Wang, Paisley (2013), JMLR 14.  Foulds et al. (2013), KDD.
    Asuncion, Welling, Smyth, Teh (2009), UAI.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).poisson(1.0, size=(50, 30))
    >>> lda = DPSVILDA(n_components=3, random_state=0).fit(X)
    >>> lda.transform(X[:2]).shape
    (2, 3)
    """

    def __init__(
        self, n_components=10, *, doc_topic_prior="auto", topic_word_prior="auto",
        local_step="collapsed", warm_documents=False, keep_responsibilities=False,
        batch_size=None, max_doc_update_iter=None, mean_change_tol=0.01, grow_vocabulary=False,
    ):  # fmt: skip
        self.n_components = n_components
        self.doc_topic_prior = doc_topic_prior
        self.topic_word_prior = topic_word_prior
        self.local_step = local_step
        self.warm_documents = warm_documents
        self.keep_responsibilities = keep_responsibilities
        self.batch_size = batch_size
        self.max_doc_update_iter = max_doc_update_iter
        self.mean_change_tol = mean_change_tol
        self.grow_vocabulary = grow_vocabulary

    @unchanged_on_error
    @with_callbacks
    def fit(self, X, y=None):
        """Learn the topics of X.

        Parameters
        ----------
        X : corpus
            Array, DataFrame or sparse matrix of counts (documents, words); a
            :class:`dpsvi.corpus.Corpus`; a path; or an iterable of ``[(word id, count), ...]``.
        y : ignored

        Returns
        -------
        self
        """
        self.check_params()
        going_on = self.warm_start and "_state" in self.__dict__
        known = self.n_features_in_ if going_on else None
        corpus = self._as_corpus(X, reset=True)
        if going_on and corpus.n_features != known:
            raise ValueError(f"warm_start on {known} words, X has {corpus.n_features}")
        if corpus.nnz == 0:
            raise ValueError(f"empty corpus: {corpus.n_items} documents without any word")
        rng = self._generator()
        chosen, held_out = self._hold_out(corpus.n_items, rng)
        train = corpus.select(chosen) if len(held_out) else corpus
        held_out = corpus.select(held_out) if len(held_out) else None
        if held_out is not None and not evaluate.split_tokens(held_out.value)[1].any():
            raise ValueError(
                f"validation_size={self.validation_size!r}: the documents held out have no token "
                "to predict"
            )
        state = self._again(train) if going_on else self._start(train, rng)
        self._state, self._mean_field = state, self.local_step == "mean_field"
        self._word_counts = np.bincount(train.index, train.value, train.n_features)
        self.__dict__.pop("_components", None)
        items = as_items(train.offsets, train.index, train.value, FLOAT)
        monitor = Monitor(self, held_out, corpus, y)
        n_passes = self.max_iter
        if self.keep_responsibilities:
            nothing = as_items([0], [], [], FLOAT)
            sum_kept(nothing, np.empty((0, 0), np.uint16), np.empty((0, 0), FLOAT))  # compile now
            large = train.n_items >= MANY_STEPS * self._resolve_batch_size()
            n_passes = min(n_passes, BURN_IN) if large else 0
        first = state.items
        ended = self._train(state, items, n_passes, rng, monitor, checkpoints=True)
        if not ended and self.max_iter > n_passes:
            self._train_kept(items, self.max_iter - n_passes, rng, monitor)
        self.n_iter_ = -(-(self._state.items - first) // train.n_items)
        self._finish(train)
        monitor.close(self._state)
        return self

    def _train_kept(self, items, n_passes, rng, monitor) -> None:
        """Go on with kept responsibilities.

        The first pass adds every token's responsibilities to the stochastic estimate; from then on
        the parameters are the sum of what is kept.  They are summed up anew after that pass, now
        and then, since lost writes of many passes would add up, and at the end.
        """
        state = self._state
        state.renormalise()
        estimate = state.shared.rows
        self._state = state = State.resume(
            with_responsibilities(state.model), estimate.copy(), self._n_threads,
            len(items.offsets) - 1, len(items.index), state.step, state.items,
        )  # fmt: skip
        rows = state.shared.rows
        if self._train(state, items, 1, rng, monitor):
            # Ended in the middle: the mean of both, which stands for all documents.
            rows *= FLOAT.type(estimate.sum(dtype=np.float64) / rows.sum(dtype=np.float64))
            state.recount()
            return
        del estimate
        n_passes -= 1
        while True:
            started = time.perf_counter()
            try:
                sum_kept(items, state.shared.value_memory, rows)
            except KeyboardInterrupt as interrupt:  # after the compiled call, which is whole
                self._interrupt(interrupt, state)
            state.recount()
            monitor.add_seconds(time.perf_counter() - started)
            if not n_passes or monitor.stopped or self.interrupted_:
                break
            few = min(n_passes, RESUM_PASSES)
            self._train(state, items, few, rng, monitor)
            n_passes -= few

    @unchanged_on_error
    @with_callbacks
    def partial_fit(self, X, y=None):
        """Go on learning with one pass over X, the next documents of a stream.

        Parameters
        ----------
        X : corpus
            As in `fit`; the words must be those of the first call, unless `grow_vocabulary`.
        y : ignored

        Returns
        -------
        self
        """
        self.check_params()
        first = "_state" not in self.__dict__
        corpus = self._as_corpus(X, reset=first, grow=self.grow_vocabulary)
        rng = self._generator()
        state = self._start(corpus, rng) if first else self._again(corpus)
        self._state, self._mean_field = state, self.local_step == "mean_field"
        self.__dict__.pop("_components", None)
        counts = np.zeros(corpus.n_features)
        if not first:
            counts[: len(self._word_counts)] = self._word_counts
        counts += np.bincount(corpus.index, corpus.value, corpus.n_features)
        self._word_counts = counts
        seen = state.items + corpus.n_items
        monitor = Monitor(self, None, corpus, y)
        items = as_items(corpus.offsets, corpus.index, corpus.value, FLOAT)
        self._train(state, items, 1, rng, monitor, total=max(seen, self.total_samples or 0))
        self.n_iter_ = getattr(self, "n_iter_", 0) + 1
        self._finish(corpus)
        monitor.close(state)
        return self

    def check_params(self) -> None:
        """Raise ValueError or TypeError for the first parameter that is not allowed."""
        check_choice("local_step", self.local_step, sorted(LOCAL_STEPS))
        self._check_engine_params()
        check_number("n_components", self.n_components, low=1, high=65_535, integer=True)
        if self.keep_responsibilities and self.local_step != "collapsed":
            raise ValueError(
                f"keep_responsibilities needs local_step='collapsed', got {self.local_step!r}"
            )
        if self.keep_responsibilities and self.checkpoint_dir is not None:
            raise ValueError("checkpoint_dir: kept responsibilities cannot be resumed")
        if self.max_doc_update_iter is not None:
            check_number("max_doc_update_iter", self.max_doc_update_iter, low=1, integer=True)
        check_number("mean_change_tol", self.mean_change_tol, low=0)
        self._first_alpha(), self._first_eta()

    def _resolve_batch_size(self) -> int:
        return self.batch_size or DEFAULTS[self.local_step].batch_size

    def _first_alpha(self):
        prior = self.doc_topic_prior
        if prior is None or (isinstance(prior, str) and prior == "auto"):
            return 1.0 / self.n_components
        alpha = np.asarray(prior)
        if alpha.dtype.kind not in "iuf" or not np.all(np.isfinite(alpha) & (alpha > TINY)):
            raise ValueError(f"doc_topic_prior must be > 0, 'auto' or None, got {prior!r}")
        if alpha.shape not in ((), (self.n_components,)):
            raise ValueError(
                f"doc_topic_prior must be a number or have shape ({self.n_components},), "
                f"got shape {alpha.shape}"
            )
        return alpha.astype(np.float64)

    def _first_eta(self) -> float:
        prior = self.topic_word_prior
        if prior is None or (isinstance(prior, str) and prior == "auto"):
            return DEFAULTS[self.local_step].eta
        if not isinstance(prior, numbers.Real) or not TINY < prior < np.inf:
            raise ValueError(f"topic_word_prior must be > 0, 'auto' or None, got {prior!r}")
        return float(prior)

    def _model_options(self) -> dict:
        return {
            "local_step": self.local_step,
            "n_sweeps": self.max_doc_update_iter or DEFAULTS[self.local_step].sweeps,
            "tol": self.mean_change_tol,
            "warm_documents": self.warm_documents,
            "learn_alpha": self._learns("doc_topic_prior"),
            "learn_eta": self._learns("topic_word_prior"),
        }

    def _learns(self, prior: str) -> bool:
        return isinstance(getattr(self, prior), str)

    def _start(self, corpus, rng) -> State:
        model = make_model(
            corpus.n_features,
            self.n_components,
            self._first_alpha(),
            self._first_eta(),
            **self._model_options(),
        )
        return State.start(model, rng, self._n_threads, corpus.n_items, corpus.nnz)

    def _again(self, corpus) -> State:
        """The counts and the clock of the last solution, with today's settings and documents.

        A prior that is learned goes on from what was learned.
        """
        last = self._state
        last.renormalise()
        if self._n_topics(last) != self.n_components:
            raise ValueError(
                f"n_components was {self._n_topics(last)} in the fit to go on from, "
                f"got {self.n_components}"
            )
        rows = last.shared.rows
        new = np.zeros((corpus.n_features - len(rows), rows.shape[1]), rows.dtype)
        model = make_model(
            corpus.n_features,
            self.n_components,
            self.doc_topic_prior_ if self._learns("doc_topic_prior") else self._first_alpha(),
            self.topic_word_prior_ if self._learns("topic_word_prior") else self._first_eta(),
            **self._model_options(),
        )
        return State.resume(
            model, np.vstack([rows, new]), self._n_threads, corpus.n_items, corpus.nnz, last.step,
            last.items,
        )  # fmt: skip

    def _finish(self, corpus) -> None:
        self.n_batch_iter_ = self._state.step
        self._n_features_out = self.n_components
        # What was remembered of each document is of no use for others.
        shared = self._state.shared
        self._state.shared = shared._replace(
            item_memory=shared.item_memory[:0].copy(), value_memory=shared.value_memory[:0].copy()
        )
        sample = corpus.select(np.arange(min(1000, corpus.n_items)))
        self.bound_ = float(np.exp(-self._bound_per_token(sample)))

    def save(self, path) -> None:
        """Write ``model.safetensors`` and ``model.json`` into the folder `path`."""
        check_is_fitted(self, "_state")
        state = self._state
        io.save_model(
            path,
            kind="lda",
            arrays={
                "lambda": self._natural(state),
                "doc_topic_prior": self.doc_topic_prior_,
                "word_counts": self._word_counts,
            },
            meta={
                "params": io.plain_params(self), "eta": self.topic_word_prior_,
                "step": state.step, "docs": state.items, "n_iter": self.n_iter_,
                "bound": self.bound_, "vocabulary": self.vocabulary_,
                "feature_names": list(getattr(self, "feature_names_in_", ())),
            },
        )  # fmt: skip

    @classmethod
    def load(cls, path) -> DPSVILDA:
        """Read what :meth:`save` wrote; `partial_fit` and `warm_start` go on from it."""
        arrays, meta = io.load_model(path, kind="lda")
        with io.reading(path):
            self = cls(**meta["params"])
            self.check_params()
            lam = arrays["lambda"]
            model = make_model(
                len(lam),
                self.n_components,
                arrays["doc_topic_prior"],
                meta["eta"],
                **self._model_options(),
            )
            rows = np.zeros(model.shape, FLOAT)
            rows[:, : self.n_components] = lam - model.prior[0]  # shapes must agree
            self._state = State.resume(
                model, rows, self._n_threads, step=meta["step"], items=meta["docs"]
            )
            self._word_counts = arrays["word_counts"]
            self.n_features_in_ = len(lam)
            self.vocabulary_ = tuple(meta["vocabulary"]) if meta["vocabulary"] else None
            if self.vocabulary_ and len(self.vocabulary_) != len(lam):
                raise ValueError(f"{len(self.vocabulary_)} names for {len(lam)} words")
            self._mean_field = self.local_step == "mean_field"
            if meta["feature_names"]:
                self.feature_names_in_ = np.array(meta["feature_names"], dtype=object)
            self.n_iter_, self.n_batch_iter_ = meta["n_iter"], meta["step"]
            self.bound_, self._n_features_out = meta["bound"], self.n_components
        self.history_, self.interrupted_ = [], 0
        return self


ESTIMATOR = DPSVILDA
