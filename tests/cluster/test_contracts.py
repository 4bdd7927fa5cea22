"""Master, worker and peer are nodes; memory, MPI and virtual time carry messages: one contract."""

import inspect
from types import SimpleNamespace

import numpy as np
import pytest

from dpsvi.cluster import contracts
from dpsvi.cluster.nodes.master import Master
from dpsvi.cluster.nodes.peer import Peer
from dpsvi.cluster.nodes.worker import Worker
from dpsvi.cluster.transports import channel, memory, virtual
from dpsvi.cluster.transports.memory import Memory
from dpsvi.cluster.transports.messages import Pool
from dpsvi.cluster.transports.virtual import VirtualLinks
from dpsvi.cluster.virtual import Network

IMPLEMENTED = [
    *((contracts.Node, each) for each in (Master, Worker, Peer)),
    *(
        (contracts.Transport, each)
        for each in (memory.Endpoint, virtual.Endpoint, channel.Channel)
    ),
]  # fmt: skip


@pytest.mark.parametrize("contract, implementation", IMPLEMENTED)
def test_contract(contract, implementation):
    """Each method takes what the contract says; what it takes besides has a default."""
    methods = [name for name in vars(contract) if not name.startswith("_")]
    methods = [name for name in methods if callable(getattr(contract, name))]
    assert len(methods) == 3
    for name in methods:
        wanted = list(inspect.signature(getattr(contract, name)).parameters.values())[1:]
        found = list(inspect.signature(getattr(implementation, name)).parameters.values())
        if not isinstance(vars(implementation)[name], staticmethod):
            found = found[1:]
        assert len(found) >= len(wanted), name
        for extra in found[len(wanted) :]:
            assert extra.default is not extra.empty, f"{implementation}.{name}: {extra}"


class Events:
    """Virtual time, as far as links see it."""

    def __init__(self):
        self.now, self.options = 0.0, SimpleNamespace(network=Network())
        self.events, self.gone = [], set()

    def at(self, time, what, *arguments):
        self.events.append((time, what, arguments))

    def happen(self):
        events, self.events = self.events, []
        for time, what, arguments in events:
            self.now = time
            what(*arguments)


def in_memory(nodes):
    made = Memory(nodes, delay=1)

    def wait():
        made.time += 1

    return made, wait


def in_virtual_time(nodes):
    events = Events()
    return VirtualLinks(events, nodes, lambda sender, to: None, lambda node: None), events.happen


@pytest.mark.parametrize("make", [in_memory, in_virtual_time])
def test_messages_arrive_in_order_once_and_are_copies(make):
    """`tests/cluster/ranks` says the same of MPI."""
    nodes = {number: SimpleNamespace(pool=Pool()) for number in range(3)}
    carrier, wait = make(nodes)
    x = np.arange(5.0)
    for number in range(2):
        message = nodes[0].pool.message({"number": number}, x=x + number)
        carrier.at(0).send(2, message)
        message.arrays["x"][:] = np.nan  # the sender may use its buffer again
    carrier.at(1).send(2, nodes[1].pool.message({"number": 2}, x=x + 2))
    assert not list(carrier.at(2).poll()) and len(carrier.unread()) == 3
    wait()
    found = [(sender, m.header["number"], m.arrays["x"]) for sender, m in carrier.at(2).poll()]
    assert [each[:2] for each in found] == [(0, 0), (0, 1), (1, 2)]
    for number, (*_, arrived) in enumerate(found):
        np.testing.assert_array_equal(arrived, x + number)
    assert not list(carrier.at(2).poll()) and not list(carrier.at(0).poll())
    assert not carrier.unread() and carrier.at(2).newly_lost() == {}


def test_a_lost_node_is_reported_once_and_gets_nothing_more():
    nodes = {number: SimpleNamespace(pool=Pool()) for number in range(3)}
    lines = Memory(nodes)
    lines.at(0).send(1, nodes[0].pool.message({}))
    lines.at(2).send(1, nodes[2].pool.message({}))
    lines.lose(0, "killed")
    assert len(list(lines.at(1).poll())) == 1, "what it had sent is lost, too"
    for other in (1, 2):
        assert lines.at(other).newly_lost() == {0: "killed"} == lines.at(other).lost
        assert lines.at(other).newly_lost() == {}
        lines.at(other).send(0, nodes[other].pool.message({}))
    assert not lines.unread() and not lines.at(0).lost
