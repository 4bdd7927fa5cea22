"""Which processes MPI has found to be dead."""

from __future__ import annotations


def failed_ranks(comm) -> set[int] | None:
    """Acknowledge the failed processes of `comm` and return their ranks.

    None when this MPI cannot tell: it has no user-level failure mitigation (ULFM).
    """
    from mpi4py import MPI

    try:
        failed = comm.Get_failed()
        comm.Ack_failed(failed.Get_size())
        ranks = failed.Translate_ranks(list(range(failed.Get_size())), comm.Get_group())
    except (MPI.Exception, NotImplementedError):
        return None
    return set(ranks)
