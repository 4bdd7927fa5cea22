"""Messages and the buffers that they lie in."""

import numpy as np
import pytest

from dpsvi.cluster.transports.messages import Pool, as_array, deliver, from_array, parse


def test_messages_survive_the_way():
    sender, receiver = Pool(), Pool()
    rows = np.arange(12, dtype=np.float32).reshape(3, 4)
    message = sender.message({"x": 0.1, "y": None}, rows=rows, room=((2, 2), np.int32))
    message.arrays["room"][...] = 7
    found = deliver(message, sender, receiver)
    message.buffer.bytes[:] = 0
    assert found.header == {"x": 0.1, "y": None}
    assert np.array_equal(found.arrays["rows"], rows)
    assert np.all(found.arrays["room"] == 7)
    assert parse(found.buffer).n_bytes == found.n_bytes
    with pytest.raises(ValueError, match="header of"):
        _ = sender.message({"x": "y" * 5000}).payload


def test_what_is_too_long_for_a_header_goes_as_an_array():
    """Such as all that is open in the ledger, when ranks join while others are ahead."""
    plan = {"there": [*range(300)], "passes": {"again": [[[e, 0, 9] for e in range(60)]] * 40}}
    sender = Pool()
    message = sender.message({"kind": "consensus"}, plan=as_array(plan))
    assert from_array(deliver(message, sender, Pool()).arrays["plan"]) == plan


def test_buffers_are_used_again():
    pool = Pool()
    first = pool.take(100_000)
    pool.give(first)
    assert pool.take(90_000) is first
    assert pool.take(90_000) is not first
