"""How every topic model is fitted, kept and read again; what it answers is in `topic_model`."""

from __future__ import annotations

import numbers

import numpy as np

from dpsvi.errors import check_choice, check_flag, check_number
from dpsvi.estimators.base import RUN_ATTRIBUTES, unchanged_on_error, with_callbacks
from dpsvi.estimators.monitor import Monitor
from dpsvi.evaluation import completion
from dpsvi.families.topics.answers import TopicModel
from dpsvi.families.topics.defaults import DECAY, Defaults
from dpsvi.families.topics.learned_priors import learned_concentration, learned_eta
from dpsvi.families.topics.matrix import FLOAT, split_documents
from dpsvi.files import io
from dpsvi.kernels.fold import ETA
from dpsvi.kernels.jit import as_items
from dpsvi.training import schedules
from dpsvi.training.state import State

TINY = float(np.finfo(np.float32).tiny)  # a prior below it is 0 in the kernels

_FITTED = """\
    history_ : list of dict
        ``step, docs, epoch, seconds, rate`` of every evaluation, and with `validation_size`
        ``perplexity, log_likelihood, unigram_perplexity, score``.
""" + RUN_ATTRIBUTES + """\
    vocabulary_ : tuple of str or None
    n_features_in_, feature_names_in_
        As in scikit-learn."""


class TopicEstimator(TopicModel):
    """Base of the estimators of topic models.

    A subclass names its files by `_kind` and its local steps, with their defaults, by `_defaults`.
    Besides the engine's parameters it has `n_components`, `topic_word_prior`, `local_step`,
    `max_doc_update_iter`, `mean_change_tol` and `grow_vocabulary`.  It defines

    * ``check_params()``: call this class's, then check its own parameters;
    * ``_make(n_words) -> Model``: with the priors that topics are fitted with;
    * ``_alpha_parameter``, whose value "auto" has the prior of the documents learned, and
      ``_alpha_place(model)``, where that stands in ``model.hyper``;
    * ``_priors() -> (dict, dict)``: the arrays and the JSON values that :meth:`save` is to keep;
    * ``_remake(n_words, arrays, meta) -> Model``: the model of what was kept.
    """

    _texts = {"fitted": _FITTED}
    _defaults: dict[str, Defaults]
    _fixed = ("n_components",)
    _settings = ("local_step",)

    def check_params(self) -> None:
        """Raise ValueError or TypeError for the first parameter that is not allowed."""
        check_choice("local_step", self.local_step, sorted(self._defaults))
        self._check_engine_params()
        check_number("n_components", self.n_components, low=1, high=65_535, integer=True)
        if self.max_doc_update_iter is not None:
            check_number("max_doc_update_iter", self.max_doc_update_iter, low=1, integer=True)
        check_number("mean_change_tol", self.mean_change_tol, low=0)
        check_flag("grow_vocabulary", self.grow_vocabulary)
        self._first_eta()

    def _default(self) -> Defaults:
        return self._defaults[self.local_step]

    def _resolve_batch_size(self, n_items, stream=False) -> int:
        if self.batch_size is not None:
            return self.batch_size
        if stream and self.total_samples is None:
            return self._default().most
        return self._default().batch_size(self.total_samples if stream else n_items)

    def _free_schedule(self) -> bool:
        """Whether the step sizes are left to the fit."""
        return self.learning_rate is None and self.learning_decay is None

    def _schedule(self, passes=None, stream=False):
        if not self._free_schedule():
            return super()._schedule()
        rate = self._scaled_rate(1.0)
        falling = self.early_stopping and not self._default().big_start
        if passes is None or stream or falling:  # who knows when the last third begins?
            return schedules.robbins_monro(self.learning_offset, DECAY, rate)
        first = passes.clock - passes.n_done
        return self._default().schedule(
            self.learning_offset, rate, first, passes.steps_a_pass, passes.n_passes
        )

    def _n_sweeps(self) -> int:
        return self.max_doc_update_iter or self._default().sweeps

    def _learns(self, prior: str) -> bool:
        return isinstance(getattr(self, prior), str)

    def _first_eta(self) -> float:
        prior = self.topic_word_prior
        if prior is None or (isinstance(prior, str) and prior == "auto"):
            return self._default().eta(self.n_components)
        number = isinstance(prior, numbers.Real) and not isinstance(prior, bool)
        if not number or not TINY < prior < np.inf:
            raise ValueError(f"topic_word_prior must be > 0, 'auto' or None, got {prior!r}")
        return float(prior)

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

        Raises
        ------
        ValueError, TypeError
            A parameter or the corpus is not allowed; the estimator is as it was.
        CorpusFormatError
            A file cannot be read as a corpus: which line, and why.
        DivergedError
            Parameters became NaN or infinite.
        LostRankError
            Over MPI: the fit cannot go on without a rank that was lost.
        KeyboardInterrupt
            By Ctrl-C, after the step that training was in; the model so far is kept, and
            ``interrupted_`` is not 0.
        """
        self.check_params()
        going_on = self.warm_start and "_state" in self.__dict__
        self._note_fixed(going_on)
        corpus = self._as_corpus(X, reset=not going_on)
        if corpus.nnz == 0:
            raise ValueError(f"empty corpus: {corpus.n_items} documents without any word")
        rng = self._generator()
        chosen, held_out = self._hold_out(corpus.n_items, rng)
        train = corpus.select(chosen) if len(held_out) else corpus
        held_out = corpus.select(held_out) if len(held_out) else None
        if held_out is not None and not completion.split_tokens(held_out.value)[1].any():
            raise ValueError(
                f"validation_size={self.validation_size!r}: the documents held out have no token "
                "to predict"
            )
        learned = self._learned_priors() if going_on else {}
        self._begin(train, rng, going_on)
        self._word_counts = np.bincount(train.index, train.value, train.n_features)
        items = as_items(train.offsets, train.index, train.value, FLOAT)
        monitor = Monitor(self, held_out, corpus, y)
        first, self._n_seen = self._state.items, train.n_items
        self._optimise(items, rng, monitor)
        if self.interrupted_:
            self._use_priors(**learned)
        else:
            self._learn_priors(items, rng)
        self.n_iter_ = -(-(self._state.items - first) // train.n_items)
        self._finish(train)
        monitor.close(self._state)
        return self

    def _learn_priors(self, items, rng) -> None:
        """Learn the priors that are to be learned; the topics have been fitted."""
        state = self._state
        if self._learns("topic_word_prior"):
            self._use_priors(eta=learned_eta(state, self.n_components))
        if self._learns(self._alpha_parameter):
            alpha = self._alpha(state)
            used = float(alpha.sum())
            found = learned_concentration(state, items, alpha / used, used, rng, self._n_threads)
            self._use_priors(alpha=found / used * state.model.hyper[self._alpha_place(state.model)])

    def _learned_priors(self) -> dict:
        """What an earlier fit has learned: arguments of :meth:`_use_priors`."""
        named = {"alpha": self._alpha_parameter, "eta": "topic_word_prior"}
        return {key: getattr(self, f"{name}_") for key, name in named.items() if self._learns(name)}

    def _use_priors(self, alpha=None, eta=None) -> None:
        """Let the fitted model have the priors given."""
        model = self._state.model
        if alpha is not None:
            model.hyper[self._alpha_place(model)] = alpha
        if eta is not None:
            n_rows = len(model.prior) - model.common_rows
            model.hyper[model.shape[1] + ETA] = model.prior[:n_rows] = eta

    def _optimise(self, items, rng, monitor) -> None:
        """All passes of a fit."""
        self._train(self._state, items, self.max_iter, rng, monitor, checkpoints=True)

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

        Raises
        ------
        ValueError, TypeError, CorpusFormatError, DivergedError, LostRankError
            As `fit`; the estimator is as it was.
        KeyboardInterrupt
            As `fit`; the model so far is kept.
        """
        self.check_params()
        first = "_state" not in self.__dict__
        self._note_fixed(not first)
        corpus = self._as_corpus(X, reset=first, grow=self.grow_vocabulary)
        if first and corpus.nnz == 0:
            raise ValueError(f"empty corpus: {corpus.n_items} documents without any word")
        rng = self._generator()
        total = self._count_seen(corpus.n_items, first)
        learned = {} if first else self._learned_priors()
        self._begin(corpus, rng, not first, total)
        counts = np.zeros(corpus.n_features)
        if not first:
            counts[: len(self._word_counts)] = self._word_counts
        counts += np.bincount(corpus.index, corpus.value, corpus.n_features)
        self._word_counts = counts
        monitor = Monitor(self, None, corpus, y)
        items = as_items(corpus.offsets, corpus.index, corpus.value, FLOAT)
        self._train(self._state, items, 1, rng, monitor, total=total)
        self._use_priors(**learned)
        self.n_iter_ = getattr(self, "n_iter_", 0) + 1
        self._finish(corpus)
        monitor.close(self._state)
        return self

    def _begin(self, corpus, rng, going_on: bool, total=None) -> None:
        if going_on:
            self._state = self._again(corpus)
        else:
            model = self._make(corpus.n_features)
            self._state = State.start(model, rng, self._n_threads, corpus.n_items, corpus.nnz)
        if not self._default().big_start and (not going_on or self._is_young(total)):
            rows, noise = self._state.shared.rows, not going_on
            split_documents(rows, corpus, self.n_components, rng, total or corpus.n_items, noise)
            self._state.recount()
        self.__dict__.pop("_components", None)

    def _is_young(self, total) -> bool:
        """Whether the stream had too few documents so far to begin with, fewer than topics."""
        return total is not None and self._state.items < self.n_components

    def _again(self, corpus) -> State:
        """The counts and the clock of the last solution, with today's settings and documents."""
        last = self._state
        last.renormalise()
        words, common = np.split(last.shared.rows, [self._n_words(last)])
        new = np.zeros((corpus.n_features - len(words), words.shape[1]), words.dtype)
        return State.resume(
            self._make(corpus.n_features), np.vstack([words, new, common]), self._n_threads,
            corpus.n_items, corpus.nnz, last.step, last.items,
        )  # fmt: skip

    def _finish(self, corpus) -> None:
        self.n_batch_iter_ = self._state.step
        self._n_features_out = self.n_components
        self._state.forget()
        sample = corpus.select(np.arange(min(1000, corpus.n_items)))
        self.bound_ = float(np.exp(-self._bound_per_token(sample)))

    # --- files --------------------------------------------------------------------------------

    def _content(self):
        arrays, values = self._priors()
        arrays |= {"lambda": self._natural(self._state), "word_counts": self._word_counts}
        return arrays, {
            **values, "docs": self._state.items, "bound": self.bound_,
            "vocabulary": self.vocabulary_,
        }  # fmt: skip

    def _restore(self, arrays, meta):
        io.check_counts(meta, "docs")
        lam = arrays["lambda"]
        model = self._remake(len(lam), arrays, meta)
        if lam.shape != (len(lam), self.n_components):
            raise ValueError(f"lambda of shape {lam.shape} for {self.n_components} topics")
        rows = np.zeros(model.shape, FLOAT)
        rows[: len(lam), : self.n_components] = lam - model.prior[0]
        if model.common_rows:
            rows[len(lam) :, : self.n_components] = arrays["common"]
        self._state = State.resume(
            model, rows, self._n_threads, step=meta["step"], items=meta["docs"]
        )
        self._word_counts, self.n_features_in_ = arrays["word_counts"], len(lam)
        self.vocabulary_ = tuple(meta["vocabulary"]) if meta["vocabulary"] else None
        if self.vocabulary_ and len(self.vocabulary_) != len(lam):
            raise ValueError(f"{len(self.vocabulary_)} names for {len(lam)} words")
        self.bound_, self._n_features_out = meta["bound"], self.n_components
