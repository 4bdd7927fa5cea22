"""scikit-learn's own tests of its LDA, run with ours in its place."""

import os
import re
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
# ``docs/migrating.md`` names these differences.
DIFFERENT = {
    "test_lda_preplexity_mismatch": "it calls a method that is not public",
    "test_lda_empty_docs": "documents without any word are refused where there are no others",
    "test_verbosity": "progress goes to stderr, and is not a line for each pass",
    "test_lda_dtype_match": "topics are float32",
}


def test_scikit_learns_own_tests_pass_but_for_known_differences(tmp_path):
    done = subprocess.run(
        [
            sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "tools.sklearn_lda", "-rfE",
            "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", tmp_path,
            "--pyargs", "sklearn.decomposition.tests.test_online_lda",
        ],
        cwd=TESTS, capture_output=True, text=True,
    )  # fmt: skip
    failed = set(re.findall(r"^FAILED .*::(\w+)", done.stdout, re.M))
    assert failed == DIFFERENT.keys(), done.stdout
    n_passed = int(re.search(r"(\d+) passed", done.stdout)[1])
    assert n_passed >= 40 and "error" not in done.stdout.splitlines()[-1], done.stdout
