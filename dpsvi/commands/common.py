"""What commands share: corpora and models in, settings from TOML, refusals, results on stdout."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from pathlib import Path

from dpsvi.errors import BAD_DATA, DataFormatError, DpsviError, UsageError, check_choice


def add_output_arguments(parser, default=argparse.SUPPRESS) -> None:
    """Options of every command; below another parser the `default` is left to that one."""
    for flag, text in (("--json", "results on stdout as JSON"), ("--debug", "show tracebacks")):
        parser.add_argument(flag, action="store_true", default=default, help=text)


def add_corpus_arguments(parser, required: bool = True) -> None:
    """Options that say where documents come from and how to read them."""
    group = parser.add_argument_group("corpus")
    group.add_argument(
        "--corpus", required=required, metavar="PATH",
        help="UCI docword, Matrix Market, LDA-C (each plain or .gz), npz CSR, or dataset:NAME",
    )  # fmt: skip
    group.add_argument(
        "--texts", action="store_true",
        help="PATH holds one text a line, or is a .csv or .tsv with a column called text; plain or "
        ".gz",
    )  # fmt: skip
    group.add_argument(
        "--text-column", metavar="NAME",
        help="PATH is a .csv or .tsv with texts in this column; --texts need not be given",
    )  # fmt: skip
    if required:
        group.add_argument(
            "--stop-words", choices=["english"],
            help="of texts: leave out the most common words of a language",
        )  # fmt: skip
    group.add_argument(
        "--vocab", metavar="PATH",
        help="one word a line; default: found beside; of texts: only these words are counted",
    )  # fmt: skip
    group.add_argument(
        "--encoding",
        type=_encoding,
        default="utf-8",
        help="encoding of vocabulary and texts [%(default)s]",
    )
    group.add_argument("--allow-fractional", action="store_true", help="accept fractional counts")
    group.add_argument("--max-bytes", type=int, metavar="N", help="lift the cap on decompression")
    group.add_argument("--no-cache", action="store_true", help="do not keep the parsed corpus")


def collective(args) -> bool:
    """Whether all processes of this launch carry out the command together."""
    from dpsvi import engines
    from dpsvi.files.launcher import launched_size

    size = launched_size()
    name = getattr(args, "engine", None) or engines.called_for(size)
    return size > 1 and engines.get(name).collective


def read_corpus(args, estimator=None):
    """Load the corpus of :func:`add_corpus_arguments`.

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


def way_to_go_on(out) -> str:
    """What can be done with a run folder whose fit has ended too early; empty where nothing can."""
    there = (Path(out) / "checkpoints").is_dir()
    return f"`dpsvi resume {out}` goes on from the last checkpoint" if there else ""


def seed(text: str) -> int:
    """An argument that is a seed."""
    if text.isdecimal() and int(text) < 1 << 32:
        return int(text)
    raise argparse.ArgumentTypeError(f"must be an integer from 0 to {(1 << 32) - 1}, got {text!r}")


def passes(text: str) -> int | str:
    """An argument that is a number of passes, or ``auto``."""
    try:
        return text if text == "auto" else int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be an integer or auto, got {text!r}") from None


def _encoding(text: str) -> str:
    try:
        " ".encode(text)
    except LookupError:
        raise argparse.ArgumentTypeError(f"must be one that Python knows, got {text!r}") from None
    return text


def setting(text: str):
    """An argument ``NAME=VALUE``, the value as JSON or a plain word."""
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE, got {text!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def check_out(path) -> None:
    """Raise UsageError unless a file can be made at `path`."""
    path = Path(path)
    if path.is_dir() or not path.parent.is_dir():
        raise UsageError(f"--out must be a file in a folder that there is, got {str(path)!r}")


def write_array(path: str, array, name: str) -> None:
    """Write an array of one or two dimensions, .npy or .csv with a header; whole or not at all.

    :func:`check_array_out` says beforehand whether it can.
    """
    import numpy as np

    from dpsvi.files.io import atomic_path

    with atomic_path(path) as temporary, open(temporary, "wb") as file:
        if path.endswith(".npy"):
            np.save(file, array)
            return
        columns = 1 if array.ndim == 1 else array.shape[1]
        header = name if array.ndim == 1 else ",".join(f"{name}{k}" for k in range(columns))
        form = "%s" if array.dtype.kind in "iuUS" else "%.6g"
        np.savetxt(file, array, delimiter=",", fmt=form, header=header, comments="")


def check_array_out(path: str) -> None:
    """Raise UsageError unless :func:`write_array` can make a file at `path`."""
    if not path.endswith((".npy", ".csv")):
        raise UsageError(f"--out must end in .npy or .csv, got {path!r}")
    check_out(path)


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


def add_model_argument(parser) -> None:
    """The folder that ``dpsvi fit`` wrote."""
    parser.add_argument("model", metavar="DIR", help="run folder")


def apply_config(parser, argv) -> argparse.Namespace:
    """Parse `argv`; settings of ``--config FILE.toml`` count as defaults, flags win.

    The process ends here, as it does for wrong usage, where the file cannot be read.
    """
    finder = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    finder.add_argument("--config")
    path = finder.parse_known_args(argv)[0].config
    if path is None:
        return parser.parse_args(argv)
    import tomllib

    try:
        with open(path, "rb") as file:
            settings = tomllib.load(file)
    except OSError as error:
        parser.exit(BAD_DATA, f"{parser.prog}: {path}: cannot be read: {error.strerror}\n")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        parser.exit(BAD_DATA, f"{parser.prog}: {path}: not valid TOML: {error}\n")
    extra = []
    for key, value in settings.items():
        flag = "--" + key.replace("_", "-")
        if isinstance(value, (dict, list)):
            parser.error(f"--config {path}: {key} must be a single value, got {value!r}")
        if isinstance(value, bool):
            extra += [flag] if value else []
        else:
            extra += [flag, str(value)]
    # Settings go right behind the command (and its model name), before the flags that win.
    position = next((i for i, word in enumerate(argv) if word.startswith("-")), len(argv))
    return parser.parse_args([*argv[:position], *extra, *argv[position:]])


def emit(args, result: dict, text: str) -> None:
    """Print a result on stdout: as JSON if asked for, else as text."""
    if args.json:
        json.dump(result, sys.stdout, ensure_ascii=False)
        sys.stdout.write("\n")
    else:
        print(text)
