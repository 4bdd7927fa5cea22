"""Moves of topics: what they do to counts, which are made, and what a fit makes of them."""

import numpy as np
import pytest
from members import SECOND
from reference.lda import TopicCorpus, normalised
from scipy import stats
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from dpsvi import DPSVIHDP, VirtualCluster
from dpsvi.estimators.between_parts import KINDS
from dpsvi.families.topics.matrix import FLOAT
from dpsvi.models.hdp import moves
from dpsvi.models.hdp.splits import Split
from dpsvi.training.state import State

pytestmark = pytest.mark.filterwarnings("ignore::dpsvi.errors.CorpusWarning")
NONE = dict.fromkeys(KINDS, 0)


def make(n_components=8, **options):
    defaults = dict(local_step="mean_field", restructure=True, batch_size=32, random_state=0)
    return DPSVIHDP(n_components, **(defaults | options))


# --- what moves do to counts ---------------------------------------------------------------------


@pytest.fixture
def rows(rng):
    """Counts of 12 words in 5 topics, and the tables of these."""
    return rng.gamma(0.5, size=(13, 5)) * 10


def test_a_merge_adds_two_topics(rows):
    after = rows.copy()
    moves.merge(after, [(2, 0), (1, 4)])
    for w, (old, new) in enumerate(zip(rows, after, strict=True)):
        np.testing.assert_allclose(new, [0, old[1] + old[4], old[2] + old[0], old[3], 0], err_msg=w)


def test_a_delete_shares_each_word_as_the_others_have_it(rows):
    rows[3, [0, 2, 4]] = 0  # a word of the two that go
    after = rows.copy()
    moves.delete(after, [1, 3])
    stay = [0, 2, 4]
    for w, (old, new) in enumerate(zip(rows[:-1], after[:-1], strict=True)):
        gone = old[1] + old[3]
        likes = rows[-1] if w == 3 else old
        total = sum(likes[k] for k in stay)
        for k in stay:
            assert new[k] == pytest.approx(old[k] + gone * likes[k] / total)
    assert not after[:, [1, 3]].any() and np.array_equal(after[-1, stay], rows[-1, stay])
    np.testing.assert_allclose(after[:-1].sum(axis=1), rows[:-1].sum(axis=1))


@pytest.mark.parametrize("pair", [(), (0, 4)], ids=["room", "no room"])
def test_a_birth_divides_a_topic(rows, pair):
    new, words, share = pair[1] if pair else 4, np.array([1, 7, 8]), np.array([0.9, 0.0, 1.0])
    if not pair:
        rows[:, 4] = 0
    after = rows.copy()
    moves.divide(after, [moves.Birth(Split(2, words, share, 0.25, 1.0), new, pair)])
    for w in range(13):
        part = rows[w, 2] * {1: 0.9, 7: 0.0, 8: 1.0}.get(w, 0.25)
        assert after[w, new] == pytest.approx(part)
        assert after[w, 2] == pytest.approx(rows[w, 2] - part)
        if pair:
            assert after[w, 0] == pytest.approx(rows[w, 0] + rows[w, 4])
    np.testing.assert_allclose(after.sum(axis=1), rows.sum(axis=1))
    assert np.array_equal(after[:, [1, 3]], rows[:, [1, 3]])


def test_pairs_are_those_that_share_most_words(rng):
    basis, used = rng.dirichlet(np.full(30, 0.2), 7).T, np.array([0, 2, 3, 5, 6])
    left, expected = list(used), []
    while len(left) > 1:
        alike = {
            (i, j): sum(np.sqrt(basis[w, i] * basis[w, j]) for w in range(30))
            for i in left for j in left if i < j
        }  # fmt: skip
        expected.append(max(alike, key=alike.get))
        left = [k for k in left if k not in expected[-1]]
    assert moves.most_alike(basis, used) == expected


def test_births_find_a_place_and_touch_no_topic_twice():
    found = [Split(k, np.arange(0), np.zeros(0), 0.5, 9.0 - k) for k in range(6)]
    born = moves.births(found, [7], [(2, 1), (3, 4), (0, 5)])
    # The first takes the empty topic, the second what (3, 4) leaves, and nobody the others.
    assert [(b.split.topic, b.place, b.pair) for b in born] == [(0, 7, ()), (1, 4, (3, 4))]
    assert moves.births(found[:3], [6, 7, 8], []) == [
        moves.Birth(found[k], 6 + k, ()) for k in range(3)
    ]
    assert moves.births(found[:1], [], [(0, 1)]) == []


def test_better_is_by_more_than_two_standard_errors(rng):
    answers = set()
    for _ in range(200):
        before = rng.normal(size=50)
        found = before + rng.normal(size=50) * 0.1 + rng.normal() * 0.05
        gains = found - before
        better = gains.mean() > 2 * stats.sem(gains)
        assert moves.surely_better(found, before) == better
        answers.add(bool(better))
        assert moves.no_worse(found, before) == (gains.sum() > -1e-4)
    assert answers == {True, False}
    zeros = np.zeros(50)
    assert not moves.surely_better(zeros + 1e-6, zeros) and moves.no_worse(zeros, zeros)
    assert not moves.surely_better(np.ones(1), np.zeros(1)), "one document may be chance"


# --- which moves are made ------------------------------------------------------------------------

DRAWN = TopicCorpus(5, n_words=150, n_documents=900, n_tokens=80, alpha=0.1, seed=0)
TRAIN, TEST = (DRAWN.corpus().select(part) for part in (slice(0, 600), slice(600, None)))
FIVE = DRAWN.topics
TILT = np.tile([1.5, 0.5], 75)  # of words of which one of two topics has more, the other one less
# Topics to begin with, their weights, and the most that there can be.
STARTS = {
    "as drawn": (FIVE, [0.2] * 5, 8),
    "one too few": ([(FIVE[0] + FIVE[1]) / 2, *FIVE[2:]], [0.4, 0.2, 0.2, 0.2], 8),
    "one too many": (
        [FIVE[0] * TILT, FIVE[0] * (2 - TILT), *FIVE[1:]], [0.1, 0.1, 0.2, 0.2, 0.2, 0.2], 8
    ),
    "one of noise": ([*FIVE, np.full(150, 1 / 150)], [0.196] * 5 + [0.02], 8),
    "no room": ([(FIVE[0] + FIVE[1]) / 2, FIVE[2], *FIVE[2:]], [0.4, 0.1, 0.1, 0.2, 0.2], 5),
}


@pytest.fixture
def begin(monkeypatch):
    """An HDP whose fit begins with the topics of a name."""

    def begin(name, **options):
        topics, weights, n_components = STARTS[name]

        def start(self, items, rng):
            model = self._make(self.n_features_in_)
            rows, n = np.zeros(model.shape, FLOAT), len(weights)
            counts = np.array(weights) * items.value.sum()
            rows[:-1, :n] = (np.array(topics) * counts[:, None]).T
            rows[-1, :n] = np.array(weights) * 2 * (len(items.offsets) - 1)
            return State.resume(model, rows, self._n_threads)

        monkeypatch.setattr(DPSVIHDP, "_start", start)
        return make(n_components, **(dict(doc_concentration=0.5, max_iter=0) | options))

    return begin


def farthest(model):
    """Distance of the drawn topic that is found worst, between 0 and 1."""
    distances = cdist(normalised(model.components_.astype(float)), FIVE, "cityblock") / 2
    return distances[linear_sum_assignment(distances)].max()


@pytest.mark.parametrize(
    ("name", "kinds"),
    [("as drawn", set()), ("one too few", {"birth"}), ("one too many", {"merge"}),
     ("one of noise", {"delete"}), ("no room", {"birth"})],
)  # fmt: skip
def test_moves_alone_bring_the_drawn_number(name, kinds, begin):
    """Before any pass refines them; documents that were held out judge."""
    model = begin(name).fit(TRAIN)
    items, held_out = model._read(TRAIN, reset=False), model._read(TEST, reset=False)
    state, before = model._state, model._complete(model._state, held_out).log_likelihood
    lam, tokens = state.natural(), state.learned()[:-1].sum()
    model._restructure(items)
    made = {kind for kind, n in model.moves_.items() if n}
    assert made == kinds
    if not kinds:
        assert model._state is state and np.array_equal(state.natural(), lam)
        return
    assert np.count_nonzero(model._state.shared.rows[-1] >= 1) == 5
    assert model._state.learned()[:-1].sum() == pytest.approx(tokens, rel=1e-5)
    gain = model._complete(model._state, held_out).log_likelihood - before
    assert gain > (0.05 if "birth" in made else -0.001)


@pytest.mark.parametrize(
    "more",
    [
        dict(engine="serial"), dict(engine="threads", n_jobs=2), dict(max_iter="auto"),
        dict(engine="simulated", cluster=VirtualCluster(n_workers=2, timing=SECOND)),
    ],
    ids=["serial", "threads", "auto", "simulated"],
)  # fmt: skip
def test_a_bad_start_is_mended(more, begin):
    settings = dict(max_iter=8) | more
    stuck = begin("one too few", restructure=False, **settings).fit(TRAIN)
    mended = begin("one too few", **settings).fit(TRAIN)
    assert stuck.n_topics_active_ == 4 and farthest(stuck) > 0.3
    assert mended.n_topics_active_ == 5 and farthest(mended) < 0.12
    assert mended.score(TEST) > stuck.score(TEST) + 0.05
    assert mended.moves_["birth"] == 1 and not hasattr(stuck, "moves_")


def test_documents_that_judge_propose_nothing(monkeypatch):
    """Each document has a word of its own."""
    model = make(max_iter=1).fit(3 * np.eye(31))
    judges, others, judge, splits = [], [], moves.Moving._judge, moves.splits
    monkeypatch.setattr(
        moves.Moving, "_judge",
        lambda self, state, items: judges.append(items.index.tolist()) or judge(self, state, items),
    )
    monkeypatch.setattr(
        moves, "splits",
        lambda *args: others.append(args[2].index.tolist()) or splits(*args),
    )
    model._restructure(model._read(3 * np.eye(31), reset=False))
    assert len(judges) > 1 and all(found == judges[0] for found in judges)
    assert len(judges[0]) == 7 and sorted(judges[0] + others[0]) == list(range(31))


@pytest.mark.parametrize("kind", ["merge", "delete", "birth"])
def test_moves_that_do_not_pay_are_not_made(kind, begin, monkeypatch):
    """Of topics as they were drawn each kind is tried, and only made if nobody judges."""
    monkeypatch.setattr(moves, "KINDS", (kind,))
    model = begin("as drawn").fit(TRAIN)
    items = model._read(TRAIN, reset=False)
    model._restructure(items)
    assert model.moves_ == NONE
    monkeypatch.setattr(moves, "no_worse", lambda found, before: True)
    monkeypatch.setattr(moves, "surely_better", lambda found, before: True)
    rising = iter(range(99))
    monkeypatch.setattr(moves.Moving, "_judge", lambda *_: np.full(9, float(next(rising))))
    model._restructure(items)
    assert model.moves_[kind] > 0
