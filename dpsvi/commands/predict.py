"""``dpsvi predict DIR --data FILE --out FILE``: a model that is fitted to arrays, on more data."""

from __future__ import annotations

from dpsvi.commands.common import (
    add_model_argument,
    check_array_out,
    emit,
    load_estimator,
    refused_as,
    write_array,
)
from dpsvi.commands.fit_arrays import add_data_arguments, arguments_of, read_arrays

METHODS = ("predict", "predict_proba", "transform", "score_samples")


def add_arguments(parser) -> None:
    """Arguments of the command."""
    add_model_argument(parser)
    add_data_arguments(parser)
    parser.add_argument("--out", required=True, metavar="FILE", help="FILE.npy or FILE.csv")
    parser.add_argument(
        "--method", choices=METHODS, help="of the estimator [predict, or transform without one]"
    )


def run(args) -> None:
    """Write one row of the answer for each row of the data."""
    import numpy as np

    from dpsvi.errors import DataFormatError, UsageError

    check_array_out(args.out)
    estimator = load_estimator(args.model, "arrays")
    known = [name for name in METHODS if hasattr(estimator, name)]
    name = args.method or known[0]
    if name not in known:
        raise UsageError(f"{args.model}: this model has {known}, got --method {name}")
    answer = getattr(estimator, name)
    data = read_arrays(args)
    data.pop("y", None)
    with refused_as(DataFormatError):
        found = np.asarray(answer(**arguments_of(answer, data)))
    write_array(args.out, found, name)
    shape = list(found.shape)
    emit(args, {"out": args.out, "method": name, "shape": shape}, f"{args.out}: {name}, {shape}")
