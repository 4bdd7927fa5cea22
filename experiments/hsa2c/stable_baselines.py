"""A2C of stable-baselines3, the peer of the tables, where it is installed.

The settings are those of rl-baselines3-zoo (``hyperparams/a2c.yml``) for CartPole: eight games
at once, no entropy, and the library's defaults for the rest, which are five moves a step, RMSProp
with a constant rate of 7e-4, and two networks of 64-64 units with tanh, one for the policy and one
for the value.  The zoo has none for MinAtar, so Breakout has these and, in a row of its own, those
that it has for Atari, but for the network: sixteen games, an entropy of 0.01, a value's weight of
0.25, and TensorFlow's form of RMSProp.  Breakout is MinAtar's own, without sticky actions and with
episodes of at most 5,000 moves, as ours is here.
"""

from __future__ import annotations

import importlib.util
import time

from dpsvi.rl.environments import breakout

NAME, ATARI = "stable-baselines3 A2C", "stable-baselines3 A2C, settings of Atari"
EPISODES = 100
# What gymnasium calls an environment of ours, and what it is told.
ENVIRONMENTS: dict[str, tuple[str, dict]] = {
    "cartpole": ("CartPole-v1", {}),
    "breakout": (
        "MinAtar/Breakout-v1", {"sticky_action_prob": 0.0, "max_episode_steps": breakout.LIMIT},
    ),
}  # fmt: skip


def entrants(environment: str) -> tuple[str, ...]:
    """Names of the settings that an environment is learned with."""
    return (NAME,) if environment == "cartpole" else (NAME, ATARI)


def installed() -> bool:
    """Whether the library is."""
    return importlib.util.find_spec("stable_baselines3") is not None


def peer(settings: dict) -> dict:
    """Mean return of the last parameters, moves, seconds, and by what it was made."""
    model = new(settings)
    began = time.perf_counter()
    model.learn(settings["moves"])
    return {**result(model, settings), "seconds": time.perf_counter() - began}


def new(settings: dict):
    """An agent that has learned nothing, on one thread."""
    import gymnasium
    import stable_baselines3
    import torch
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.sb2_compat.rmsprop_tf_like import RMSpropTFLike

    torch.set_num_threads(1)
    name, told = ENVIRONMENTS[settings["environment"]]
    if name.startswith("MinAtar") and name not in gymnasium.registry:
        from minatar.gym import register_envs

        register_envs()
    n_games, more = 8, {"ent_coef": 0.0}
    if settings.get("entrant") == ATARI:
        tensorflows = {"optimizer_class": RMSpropTFLike, "optimizer_kwargs": {"eps": 1e-5}}
        n_games, more = 16, {"ent_coef": 0.01, "vf_coef": 0.25, "policy_kwargs": tensorflows}
    games = make_vec_env(name, n_games, seed=settings["seed"], env_kwargs=told)
    return stable_baselines3.A2C("MlpPolicy", games, seed=settings["seed"], device="cpu", **more)


def result(model, settings: dict) -> dict:
    """Mean return of 100 fresh greedy episodes, moves, and by what it was made."""
    import stable_baselines3
    import torch
    from stable_baselines3.common.evaluation import evaluate_policy

    model.get_env().seed(1_000 + settings["seed"])
    mean, _ = evaluate_policy(model, model.get_env(), EPISODES, deterministic=True)
    return {
        "score": float(mean), "moves": model.num_timesteps, "settings": "its own",
        "versions": f"{stable_baselines3.__version__}, torch {torch.__version__}",
    }  # fmt: skip
