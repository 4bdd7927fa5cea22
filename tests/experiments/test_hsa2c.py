"""The figures of the actor-critic, on tiny settings."""

import json

import pytest

from experiments.hsa2c import __main__ as command
from experiments.hsa2c import (
    atari,
    atari_rates,
    cores,
    figure5,
    figure6,
    paced,
    replicas,
    seconds,
    speed,
    stable_baselines,
    table,
)


def test_what_the_formula_predicts():
    # Far from the link's limit nodes add up; at the limit only B moves more.
    moves, link = 40, "1 Gbit/s"
    one = paced.predicted(1, 64, moves, link)
    assert 0.9 * paced.MOVES_A_SECOND < one < paced.MOVES_A_SECOND
    assert paced.predicted(8, 64, moves, link) == pytest.approx(8 * one)
    full = paced.predicted(60, 1, moves, link)
    assert full == paced.predicted(30, 1, moves, link) < 30 * paced.MOVES_A_SECOND / 10
    assert paced.predicted(60, 4, moves, link) == pytest.approx(4 * full)


def test_figure_5_is_what_the_formula_says(tmp_path, monkeypatch):
    monkeypatch.setitem(figure5.SETTINGS, "environment", "cartpole")
    monkeypatch.setitem(figure5.SETTINGS, "hidden", [64, 64])
    monkeypatch.setattr(figure5, "LOCAL_STEPS", (1, 4))
    again = ["figure5", "--nodes", "2,8", "--exchanges", "8", "--out", str(tmp_path)]
    command.main(again)
    kept = (tmp_path / "runs/figure5.jsonl").read_text()
    rows = [json.loads(line) for line in kept.splitlines()]
    assert len(rows) == 8 and all(row["from"]["hardware"]["cores"] for row in rows)
    for row in rows:
        run = row["run"]
        expected = figure5.prediction(run["link"], run["B"], run["n"])
        assert 0.8 < row["result"]["rate"] / expected < 1.1
    assert "SIMULATED" in (tmp_path / "figure5.md").read_text()
    assert (tmp_path / "figure5.png").stat().st_size > 1000
    command.main(again)  # nothing is run again
    assert (tmp_path / "runs/figure5.jsonl").read_text() == kept


def test_figure_6_shows_those_that_do_not_arrive(tmp_path, monkeypatch):
    small = figure6.PROBLEMS["cartpole"]._replace(
        local_steps=(4, 16), at_once=(16,), alone_steps=((2, 4),), alone_rates=(0.005,),
        target=60.0, rates=lambda n: [(0.005, 1 / n, 20_000)],
    )  # fmt: skip
    monkeypatch.setitem(figure6.PROBLEMS, "cartpole", small)
    tiny = ["figure6", "--environments", "cartpole", "--nodes", "1,2", "--seeds", "2"]
    command.main([*tiny, "--out", str(tmp_path)])
    lines = (tmp_path / "runs/figure6.jsonl").read_text().splitlines()
    cells = 2 * 2 + 1  # the last one is of two nodes with M = n
    assert len(lines) == cells * (2 + 2) + 2
    assert sum(json.loads(line)["run"].get("M") == 2 for line in lines) == 4
    assert (tmp_path / "figure6.png").stat().st_size > 1000
    told = {"moves": 9, "exchanges": 3, "on_the_way": 20.0, "best": 400.0}
    row = {
        "environment": "cartpole", "n": 1, "B": 4, "learning_rate": 0.005, "global_rate": 1.0,
        "most_moves": 600_000,
        "results": [
            {**told, "arrived": False, "seconds": 75.0},
            {**told, "arrived": False, "seconds": 75.0},
            {**told, "arrived": True, "seconds": 30.0},
        ],
    }  # fmt: skip
    told = "1 of 3 | - (30.0-30.0) | - | - | 20.0 |"
    assert f"| 1 | 4 | 1 | {told} 0.005 | 1 | 600,000 |" in figure6.table([row])


def test_the_table_has_every_algorithm_and_the_papers_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(table, "LEARNING_RATES", (0.005,))
    monkeypatch.setattr(stable_baselines, "installed", lambda: False)
    told = ["--environments", "cartpole", "--moves", "2000", "--out", str(tmp_path)]
    command.main(["table", "--seeds", "2", *told])
    text = (tmp_path / "table.md").read_text()
    for name in table.ENTRANTS:
        assert f"| {name} | 2 |" in text
    assert f"| {stable_baselines.NAME} | not run |" in text
    assert "| HSA2C, 60 nodes | lost |" in text
    # The same at equal seconds: one thread and two threads here, over MPI in a test of its own.
    few = {name: table.ENTRANTS[name] for name in ("A2C, one thread", "PA3C")}
    monkeypatch.setattr(table, "ENTRANTS", few)
    command.main(["seconds", "--seeds", "1", "--processor-seconds", "0.2", *told])
    rows = [json.loads(row)["result"] for row in (tmp_path / "runs/seconds.jsonl").open()]
    fits = [fit for row in rows for fit in row["fits"]]
    assert len(fits) == 2 and all(fit["moves"] > 1000 and fit["processor"] > 0 for fit in fits)
    text = (tmp_path / "seconds.md").read_text()
    assert "| PA3C | 1 |" in text and f"| {stable_baselines.NAME} | not run |" in text


@pytest.mark.mpi
def test_workers_over_mpi_learn_for_some_processor_seconds():
    told = {"environment": "cartpole", "seconds": 0.5, "seeds": 1, "workers": 2}
    found = seconds.scores({**told, "entrant": "HSA2C, B = 16", "learning_rate": 0.005})
    (fit,) = found["fits"]
    assert fit["moves"] > 1000 and fit["score"] >= 8 and fit["processor"] > 0


def test_the_peer_learns_where_it_is_installed():
    pytest.importorskip("stable_baselines3")
    found = stable_baselines.peer({"environment": "cartpole", "moves": 400, "seed": 0})
    assert found["moves"] >= 400 and found["score"] >= 8 and found["settings"] == "its own"
    for entrant, games in zip(stable_baselines.entrants("breakout"), (8, 16), strict=True):
        agent = stable_baselines.new({"environment": "breakout", "entrant": entrant, "seed": 0})
        assert agent.n_envs == games and agent.env.envs[0].spec.max_episode_steps == 5000
        assert agent.env.envs[0].unwrapped.game.sticky_action_prob == 0.0


def test_replicas_step_as_the_table_says(tmp_path, monkeypatch):
    monkeypatch.setattr(replicas, "LEARNING_RATES", (0.005, 0.01))
    told = ["replicas", "--nodes", "4", "--moves", "600", "--seeds", "1", "--out", str(tmp_path)]
    command.main(told)
    runs = [json.loads(row)["run"] for row in (tmp_path / "runs/replicas.jsonl").open()]
    # Twice 0.005 and 0.01 as it is are one fit, twice 0.01 and four times 0.005, too.
    steps = [0.02, 0.01, 0.005, 0.04]
    assert [run["step"] for run in runs] == steps * len(replicas.ENTRANTS)
    text = (tmp_path / "replicas.md").read_text()
    assert text.count("| 4 | 0.005 |") == text.count("| 4 | 0.01 |") == len(replicas.ENTRANTS)


def test_what_sharing_costs_stands_beside_a_hand_over(tmp_path, monkeypatch):
    for name in ("REPEATS", "ROUNDS", "TRIES"):
        monkeypatch.setattr(cores, name, 1)
    monkeypatch.setattr(cores, "FIT", {**cores.FIT, "environment": "cartpole"})
    command.main(["cores", "--moves", "400", "--out", str(tmp_path)])
    rows = [json.loads(line) for line in (tmp_path / "runs/cores.jsonl").open()]
    assert [row["run"]["n_jobs"] for row in rows] == [1, 2]
    assert all(min(row["result"].values()) > 0 for row in rows)
    lines = (tmp_path / "cores.md").read_text().splitlines()
    assert [line[:5] for line in lines[-2:]] == ["| 1 |", "| 2 |"]


def test_atari_is_learned_for_a_moment_and_goes_on_from_a_checkpoint(tmp_path, monkeypatch):
    pytest.importorskip("ale_py")
    monkeypatch.setattr(atari, "EPISODES", 1)
    small = {"n_games": 2, "hidden": (8,), "convolution": ((2, 8, 8),)}
    monkeypatch.setattr(atari, "SETTINGS", {**atari.SETTINGS, **small, "n_moves": 5})
    often = {"n_evaluations": 4, "checkpoint_seconds": 0.0}
    monkeypatch.setattr(atari, "LOOKS", {**atari.LOOKS, **often})
    played, taken = [], atari.ActorCritic._take

    def stop(agent, state, *told):
        taken(agent, state, *told)
        played.append(agent.n_moves_)
        if len(played) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(atari.ActorCritic, "_take", stop)
    told = ["atari", "--game", "pong", "--seeds", "1", "--frames", "1600", "--out", str(tmp_path)]
    with pytest.raises(KeyboardInterrupt):
        command.main(told)
    command.main(told)
    (row,) = [json.loads(line) for line in (tmp_path / "runs/atari.jsonl").open()]
    moves = [moves for moves, _ in row["result"]["curve"]]
    assert (moves[0], moves[-1]) == (100, 400) and min(played[3:6]) > 200, "it went on"
    text = (tmp_path / "atari.md").read_text()
    assert "| pong | adam 0.0007, 2 games x 5 moves," in text and "| 1,600 | 1 |" in text
    assert not (tmp_path / "checkpoints" / "pong-0").exists()


def test_seeds_of_atari_run_side_by_side(tmp_path, monkeypatch):
    monkeypatch.setattr(atari, "learn", lambda settings, folder: {
        "score": 1.0, "drawn": float(settings["seed"]), "first": 0.0, "seconds": 1.0,
    })  # fmt: skip
    told = ["atari", "--frames", "800", "--first-seed", "3", "--seeds", "2"]
    command.main([*told, "--out", str(tmp_path)])
    rows = [json.loads(line) for line in (tmp_path / "runs/atari.jsonl").open()]
    assert [row["run"]["seed"] for row in rows] == [3, 4]
    assert all(row["from"]["seeds"] == {"fits": [3, 4]} for row in rows)


def test_an_interval_is_students():
    mean, half = table.interval([1.0, 2.0, 3.0])
    assert mean == 2.0 and half == pytest.approx(4.303 / 3**0.5, rel=1e-3)


def test_the_table_of_speeds_names_what_was_measured():
    fit = {
        "what": "moves_a_second", "environment": "cartpole", "n_games": 16, "n_jobs": 1,
        "processor_rate": 400.0, "load": 0.5,
    }  # fmt: skip
    found = {"what": "seconds_to_score", "moves": 9000, "seconds": 0.25, "whole": 0.5, "load": 1.5}
    rows = [
        {**fit, "rate": 100.0}, {**fit, "rate": 300.0},
        {"what": "over_mpi", "n": 2, "B": 16, "rate": 50.0, "load": 1.0},
        {**found, "arrived": True}, {**found, "arrived": False},
    ]  # fmt: skip
    text = "\n".join(speed.table(rows))
    assert (
        "from 0.5 to 1.5" in text
        and "| cartpole | 16 | 1 | 200 (100-300) | 400 (400-400) |" in text
    )
    assert "| B = 16 | 2 | 50 (50-50) |" in text
    assert "1 of 2 seeds arrive" in text and "9,000 moves, 0.25 s" in text


def test_rates_of_atari_are_medians_with_their_range():
    row = {"B": 4, "n": 1, "load": 0.5}
    rows = [{**row, "rate": 100.0}, {**row, "rate": 300.0}, {**row, "n": 2, "rate": 1000.0}]
    text = atari_rates.table([*rows, {**row, "B": 64, "rate": 7.0, "load": 2.0}])
    assert text[0] == "Load average from 0.5 to 2.0 before the fits."
    assert text[-2:] == ["| 4 | 200 (100-300) | 1,000 (1,000-1,000) |", "| 64 | 7 (7-7) | - |"]


@pytest.mark.mpi
def test_rates_of_atari_are_measured_on_real_ranks(monkeypatch):
    """CartPole in its place, whose network compiles in less time."""
    monkeypatch.setattr(atari_rates, "AGENT", {**atari_rates.AGENT, "environment": "cartpole"})
    found = atari_rates.rate({**atari_rates.AGENT, "B": 1, "n": 2, "exchanges": 4})
    assert found["rate"] > 0
