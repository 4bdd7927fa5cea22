"""``python -m dpsvi.datasets``: fetch a corpus, or convert a file."""

from __future__ import annotations

import argparse
import logging

from dpsvi.datasets import fetch_nytimes, load_corpus, load_lee


def main(argv: list[str] | None = None) -> None:
    """Bring a corpus into the cache and say what it holds."""
    parser = argparse.ArgumentParser(prog="python -m dpsvi.datasets", description=main.__doc__)
    parser.add_argument("corpus", help="nytimes (fetched), lee, or the path of a corpus file")
    parser.add_argument(
        "--vocabulary", default="auto", help="file of words; default: vocab.NAME.txt if there"
    )
    arguments = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    named = {"nytimes": fetch_nytimes, "lee": load_lee}
    if arguments.corpus in named:
        corpus = named[arguments.corpus]()
    else:
        corpus = load_corpus(arguments.corpus, arguments.vocabulary)
    print(f"{corpus.n_items} documents, {corpus.n_features} words, {corpus.nnz} entries, "
          f"{corpus.n_tokens:.0f} tokens")  # fmt: skip


if __name__ == "__main__":
    main()
