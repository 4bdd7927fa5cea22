"""Fixtures, a numba cache that a change of any source file makes anew, and one thread for BLAS."""

import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from platformdirs import user_cache_path

ROOT = Path(__file__).parent.parent


def _compiled_kernels() -> Path:
    """Folder named by all sources: numba looks at a kernel's own file, not at those it calls.

    It also goes by where they lie, so that another checkout of the same sources has its own.
    """
    sources = hashlib.sha256(str(ROOT).encode())
    for path in sorted((ROOT / "dpsvi").rglob("*.py")):
        sources.update(path.read_bytes())
    name = sources.hexdigest()[:16]
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        # By the user, or by the process that started this one.
        return Path(chosen) if Path(chosen).name == name else Path(chosen) / name
    ours = user_cache_path("dpsvi-tests", appauthor=False)
    (ours / name).mkdir(parents=True, exist_ok=True)
    os.utime(ours / name)
    for other in ours.iterdir():
        if time.time() - other.stat().st_mtime > 7 * 24 * 3600:
            shutil.rmtree(other, ignore_errors=True)
    return ours / name


# Before numba and NumPy are imported, and inherited by every subprocess.
os.environ["NUMBA_CACHE_DIR"] = str(_compiled_kernels())
# Where tests run side by side, threads of BLAS spin while other processes have their core.
for _library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

from reference.lda import TopicCorpus  # noqa: E402
from scipy.sparse import csr_array  # noqa: E402

from dpsvi.corpus import Corpus  # noqa: E402


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items):
    """Tests that share ranks run in one process, which alone starts them; see `ranks`."""
    for item in items:
        if "ranks" in item.fixturenames:
            kind = item.callspec.params.get("kind", "openmpi")
            item.add_marker(pytest.mark.xdist_group(f"{kind} ranks"))


@pytest.fixture(scope="session")
def known():
    """A corpus whose topics are known: 5 topics of Zipf-distributed words, 400 documents."""
    return TopicCorpus(n_topics=5, n_words=150, n_documents=400, n_tokens=80, alpha=0.1, seed=0)


@pytest.fixture(scope="session")
def corpus(known) -> Corpus:
    """The documents of `known`."""
    return known.corpus()


@pytest.fixture(scope="session")
def X():
    """300 small documents as a CSR matrix; treat it as read-only."""
    drawn = TopicCorpus(5, n_words=60, n_documents=300, n_tokens=50, alpha=0.1, seed=3)
    return csr_array(drawn.counts.astype(np.float64))


@pytest.fixture(scope="session")
def corpora_folder() -> Path:
    """The corpora that are too large to be kept with the code."""
    folder = ROOT.parent / "shared" / "corpora"
    if not folder.is_dir():
        pytest.skip("needs ../shared/corpora")
    return folder


@pytest.fixture(scope="session")
def compiled():
    """What the processes that tests start will run is compiled: their clocks do not tell of it."""
    from tools import compiled

    if not (Path(os.environ["NUMBA_CACHE_DIR"]) / compiled.EVERYTHING).exists():
        subprocess.run([sys.executable, compiled.__file__], check=True, cwd=ROOT)


@pytest.fixture(autouse=True)
def _compiled_before(request):
    """Of every test that starts several processes or kills one.

    Where tests run side by side, of all: the processes share that work, else each would do it.
    """
    several = any(request.node.get_closest_marker(mark) for mark in ("mpi", "fault"))
    if several or "PYTEST_XDIST_WORKER" in os.environ:
        request.getfixturevalue("compiled")


@pytest.fixture(scope="session")
def servers():
    """Ranks that run one program after the other, started when they are asked for."""
    started = {}
    yield started
    for server in started.values():
        server.stop()


@pytest.fixture
def ranks(servers, compiled):
    """A callable that runs a program on so many ranks of an MPI; see ``tools.mpiexec.Server``."""
    from tools.mpiexec import Server  # which asks each MPI whether it is there

    def call(kind, n, program, *arguments, faults=None):
        if (kind, n) not in servers:
            servers[kind, n] = Server(kind, n)
        try:
            servers[kind, n].call(program, *arguments, faults=faults)
        except BaseException:
            servers.pop((kind, n)).run.end()
            raise

    return call


@pytest.fixture
def rng():
    """Seeded anew for each test."""
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def corpus_file(known, tmp_path_factory):
    """The documents of `known` as a UCI file."""
    path = tmp_path_factory.mktemp("corpus") / "docword.known.txt"
    document, word = np.nonzero(known.counts)
    count = known.counts[document, word]
    lines = [f"{d + 1} {w + 1} {int(c)}" for d, w, c in zip(document, word, count, strict=True)]
    header = [*map(str, known.counts.shape), str(len(lines))]
    path.write_text("\n".join(header + lines) + "\n")
    return path
