"""The actor-critic: exact where it can be, learning on every engine, and what it refuses."""

from types import SimpleNamespace

import numpy as np
import pytest
from reference.actor_critic import Agent

from dpsvi import Cluster, VirtualCluster
from dpsvi.cluster.virtual import Network as Link
from dpsvi.cluster.virtual import Timing
from dpsvi.errors import DivergedError, ModelFormatError
from dpsvi.kernels.jit import kernel
from dpsvi.rl import ActorCritic, environments, play, problem
from dpsvi.rl.algorithms import ALGORITHMS
from dpsvi.rl.generator import uniform
from dpsvi.training.ledger import Ledger, StepRange

CARTPOLE = environments.get("cartpole")
SMALL = dict(hidden=(16,), n_games=2, n_moves=4, optimizer="rmsprop", random_state=3)
TIMING = Timing(step=1e-4, value=0.0)
UNTRAINED = 60  # more than a policy has that has learned nothing


def virtual(n, **more):
    return VirtualCluster(
        n_workers=n, timing=TIMING, network=Link(bandwidth=1.25e9, latency=1e-6), **more
    )


@pytest.mark.parametrize("more", [
    dict(), dict(trace=0.9, sticky=0.2, entropy=0.1), dict(clip=0.0, value=1.0, gamma=0.9),
    dict(algorithm="ga3c"), dict(algorithm="paac", objective="q", trace=0.9),
], ids=["plain", "traces, sticky actions", "without clipping", "queue", "Q-learning"])  # fmt: skip
def test_it_is_the_sequential_algorithm(more):
    """Against a plain loop with the same random numbers, to the rounding of float32."""
    updates, rate = 40, 0.005
    agent = ActorCritic(
        engine="serial", learning_rate=rate, anneal=False, n_evaluations=1, n_episodes=1, **SMALL,
        **more,
    )  # fmt: skip
    network, settings = agent._network(), agent._settings()
    agent.fit(updates * settings.n_games * settings.n_moves)
    seed = np.random.RandomState(SMALL["random_state"]).randint(np.iinfo(np.int32).max)
    first = np.random.default_rng(seed)
    start = network.start(first)
    # The stream of a thread is numbered by its first step.
    number = Ledger(updates, 1, 1, seed).items(StepRange(0, 0, 0, 1, 0))[0]
    other = Agent(CARTPOLE, network, settings, start, (seed << 32) + int(number))
    for _ in range(updates):
        other.step(rate)
    moved = np.abs(other.theta - start).max()
    np.testing.assert_allclose(agent.parameters_, other.theta, atol=2e-3 * moved)
    assert moved > 0.05


def test_one_worker_that_sends_every_step_is_the_sequential_algorithm():
    """B = p = n = M = 1 of Alg. 8 and 9."""
    alone = ActorCritic(engine="serial", **SMALL).fit(4_000)
    cluster = virtual(1, strategy="displacement")
    other = ActorCritic(engine="simulated", cluster=cluster, local_steps=1, **SMALL).fit(4_000)
    np.testing.assert_allclose(other.parameters_, alone.parameters_, atol=1e-4)


@pytest.mark.parametrize("more", [
    dict(algorithm="hsa2c"), dict(algorithm="ga3c"), dict(optimizer="adam"),
    dict(optimizer="sgd_momentum"),
], ids=str)  # fmt: skip
def test_one_thread_is_reproducible_and_a_resumed_fit_ends_alike(more, tmp_path):
    moves, told = 8_000, dict(engine="serial", **{**SMALL, **more})
    whole = ActorCritic(**told).fit(moves)
    again = ActorCritic(**told).fit(moves)
    np.testing.assert_array_equal(whole.parameters_, again.parameters_)

    def interrupt(entry, agent):
        if entry["moves"] > moves / 2:
            raise KeyboardInterrupt

    folder = dict(checkpoint_dir=tmp_path, checkpoint_seconds=0.0)
    cut = ActorCritic(callbacks=[interrupt], **folder, **told)
    with pytest.raises(KeyboardInterrupt):
        cut.fit(moves)
    assert 0 < cut.n_moves_ < moves
    resumed = ActorCritic(**folder, **told).resume(moves)
    np.testing.assert_array_equal(resumed.parameters_, whole.parameters_)
    assert [entry["moves"] for entry in resumed.history_] == [
        entry["moves"] for entry in whole.history_
    ]
    with pytest.raises(ModelFormatError, match="gamma was 0.99, now 0.5"):
        ActorCritic(gamma=0.5, **folder, **told).resume(moves)


@pytest.mark.parametrize("settings", [
    dict(engine="serial"),
    dict(engine="threads", n_jobs=2),
    dict(engine="threads", n_jobs=2, algorithm="pa3c", n_moves=32, learning_rate=0.002),
    dict(engine="threads", n_jobs=2, algorithm="ga3c", learning_rate=0.0005),
    dict(engine="serial", algorithm="paac"),
    dict(engine="serial", algorithm="paac", objective="q"),
    dict(engine="simulated", algorithm="paac", objective="q", cluster=virtual(2)),
    dict(engine="serial", optimizer="rmsprop", trace=0.95),
    dict(engine="serial", optimizer="sgd", learning_rate=0.05),
    dict(engine="serial", optimizer="sgd_momentum", learning_rate=0.005),
    dict(engine="simulated", cluster=virtual(2)),
    dict(
        engine="simulated", algorithm="da3c", cluster=virtual(2, strategy="displacement"),
        n_games=8,
    ),
    dict(engine="simulated", algorithm="paac", cluster=virtual(2, strategy="local_sgd")),
    dict(
        engine="simulated", algorithm="gala", cluster=virtual(2, strategy="gala"),
        learning_rate=0.0025,
    ),
    dict(engine="simulated", cluster=virtual(2, strategy="push_sum"), local_steps=4),
], ids=str)  # fmt: skip
def test_it_learns_on_every_engine_and_by_every_algorithm(settings):
    agent = ActorCritic(random_state=0, **settings).fit(200_000)
    assert agent.evaluate(100).mean() > UNTRAINED
    assert agent.n_moves_ >= 200_000


def test_who_has_learned_nothing_drops_the_pole():
    agents = [ActorCritic(learning_rate=1e-9, random_state=seed).fit(1) for seed in range(5)]
    scores = [agent.evaluate(20).mean() for agent in agents]
    assert np.median(scores) < UNTRAINED / 2  # one may draw a good policy


def test_a_fit_ends_at_its_target():
    agent = ActorCritic(target=150, n_evaluations=100, random_state=0).fit(2_000_000)
    assert agent.history_[-1]["score"] >= 150
    assert agent.n_moves_ < 2_000_000
    assert all(entry["score"] < 150 for entry in agent.history_[:-1])


def test_a_saved_agent_plays_on(tmp_path):
    agent = ActorCritic(random_state=0).fit(50_000)
    agent.save(tmp_path)
    loaded = ActorCritic.load(tmp_path)
    np.testing.assert_array_equal(loaded.evaluate(5), agent.evaluate(5))
    states = loaded.watch()
    assert states.shape == (agent.evaluate(1)[0], CARTPOLE.N_STATE)
    observation = np.zeros(4, np.float32)
    CARTPOLE.observe(states[0], observation)
    assert loaded.act(observation) == agent.act(observation)
    assert loaded.get_params() == agent.get_params()
    with pytest.raises(ValueError, match="shape"):
        agent.act(np.zeros(3))
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(ModelFormatError, match="SHA-256"):
        ActorCritic.load(tmp_path)


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize("params, match", [
    (dict(environment="chess"), "environment must be one of"),
    (dict(algorithm="dqn"), "algorithm"),
    (dict(objective="v"), "objective"),
    (dict(gamma=1.5), "gamma"),
    (dict(learning_rate=0), "learning_rate"),
    (dict(n_moves=0), "n_moves"),
    (dict(hidden=(0,)), "hidden"),
    (dict(convolution=(16, 3)), "height, width, channels"),
    (dict(sticky=1.0), "sticky"),
    (dict(learning_rate=3), "learning_rate"),
    (dict(convolution=(16,)), "convolution"),
    (dict(algorithm="paac", n_jobs=2), "one thread"),
    (dict(algorithm="gala"), "workers"),
    (dict(cluster=Cluster()), "workers"),
    (dict(callbacks=print), "callbacks must be a list or tuple or None"),
    (dict(callbacks=[1]), "callbacks must be callables, got 1"),
    (dict(algorithm="pa3c", engine="simulated", cluster=virtual(2)), "one process"),
    (dict(algorithm="ga3c", engine="simulated", cluster=virtual(2)), "one process"),
])  # fmt: skip
def test_what_is_not_allowed_is_refused(params, match):
    with pytest.raises((ValueError, TypeError), match=match):
        ActorCritic(**params).fit(100)


@kernel
def begin(state, random):
    state[0] = 0.0


@kernel
def walk(state, action, random):
    state[0] += 1.0 if action == 1 else -1.0
    return state[0], abs(state[0]) >= 5


@kernel
def never(state, action, random):
    return 0.0, False


@kernel
def unnumbered(state, action, random):
    state[0] += 1.0
    return (np.nan if uniform(random) < 0.01 else 0.0), state[0] > 10


@kernel
def unended(state, action, random):
    return 0.0


@kernel
def look(state, observation):
    observation[0] = state[0]


def environment(**changes):
    parts = dict(
        SHAPE=(1,), N_ACTIONS=2, N_STATE=1, LIMIT=50, reset=begin, step=walk, observe=look,
        __name__="walk",
    )  # fmt: skip
    return SimpleNamespace(**{**parts, **changes})


@pytest.mark.parametrize("changes, match", [
    (dict(SHAPE=(2,)), "number 1 of SHAPE"),
    (dict(SHAPE=[1]), "SHAPE of environment walk"),
    (dict(N_ACTIONS=0), "N_ACTIONS"),
    (dict(LIMIT=-1), "LIMIT"),
    (dict(step=never, LIMIT=0), "did not end"),
    (dict(step=unnumbered), "reward nan"),
    (dict(step=unended), r"environment walk does not compile as .* returns \(reward, ended\)"),
])  # fmt: skip
def test_a_bad_environment_is_named(changes, match):
    with pytest.raises((ValueError, TypeError), match=match):
        ActorCritic(environment(**changes)).fit(100)


def drawn_by(reward):
    """Environments of one source that are told apart by a value only."""

    @kernel
    def pay(state, action, random):
        state[0] += 1.0
        return reward, state[0] == 10

    return environment(step=pay)


def test_environments_that_one_function_makes_are_told_apart():
    agent = ActorCritic(drawn_by(1.0), **SMALL).fit(100)
    assert agent.evaluate(1)[0] == 10
    assert agent.set_params(environment=drawn_by(2.0)).evaluate(1)[0] == 20


@kernel
def overwrite(state, observation):
    observation[0] = observation[1] = state[0]


def test_writes_beyond_the_arrays_are_named():
    with pytest.raises(ValueError, match="writes more numbers than SHAPE"):
        ActorCritic(environment(observe=overwrite)).fit(100)


def test_an_episode_that_does_not_end_is_named():
    """Random moves leave the walk, a policy that has learned to stay does not."""
    agent = ActorCritic(environment(LIMIT=0), hidden=(), random_state=0)
    with pytest.raises(ValueError, match="did not end in 1,000,000 moves: LIMIT"):
        agent.fit(200_000)


def test_a_game_of_ones_own_leaves_checkpoints(tmp_path):
    params = dict(checkpoint_dir=tmp_path, checkpoint_seconds=0.0, **SMALL)
    whole = ActorCritic(environment(), **params).fit(800)
    again = ActorCritic(environment(), **params).resume(800)
    np.testing.assert_array_equal(again.parameters_, whole.parameters_)
    with pytest.raises(ModelFormatError, match="the environment has changed"):
        ActorCritic(environment(LIMIT=40), **params).resume(800)


def test_callbacks_get_an_agent_that_plays():
    scores = []

    def play_on(entry, agent):
        scores.append((agent.n_moves_ == entry["moves"], agent.evaluate(1)[0]))

    ActorCritic(callbacks=[play_on], n_evaluations=3, **SMALL).fit(400)
    assert len(scores) == 3 and all(right for right, _ in scores)


def test_the_strategy_is_the_algorithms_on_a_cluster_that_names_none():
    for algorithm, strategy in (("hsa2c", "momentum"), ("gala", "gala"), ("paac", "local_sgd")):
        agent = ActorCritic(algorithm=algorithm, engine="simulated", cluster=virtual(5))
        found = agent._cluster()
        assert (found.strategy, found.n_workers) == (strategy, 5)
    hsa2c = ActorCritic(engine="simulated", cluster=virtual(5))._cluster()
    assert hsa2c.global_rate == pytest.approx((1 - hsa2c.strategy_options["momentum"]) / 5)
    elastic = ActorCritic(engine="simulated", cluster=virtual(5, strategy="elastic"))
    assert elastic._cluster().strategy == "elastic"


def test_a_fit_that_fails_leaves_what_was_there():
    agent = ActorCritic(**SMALL).fit(400)
    parameters, history, moves = agent.parameters_, agent.history_, agent.n_moves_

    def fail(entry, agent):
        raise RuntimeError("mine")

    def check(error):
        with pytest.raises(error):
            agent.fit(100_000)
        assert agent.parameters_ is parameters and agent.history_ is history
        assert agent.n_moves_ == moves

    agent.set_params(callbacks=[fail])
    check(RuntimeError)
    agent.set_params(
        callbacks=None, learning_rate=1.0, clip=0.0, optimizer="sgd", anneal=False, value=1e30
    )
    check(DivergedError)


@pytest.mark.parametrize("other", [
    dict(hidden=(500, 500)), dict(hidden=()), dict(environment="acrobot"),
    dict(environment="breakout", convolution=(16, 3)),
], ids=str)  # fmt: skip
def test_parameters_of_another_network_are_not_played(other, tmp_path):
    agent = ActorCritic(**SMALL).fit(100).set_params(**other)
    for use in (agent.evaluate, agent.watch, lambda: agent.act(np.zeros(4)),
                lambda: agent.save(tmp_path)):  # fmt: skip
        with pytest.raises(ValueError, match="environment, hidden and convolution now make"):
            use()
    assert not any(tmp_path.iterdir())


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    agent = ActorCritic(**SMALL).fit(100).set_params(gamma=5.0)
    with pytest.raises(ValueError, match="gamma must be a number >= 0 and <= 1, got 5.0"):
        agent.save(tmp_path)


def test_bad_observations_are_refused():
    agent = ActorCritic(**SMALL).fit(100)
    for greedy in (True, False):
        with pytest.raises(ValueError, match="observation must be finite"):
            agent.act([0.0, np.nan, 0.0, 0.0], greedy=greedy)
    with pytest.raises(TypeError, match="greedy must be True or False"):
        agent.act(np.zeros(4), greedy="no")


def test_an_environment_of_ones_own_is_learned():
    agent = ActorCritic(environment(), hidden=(16,), random_state=0).fit(100_000)
    assert agent.evaluate(20).mean() > 100  # it stays on the good side until it is cut
    with pytest.raises(ValueError, match="name"):
        agent.save("anywhere")


def test_a_step_that_is_not_a_number_ends_the_fit():
    agent = ActorCritic(value=1e30, clip=0.0, anneal=False, **{**SMALL, "optimizer": "sgd"})
    with pytest.raises(DivergedError, match="actor-critic on cartpole"):
        agent.fit(100_000)


def test_every_algorithm_is_described():
    for name in ALGORITHMS:
        assert f'``"{name}"``' in ActorCritic.__doc__


def test_settings_reach_the_kernel():
    agent = ActorCritic(gamma=0.5, sticky=0.25, n_games=3, n_moves=7)
    hyper = problem.hyper(CARTPOLE, agent._network(), agent._settings(), 11)
    assert [hyper[k] for k in (play.GAMMA, play.STICKY, play.N_GAMES, play.N_MOVES)] == [
        0.5, 0.25, 3, 7,
    ]  # fmt: skip
    assert [hyper[k] for k in (play.LIMIT, play.SEED, play.N_STATE)] == [500, 11, 4]


def test_workers_in_step_share_32_games():
    for n, games in ((1, 32), (3, 10), (4, 8), (40, 1)):
        agent = ActorCritic(algorithm="paac", engine="simulated", cluster=virtual(n))
        assert agent._settings().n_games == games
    assert ActorCritic(algorithm="paac", engine="serial")._settings().n_games == 32
    other = ActorCritic(algorithm="gala", engine="simulated", cluster=virtual(4))
    assert other._settings().n_games == 8


@pytest.mark.parametrize("optimizer, algorithm, factor", [
    ("adam", "paac", 2), ("adam", "gala", 2), ("rmsprop", "paac", 2), ("adam", "hsa2c", 1),
    ("sgd", "paac", 4), ("sgd_momentum", "paac", 4),
])  # fmt: skip
def test_replicas_step_by_the_root_of_their_number(optimizer, algorithm, factor):
    """By what four workers moved in their only step, from the same parameters."""
    told = dict(algorithm=algorithm, optimizer=optimizer, n_games=8, anneal=False, clip=1e-3)
    cluster = virtual(4, strategy="displacement") if algorithm == "hsa2c" else virtual(4)
    rate, alone = 1e-3, algorithm == "hsa2c"
    agent = ActorCritic(
        engine="simulated", cluster=cluster, learning_rate=rate, local_steps=1, random_state=0,
        n_evaluations=1, n_episodes=1, hidden=(), **told,
    )  # fmt: skip
    seed = np.random.RandomState(0).randint(np.iinfo(np.int32).max)
    start = agent._network().start(np.random.default_rng(seed))
    moved = np.abs(agent.fit(1 if alone else 4 * 8 * agent.n_moves).parameters_ - start)
    if optimizer == "adam":
        assert moved.max() == pytest.approx(factor * rate, rel=0.05)
    else:  # a mean of clipped gradients: the mean square of rmsprop begins at 1
        assert 0.3 < np.linalg.norm(moved) / (factor * rate * 1e-3) < 1.01
