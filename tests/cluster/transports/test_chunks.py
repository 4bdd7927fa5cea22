"""Messages as MPI brings them, from an MPI that does not say when a process has died."""

import sys
from types import SimpleNamespace

import pytest

from dpsvi.cluster.transports.chunks import Chunks
from dpsvi.cluster.transports.messages import Pool
from dpsvi.errors import LostRankError


class _Status:
    def Get_source(self):
        return 1

    def Get_count(self, kind):
        return self.size


class _Comm:
    """Brings one message, of which `written` bytes are there."""

    def __init__(self, payload, written):
        self.payload, self.written, self.there = payload, written, True

    def Improbe(self, source, tag, status):
        if not self.there:
            return None
        self.there, status.size = False, len(self.payload)
        return self

    def Irecv(self, place):
        place[:] = 255
        place[: self.written] = self.payload[: self.written]
        return SimpleNamespace(Test=lambda: True)


@pytest.mark.parametrize("whole", [True, False])
def test_a_message_that_did_not_come_whole(whole, monkeypatch):
    """It is the last of a rank that has died, not one of a huge size."""
    mpi = SimpleNamespace(
        MPI=SimpleNamespace(Status=_Status, ANY_SOURCE=-1, BYTE=None, Exception=KeyError)
    )
    monkeypatch.setitem(sys.modules, "mpi4py", mpi)
    sent = Pool().message({"kind": "work"}).payload
    arrived = []
    chunks = Chunks(
        _Comm(sent, len(sent) if whole else 0), Pool(), set(),
        lambda rank, message: arrived.append((rank, message.header)), None,
    )  # fmt: skip
    if whole:
        chunks.look()
        assert arrived == [(1, {"kind": "work"})]
    else:
        with pytest.raises(LostRankError, match="rank 1 is lost: its message did not come whole"):
            chunks.look()
