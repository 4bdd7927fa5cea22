"""Memory that processes of one host share, and how they wake each other."""

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from dpsvi.cluster import Cluster
from dpsvi.cluster.transports.buffers import Buffer, Place
from dpsvi.cluster.transports.messages import SHARED_FROM, Pool, parse
from dpsvi.cluster.transports.neighbours import Neighbours
from dpsvi.cluster.transports.window import Window, opened

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="shared memory needs Linux")


def together(n, change=lambda rank, ticket: ticket):
    """`n` processes as they see each other, here in as many threads of one."""
    tickets, barrier, found = np.zeros((n, 5), np.int64), threading.Barrier(n), [None] * n

    def body(rank):
        def all_gather(mine):
            tickets[rank] = change(rank, mine)
            barrier.wait()
            return tickets

        found[rank] = Neighbours(rank, all_gather)

    threads = [threading.Thread(target=body, args=(rank,)) for rank in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_another_process_reads_and_writes_the_same_bytes():
    buffer = Buffer.shared(1 << 16)
    buffer.bytes[100] = 7
    code = (
        "from dpsvi.cluster.transports.buffers import Buffer, Place\n"
        f"buffer = Buffer.of(Place{tuple(buffer.place)})\n"
        "assert buffer.foreign and len(buffer.bytes) == 1 << 16\n"
        "buffer.bytes[101] = buffer.bytes[100] + 1\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=240)
    assert buffer.bytes[101] == 8


def test_memory_ends_with_its_owner():
    buffer = Buffer.shared(1 << 16)
    place, other = buffer.place, Buffer.of(buffer.place)
    other.bytes[5] = 3
    del buffer
    assert other.bytes[5] == 3, "who has mapped it keeps it"
    with pytest.raises(OSError):
        os.fstat(place.fd)
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    process.wait()
    with pytest.raises(OSError):
        Buffer.of(Place(process.pid, 3, 0))


def test_another_file_in_its_place_is_not_taken_for_it(tmp_path):
    """Descriptors are numbered anew: the one that is noted may stand for something else."""
    buffer = Buffer.shared(1 << 16)
    place = buffer.place
    del buffer
    with open(tmp_path / "file", "w+b") as file:
        file.write(bytes(1 << 16))
        with pytest.raises(OSError, match="dropped this memory"):
            Buffer.of(place._replace(fd=file.fileno()))


def test_a_lent_buffer_comes_back_when_it_was_read():
    sender, receiver = Pool(shared=True), Pool(shared=True)
    message = sender.message({"kind": "x"}, rows=np.arange(SHARED_FROM, dtype=np.uint8))
    _ = message.payload
    sender.lend(message.buffer, 3)
    found = parse(Buffer.of(message.buffer.place))
    assert np.array_equal(found.arrays["rows"], message.arrays["rows"])
    assert sender.take(SHARED_FROM) is not message.buffer, "it is being read"
    receiver.give(found.buffer)
    assert sender.take(SHARED_FROM) is message.buffer
    assert receiver.take(SHARED_FROM) is not found.buffer, "it belongs to the other"


def test_what_a_lost_rank_has_been_lent_is_not_waited_for():
    pool = Pool(shared=True)
    mine, yours = pool.take(SHARED_FROM), pool.take(SHARED_FROM)
    pool.lend(mine, 1)
    pool.lend(yours, 2)
    assert pool.forget(1) == [mine]
    mine.lent = yours.lent = False
    assert pool.take(SHARED_FROM) is yours
    assert pool.take(SHARED_FROM) is not mine


def test_neighbours_know_each_other():
    for rank, one in enumerate(together(3)):
        assert [other in one for other in range(3)] == [other != rank for other in range(3)]
        assert one.everybody and len(one) == 2


@pytest.mark.parametrize("what", ["token", "network", "nothing to map", "no memory"])
def test_others_are_no_neighbours(what):
    """Another host, where that process number is another's; another network; no Linux."""

    places = {"token": 3, "network": 4, "nothing to map": 1, "no memory": 4}

    def change(rank, ticket):
        ticket = ticket.copy()
        if rank == 1:
            ticket[places[what]] += 999
            if what == "no memory":
                ticket[:] = 0
        return ticket

    zero, one, two = together(3, change)
    assert 1 not in zero and 1 not in two
    assert 2 in zero and 0 in two
    assert not zero.everybody


def test_who_has_many_open_files_has_no_neighbours():
    """`select` knows the first 1,024 descriptors only; all messages go through MPI then."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2048:
        pytest.skip("so many files cannot be opened")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    opened_before = [os.open(os.devnull, os.O_RDONLY)]
    try:
        while opened_before[-1] < 1024:
            opened_before.append(os.open(os.devnull, os.O_RDONLY))
        for one in together(2):
            assert not one and not one.everybody
            one.wait(0.001)
    finally:
        for number in opened_before:
            os.close(number)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_notice_ends_the_wait():
    zero, one = together(2)

    def notify():
        time.sleep(0.05)
        zero.notify(1)

    for sleeper, wake in ((one, notify), (one, lambda: (time.sleep(0.05), one.notify()))):
        thread = threading.Thread(target=wake)
        thread.start()
        started = time.perf_counter()
        sleeper.wait(20)
        assert time.perf_counter() - started < 10
        thread.join()
    for _ in range(5000):
        zero.notify(1)  # never blocks, however many wait
    one.wait(20)
    started = time.perf_counter()
    one.wait(0.01)
    assert time.perf_counter() - started >= 0.009, "all notices were read at once"


def test_nobody_is_merged_with_while_somebody_reads():
    rows = np.arange(12, dtype=np.float32).reshape(3, 4)
    window = Window.like(rows, 5, {2, 4})
    assert 2 in window and 3 not in window
    assert np.array_equal(window.rows, rows) and not window.busy
    told = [window.begin(2), window.begin(4)]
    assert window.busy
    for rank, n_ranks, *place in told:
        seen = Window.at(place, rows.shape, rows.dtype, n_ranks)
        assert np.array_equal(seen.rows, rows)
        seen.end(rank)
        assert window.busy == (rank == 2)


def test_rows_come_back_from_the_window():
    """Also when the fit fails; a fork of the process later must not share them."""
    from dpsvi.base import Shared
    from dpsvi.training.state import State

    rows = np.ones((3, 4), np.float32)
    state = State(None, Shared(rows, np.zeros((1, 4)), *[np.zeros((0, 0))] * 4))
    with pytest.raises(ZeroDivisionError), opened(state, {1}, 2) as window:
        assert state.shared.rows is window.rows
        window.rows += 1
        raise ZeroDivisionError
    assert state.shared.rows is rows and np.all(rows == 2)
    with opened(state, None, 1) as window:
        assert window is None and state.shared.rows is rows


def test_two_ranks_that_end_together_let_nobody_wait():
    """When the first is dropped there is room for what the second had asked for."""
    from types import SimpleNamespace

    from dpsvi.cluster.ranks.lead import _serve
    from dpsvi.cluster.ranks.world import World

    window, dropped = Window.like(np.zeros((3, 4), np.float32), 4, {1, 2}), []

    def lose(rank, reason):
        dropped.append(rank)
        for other in {1, 2} - set(dropped):
            window.begin(other)
        master.finished = len(dropped) == 2

    def rest(pause):
        pytest.fail("the master waits for a dead rank to end its reading")

    master = SimpleNamespace(
        window=window, finished=False, turn=list, lose=lose,
        job=SimpleNamespace(cluster=Cluster(on_lost="drop")),
    )  # fmt: skip
    channel = SimpleNamespace(poll=list, newly_lost=lambda: {1: "dead", 2: "dead"}, rest=rest)
    quiet = SimpleNamespace(deliver=lambda: None, forget=lambda rank: None)
    _serve(master, channel, None, World(0, 4), quiet, quiet)
    assert sorted(dropped) == [1, 2] and not window.busy


@pytest.mark.parametrize("asked", ["now", "before"])
@pytest.mark.parametrize("leaves", [False, True])
def test_a_rank_that_asks_and_dies_lets_nobody_wait(asked, leaves):
    """Its last message and its end are found by the same look, or it had waited for an answer.

    A rank that leaves, interrupted in the middle of its reading, is still there for a while.
    """
    from types import SimpleNamespace

    from dpsvi.cluster.ranks.lead import _serve
    from dpsvi.cluster.ranks.world import World

    pool, window = Pool(), Window.like(np.zeros((3, 4), np.float32), 3, {1, 2})
    waiting = {1} if asked == "before" else set()

    def take(rank, message):
        """As the master does: answer whoever can be answered."""
        waiting.add(rank)
        for each in waiting:
            window.begin(each)
        if 2 in waiting:  # it reads at once, and that ends this fit
            window.end(2)
            master.finished = True

    def lose(rank, reason):
        waiting.discard(rank)

    def rest(pause):
        pytest.fail("the master waits for a dead rank to end its reading")

    master = SimpleNamespace(
        window=window,
        finished=False,
        turn=list,
        pool=pool,
        n_workers=2,
        take=take,
        lose=lose,
        job=SimpleNamespace(cluster=Cluster(on_lost="drop")),
    )
    found = [(rank, pool.message({"kind": "ask"})) for rank in (1, 2)][asked == "before" :]
    deaths = {1: "its process ended"}
    if leaves:
        deaths = {}
        found.append((1, pool.message({"kind": "leave", "reason": "ended by a signal"})))
        window.begin(1)
    looks, deaths, told = iter([found]), iter([deaths]), []
    channel = SimpleNamespace(
        poll=lambda: next(looks), newly_lost=lambda: next(deaths), rest=rest,
        send=lambda rank, message: told.append((rank, message.header["kind"])),
    )  # fmt: skip
    quiet = SimpleNamespace(deliver=lambda: None, forget=lambda rank: None)
    _serve(master, channel, None, World(0, 3), quiet, quiet)
    assert waiting == {2} and not window.busy
    assert told == [(1, "stop")] * leaves


def test_the_end_waits_for_whoever_lives():
    """One that has said good-bye beats no more, and is not lost while another one takes longer."""
    from types import SimpleNamespace

    from dpsvi.cluster.ranks.lead import _stop_all
    from dpsvi.cluster.ranks.world import World

    pool, heard, looks = Pool(), {1, 2, 3}, iter(range(1000))
    byes = {0: 1, 50: 2}  # look number: rank; rank 3 falls silent

    def poll():
        now = next(looks)
        if now in byes:
            yield byes[now], pool.message({"kind": "bye"})
        poll.now = now

    def newly_lost():
        silent = {1} if poll.now > 10 else set()
        silent |= {3} if poll.now > 20 else set()
        channel.lost |= dict.fromkeys(silent & heard, "no heartbeat for 20 s")

    # Rank 4 was found lost before, but what ended the fit came first.
    told, heard = [], heard | {4}
    channel = SimpleNamespace(
        poll=poll, newly_lost=newly_lost, send=lambda rank, message, keep: told.append(rank),
        lost={4: "its process ended"}, receiving=False, close=lambda seconds: None,
    )  # fmt: skip
    master = SimpleNamespace(pool=pool, stop_message=lambda *a, **k: "stop")
    here, heartbeat = World(0, 5), SimpleNamespace(forget=lambda rank: heard.discard(rank))
    _stop_all(master, channel, here, heartbeat, SimpleNamespace(), "done")
    assert told == [1, 2, 3, 4] and here.lost == {3, 4} and here.frozen == {3}
