"""Buffers that another process reads where they lie."""

import gc
import os
import subprocess
import sys

import numpy as np
import pytest

from dpsvi.cluster.messages import Pool, parse
from dpsvi.cluster.segments import Mapped, Segments, Token

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="Linux only")
N = 200_000


def other_process(code, *arguments):
    """Run code in another process; what it printed."""
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True,
        check=True, timeout=60,
    ).stdout.strip()  # fmt: skip


READ = """
import sys
from dpsvi.cluster.messages import parse
from dpsvi.cluster.segments import Mapped, Token
message = parse(Mapped().open(Token(*map(int, sys.argv[1:]))))
print(message.header["kind"], int(message.arrays["rows"].sum()))
"""


def test_another_process_reads_a_message_in_place():
    segments, pool = Segments(), Pool()
    pool.allocate = segments.allocate
    rows = np.ones(N, np.float32)
    message = pool.message({"kind": "ask"}, rows=rows)
    assert len(message.payload) > rows.nbytes
    token = segments.token(message.buffer)
    assert other_process(READ, *token) == f"ask {N}"


def test_short_buffers_are_not_shared():
    segments = Segments()
    assert segments.token(segments.allocate(100)) is None


def test_what_was_freed_cannot_be_opened():
    segments = Segments()
    buffer = segments.allocate(N)
    token = segments.token(buffer)
    assert len(Mapped().open(token)) == N
    del buffer
    gc.collect()
    again = segments.allocate(N)  # likely with the same descriptor and address
    assert segments.token(again).serial != token.serial
    with pytest.raises(FileNotFoundError):
        Mapped().open(token)
    with pytest.raises(FileNotFoundError):
        Mapped().open(Token(2**22 + 1, 3, 1, 1, N))  # no such process


def test_a_mapping_is_kept_while_it_is_new():
    segments, mapped = Segments(), Mapped()
    buffers = [segments.allocate(N) for _ in range(20)]
    tokens = [segments.token(buffer) for buffer in buffers]
    for number, buffer in enumerate(buffers):
        buffer[0] = number
    first = mapped.open(tokens[0])
    assert mapped.open(tokens[0]) is first
    for token in tokens:
        mapped.open(token)
    assert [int(mapped.open(token)[0]) for token in tokens] == list(range(20))
    assert len(mapped._kept) == 8
    assert first[0] == 0, "still there for whoever holds it"
    buffers[3][0] = 99
    assert mapped.open(tokens[3])[0] == 99, "the same memory"


def test_a_buffer_is_free_when_all_have_given_it_back():
    pool = Pool()
    buffer = pool.take(1000)
    pool.hold(buffer)
    pool.hold(buffer)
    pool.give(buffer)
    pool.give(buffer)
    assert pool.take(900) is not buffer
    pool.give(buffer)
    assert pool.take(900) is buffer


def test_a_borrowed_buffer_goes_back_to_its_owner():
    pool, returned = Pool(), []
    foreign = np.zeros(1000, np.uint8)
    pool.borrow(foreign, lambda: returned.append(foreign))
    pool.give(foreign)
    assert len(returned) == 1
    assert pool.take(10) is not foreign


def test_a_message_lies_at_the_beginning_of_its_buffer():
    segments, pool = Segments(), Pool()
    pool.allocate = segments.allocate
    message = pool.message({"a": 1}, rows=np.ones((1000, 100), np.float32))
    assert message.payload.ctypes.data == message.buffer.ctypes.data
    again = parse(Mapped().open(segments.token(message.buffer)))
    assert again.header == {"a": 1} and again.arrays["rows"].sum() == 100_000
