"""A program for ``mpiexec``: a fit that ends when a file is there, and what comes after it.

``python mpi_endless.py CORPUS FOLDER [raises]``
"""

import sys
import time
from pathlib import Path

from dpsvi import DPSVILDA, Cluster
from dpsvi.cluster.ranks.world import world


def main(corpus, folder, then=None):
    folder = Path(folder)

    def look(event):
        (folder / "training").touch()
        if world().lost:
            (folder / "lost").touch()
        return (folder / "enough").exists()

    lda = DPSVILDA(
        5, engine="mpi", batch_size=4, local_steps=4, max_iter=10**6, random_state=0,
        callbacks=[look], cluster=Cluster(silent_seconds=2),
    ).fit(corpus)  # fmt: skip
    time.sleep(2)
    lda.save(folder / "model")
    print("saved")
    if then == "raises":
        raise RuntimeError("something else")


if __name__ == "__main__":
    main(*sys.argv[1:])
