"""Latent Dirichlet allocation by DPSVI.

Model: ``beta_k ~ Dir(eta)``, ``theta_d ~ Dir(alpha)``, ``z_dn ~ theta_d``, ``w_dn ~ beta_{z_dn}``.
Symbols: ``components_`` is lam of shape (K, V), gamma and phi are local, rho is the step size,
``learning_offset`` tau_0, ``learning_decay`` kappa, ``batch_size`` S, ``total_samples`` N,
``doc_topic_prior`` alpha, ``topic_word_prior`` eta, ``n_jobs`` p, ``local_steps`` B.
The global step is (52); the local steps are described in `dpsvi.models.lda`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike

from dpsvi.base import Model
from dpsvi.errors import check_flag
from dpsvi.estimators.engine_parameters import engine_parameters
from dpsvi.estimators.run_options import RunOptions
from dpsvi.families.topics.defaults import default_alpha
from dpsvi.families.topics.fit import TopicEstimator
from dpsvi.families.topics.kept import KeptPasses
from dpsvi.families.topics.priors import TINY
from dpsvi.families.topics.seeds import by_topic, seeded_prior
from dpsvi.files import io
from dpsvi.kernels.fold import options_of
from dpsvi.models.lda import local_steps
from dpsvi.models.lda.annealed import AnnealedPriors
from dpsvi.models.lda.model import make_model, with_responsibilities
from dpsvi.training.driver import one_step

DEFAULTS = {name: local_steps.get(name).DEFAULTS for name in local_steps.names()}


@engine_parameters(
    "documents", without=("n_init",), max_iter=10, learning_decay=None, learning_offset=4.0
)
class DPSVILDA(AnnealedPriors, KeptPasses, TopicEstimator):
    """Latent Dirichlet allocation, fitted by (asynchronous) stochastic variational inference.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics K, 1 to 65,535.
    doc_topic_prior : float, array of shape (n_components,), "auto" or None, default="auto"
        Dirichlet prior alpha of the topic proportions, > 0.  None is ``5 / n_components``, at
        most 0.5; ``"auto"`` fits topics with that, then learns it: one to two times the value that
        explains the documents of the fit best, since topics know of these and ask for too small a
        value, the more so the fewer tokens they rest on
        (:mod:`dpsvi.families.topics.learned_priors`).
    topic_word_prior : float, array, "auto" or None, default="auto"
        Dirichlet prior eta of the words of a topic, > 0.  None is ``2 / n_components`` for the
        collapsed and ``5 / n_components`` for the mean-field local step; ``"auto"`` begins with
        that, and learns it from the topics after every pass, from the sixth on only downwards
        until all are made (:mod:`dpsvi.families.topics.priors`), on clusters without a master only
        when the fit has ended, and never in `partial_fit`.  An array of shape (n_features,) or
        (n_components, n_features) gives words priors of their own, in all topics or in each: it
        stays as it is, and no word can be added to it.
    seed_words : dict of int to list, list of lists or None, default=None
        Guided topics: words, or word numbers where there is no vocabulary, that belong to a topic.
        Each has a prior of eta plus its tokens in the documents there
        (:mod:`dpsvi.families.topics.seeds`).  Eta is not learned then.
    local_step : {"collapsed", "mean_field", "sparse"}, default="collapsed"
        How a document is explained by the current topics.  ``"mean_field"`` is the paper's eq.
        (44), ``"collapsed"`` is stochastic CVB0 (Foulds et al. 2013): faster, and of lower
        perplexity on text, not on documents drawn from far fewer than K topics.  ``"sparse"`` is
        for a thousand topics and more: the same with the 32 topics of a document that matter
        most, at a cost that hardly grows with K (:mod:`dpsvi.models.lda.local_steps.sparse`).
    warm_documents : bool, default=False
        Remember gamma of each document between passes (4 K bytes a document).
    keep_responsibilities : bool, default=False
        Batch CVB0 (Asuncion et al. 2009) in the last tenth of the passes, two at least but never
        the first: keep the responsibilities of every (document, word) pair (2 K bytes each).  The
        topics are then the sums of what is kept.  Perplexity is about the same.  Collapsed step
        only.  See the Notes on several processes.
    batch_size : int or None, default=None
        Documents in a step, S.  None follows from the corpus: 4 to 64, such that a pass has 256
        steps (32 for the mean-field step) where there are documents for them.  Where neither
        step sizes nor `local_steps` nor `max_batch_size` are given, workers share such a batch if
        a master has their parameters: a step has its n-th part, an eighth of it and four
        documents at least, and that part of its rate.
    max_doc_update_iter : int or None, default=None
        Most inner iterations on a document in a step.  None is 50 for the mean-field step and 7 for
        the collapsed one: up to 14 where documents have more than 150 tokens, on average, or the
        data more than half a token for each word and topic, and 14 in `partial_fit` with
        ``learning_decay=None``, which meets a document once.  The sparse step makes 20.
    mean_change_tol : float, default=0.005
        Change of gamma, as a share of the document's tokens, that ends them.
    grow_vocabulary : bool, default=False
        Let `partial_fit` add words; otherwise they are an error, in texts left out.  Needs
        ``vectorizer=None``.
    vectorizer : scikit-learn vectorizer or None, default=None
        What counts the words of texts, such as ``CountVectorizer(stop_words="english")``.  None:
        words that are in one text only, or in more than half of them, are left out
        (:mod:`dpsvi.corpus.texts`).  Files do not hold it, only its words.
    {engine}

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features_in_)
        Dirichlet parameters of the topics, positive, prior included.
    doc_topic_prior_ : ndarray of shape (n_components,)
    topic_word_prior_ : float or ndarray of shape (n_components, n_features_in_)
    exp_dirichlet_component_ : ndarray of shape (n_components, n_features_in_)
        exp(E[log beta]); 0 where it is below exp(-42) of the largest of the same word.
    bound_ : float
        ``perplexity(X, kind="bound")`` of at most 1,000 training documents.
    {fitted}

    Notes
    -----
    `posterior_samples` draws ``"components"``: topics as distributions over words, whose rows sum
    to 1, while `components_` holds the parameters of the Dirichlet distributions they are drawn
    from.  The priors are numbers, not learned as distributions, and cannot be drawn.

    With ``learning_decay=None`` the step sizes of `fit` follow from the size of the corpus and
    `max_iter` (:class:`dpsvi.families.topics.defaults.Defaults`): they fall until the parameters
    remember a fifth of a pass (with the mean-field step one big step makes the first topics, and
    the rate is that of a pass or a tenth of all from then on, up to three tenths for documents of
    fewer than 30 tokens), and parameters are averaged over the last third of the passes.
    A callback that ends a fit ends it before that.  `early_stopping`, with the collapsed step, and
    `partial_fit` have a kappa of 0.7 instead.  What ``"auto"`` learns, only `fit` learns.

    Priors that are larger than the default ones keep topics alike from the beginning.  So with the
    collapsed or the sparse step and ``learning_decay=None`` a `fit` of several passes without
    `early_stopping` looks for topics with no larger priors than the default ones, and has those
    that were given for the last third of its passes (`python -m experiments.annealing`).  Clusters
    without a master have them from the beginning.

    On several processes what is remembered of a document stays with one worker: each has documents
    of its own, whatever `sharding` says, and remembers these only.  There must be a master, and for
    `keep_responsibilities` one that adds every change once: strategies ``"decay"`` and
    ``"displacement"`` with a `global_rate` of 1 and float32 statistics.  When a worker is lost that
    kept responsibilities, those that are left begin to keep them anew, with one more pass if the
    last one had begun.  So does a fit that is resumed by or from workers; in one process a
    checkpoint holds what is kept, and the fit goes on as if nothing had happened.

    A stream need not know its length.  With ``learning_decay=None`` and the collapsed step
    `partial_fit` takes the documents seen so far for N, or as many as hold twice the tokens of the
    words' priors if these are more, `total_samples` at most, and its parameters remember a third
    of them at least; ``batch_size=None`` makes steps of equal size that grow from
    8 documents (more, if they are short) to 64.  `python -m experiments.streams` compares chunks
    with one pass of `fit`.

    Ctrl-C ends training after the step it is in: the model so far is kept, ``interrupted_`` is not
    0, and then `fit` raises KeyboardInterrupt.  Any other exception, and Ctrl-C before or after
    training, leaves the estimator as it was before.

    `perplexity` and `score` are held-out document completion
    (:mod:`dpsvi.evaluation.completion`), not the bound that scikit-learn's estimator reports;
    ``perplexity(X, kind="bound")`` is that.

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
    _warmup = (
        {"local_step": "mean_field"}, {"local_step": "sparse"}, {"keep_responsibilities": True},
    )  # fmt: skip
    _alpha_parameter = "doc_topic_prior"
    _keeping = staticmethod(with_responsibilities)

    def __init__(
        self, n_components: int = 10, *, doc_topic_prior: ArrayLike | None = "auto",
        topic_word_prior: ArrayLike | Literal["auto"] | None = "auto",
        seed_words: Mapping[int, Sequence[Any]] | Sequence[Sequence[Any]] | None = None,
        local_step: Literal["collapsed", "mean_field", "sparse"] = "collapsed",
        warm_documents: bool = False,
        keep_responsibilities: bool = False, batch_size: int | None = None,
        max_doc_update_iter: int | None = None, mean_change_tol: float = 0.005,
        grow_vocabulary: bool = False, vectorizer: Any = None,
        **run: Unpack[RunOptions],
    ) -> None:  # fmt: skip
        self.n_components = n_components
        self.doc_topic_prior = doc_topic_prior
        self.topic_word_prior = topic_word_prior
        self.seed_words = seed_words
        self.local_step = local_step
        self.warm_documents = warm_documents
        self.keep_responsibilities = keep_responsibilities
        self.batch_size = batch_size
        self.max_doc_update_iter = max_doc_update_iter
        self.mean_change_tol = mean_change_tol
        self.grow_vocabulary = grow_vocabulary
        self.vectorizer = vectorizer

    def _first_eta(self):
        prior = self.topic_word_prior
        if prior is None or np.ndim(prior) == 0:
            return super()._first_eta()
        eta = np.asarray(prior)
        if eta.dtype.kind not in "iuf" or not np.all(np.isfinite(eta) & (eta > TINY)):
            raise ValueError(f"topic_word_prior must be > 0, 'auto' or None, got {prior!r}")
        if eta.ndim > 2 or (eta.ndim == 2 and len(eta) != self.n_components):
            raise ValueError(
                "topic_word_prior must be a number or have shape (n_features,) or "
                f"({self.n_components}, n_features), got shape {eta.shape}"
            )
        return eta.astype(np.float64)

    def _make(self, n_words) -> Model:
        seeds = self._seeds()
        if not seeds:
            return super()._make(n_words)
        eta = seeded_prior(
            self._first_eta(), seeds, self.n_components, self.vocabulary_, self._word_counts
        )
        return self._model(n_words, self._first_alpha(), eta)

    def _seeds(self) -> dict[int, list]:
        return {} if self.seed_words is None else by_topic(self.seed_words, self.n_components)

    def _learns(self, prior: str) -> bool:
        given = prior == "topic_word_prior" and self._seeds()
        return super()._learns(prior) and not given

    def _model(self, n_words, alpha, eta) -> Model:
        if np.ndim(eta) and eta.shape[-1] != n_words:
            raise ValueError(
                f"topic_word_prior has shape {eta.shape}, but the documents have {n_words} words"
            )
        return make_model(
            n_words, self.n_components, alpha, eta, local_step=self.local_step,
            n_sweeps=self._n_sweeps(), tol=self.mean_change_tol,
            warm_documents=self.warm_documents,
        )  # fmt: skip

    def _optimise(self, items, rng, monitor) -> None:
        if self._default().big_start and self._free_schedule() and not self._state.step:
            self._start_big(items, rng, monitor)
        train = self._train_and_keep if self.keep_responsibilities else self._train_to_end
        train(items, rng, monitor)
        self._end_annealing()

    def _start_big(self, items, rng, monitor) -> None:
        """First topics: the statistics of many documents, explained by topics that are noise.

        Mean field commits to what the first steps see; so the first one sees much, and all rates
        behind it are small.
        """
        state, started = self._state, time.perf_counter()
        n_items = len(items.offsets) - 1
        some = rng.permutation(n_items)[: self._default().big_start]
        one_step(state, items, np.sort(some).astype(np.int32))
        state.step = state.items = 0  # as after any other start
        monitor.add_seconds(time.perf_counter() - started)

    def check_params(self) -> None:
        """Raise ValueError or TypeError for the first parameter that is not allowed."""
        super().check_params()
        check_flag("warm_documents", self.warm_documents)
        check_flag("keep_responsibilities", self.keep_responsibilities)
        if self.keep_responsibilities:
            self._check_keeps()
        if self.warm_documents and self.local_step == "sparse":
            raise ValueError(
                "warm_documents keeps all topics of a document, local_step='sparse' has few"
            )
        self._first_alpha()
        self._seeds()

    def _first_alpha(self):
        prior = self.doc_topic_prior
        if prior is None or (isinstance(prior, str) and prior == "auto"):
            return default_alpha(self.n_components)
        alpha = np.asarray(prior)
        if alpha.dtype.kind not in "iuf" or not np.all(np.isfinite(alpha) & (alpha > TINY)):
            raise ValueError(f"doc_topic_prior must be > 0, 'auto' or None, got {prior!r}")
        if alpha.shape not in ((), (self.n_components,)):
            raise ValueError(
                f"doc_topic_prior must be a number or have shape ({self.n_components},), "
                f"got shape {alpha.shape}"
            )
        return alpha.astype(np.float64)

    def _used_priors(self, model):
        options = options_of(model.hyper, model.shape[1])
        n_topics = model.used_columns
        eta = options.word_prior[:, :n_topics].T if len(options.word_prior) else options.eta
        return options.alpha[:n_topics], eta

    def _alpha(self, state):
        return self._used_priors(state.model)[0]

    def _priors(self):
        arrays, eta = {"doc_topic_prior": self.doc_topic_prior_}, self.topic_word_prior_
        if np.ndim(eta):
            return arrays | {"topic_word_prior": eta}, {"eta": None}
        return arrays, {"eta": eta}

    def _remake(self, n_words, arrays, meta) -> Model:
        eta = arrays.get("topic_word_prior", meta["eta"])
        io.check_positive(doc_topic_prior=arrays["doc_topic_prior"], topic_word_prior=eta)
        return self._model(n_words, arrays["doc_topic_prior"], eta)


FITTED_TO = "corpus"
ESTIMATOR = DPSVILDA
