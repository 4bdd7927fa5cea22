"""``dpsvi predict DIR --data FILE --out FILE``: a model that is fitted to arrays, on more data."""

from __future__ import annotations

from dpsvi.commands.arguments import add_model_argument
from dpsvi.commands.fit_arrays import add_data_arguments, ask, read_arrays
from dpsvi.commands.inputs import load_estimator
from dpsvi.commands.outputs import check_array_out, emit, write_array

METHODS = ("predict", "predict_proba", "score_samples")


def add_arguments(parser) -> None:
    """Arguments of the command."""
    add_model_argument(parser)
    add_data_arguments(parser)
    parser.add_argument(
        "--out", required=True, metavar="FILE", help="file to be written, FILE.npy or FILE.csv"
    )
    parser.add_argument(
        "--method",
        choices=METHODS,
        help="method of the estimator [the first that it has]",
    )


def run(args) -> None:
    """Write one row of the answer for each row of the data."""
    check_array_out(args.out)
    answer(args, METHODS, args.method)


def answer(args, methods: tuple[str, ...], method: str | None = None) -> None:
    """Write what a method of the model, by default the first of `methods`, says of the data.

    Raises
    ------
    UsageError
        The model is fitted to a corpus, or has no such method.
    DataFormatError
        The model or the data cannot be read.
    """
    import numpy as np

    from dpsvi.errors import UsageError

    estimator = load_estimator(args.model, "arrays")
    known = [name for name in methods if hasattr(estimator, name)]
    method = method or next(iter(known), methods[0])
    if method not in known:
        others = _offers(estimator)
        raise UsageError(f"{args.model}: this model has no {method}{others}")
    call = getattr(estimator, method)
    data = read_arrays(args, estimator)
    data.pop("y", None)
    found = np.asarray(ask(call, data, args.data))
    write_array(args.out, found, method)
    shape = list(found.shape)
    emit(
        args, {"out": args.out, "method": method, "shape": shape}, f"{args.out}: {method}, {shape}"
    )


def _offers(estimator) -> str:
    """The commands that answer, and the methods of each, behind what a message says of others."""
    names = [name for name in METHODS if hasattr(estimator, name)]
    found = [f"`dpsvi predict` with {', '.join(names)}"] * bool(names)
    found += ["`dpsvi transform`"] * hasattr(estimator, "transform")
    return "; it has " * bool(found) + " and ".join(found)
