"""Options of a cluster that cannot be."""

import numpy as np
import pytest
from tools.node_jobs import STRATEGIES

from dpsvi.cluster import Cluster


@pytest.mark.parametrize("name", STRATEGIES)
def test_rates_out_of_range(name):
    for rate in (0, -1, np.nan):
        with pytest.raises(ValueError, match="global_rate"):
            Cluster(strategy=name, global_rate=rate)


def test_unknown_options():
    with pytest.raises(ValueError, match=r"strategy.*decay.*displacement.*'rumour'"):
        Cluster(strategy="rumour")
    with pytest.raises(ValueError, match="sharding"):
        Cluster(sharding="half")
    with pytest.raises(ValueError, match="local_decay"):
        Cluster(local_decay="late")
    with pytest.raises(ValueError, match="waiting"):
        Cluster(waiting=1.5)
