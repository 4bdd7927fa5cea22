"""Environments of gymnasium: played as compiled ones are, and named where they are bad."""

import sys
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from dpsvi import VirtualCluster
from dpsvi.cluster.virtual import Timing
from dpsvi.kernels.jit import inline_kernel
from dpsvi.rl import ActorCritic, check, environments
from dpsvi.rl.generator import below

SMALL = dict(hidden=(16,), n_games=2, n_moves=4, n_evaluations=2, n_episodes=3, random_state=3)
LIMIT, END = 7, 4


class Walk(gymnasium.Env):
    """Go left or right from a place that the seed says; `changes` make it a bad one."""

    observation_space = spaces.Box(-100, 100, (1, 2), np.float64)
    action_space = spaces.Discrete(2, start=5)
    opened = 0

    def __init__(self, **changes):
        for name, value in changes.items():
            setattr(self, name, value)
        Walk.opened += 1

    def see(self):
        return np.array([[self.place, 1.0]])

    def pay(self):
        return self.place

    def ends(self):
        return abs(self.place) >= END

    def reset(self, *, seed=None, options=None):
        self.place = float(seed % 3 - 1)
        return self.see(), {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.place += 1.0 if action == 6 else -1.0
        return self.see(), self.pay(), self.ends(), False, {}

    def close(self):
        Walk.opened -= 1


@inline_kernel
def reset(state, random):
    state[0] = below(random, 1 << 31) % 3 - 1


@inline_kernel
def step(state, action, random):
    state[0] += 1.0 if action == 1 else -1.0
    return state[0], abs(state[0]) >= END


@inline_kernel
def observe(state, observation):
    observation[0], observation[1] = state[0], 1.0


TWIN = SimpleNamespace(
    SHAPE=(1, 2), N_ACTIONS=2, N_STATE=1, LIMIT=LIMIT, reset=reset, step=step, observe=observe
)


@pytest.fixture
def register():
    """A callable that names an environment to gymnasium and gives what an agent is told."""
    names = []

    def register(entry_point=Walk, max_episode_steps=LIMIT, **changes):
        names.append(f"Walk{Walk.opened}{len(names)}{id(names)}-v0")
        gymnasium.register(
            names[-1], entry_point, max_episode_steps=max_episode_steps, kwargs=changes
        )
        return f"gymnasium:{names[-1]}"

    yield register
    for name in names:
        gymnasium.registry.pop(name)


@pytest.mark.parametrize("engine", [
    dict(engine="serial"),
    dict(engine="simulated", cluster=VirtualCluster(n_workers=2, timing=Timing(1e-4, 0.0))),
], ids=["serial", "simulated"])  # fmt: skip
def test_it_is_played_as_a_compiled_one_is(engine, register):
    """The same game, once in the interpreter: with ends and with cuts, whose values count."""
    name = register()
    agents = [
        ActorCritic(game, sticky=0.2, trace=0.9, **engine, **SMALL).fit(2_000)
        for game in (name, TWIN)
    ]
    ours, twins = (agent.parameters_ for agent in agents)
    np.testing.assert_allclose(ours, twins, atol=1e-4)
    start = agents[0]._network().start(np.random.default_rng(0))
    assert np.abs(ours - start).max() > 0.05
    np.testing.assert_array_equal(*(agent.evaluate(20, greedy=False) for agent in agents))
    assert Walk.opened == 0, "all are closed"


def test_an_action_is_one_of_the_environments(register):
    """Walk's begin with 5."""
    agent = ActorCritic(register(), **SMALL).fit(100)
    compiled = ActorCritic(TWIN, **SMALL).fit(100)
    for greedy in (True, False):
        told = dict(greedy=greedy, random_state=0)
        action = agent.act([[1.0, 1.0]], **told)
        assert Walk.action_space.contains(action)
        assert action == 5 + compiled.act([[1.0, 1.0]], **told)


def test_where_an_environment_cuts_itself_the_game_would_have_gone_on(register):
    """Beside one that ends there: only the first is worth something at the cut."""

    class Cut(Walk):
        def step(self, action):
            seen, *_ = super().step(action)
            self.moves += 1
            over = self.moves == 2
            return seen, 1.0, over and self.over, over and not self.over, {}

        def reset(self, **more):
            self.moves = 0
            return super().reset(**more)

    values = []
    for over in (False, True):
        name = register(Cut, None, over=over)
        agent = ActorCritic(name, gamma=0.5, **{**SMALL, "hidden": ()}).fit(20_000)
        theta, network = agent.parameters_, agent._network()
        values.append(network.apply(theta, np.zeros((1, 2)) + [[0, 1]])[-1])
    # r / (1 - gamma) where it goes on for ever; else a move or two are left: 1.5 and 1.
    assert values[0] == pytest.approx(2.0, abs=0.1)
    assert values[1] == pytest.approx(1.25, abs=0.15)


@pytest.mark.parametrize("settings", [
    dict(engine="serial"), dict(engine="threads", n_jobs=2),
], ids=["serial", "threads"])  # fmt: skip
def test_cartpole_of_gymnasium_is_learned(settings):
    agent = ActorCritic(
        "gymnasium:CartPole-v1", n_games=8, random_state=0, n_evaluations=4, **settings
    ).fit(60_000)  # fmt: skip
    assert max(entry["score"] for entry in agent.history_) > 60  # without learning: below 30


def test_a_saved_agent_plays_on_in_an_environment_of_gymnasium(tmp_path, register):
    agent = ActorCritic("gymnasium:CartPole-v1", **SMALL).fit(5_000)
    agent.save(tmp_path)
    loaded = ActorCritic.load(tmp_path)
    np.testing.assert_array_equal(loaded.evaluate(5), agent.evaluate(5))
    with gymnasium.make("CartPole-v1") as environment:
        seen, _ = environment.reset(seed=0)
        assert loaded.act(seen) == agent.act(seen)
    with pytest.raises(ValueError, match="states can be seen, got 'gymnasium:CartPole-v1'"):
        agent.watch()


def test_a_choice_is_seen_as_so_many_numbers():
    agent = ActorCritic("gymnasium:FrozenLake-v1", **SMALL).fit(100)
    assert agent._environment().SHAPE == (16,)
    environment = gymnasium.make("FrozenLake-v1")
    assert agent.act(spaces.flatten(environment.observation_space, 3)) in range(4)


def test_a_fit_of_gymnasium_that_was_cut_goes_on_with_new_games(tmp_path, register):
    def interrupt(entry, agent):
        raise KeyboardInterrupt

    name, folder = register(), dict(checkpoint_dir=tmp_path, checkpoint_seconds=0.0)
    with pytest.raises(KeyboardInterrupt):
        ActorCritic(name, callbacks=[interrupt], **folder, **SMALL).fit(2_000)
    resumed = ActorCritic(name, **folder, **SMALL).resume(2_000)
    assert resumed.n_moves_ == 2_000 and len(resumed.history_) == 2
    assert Walk.opened == 0


# --- bad ones -------------------------------------------------------------------------------------


@pytest.mark.parametrize("changes, match", [
    (dict(see=lambda: np.zeros(1)), r"shape \(1,\), its observation_space says \(1, 2\)"),
    (dict(see=lambda: np.full((1, 2), np.inf)), "number 0 of SHAPE"),
    (dict(pay=lambda: np.nan), "reward nan"),
    (dict(action_space=spaces.Box(0, 1)), "action_space of environment .* must be Discrete"),
    (dict(observation_space=spaces.Sequence(spaces.Discrete(2))), "observation_space .* fixed"),
])  # fmt: skip
def test_a_bad_one_is_named(changes, match, register):
    name = register(**changes)
    with pytest.raises(ValueError, match=match) as raised:
        ActorCritic(name, **SMALL).fit(100)
    assert name in str(raised.value)


def test_one_without_an_end_is_named(monkeypatch, register):
    monkeypatch.setattr(check, "ENDLESS", 3_000)
    name = register(max_episode_steps=None, ends=lambda: False)
    with pytest.raises(ValueError, match="did not end in 3,000 random moves: .*max_episode_steps"):
        ActorCritic(name, **SMALL).fit(100)


def test_what_gymnasium_does_not_know_is_refused():
    for name in ("Nothing-v1", "no_such_module:Nothing-v1", ""):
        with pytest.raises(ValueError, match=f"gymnasium:{name} cannot be made"):
            ActorCritic(f"gymnasium:{name}").fit(100)
    with pytest.raises(TypeError, match="as in 'gymnasium:CartPole-v1'"):
        ActorCritic(gymnasium.make("CartPole-v1")).fit(100)


def test_without_gymnasium_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(ImportError, match=r"pip install 'dpsvi\[gymnasium\]'"):
        environments.get("gymnasium:NotAskedBefore-v1")
