"""Known results: what is compared with what, and what is said of it."""

import json
import math

import numpy as np
import pytest

from dpsvi import DPSGD
from dpsvi.optimize import network
from experiments.dpsgd.descent import gradient
from experiments.known_results import __main__ as command
from experiments.known_results import (
    a2cid2,
    absa,
    admm,
    adversarial,
    clients,
    easgd,
    fedavg,
    gala,
    gap,
    gosgd,
    local_sgd,
    pairs,
    sgp,
)  # fmt: skip
from experiments.known_results import compare as choice
from experiments.known_results.claim import Outcome, section, summary
from experiments.known_results.clients import Clients, rounds, shards
from experiments.known_results.compare import Entrant, compare, sooner, spread, values, wins
from experiments.known_results.digits import (
    CLASSES,
    FREE,
    TIMING,
    Images,
    fit,
    parts,
    start,
)  # fmt: skip
from experiments.known_results.replicas import Replicas


def full_gradient(x):
    return gradient(x, *parts()["train"])


def test_images_have_one_use():
    found = parts()
    assert [len(found[part].y) for part in ("train", "tuning", "test")] == [1024, 323, 450]
    rows = np.concatenate([found[part].X for part in found])
    assert len(np.unique(rows, axis=0)) > 1790, "few images are equal, and none is used twice"


def test_entrants_choose_by_the_median_of_tuning_fits():
    asked = []

    def fitted(rate, seed, tuning):
        asked.append((rate, seed, tuning))
        if rate == 3.0:
            return {"failed": "DivergedError"}
        lucky = rate == 0.3 and seed == 1000
        return {"loss": 0.0 if lucky else rate + 0.01 * seed}

    found = compare([Entrant("it", fitted)], [0, 1], lambda run: run["loss"], (0.1, 0.3, 3.0))
    assert found["it"]["rate"] == 0.1 and found["it"]["tried"]["3.0"] is None
    assert [run["loss"] for run in found["it"]["runs"]] == [0.1, 0.11]
    assert all(tuning == (seed >= 1000) for _, seed, tuning in asked) and len(asked) == 3 * 3 + 2
    json.dumps(found, allow_nan=False)


def test_what_is_said_of_runs():
    row = {"runs": [{"loss": 1.0}, {"failed": "no"}, {"loss": 3.0}]}
    other = {"runs": [{"loss": 2.0}, {"loss": 9.0}, {"loss": 2.0}]}

    def loss(run):
        return run["loss"]

    assert values(row, loss) == [1.0, math.inf, 3.0]
    assert wins(row, other, loss) == 1 and wins(other, row, loss) == 2
    assert spread(values(row, loss), "g") == "3 (1-never)"
    curve = {"curve": [[1.0, 0.1, 0.9], [2.0, 0.2, 0.4], [3.0, 0.3, 0.5]]}
    assert (sooner(curve, 0.5, 0), sooner(curve, 0.5, 1)) == (2.0, 0.2)
    assert sooner(curve, 0.3, 0) == math.inf


def test_a_rate_is_that_of_the_steps_of_a_worker():
    """The mean of two workers, with half of all images each, takes one full gradient step."""
    seen = []
    fit("local_sgd", 0.5, 3, n=2, passes=1, batch=512, look=seen.append)
    x0 = start(3)
    np.testing.assert_allclose(seen[-1], x0 - 0.5 * full_gradient(x0), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("unequal", [False, True])
@pytest.mark.parametrize("classes", [False, True])
def test_every_image_has_one_client(classes, unequal):
    y = parts()["train"].y
    held = shards(y, 20, classes, unequal, 0)
    assert np.array_equal(np.sort(np.concatenate(held)), np.arange(len(y)))
    sizes = np.array([len(shard) for shard in held])
    wanted = np.arange(1, 21) / 210 if unequal else np.full(20, 1 / 20)
    assert np.abs(sizes - wanted * len(y)).max() <= 2
    kinds = np.array([len(np.unique(y[shard])) for shard in held])
    assert kinds.max() <= 4 if classes else kinds[sizes > 40].min() >= 8


def test_clients_visit_their_images_again():
    held = [np.arange(3), np.arange(3, 10)]
    ledger = Clients(held, visits=2, batch_size=4, n_passes=2, seed=0)
    work = ledger.grant(2, 100, (1, 2))
    mine = held[work.shard]
    items, sizes = ledger.items(work), ledger.sizes(work)
    assert np.array_equal(np.sort(items), np.repeat(mine, 2))
    assert np.array_equal(np.sort(items[: len(mine)]), mine)
    assert sizes.sum() == len(items) and len(sizes) == work.n_steps and sizes.max() <= 4


def test_a_round_weighs_clients_by_their_images(monkeypatch):
    """One full gradient of each client, of all of whom the mean is taken: a full gradient step."""
    seen = []
    monkeypatch.setattr(clients, "error", lambda x, images: seen.append(x) or 1.0)
    held = shards(parts()["train"].y, 6, True, True, 0)
    largest = max(map(len, held))
    found = rounds(held, 1.0, 0.4, 5, visits=1, batch=largest, most=3, target=0.1)
    assert found == math.inf and len(seen) == 3
    x = start(5)
    for after in seen:
        x = x - 0.4 * full_gradient(x)
        np.testing.assert_allclose(after, x, rtol=1e-8, atol=1e-10)


def test_admm_is_the_published_recursion():
    n, rate, penalty = 3, 0.05, 2.0
    rng = np.random.default_rng(0)
    multipliers, x, centre = rng.normal(size=n), rng.normal(size=n), rng.normal()
    before = np.array([*multipliers, *x, centre])
    for i in range(n):
        multipliers[i] -= x[i] - centre
        x[i] = x[i] - rate * x[i] + rate * penalty * (multipliers[i] + centre)
        x[i] /= 1 + rate * penalty
        centre = np.mean(x - multipliers)
    after = admm.admm_cycle(n, rate, penalty) @ before
    np.testing.assert_allclose(after, [*multipliers, *x, centre], rtol=1e-12)
    # The authors' example of an instability.
    assert admm.radius(admm.admm_cycle(3, 0.001, 2.5)) > 1.0005


def test_easgd_on_the_quadratic_is_the_published_recursion():
    """Workers in turn; here the pull follows the step."""
    n, rate, penalty = 3, 0.2, 1.5
    x, centre, centres = np.full(n, admm.START), admm.START, []
    for _ in range(5):
        for i in range(n):
            x[i] -= rate * x[i]
            apart = rate * penalty * (x[i] - centre)
            x[i], centre = x[i] - apart, centre + apart
        centres.append(abs(centre))
    np.testing.assert_allclose(admm.easgd(n, rate, penalty, 5), centres, rtol=1e-10)


def test_replicas_are_those_whose_mean_is_reported():
    replicas, seen = Replicas(gala._never_send), []
    fit("gala", 0.3, 0, n=4, passes=1, make=replicas.cluster, look=seen.append, looks=1.0)
    # At the end all is merged into a copy of the first node's replica: the others stay.
    found = replicas.now()
    assert found.shape == (4, start(0).size)
    np.testing.assert_allclose(seen[-1].ravel(), found.mean(axis=0), rtol=1e-8, atol=1e-10)
    apart = np.linalg.norm(found - found.mean(axis=0), axis=1)
    assert replicas.distance() == pytest.approx(apart.max()) and apart.min() > 0
    assert replicas.apart() == pytest.approx(np.mean(apart**2))


def test_plain_gossip_has_no_momentum():
    kept = []

    def change(strategy):
        a2cid2._no_momentum(strategy)
        kept.append(strategy)

    fit("a2cid2", 0.3, 0, n=4, passes=1, make=Replicas(change).cluster)
    assert len(kept) == 4 and not any(strategy._momentum.any() for strategy in kept)
    kept.clear()
    fit("a2cid2", 0.3, 0, n=4, passes=1, make=Replicas(kept.append).cluster)
    assert all(strategy._momentum.any() for strategy in kept)


@pytest.mark.parametrize(
    "module, settings",
    [
        (easgd, {"workers": 2, "passes": 1, "periods": (8, 64)}),
        (gosgd, {"workers": 2, "passes": 1, "periods": (4,)}),
        (local_sgd, {"workers": 2, "passes": 1, "local": 8}),
        (sgp, {"workers": 4, "passes": 1}),
        (a2cid2, {"workers": 4, "passes": 1}),
        (fedavg, {"clients": 4, "visits": 1, "target": 0.4, "most": {"FedAvg": 3, "FedSGD": 5}}),
        (admm, {"workers": (3,), "rates": (0.001,), "penalties": (2.5,), "cycles": 3}),
        (gala, {"workers": 3, "passes": 1, "rates": (0.1, 0.3)}),
        (absa, {"passes": 2}),
        (adversarial, {"passes": 2}),
        (gap, {"passes": 2}),
    ],
    ids=lambda value: value.__name__.rsplit(".", 1)[1] if hasattr(value, "TITLE") else "",
)
def test_every_claim_has_its_outcome(module, settings, monkeypatch):
    """A tiny trial: its rows are JSON, and make a sentence and a table."""
    monkeypatch.setattr(choice, "TUNING_SEEDS", (1000,))
    rows = json.loads(json.dumps(module.run([0], **settings)))
    found = module.outcome(rows)
    assert found.verdict in {"holds", "holds in part", "does not hold"}
    assert found.sentence.endswith(".") and "nan" not in found.sentence
    assert found.lines and all(len(line) == len(found.columns) for line in found.lines)
    text = "\n".join(section(module, found, "here"))
    assert module.CLAIM in text and module.SOURCE in text and module.TRIAL in text
    assert f"| {module.SOURCE} | {module.TITLE} | {found.verdict} |" in "\n".join(
        summary({"it": (module, found)})
    )


def test_a_verdict_is_of_all_parts():
    def verdict(*parts):
        return Outcome(list(parts), "", [], []).verdict

    assert verdict(True, True) == "holds" and verdict(False, False) == "does not hold"
    assert verdict(True, False) == "holds in part"


def test_easgd_wins_where_it_is_lower_everywhere():
    def row(*losses):
        return {"rate": 0.1, "runs": [{"loss": loss, "error": 0.1} for loss in losses]}

    rows = {
        "EASGD, tau = 4": row(0.1, 0.2, 0.3), "DOWNPOUR, tau = 4": row(0.2, 0.3, 0.2),
        "EASGD, tau = 16": row(0.2, 0.2, 0.2), "DOWNPOUR, tau = 16": row(0.6, 0.6, 0.6),
    }  # fmt: skip
    found = easgd.outcome(rows)
    assert found.parts == [False, True], "a tie of medians is no win"
    assert "(seeds won: 2 of 3, 3 of 3)" in found.sentence and "3.00 times" in found.sentence


def test_from_end_to_end(tmp_path, monkeypatch):
    rows = {
        "3, 0.001, 2.5": {"n": 3, "radius": 1.1, "most": 0.9, "end": 0.5},
        "3, 0.1, 2.5": {"n": 3, "radius": 0.9, "most": 0.9, "end": 0.1},
    }
    monkeypatch.setattr(admm, "run", lambda seeds: rows)
    command.main(["--only", "admm", "--seeds", "2", "--out", str(tmp_path)])
    record = json.loads((tmp_path / "admm.json").read_text())
    assert record["simulated"] and record["seeds"]["fits"] == [0, 1] and record["rows"] == rows
    text = (tmp_path / "known_results.md").read_text()
    assert "| holds | ADMM is unstable at 1 of 2 points with 3 workers" in text
    assert "| 3, 0.001, 2.5 | 1.10000 | 0.9000 | 0.5 |" in text and "easgd" not in text
    command.main(["--redraw", "--out", str(tmp_path)])
    assert (tmp_path / "known_results.md").read_text() == text


def test_images_are_moved_to_where_their_loss_grows():
    images = Images(*(part[:8] for part in parts()["test"]))
    x = start(0)
    moved = adversarial.moved(x, images)

    def loss_of(X):
        return network.mean_loss(x, X, images.y, CLASSES)

    for i, j in ((0, 20), (3, 33), (7, 42)):
        step = np.zeros_like(images.X)
        step[i, j] = 1e-6
        slope = loss_of(images.X + step) - loss_of(images.X - step)
        expected = np.clip(images.X[i, j] + adversarial.FAR * np.sign(slope), 0, 1)
        assert moved[i, j] == expected
    assert loss_of(moved) > 1.1 * loss_of(images.X)


def test_each_network_of_a_pair_follows_its_own_loss(rng):
    real, noise, x = pairs.points("ring", rng)[:20], rng.normal(size=(20, 2)), pairs.start(rng)

    def losses(x):
        """Of the generator and of the discriminator, which are told apart by their rows."""
        made = pairs.apply(x[1], 1, pairs.generated(x, noise))[1]
        of_real = pairs.apply(x[1], 1, real)[1]
        taken = np.logaddexp(0, -made).mean()
        return np.array([taken, np.logaddexp(0, -of_real).mean() + np.logaddexp(0, made).mean()])

    found = pairs.gradient(x, real, noise)
    used = np.array([5 * pairs.HIDDEN + 2, 4 * pairs.HIDDEN + 1])  # parameters of each
    assert not found[1, used[1] :].any() and not x[1, used[1] :].any()
    for row in (0, 1):
        for place in rng.integers(used[row], size=12):
            step = np.zeros_like(x)
            step[row, place] = 1e-6
            slope = (losses(x + step) - losses(x - step))[row] / 2e-6
            assert found[row, place] == pytest.approx(slope, rel=1e-5, abs=1e-9)


def test_modes_are_covered_by_a_quarter_of_their_points(rng):
    for form, n in (("ring", 8), ("grid", 25)):
        real = pairs.points(form, rng)
        assert len(pairs.modes(form)) == n and pairs.judged(real, form)[0] == n
        assert pairs.judged(real, form)[1] == pytest.approx(1 - np.exp(-4.5), abs=0.01)
    near, far = pairs.modes("ring")[:1], np.array([[0.0, 0.0]])
    samples = np.repeat([near[0], far[0]], [32, 968], axis=0)  # of 125 for each mode
    assert pairs.judged(samples, "ring") == (1, 0.032)
    assert pairs.judged(samples[1:], "ring")[0] == 0


@pytest.mark.parametrize("exchanged", [False, True])
def test_discriminators_change_their_generators(rng, exchanged):
    """At a rate of next to nothing what nodes started with shows who has what."""
    starts = np.array([pairs.start(rng) for _ in range(4)])
    nodes, held = gap.Apart(starts, None if exchanged else gala._never_send), []
    cluster = nodes.cluster(
        n_workers=4, strategy="gap", strategy_options={"period": 1, "last_rows": 1}, seed=0,
        network=FREE, timing=TIMING,
    )  # fmt: skip

    def look(result=None):
        now = nodes.now().reshape(starts.shape)
        np.testing.assert_allclose(now[:, 0], starts[:, 0], atol=1e-6)
        apart = np.abs(now[:, None, 1] - starts[None, :, 1]).max(axis=2)
        assert apart.min(axis=1).max() < 1e-6
        held.append(apart.argmin(axis=1).tolist())

    optimizer = DPSGD(
        learning_rate=1e-9, batch_size=64, max_iter=1, engine="simulated", local_steps=1,
        cluster=cluster, random_state=0, evaluate_every=0.1,
    )  # fmt: skip
    optimizer.minimize(pairs.objective(pairs.points("ring", rng), rng), starts[0], callback=look)
    look()
    assert sorted(held[-1]) == [0, 1, 2, 3], "there is one of each"
    assert any(each != [0, 1, 2, 3] for each in held) == exchanged
