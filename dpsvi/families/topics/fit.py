"""How every topic model is fitted, kept and read again."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from dpsvi.errors import check_choice, check_flag, check_number
from dpsvi.estimators.base import RUN_ATTRIBUTES, SVIEstimator
from dpsvi.estimators.fitting import fit_method
from dpsvi.evaluation import completion
from dpsvi.families.topics.defaults import DECAY, FEWEST, MOST_PARTS, Defaults
from dpsvi.families.topics.documents import Documents
from dpsvi.families.topics.inference import Inference
from dpsvi.families.topics.matrix import FLOAT, column_sums, split_documents
from dpsvi.families.topics.posterior import TopicPosterior
from dpsvi.families.topics.priors import Priors
from dpsvi.families.topics.without_own import score_without_own
from dpsvi.families.topics.words import TopicWords
from dpsvi.files import io
from dpsvi.training import schedules
from dpsvi.training.items import count, take
from dpsvi.training.state import State

_FITTED = """\
    history_ : list of dict
        ``step, items, epoch, seconds, rate`` of every evaluation, and with `validation_size`
        ``perplexity, log_likelihood, unigram_perplexity, score``.
""" + RUN_ATTRIBUTES + """\
    vocabulary_ : tuple of str or None
    vectorizer_ : vectorizer
        The fitted `vectorizer`; only after a `fit` to texts with one.
    n_features_in_, feature_names_in_
        As in scikit-learn."""


class TopicEstimator(Documents, Priors, TopicWords, TopicPosterior, Inference, SVIEstimator):
    """Base of the estimators of topic models.

    A subclass names its files by `_kind` and its local steps, with their defaults, by `_defaults`.
    Besides the engine's parameters, but for `n_init`, it has `n_components`, `topic_word_prior`,
    `local_step`, `max_doc_update_iter`, `mean_change_tol`, `grow_vocabulary` and `vectorizer`.
    It defines

    * ``check_params()``: call this class's, then check its own parameters;
    * what :class:`~dpsvi.families.topics.priors.Priors` wants;
    * ``_priors() -> (dict, dict)``: the arrays and the JSON values that :meth:`save` is to keep;
    * ``_remake(n_words, arrays, meta) -> Model``: the model of what was kept.
    """

    bound_: float
    n_features_in_: int
    vocabulary_: tuple[str, ...] | None
    vectorizer_: Any
    _texts = {"fitted": _FITTED}
    _defaults: dict[str, Defaults]
    _fixed = ("n_components",)
    _settings = ("local_step",)
    _extra = ("vocabulary_", "_word_counts", "_own_words")
    _while_fitting = ("_learned", "_learns_until", "_streaming")
    _streaming = False
    n_init = 1

    def check_params(self) -> None:
        """Raise ValueError or TypeError for the first parameter that is not allowed."""
        check_choice("local_step", self.local_step, sorted(self._defaults))
        self._check_engine_params()
        check_number("n_components", self.n_components, low=1, high=65_535, integer=True)
        if self.max_doc_update_iter is not None:
            check_number("max_doc_update_iter", self.max_doc_update_iter, low=1, integer=True)
        check_number("mean_change_tol", self.mean_change_tol, low=0)
        check_flag("grow_vocabulary", self.grow_vocabulary)
        named = hasattr(self.vectorizer, "get_feature_names_out")
        if isinstance(self.vectorizer, type) or not (self.vectorizer is None or named):
            raise TypeError(
                "vectorizer must be one that names the words it counts by get_feature_names_out, "
                f"such as CountVectorizer(), or None, got {self.vectorizer!r}"
            )
        if self.grow_vocabulary and self.vectorizer is not None:
            raise ValueError(
                "grow_vocabulary=True needs vectorizer=None: one that is fitted counts no new words"
            )
        self._first_eta()

    def _default(self) -> Defaults:
        return self._defaults[self.local_step]

    def _resolve_batch_size(self, n_items, stream=False) -> int:
        if self.batch_size is not None:
            return min(n_items, self.batch_size) if stream else self.batch_size
        if stream:
            tokens = max(1.0, self._document_tokens())
            return self._default().stream_batch_size(n_items, self._n_seen, tokens)
        whole = self._default().batch_size(n_items)
        return -(-whole // self._n_parts(whole))

    def _n_parts(self, whole: int) -> int:
        """In how many parts workers share a batch of so many documents."""
        n_sharing, given = self._engine().n_sharing, (self.local_steps, self.max_batch_size)
        if n_sharing is None or given != (None, None) or not self._free_schedule():
            return 1
        return max(1, min(MOST_PARTS, n_sharing(self.cluster), whole // FEWEST))

    def _parts(self, n_items, batch_size, stream=False) -> float:
        if stream or self.batch_size is not None or not self._free_schedule():
            return 1.0
        return max(1.0, self._default().batch_size(n_items) / batch_size)

    def _stream_total(self, items, going_on) -> float:
        most = self.total_samples
        if not (self._free_schedule() and self._default().stream_memory):
            return super()._stream_total(items, going_on)
        tokens = items.value.sum(dtype=np.float64) + (self._word_counts.sum() if going_on else 0)
        total = self._default().stream_total(
            self._n_seen, max(1.0, tokens / max(1, self._n_seen)), self.n_features_in_
        )
        return total if most is None else min(most, total)

    def _free_schedule(self) -> bool:
        """Whether the step sizes are left to the fit."""
        return self.learning_rate is None and self.learning_decay is None

    def _schedule(self, passes=None):
        if not self._free_schedule():
            return super()._schedule()
        rate = self._scaled_rate(1.0)
        falling = self.early_stopping and not self._default().big_start
        parts = 1.0 if passes is None else self._parts(passes.n_items, passes.batch_size)
        if passes is None or falling:  # who knows when the last third begins?
            usual = schedules.robbins_monro(self.learning_offset, DECAY, rate)
            return schedules.of_parts(usual, parts)
        usual = self._default().schedule(
            self.learning_offset, rate, (passes.clock - passes.n_done) / parts,
            passes.steps_a_pass / parts, passes.n_passes, self._document_tokens(),
        )  # fmt: skip
        return schedules.of_parts(usual, parts)

    def _stream_schedule(self, passes, before):
        if not self._free_schedule():
            return self._schedule()
        return self._default().stream_schedule(
            self.learning_offset, self._scaled_rate(1.0), passes.clock, passes.batch_size,
            self._n_seen - passes.n_items,
        )

    def _document_tokens(self) -> float:
        """Tokens of a document that was seen, on average."""
        return self._word_counts.sum() / max(1, self._n_seen)

    def _n_sweeps(self) -> int:
        if self.max_doc_update_iter is not None:
            return self.max_doc_update_iter
        default = self._default()
        if self._streaming and self._free_schedule() and default.stream_sweeps:
            return default.stream_sweeps
        # How many tokens of the data there are for each word of each topic.
        n_words = max(1, np.count_nonzero(self._word_counts)) * self.n_components
        return default.most_sweeps(self._document_tokens(), self._word_counts.sum() / n_words)

    @fit_method
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the topics of X.

        Parameters
        ----------
        X : corpus
            Texts: a list, array or pandas or polars column of strings, or lists of words.
            Or counts: an array, DataFrame or sparse matrix (documents, words); a
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

        Examples
        --------
        >>> from dpsvi import DPSVILDA
        >>> texts = ["a cat and a dog", "one two three", "cat, dog, cat", "two three two"] * 5
        >>> DPSVILDA(n_components=2, random_state=0).fit(texts).n_features_in_
        6
        """
        return self._fit(X, y)

    @fit_method
    def partial_fit(self, X: Any, y: Any = None) -> Self:
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

        Examples
        --------
        >>> import numpy as np
        >>> from dpsvi import DPSVILDA
        >>> X = np.kron(np.eye(2, dtype=int), np.ones((20, 6), dtype=int))  # two subjects
        >>> lda = DPSVILDA(n_components=2, random_state=0)
        >>> for some in np.random.default_rng(0).permutation(X).reshape(4, 10, 12):
        ...     lda = lda.partial_fit(some)
        >>> lda.n_iter_
        4
        """
        return self._partial_fit(X, y, grow=self.grow_vocabulary)

    def _hold_out(self, items, rng):
        train, held_out = super()._hold_out(items, rng)
        if held_out is not None and not completion.split_tokens(held_out.value)[1].any():
            raise ValueError(
                f"validation_size={self.validation_size!r}: the documents held out have no token "
                "to predict"
            )
        return train, held_out

    def _held_out_score(self, state, items) -> dict:
        result = self._complete(state, items)
        return {**result._asdict(), "score": result.log_likelihood}

    def _score_of_part(self, items, held_out) -> float:
        if held_out is not None:
            return super()._score_of_part(items, held_out)
        rng = np.random.default_rng(self._seed)
        return score_without_own(
            self._state, items, self._alpha(self._state), rng, self._n_threads
        )

    def _begin(self, items, total, rng, going_on) -> State:
        self._streaming = stream = total is not None
        if not len(items.index) and not (stream and going_on):
            raise ValueError(f"empty corpus: {count(items)} documents without any word")
        self._learned, self._learns_until = self._learned_priors() if going_on else {}, 0
        counts = np.zeros(self.n_features_in_)  # bincount of no words gives integers
        counts += np.bincount(items.index, items.value, self.n_features_in_)
        if stream and going_on:
            counts[: len(self._word_counts)] += self._word_counts
        self._word_counts = counts
        for kept in ("_components", "_sizes"):
            vars(self).pop(kept, None)
        state = self._again(items) if going_on else self._start(items, rng)
        # A stream that had fewer documents than topics so far had too few to begin with.
        young = stream and state.items < self.n_components
        if not self._default().big_start and (not going_on or young):
            words = state.shared.rows[: self.n_features_in_]
            total = total if stream else count(items)
            split_documents(words, items, self.n_components, rng, total, noise=not going_on)
            state.recount()
        return state

    def _start(self, items, rng) -> State:
        model = self._make(self.n_features_in_)
        return State.start(model, rng, self._n_threads, count(items), len(items.index))

    def _again(self, items) -> State:
        """The counts and the clock of the last solution, with today's settings and documents."""
        last = self._state
        last.renormalise()
        words, common = np.split(last.shared.rows, [self._n_words(last)])
        new = np.zeros((self.n_features_in_ - len(words), words.shape[1]), words.dtype)
        return State.resume(
            self._make(self.n_features_in_), np.vstack([words, new, common]), self._n_threads,
            count(items), len(items.index), last.step, last.items,
        )  # fmt: skip

    def _train_passes(self, items, rng, monitor, total=None) -> None:
        if total is None:
            self._optimise(items, rng, monitor)
        else:
            super()._train_passes(items, rng, monitor, total)
        if total is None and not self.interrupted_:
            self._learn_priors(items, rng)
        else:
            self._use_learned_priors()

    def _optimise(self, items, rng, monitor) -> None:
        """All passes of a fit."""
        self._train_to_end(items, rng, monitor)

    def _finish(self, items, total=None) -> None:
        super()._finish(items, total)
        sample = take(items, np.arange(min(1000, count(items))))
        self.bound_ = float(np.exp(-self._bound_per_token(sample)))

    def _fitted(self, state) -> dict:
        return {"_sizes": column_sums(self._natural(state))}  # all others are properties

    # --- files --------------------------------------------------------------------------------

    def _content(self):
        arrays, values = self._priors()
        arrays |= {"lambda": self._natural(self._state), "word_counts": self._word_counts}
        return arrays, {
            **values, **io.known(bound=self.bound_), "items": self._state.items,
            "vocabulary": self.vocabulary_, "own_words": self._own_words,
        }  # fmt: skip

    def _restore(self, arrays, meta):
        io.check_counts(meta, "items")
        lam = arrays["lambda"]
        io.check_positive(**{"lambda": lam})
        self._word_counts, self.n_features_in_ = arrays["word_counts"], len(lam)
        model = self._remake(len(lam), arrays, meta)
        if lam.shape != (len(lam), self.n_components):
            raise ValueError(f"lambda of shape {lam.shape} for {self.n_components} topics")
        rows = np.zeros(model.shape, FLOAT)
        rows[: len(lam), : self.n_components] = (
            lam - np.broadcast_to(model.prior, model.shape)[: len(lam), : self.n_components]
        )
        if model.common_rows:
            rows[len(lam) :, : self.n_components] = arrays["common"]
        self._state = State.resume(
            model, rows, self._n_threads, step=meta["step"], items=meta["items"]
        )
        vars(self).update(self._fitted(self._state))
        self.vocabulary_ = tuple(meta["vocabulary"]) if meta["vocabulary"] else None
        if self.vocabulary_ and len(self.vocabulary_) != len(lam):
            raise ValueError(f"{len(self.vocabulary_)} names for {len(lam)} words")
        io.check_equal("shape of word_counts", self._word_counts.shape, (len(lam),))
        self.bound_ = io.known_or_nan(meta, "bound")
        self._own_words = meta.get("own_words", False)
