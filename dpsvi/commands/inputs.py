"""What commands read: corpora and models; what is wrong with them ends with its own exit code."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager, nullcontext

from dpsvi.commands.arguments import collective
from dpsvi.errors import DataFormatError, DpsviError, UsageError, check_choice


def read_corpus(args, estimator=None):
    """Load the corpus of :func:`dpsvi.commands.arguments.add_corpus_arguments`.

    On several processes rank 0 parses, and the others share its pages.

    Parameters
    ----------
    args : argparse.Namespace
    estimator : estimator or None
        A fitted one: of texts, only its words are counted.

    Raises
    ------
    DataFormatError
        A file cannot be opened, or is no corpus.
    UsageError
        The estimator knows no words of texts.
    """
    from dpsvi.cluster.ranks.world import in_turn

    with in_turn() if collective(args) else nullcontext(), reading_input(args.corpus):
        if args.texts or args.text_column is not None:
            return _read_texts(args, estimator)
        if getattr(args, "stop_words", None):
            raise UsageError("--stop-words needs --texts: other files hold counts of words")
        return _read_corpus(args)


def _read_texts(args, estimator):
    from dpsvi.corpus import as_corpus
    from dpsvi.corpus.text_files import read_texts
    from dpsvi.corpus.texts import count_words
    from dpsvi.corpus.vocabulary import as_vocabulary

    words = as_vocabulary(args.vocab, args.encoding)
    if estimator is not None and words is None:
        words = estimator.vocabulary_
        if words is None:
            raise UsageError("--texts: the model was fitted without words; --vocab names them")
    texts = read_texts(args.corpus, args.encoding, args.max_bytes, args.text_column)
    return as_corpus(*count_words(texts, words, getattr(args, "stop_words", None)))


def _read_corpus(args):
    from dpsvi.corpus import load_corpus
    from dpsvi.corpus.text_files import separator

    if args.corpus.startswith("dataset:"):
        from dpsvi.datasets import BY_NAME

        name = args.corpus.removeprefix("dataset:")
        check_choice("--corpus dataset", name, sorted(BY_NAME))
        return BY_NAME[name]()
    try:
        return load_corpus(
            args.corpus, args.vocab or "auto", allow_fractional=args.allow_fractional,
            max_bytes=args.max_bytes, encoding=args.encoding, cache=not args.no_cache,
        )  # fmt: skip
    except DataFormatError as error:
        if not str(error).startswith(f"{args.corpus}:1: "):
            raise
        hint = "--text-column NAME reads the texts of a table" if separator(args.corpus) else (
            "--texts reads a file of texts"
        )  # fmt: skip
        raise DataFormatError(f"{error} ({hint})") from error


@contextmanager
def reading_input(path):
    """Raise DataFormatError where the block cannot open or read what the user named as input.

    Python names the file that it could not open; for a fault without a name that is `path`.
    """
    try:
        yield
    except OSError as error:
        name = error.filename or path
        raise DataFormatError(f"{name}: cannot be read: {error.strerror or error}") from error


def refused_data(path):
    """Raise what the block refuses as a DataFormatError that names `path`."""
    return refused_as(lambda said: DataFormatError(f"{path}: {said}"))


@contextmanager
def refused_as(kind: Callable[[str], DpsviError]):
    """Raise what the block refuses as an error of this `kind`, on which the exit code depends."""
    try:
        yield
    except DpsviError:
        raise
    except (ValueError, TypeError) as error:
        # scikit-learn goes on with advice that has nothing to do with a command.
        raise kind(str(error).partition("\n")[0]) from error


def load_estimator(path, fitted_to: str = "corpus"):
    """Load the model of a run folder, one that is fitted to a ``"corpus"`` or to ``"arrays"``.

    Raises
    ------
    DataFormatError
        There is no model, or it cannot be opened.
    UsageError
        It holds another kind of model.
    """
    from dpsvi import models

    kind, fits = model_kind(path)
    if fits not in (fitted_to, None):
        known = [name for name in models.names() if models.declared(name)["FITTED_TO"] == fitted_to]
        others = {"arrays": "transform, evaluate, topics", "corpus": "predict, evaluate"}
        raise UsageError(
            f"{path}: holds a {kind!r} model, for which there are {others[fitted_to]} and info; "
            f"this command is for {', '.join(known)}"
        )
    with reading_input(path):
        return models.load(path)


def model_kind(path) -> tuple[str, str | None]:
    """The kind of model in a run folder, and what it is fitted to; None for an unknown kind.

    Raises
    ------
    DataFormatError
        There is no model, or it cannot be opened.
    """
    from dpsvi import models
    from dpsvi.files.io import read_meta

    with reading_input(path):
        kind = read_meta(path)["kind"]
    return kind, models.declared(kind)["FITTED_TO"] if kind in models.names() else None


def takes_arrays(args) -> bool:
    """Whether the model of a command that has both --corpus and --data is fitted to arrays.

    Raises
    ------
    DataFormatError
        There is no model, or it cannot be opened.
    UsageError
        The data that were given are not of its kind.
    """
    kind, fits = model_kind(args.model)
    if fits is None:
        load_estimator(args.model)  # which says what it is
    arrays = fits == "arrays"
    given, other = ("data", "corpus") if arrays else ("corpus", "data")
    if getattr(args, given) is None or getattr(args, other) is not None:
        raise UsageError(f"{args.model}: holds a {kind!r} model, whose data are given by --{given}")
    return arrays
