"""The hierarchical Dirichlet process as a topic model: LDA that learns how many topics it needs.

Model (Teh, Jordan, Beal, Blei 2006), with sigma_i(v) = v_i prod_{j<i} (1 - v_j)::

    V_i ~ Beta(1, omega),  beta_i ~ Dir(eta)                        i = 1, 2, ...   (the corpus)
    c_dt ~ Cat(sigma(V)),  pi_dt ~ Beta(1, alpha_0)                 t = 1, 2, ...   (a document)
    z_dn ~ Cat(sigma(pi_d)),  w_dn ~ Cat(beta_c), c = c_{d, z_dn}

A document's topic proportions are so a Dirichlet process around sigma(V): over the topics of a
truncated model ``theta_d ~ Dir(alpha_0 sigma(V))``.  A table is one c_dt, and m_i, the number of
tables that have topic i, is all that the sticks of the corpus learn from.
The global step is (52); the local steps are described in `dpsvi.models.hdp`.
"""

from __future__ import annotations

from typing import Any, Literal, Unpack

import numpy as np

from dpsvi.base import Model
from dpsvi.errors import check_flag, check_number
from dpsvi.estimators.engine_parameters import engine_parameters
from dpsvi.estimators.run_options import BatchOptions
from dpsvi.expfam.stick_breaking import draw_weights
from dpsvi.families.topics.defaults import Defaults
from dpsvi.families.topics.fit import TopicEstimator
from dpsvi.families.topics.inference import fitted_property
from dpsvi.families.topics.kept import KeptPasses
from dpsvi.files import io
from dpsvi.models.hdp.model import make_model, with_responsibilities
from dpsvi.models.hdp.moves import Moving
from dpsvi.models.hdp.options import options_of
from dpsvi.models.hdp.sticks import count_tables, expected_weights, sticks

DOC_CONCENTRATION = 5.0  # while topics are fitted: the sum of LDA's alphas for 10 topics or more
DEFAULTS = {
    "collapsed": Defaults(
        word_tokens=2.0, sweeps=7, steps=256, most=64, memory=0.2, more_sweeps=2.0,
        stream_memory=1 / 3,
    ),
    "mean_field": Defaults(
        word_tokens=0.0, sweeps=10, steps=32, most=512, memory=1.0, word_prior=0.3,
    ),
}


@engine_parameters(
    "documents", without=("n_init",), batch_size=None, max_iter=10, learning_decay=None,
    learning_offset=4.0,
)  # fmt: skip
class DPSVIHDP(Moving, KeptPasses, TopicEstimator):
    """Hierarchical Dirichlet process topic model by (asynchronous) stochastic VI.

    Parameters
    ----------
    n_components : int, default=150
        Truncation T: most topics the corpus can have, 1 to 65,535.
    doc_truncation : int, default=20
        K_d, most tables of a document, at least 1; only the mean-field step needs it.  A document
        has no more tables than tokens.
    doc_concentration : float or "auto", default="auto"
        alpha_0, > 0: the larger, the more topics in a document.  ``"auto"`` is 5 while topics are
        fitted; then it is learned (:mod:`dpsvi.families.topics.learned_priors`).
    topic_concentration : float, default=1.0
        omega, > 0: the larger, the more topics in the corpus.
    topic_word_prior : float, "auto" or None, default="auto"
        Dirichlet prior eta of the words of a topic, > 0.  None is ``2 / n_components`` for the
        collapsed and 0.3 for the mean-field local step, which leaves topics empty; ``"auto"``
        begins with that and learns it from the topics
        (:mod:`dpsvi.families.topics.priors`): after every pass, from the sixth on only downwards
        until all are made; with the mean-field step, and on clusters without a master, only when
        the fit has ended.
    local_step : {"collapsed", "mean_field"}, default="collapsed"
        ``"collapsed"`` has the lower perplexity on text and is several times faster.
        ``"mean_field"``, Wang et al.'s, empties the topics it does not need: of a corpus drawn
        from few topics it tells their number, of text it may keep too few.
    keep_responsibilities : bool, default=False
        Batch CVB0 in the last tenth of the passes, two at least but never the first, as
        :class:`dpsvi.DPSVILDA` has it: each (document, word) pair keeps its responsibilities
        (2 T bytes).  Topics and tables are then the sums of what is kept.  Collapsed step only.
    restructure : bool, default=False
        Between passes of `fit`, after the first 1, 2, 4, 8, ... of them and in the first half,
        topics are merged, deleted and born where halves of documents are then predicted as well
        or better from the other halves (:mod:`dpsvi.models.hdp.moves`).  With the collapsed step
        it is a ValueError: that step leaves no topic of text empty.  Streams have no such moves.
    max_doc_update_iter : int or None, default=None
        Most inner iterations on a document in a step; None is 10 for the mean-field step and 7 for
        the collapsed one, up to 14 where documents have more than 150 tokens, on average, or the
        data have more than half a token for each word and topic.
    mean_change_tol : float, default=0.005
        Change of a document's expected counts, as a share of its tokens, that ends them.
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
        Dirichlet parameters of the topics, positive, prior included; most tables first.
    tables_ : ndarray of shape (n_components,)
        Expected number of tables of every topic in the corpus.
    topic_weights_ : ndarray of shape (n_components,)
        E sigma(V), which sums to 1.
    n_topics_active_ : int
        Topics that hold a table.
    doc_concentration_ : float
        alpha_0 in use.
    doc_topic_prior_ : ndarray of shape (n_components,)
        alpha_0 E sigma(V): the Dirichlet prior of a document's topic proportions.
    topic_word_prior_ : float
        eta in use.
    exp_dirichlet_component_ : ndarray of shape (n_components, n_features_in_)
        exp(E[log beta]); 0 where it is below exp(-42) of the largest of the same word.
    bound_ : float
        ``perplexity(X, kind="bound")`` of at most 1,000 training documents: with topics as they
        are and sigma(V) at its mean, without the terms of either in the bound.
    moves_ : dict
        With `restructure`, how many moves the last `fit` made: ``"merge"``, ``"delete"`` and
        ``"birth"``.
    {fitted}

    Notes
    -----
    `posterior_samples` draws ``"components"``, topics as distributions over words, and
    ``"topic_weights"``, sigma(V), which sum to less than 1: the rest is beyond the truncation.
    Tables and concentrations are kept as numbers only and cannot be drawn.

    With ``learning_decay=None`` the step sizes of `fit` follow from the size of the corpus and
    `max_iter` (:class:`dpsvi.families.topics.defaults.Defaults`): they fall until the parameters
    remember a fifth of a pass, a whole one with the mean-field step, and parameters are averaged
    over the last third of the passes.
    A callback that ends a fit ends it before that.  `early_stopping` and `partial_fit` have a kappa
    of 0.7 instead.  What ``"auto"`` learns, only `fit` learns.

    `transform`, `perplexity` and `score` treat new documents as `doc_topic_prior_` says: that is
    the model itself, its sticks taken at their mean, whichever local step it was fitted with.

    References
    ----------
    Wang, Paisley, Blei (2011), AISTATS.  Teh, Jordan, Beal, Blei (2006), JASA 101.
    Teh, Kurihara, Welling (2008), NIPS 20.  Sato, Kurihara, Nakagawa (2012), KDD.
    Hoffman, Blei, Wang, Paisley (2013), JMLR 14.  Bryant, Sudderth (2012), NIPS 25.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).poisson(1.0, size=(50, 30))
    >>> hdp = DPSVIHDP(n_components=5, random_state=0).fit(X)
    >>> hdp.transform(X[:2]).shape
    (2, 5)
    """

    _kind = "hdp"
    _learns_size = True
    _defaults = DEFAULTS
    _warmup = ({"local_step": "mean_field"}, {"keep_responsibilities": True})
    _alpha_parameter = "doc_concentration"
    _settings = (*TopicEstimator._settings, "topic_concentration")
    _keeping = staticmethod(with_responsibilities)

    def __init__(
        self, n_components: int = 150, *, doc_truncation: int = 20,
        doc_concentration: float | Literal["auto"] = "auto", topic_concentration: float = 1.0,
        topic_word_prior: float | Literal["auto"] | None = "auto",
        local_step: Literal["collapsed", "mean_field"] = "collapsed",
        keep_responsibilities: bool = False, restructure: bool = False,
        max_doc_update_iter: int | None = None, mean_change_tol: float = 0.005,
        grow_vocabulary: bool = False, vectorizer: Any = None,
        **run: Unpack[BatchOptions],
    ) -> None:  # fmt: skip
        self.n_components = n_components
        self.doc_truncation = doc_truncation
        self.doc_concentration = doc_concentration
        self.topic_concentration = topic_concentration
        self.topic_word_prior = topic_word_prior
        self.local_step = local_step
        self.keep_responsibilities = keep_responsibilities
        self.restructure = restructure
        self.max_doc_update_iter = max_doc_update_iter
        self.mean_change_tol = mean_change_tol
        self.grow_vocabulary = grow_vocabulary
        self.vectorizer = vectorizer

    def check_params(self) -> None:
        """Raise ValueError or TypeError for the first parameter that is not allowed."""
        super().check_params()
        check_number("doc_truncation", self.doc_truncation, low=1, integer=True)
        alpha = self.doc_concentration
        if isinstance(alpha, str) and alpha != "auto":
            raise ValueError(f"doc_concentration must be > 0 or 'auto', got {alpha!r}")
        if not isinstance(alpha, str):
            check_number("doc_concentration", alpha, low=0, open_low=True)
        check_number("topic_concentration", self.topic_concentration, low=0, open_low=True)
        check_flag("keep_responsibilities", self.keep_responsibilities)
        if self.keep_responsibilities:
            self._check_keeps()
        self._check_restructure()

    def _first_alpha(self) -> float:
        return DOC_CONCENTRATION if self._learns("doc_concentration") else self.doc_concentration

    def _model(self, n_words, alpha, eta) -> Model:
        return make_model(
            n_words, self.n_components, alpha, self.topic_concentration, eta,
            local_step=self.local_step, truncation=self.doc_truncation,
            n_sweeps=self._n_sweeps(), tol=self.mean_change_tol,
        )  # fmt: skip

    def _optimise(self, items, rng, monitor) -> None:
        train = self._train_and_keep if self.keep_responsibilities else self._train_to_end
        train(items, rng, monitor)

    def _alpha_of_tables(self):
        alpha = np.zeros(self._state.model.shape[1])
        alpha[: self.n_components] = self._alpha(self._state)
        return alpha

    def _finish(self, items, total=None) -> None:
        self._sort_topics()
        super()._finish(items, total)

    def _sort_topics(self) -> None:
        """Put the topics in the order of their sticks; nobody else may be at work."""
        state = self._state
        rows, n_topics = state.shared.rows, self.n_components
        order = np.argsort(-_tables(state), kind="stable")
        rows[:, :n_topics] = rows[:, order]
        state.recount()

    def _alpha(self, state):
        options = _options(state.model)
        return float(options.alpha) * expected_weights(_tables(state), options.omega)

    def _used_priors(self, model):
        options = _options(model)
        return options.alpha, options.eta

    def _priors(self):
        state = self._state
        common = state.natural()[-1:, : self._n_topics(state)]
        return {"common": common}, {
            "eta": self.topic_word_prior_, "alpha": self.doc_concentration_,
        }  # fmt: skip

    def _remake(self, n_words, arrays, meta) -> Model:
        io.check_positive(alpha=meta["alpha"], eta=meta["eta"])
        return self._model(n_words, meta["alpha"], meta["eta"])

    def _draw_posterior(self, n_samples, rng) -> dict:
        q = sticks(self.tables_, _options(self._state.model).omega)
        weights = {"topic_weights": draw_weights(*q, n_samples, rng)}
        return super()._draw_posterior(n_samples, rng) | weights

    def _prior_of_documents(self, draw):
        return self.doc_concentration_ * draw["topic_weights"]

    # --- what was learned ---------------------------------------------------------------------

    @fitted_property
    def tables_(self) -> np.ndarray:
        """Expected number of tables of every topic in the corpus, (n_components,)."""
        return _tables(self._state)

    @fitted_property
    def topic_weights_(self) -> np.ndarray:
        """E sigma(V), (n_components,)."""
        return expected_weights(_tables(self._state), _options(self._state.model).omega)

    @fitted_property
    def n_topics_active_(self) -> int:
        """Topics that hold a table."""
        return int(np.count_nonzero(self.tables_ >= 1))

    @fitted_property
    def doc_concentration_(self) -> float:
        """alpha_0 in use."""
        return float(_options(self._state.model).alpha)


def _options(model):
    return options_of(model.hyper, model.shape[1])


def _tables(state):
    return count_tables(state.shared.rows[-1], state.scale, state.model.used_columns)


FITTED_TO = "corpus"
ESTIMATOR = DPSVIHDP
