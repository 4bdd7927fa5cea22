"""The way of a fit through the package, `fit` to `components_`: folders and files it visits."""

import sys
from pathlib import Path

import numpy as np

import dpsvi
from dpsvi import DPSVILDA

PACKAGE = Path(dpsvi.__file__).parent
# As few as can be read at a time; files are counted so that an indirection is seen when it comes.
MOST_FOLDERS, MOST_FILES = 12, 50


def visited(call):
    """Files of the package whose functions run during a call, in order."""
    files = {}

    def look(frame, event, argument):
        if event == "call":
            path = Path(frame.f_code.co_filename)
            if PACKAGE in path.parents:
                files.setdefault(path.relative_to(PACKAGE))

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(before)
    return list(files)


def test_from_fit_to_components_is_a_short_way():
    X = np.random.default_rng(0).poisson(1.0, size=(60, 30))

    def fit():
        return DPSVILDA(3, engine="serial", random_state=0).fit(X).components_

    fit()  # loads modules and compiles
    files = visited(fit)
    folders = {path.parent for path in files}
    print(f"{len(folders)} folders, {len(files)} files")
    assert Path("models/lda/estimator.py") in files and Path("training/driver.py") in files
    assert len(folders) <= MOST_FOLDERS, sorted(map(str, folders))
    assert len(files) <= MOST_FILES, [str(path) for path in files]
