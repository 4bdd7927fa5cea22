"""Latent Dirichlet allocation by DPSVI.

Model: ``beta_k ~ Dir(eta)``, ``theta_d ~ Dir(alpha)``, ``z_dn ~ theta_d``, ``w_dn ~ beta_{z_dn}``.
Symbols: ``components_`` is lam of shape (K, V), gamma and phi are local, rho is the step size,
``learning_offset`` tau_0, ``learning_decay`` kappa, ``batch_size`` S, ``total_samples`` N,
``doc_topic_prior`` alpha, ``topic_word_prior`` eta, ``n_jobs`` p, ``local_steps`` B.
The global step is (52); the local steps are described in `dpsvi.models.lda_steps`.
"""

from __future__ import annotations

import time

import numpy as np

from dpsvi.base import Model
from dpsvi.checks import check_flag
from dpsvi.engine_parameters import engine_parameters
from dpsvi.jit import as_items
from dpsvi.models.lda_steps.model import make_model, with_responsibilities
from dpsvi.models.lda_steps.responsibilities import sum_kept
from dpsvi.svi import State
from dpsvi.topic_fit import TINY, Defaults, TopicEstimator
from dpsvi.topics import FLOAT

# Batches of twice the size end 2 % lower on nyt and 2 % higher on wiki (collapsed), but their
# statistics leave the cache that two threads share: on wiki 1.5 to 1.8 times the speed of one
# thread instead of 1.85.
DEFAULTS = {"collapsed": Defaults(0.01, 10, 64), "mean_field": Defaults(0.1, 5, 128)}
# Stochastic passes before responsibilities are kept.  On a large corpus they replace some twenty
# slow first passes (wiki, 30,000 documents: 4677 after 3 passes, else 4639 after 25).  On a small
# one they commit topics too early (nyt, 7,000 documents, 90 passes: 1995-2023, else 1938-1952).
BURN_IN, MANY_STEPS = 3, 200
RESUM_PASSES = 32  # between exact sums of what is kept


@engine_parameters(
    "documents", without=("n_init",), max_iter=10, learning_decay=0.7, learning_offset=4.0
)
class DPSVILDA(TopicEstimator):
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
        Remember gamma of each document between passes (4 K bytes a document), in one process.
    keep_responsibilities : bool, default=False
        Batch CVB0 (Asuncion et al. 2009): keep the responsibilities of every (document, word) pair
        (2 K bytes each) and leave a token's own count out.  The best perplexity where it fits in
        memory, after 50 passes or more; collapsed step, in one process and without
        `checkpoint_dir` only.  A corpus of 200 batches or more begins with 3 stochastic passes.
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
    {fitted}

    Notes
    -----
    Ctrl-C ends training after the step it is in: the model so far is kept, ``interrupted_`` is not
    0, and then `fit` raises KeyboardInterrupt.  Any other exception, and Ctrl-C before or after
    training, leaves the estimator as it was before.

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

    _kind = "lda"
    _defaults = DEFAULTS

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

    def _make(self, n_words, last) -> Model:
        learned = last is not None and self._learns("doc_topic_prior")
        alpha = self.doc_topic_prior_ if learned else self._first_alpha()
        return make_model(
            n_words, self.n_components, alpha, self._first_eta(last), **self._model_options()
        )

    def _optimise(self, items, rng, monitor) -> None:
        n_passes = self.max_iter
        if self.keep_responsibilities:
            nothing = as_items([0], [], [], FLOAT)
            sum_kept(nothing, np.empty((0, 0), np.uint16), np.empty((0, 0), FLOAT))  # compile now
            large = len(items.offsets) - 1 >= MANY_STEPS * self._resolve_batch_size()
            n_passes = min(n_passes, BURN_IN) if large else 0
        ended = self._train(self._state, items, n_passes, rng, monitor, checkpoints=True)
        if not ended and self.max_iter > n_passes:
            self._train_kept(items, self.max_iter - n_passes, rng, monitor)

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

    def check_params(self) -> None:
        """Raise ValueError or TypeError for the first parameter that is not allowed."""
        super().check_params()
        check_flag("warm_documents", self.warm_documents)
        check_flag("keep_responsibilities", self.keep_responsibilities)
        if self.keep_responsibilities and self.local_step != "collapsed":
            raise ValueError(
                f"keep_responsibilities needs local_step='collapsed', got {self.local_step!r}"
            )
        if self.keep_responsibilities and self.checkpoint_dir is not None:
            raise ValueError("checkpoint_dir: kept responsibilities cannot be resumed")
        self._first_alpha()

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

    def _model_options(self) -> dict:
        return {
            "local_step": self.local_step,
            "n_sweeps": self._n_sweeps(),
            "tol": self.mean_change_tol,
            "warm_documents": self.warm_documents,
            "learn_alpha": self._learns("doc_topic_prior"),
            "learn_eta": self._learns("topic_word_prior"),
        }

    def _priors(self):
        return {"doc_topic_prior": self.doc_topic_prior_}, {"eta": self.topic_word_prior_}

    def _remake(self, n_words, arrays, meta) -> Model:
        alpha, eta = arrays["doc_topic_prior"], meta["eta"]
        return make_model(n_words, self.n_components, alpha, eta, **self._model_options())


ESTIMATOR = DPSVILDA
