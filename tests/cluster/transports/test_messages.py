"""Messages and the buffers that they lie in."""

import numpy as np
import pytest

from dpsvi.cluster.transports.messages import Pool, deliver, parse


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


def test_buffers_are_used_again():
    pool = Pool()
    first = pool.take(100_000)
    pool.give(first)
    assert pool.take(90_000) is first
    assert pool.take(90_000) is not first
