"""``python -m experiments.peer_tests``: which tests of other packages our classes pass."""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from pathlib import Path

from experiments import peer_tests
from experiments.provenance import described, provenance


def main(argv=None) -> None:
    """Run the tests of every class whose package is installed; write JSON and a table."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="python -m experiments.peer_tests", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("experiments/results/peer_tests"))
    args = parser.parse_args(argv)
    there = [n for n in peer_tests.names() if importlib.util.find_spec(n.partition("_")[0])]
    source = provenance(
        "experiments.peer_tests", argv, ["numpy", "numba", "scikit-learn", "hmmlearn"], {}
    )
    rows, text = (
        {},
        f"# Tests of other packages, with our classes\n\n{described(source)}\n\n<!-- table -->\n",
    )
    for name in there:
        outcome, why = peer_tests.run(name), peer_tests.get(name).DIFFERENT
        rows[name] = {"passed": sorted(outcome.passed), "failed": outcome.failed}
        n = len(outcome.passed)
        text += (
            f"\n**{name}**: {n} of {n + len(outcome.failed)} pass.\n\n"
            "| does not pass | difference |\n| --- | --- |\n"
        )
        for test in sorted(outcome.failed):
            text += f"| `{test}` | {why.get(test, 'NOT KNOWN: ' + outcome.failed[test])} |\n"
    args.out.mkdir(parents=True, exist_ok=True)
    content = json.dumps({**source, "rows": rows}, indent=1)
    (args.out / "table.json").write_text(content + "\n")
    (args.out / "table.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
