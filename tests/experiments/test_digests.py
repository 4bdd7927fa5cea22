"""Two revisions with the same numbers: what the comparison flags, and what the fits cover."""

import json

import numpy as np
import pytest

import dpsvi
from experiments import against
from experiments.digests import compare, fits, make, speed
from experiments.digests.__main__ import main
from experiments.digests.sides import ROOT, Numbers, Side
from experiments.provenance import git_revision, provenance


def verdicts(there, here, **errors):
    """Rows for two dicts of the arrays of one fit."""
    sides = (
        Numbers({f"fit/{key}": np.asarray(a) for key, a in arrays.items()}, {})
        for arrays in (there, here)
    )
    there, here = sides
    return compare.compare(["fit"], there._replace(**errors), here)[0]


def test_equal_arrays_pass(rng):
    arrays = {"a": rng.normal(size=(3, 4)), "b": np.array([np.nan, np.inf, 0.0]), "n": [1, 2]}
    row = verdicts(arrays, {key: np.copy(a) for key, a in arrays.items()})
    assert row.passes and row.verdict == "equal to the bit"


@pytest.mark.parametrize(
    ("change", "passes"),
    [
        (lambda a: np.nextafter(a, np.inf), True),
        (lambda a: a * (1 + 0.9e-5), True),
        (lambda a: a * (1 + 1.1e-5), False),
        (lambda a: a + 1e-3 * (np.arange(a.size).reshape(a.shape) == 5), False),
        (lambda a: a[::-1], False),  # sum and norm are the same
        (lambda a: np.where(a == a.max(), np.nan, a), False),
        (lambda a: np.where(a == a.max(), np.inf, a), False),
        (lambda a: a.astype(np.float32), False),
        (lambda a: a.ravel(), False),
        (np.zeros_like, False),
    ],
)
def test_changed_arrays_are_flagged(change, passes, rng):
    arrays = {"equal": np.ones(3), "array": rng.uniform(0.5, 2.0, size=(3, 4))}
    changed = {**arrays, "array": np.ascontiguousarray(change(arrays["array"]))}
    for row in (verdicts(arrays, changed), verdicts(changed, arrays)):
        assert row.where == "array" and row.difference > 0 and row.passes is passes
        assert "equal" not in row.verdict
    was, now = (compare.digest(side["array"]) for side in (arrays, changed))
    assert was["sha256"] != now["sha256"] or was["shape"] != now["shape"]


def test_the_difference_is_relative_to_the_largest_number():
    assert compare.difference(np.array([4.0, 0.0]), np.array([4.0, 1.0])) == 0.25
    assert compare.difference(np.array([200]), np.array([201])) == 0.005
    assert 0 < compare.difference(np.array([0.0]), np.array([-0.0])) < 1e-300
    assert compare.difference(np.zeros(2), np.array([0.0, 1e-9])) > 1


def test_what_one_side_lacks_is_flagged():
    both, one = {"a": np.ones(2), "b": np.ones(2)}, {"a": np.ones(2)}
    assert verdicts(both, one).verdict == "missing here: b"
    assert verdicts(one, both).verdict == "missing there: b"
    failed = verdicts({}, one, errors={"fit": "TypeError: no such parameter"})
    assert failed.verdict == "missing there: TypeError: no such parameter"
    for row in (verdicts(both, one), verdicts(one, both), failed, verdicts({}, {})):
        assert not row.passes


def test_a_digest_is_json_and_keeps_sum_and_norm():
    found = compare.digest(np.array([[3.0, 4.0]], np.float32))
    assert (found["sum"], found["norm"]) == (7, 5)
    assert (found["dtype"], found["shape"]) == ("float32", [1, 2])
    json.dumps(found)


def test_every_model_and_local_step_is_fitted():
    estimators = {name for name in dpsvi.__all__ if name.startswith("DPSVI")}
    assert {fit.estimator for fit in fits.FITS.values()} == estimators
    assert {fits.FITS[timed.fit].estimator for timed in fits.TIMED.values()} == estimators
    for name in ("DPSVILDA", "DPSVIHDP"):
        steps = {
            fit.params.get("local_step", "collapsed")
            for fit in fits.FITS.values()
            if fit.estimator == name
        }
        # "sparse" is younger than the revision that digests are compared with.
        assert steps == set(getattr(dpsvi, name)._defaults) - {"sparse"}


def test_numbers_of_one_fit(tmp_path):
    first, again, other = tmp_path / "1", tmp_path / "2", tmp_path / "3"
    for folder in (first, again, other):
        folder.mkdir()
    name = "lda, collapsed, fixed priors"
    found = make.numbers(name, first, first)
    model = dpsvi.load(first / name)
    assert np.array_equal(found["file lambda"].T, model.components_)
    assert {"bound_", "fitted transform", "loaded transform"} <= found.keys()
    # models of another folder are loaded where one is given
    X = fits.documents(np.random.default_rng(1), 50)["X"]
    dpsvi.DPSVILDA(n_components=5, max_iter=1, random_state=1).fit(X).save(other / name)
    mixed = make.numbers(name, again, other)
    different = {key for key in found if compare.difference(found[key], mixed[key])}
    assert different == {"loaded transform", "loaded perplexity"}


def test_a_side_takes_dpsvi_from_its_tree(tmp_path):
    with Side(tmp_path, tmp_path / "side").clock() as seconds, pytest.raises(RuntimeError):
        seconds("hierarchical regression")  # this tree has no dpsvi, so another one is found
    package = tmp_path / "dpsvi"
    package.mkdir()
    (package / "__init__.py").write_text(
        "class DPSVIHierarchicalRegressor:\n"
        "    def __init__(self, **params):\n"
        "        assert (params['engine'], params['n_jobs'], params['random_state']) == "
        "('serial', 1, 0)\n"
        "    def fit(self, X, y, groups):\n"
        "        assert len(X) == len(y) == len(groups)\n"
    )
    side = Side(tmp_path, tmp_path / "other")
    with side.clock() as seconds:
        assert 0 <= seconds("hierarchical regression") < 1
    found = side.numbers()
    assert found.arrays == {} and found.errors.keys() == fits.FITS.keys()
    assert found.errors["hmm, full"].startswith("AttributeError: module 'dpsvi' has no")


def test_the_ratio_of_speeds():
    rng = np.random.default_rng(3)
    here = rng.uniform(0.9, 1.1, size=speed.PAIRS)
    there = 0.5 * rng.permutation(here)  # twice as fast there
    middle, low, high = speed.ratio(list(zip(there, here, strict=True)))
    assert middle == pytest.approx(0.5)
    assert 0.4 < low < 0.5 < high < 0.6
    assert "| x | 0.500 |" in speed.table({"x": (middle, low, high)})


def test_who_begins_changes_from_pair_to_pair():
    calls = []

    def side(number):
        return lambda name: calls.append(number) or float(number)

    found = speed.pairs("x", side(1), side(2))
    assert found == [(1.0, 2.0)] * speed.PAIRS
    assert calls == [1, 2] + [1, 2, 2, 1] * (speed.PAIRS // 2)


def test_speed_needs_another_revision(capsys):
    with pytest.raises(SystemExit):
        main(["--speed"])
    assert "--speed needs --against" in capsys.readouterr().err


def test_pairs_of_an_experiment(tmp_path):
    """On both sides the experiments are of this checkout; there dpsvi is that of the revision."""
    here = git_revision(ROOT)
    if here is None:
        pytest.skip("this is no checkout of a revision")
    trees = set()

    def seconds(folder, name):
        trees.add((folder / "dpsvi").resolve())
        assert (folder / "experiments").resolve() == ROOT / "experiments" and name == "fit"
        return 2.0 if folder == ROOT else 1.0

    found = against.measure("HEAD", ["fit"], seconds, 2)
    assert found["seconds"] == {"fit": [(1.0, 2.0)] * 2}
    assert found["speed"] == {"fit": (0.5, 0.5, 0.5)}
    assert found["there"] == {"revision": here["revision"], "modified": False}
    (other,) = trees - {ROOT / "dpsvi"}
    assert not other.exists(), "the worktree is gone"
    against.write(tmp_path / "pairs", provenance("m", [], [], {}), found)
    stem = f"pairs-against-{here['revision'][:7]}"
    assert json.loads((tmp_path / f"{stem}.json").read_text())["seconds"] == {
        "fit": [[1, 2], [1, 2]]
    }
    assert "| fit | 0.500 | 0.500 to 0.500 |" in (tmp_path / f"{stem}.md").read_text()
