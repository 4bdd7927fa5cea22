"""The MinAtar games against the reference, move by move, given the same random numbers."""

import pytest

from experiments.environments import side_by_side

# What the comparison must have seen, so that it has not only seen how games begin.
SEEN = {
    "asterix": {"episodes": 20, "rewards": 200, "levels": 9},
    "breakout": {"episodes": 20, "rewards": 500, "longest": 500},  # bricks that came anew
    "freeway": {"episodes": 7, "rewards": 20},
    "seaquest": {"episodes": 10, "rewards": 100, "levels": 10},
    "space_invaders": {"episodes": 10, "rewards": 1000, "levels": 6},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", side_by_side.GAMES)
def test_a_game_is_the_reference(name):
    for sticky in side_by_side.STICKY:
        found = side_by_side.compare(name, side_by_side.MOVES, sticky)
        for what, least in SEEN[name].items():
            assert found[what] >= least, what


def test_six_divers_are_worth_the_oxygen_that_is_left():
    """Players of the comparison hardly get that far, so both games begin just before it."""
    from minatar.environment import Environment

    ours = side_by_side.Ours("seaquest", side_by_side.stream(0), sticky=0.0)
    for oxygen in (200, 199, 157, 20, 19, 1, 0):
        for on_board in (0, 1, 6, -1):
            ours.game.reset(ours.state, side_by_side.stream(0))
            ours.state[[ours.game.Y, ours.game.SURFACED]] = 1, 0
            ours.state[[ours.game.OXYGEN, ours.game.ON_BOARD]] = oxygen, on_board
            theirs = Environment("seaquest", sticky_action_prob=0.0)
            theirs.env.sub_y, theirs.env.surface = 1, False
            theirs.env.oxygen, theirs.env.diver_count = oxygen, on_board
            for up in (2, 4, 2):
                assert ours.act(up) == theirs.act(up)
                assert (ours.observe() == theirs.state()).all()
                if theirs.env.terminal:
                    break
