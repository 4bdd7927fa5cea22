"""``python -m dpsvi.datasets``: fetch a corpus, or convert a file."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path

from dpsvi.datasets import BY_NAME, load_corpus
from dpsvi.errors import BAD_DATA, DpsviError


def main(argv: list[str] | None = None) -> None:
    """Bring a corpus into the cache and say what it holds."""
    parser = argparse.ArgumentParser(prog="python -m dpsvi.datasets", description=main.__doc__)
    parser.add_argument(
        "corpus", help="nytimes (fetched), lee, docstrings, or the path of a corpus file"
    )
    parser.add_argument(
        "--vocabulary", default="auto", help="file of words; default: vocab.NAME.txt if there"
    )
    arguments = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    name = arguments.corpus
    if name not in BY_NAME and not Path(name).exists():
        known = " nor ".join(sorted(BY_NAME))
        parser.exit(BAD_DATA, f"{parser.prog}: {name}: is neither {known} nor a file\n")
    try:
        corpus = BY_NAME[name]() if name in BY_NAME else load_corpus(name, arguments.vocabulary)
    except (OSError, DpsviError) as error:
        parser.exit(BAD_DATA, f"{parser.prog}: {error}\n")
    print(f"{corpus.n_items} documents, {corpus.n_features} words, {corpus.nnz} entries, "
          f"{corpus.n_tokens:.0f} tokens")  # fmt: skip


if __name__ == "__main__":
    main()
