"""Arguments that commands share: their kinds, settings of a TOML file, whether they join ranks."""

from __future__ import annotations

import argparse
import json

from dpsvi.errors import BAD_DATA


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


def add_model_argument(parser) -> None:
    """The folder that ``dpsvi fit`` wrote."""
    parser.add_argument("model", metavar="DIR", help="run folder")


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


def setting(text: str):
    """An argument ``NAME=VALUE``, the value as JSON or a plain word."""
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE, got {text!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _encoding(text: str) -> str:
    try:
        " ".encode(text)
    except LookupError:
        raise argparse.ArgumentTypeError(f"must be one that Python knows, got {text!r}") from None
    return text


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


def collective(args) -> bool:
    """Whether all processes of this launch carry out the command together."""
    from dpsvi import engines
    from dpsvi.files.launcher import launched_size

    size = launched_size()
    name = getattr(args, "engine", None) or engines.called_for(size)
    return size > 1 and engines.get(name).collective
