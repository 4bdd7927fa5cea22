"""The contracts are importable from one place, and say what follows from what was filled in."""

import numpy as np
import pytest

from dpsvi import base
from dpsvi.base import Model, Peers, Star, Strategy


def test_all_contracts_are_importable_from_the_package():
    assert {getattr(base, name).__name__ for name in base.__all__} == set(base.__all__)


@pytest.mark.parametrize("used, sent", [(None, 16), (5, 5)])
def test_padding_is_not_sent(used, sent):
    prior = np.zeros(16, np.float32)
    model = Model("toy", (3, 16), prior, np.zeros(1), len, len, used_columns=used)
    assert model.sent_columns == sent and model.real == np.float32


def test_what_a_strategy_has_where_it_says_nothing():
    assert Strategy().averaged(4) == 1 and Peers().averaged(4) == 4
    assert Star().reads("parameters", 1) == "parameters" and Star().drawn([2, 3]) == [2, 3]
    assert Star().local_steps(0.5) == np.inf and Strategy().state() == {}
    assert (Star.topology, Peers.topology) == ("star", "peers") and "master_batch" in Peers.refuses
