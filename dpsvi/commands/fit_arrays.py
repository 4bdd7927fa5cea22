"""``dpsvi fit NAME --data FILE``: any model that is fitted to arrays."""

from __future__ import annotations

import inspect
import warnings

from dpsvi import engines, models
from dpsvi.commands.inputs import reading_input, refused_data
from dpsvi.errors import UsageError

SOURCE = "data"  # the option that names the data
_ROLES = {"y": "y", "groups": "groups", "lengths": "sequence"}  # arguments of `fit`: options


def add_arguments(parser, name: str) -> None:
    """Arguments that say which data the model is fitted to."""
    add_data_arguments(parser)


def add_data_arguments(parser, required: bool = True) -> None:
    """Options that say where arrays come from."""
    group = parser.add_argument_group("data")
    group.add_argument(
        "--data", required=required, metavar="FILE",
        help=".npy; .npz with X, y, groups, lengths, or sparse; .mtx; .csv with a header",
    )  # fmt: skip
    for role, text in (
        ("y", "the target"),
        ("groups", "the group of a row"),
        ("sequence", "the sequence of a row"),
    ):
        group.add_argument(f"--{role}", metavar="COLUMN", help=f"column of a .csv: {text}")


def read_arrays(args, estimator=None) -> dict:
    """What the file of :func:`add_data_arguments` holds, as `read_data` returns it.

    For a fitted `estimator` columns are found by the names that it knows, and labels of groups are
    text where it knows text: in another file each of them may look like a number.

    Raises
    ------
    DataFormatError
        It cannot be opened or read.
    """
    from dpsvi.files.arrays import read_data

    features, groups = (getattr(estimator, name, None) for name in ("feature_names_in_", "groups_"))
    with reading_input(args.data):
        data = read_data(
            args.data, y=args.y, groups=args.groups, sequence=args.sequence, features=features
        )
    if args.groups is not None and groups is not None and groups.dtype.kind == "U":
        data["groups"] = data["groups"].astype(str)
    return data


def ask(call, data: dict, path):
    """What a method of a fitted estimator says of `data`, as :func:`read_arrays` returns it.

    Raises
    ------
    DataFormatError
        It refuses the data, which are those of `path`.
    """
    with refused_data(path), warnings.catch_warnings():
        # Columns were found by name; that they have none any more is no news.
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        return call(**arguments_of(call, data))


def arguments_of(method, data: dict) -> dict:
    """Those of the arrays that a method of an estimator takes."""
    known = inspect.signature(method).parameters
    return {name: array for name, array in data.items() if name in known}


def read(args) -> dict:
    """Arguments of the estimator's `fit`."""
    _check_roles(args.name, [role for role in _ROLES if getattr(args, _ROLES[role]) is not None])
    data = read_arrays(args)
    _check_roles(args.name, data, args.data)
    return data


def _check_roles(name: str, given, path=None) -> None:
    """Raise UsageError where `fit` does not take one of the arguments `given`, or needs another.

    What is needed is known once the file at `path` has been read.
    """
    parameters = inspect.signature(models.get(name).fit).parameters
    for role, option in _ROLES.items():
        # A y that has a default is there for scikit-learn, and ignored.
        needed = role in parameters and parameters[role].default is inspect.Parameter.empty
        taken = needed or (role in parameters and role != "y")
        if role in given and not taken:
            raise UsageError(f"{path or '--' + option}: the model {name} takes no {role}")
        if needed and path and role not in given:
            raise UsageError(
                f"{path}: the model {name} needs {role}: a column of a .csv that --{option} "
                f"names, or the array {role} of a .npz"
            )


def parameters(args, data) -> dict:
    """Parameters of the estimator that the arguments give, besides --set."""
    return {"validation_size": args.held_out or None}


def described(data) -> str:
    """The data in a line of the log."""
    return ", ".join(f"{name} {data[name].shape}" for name in ("X", *_ROLES) if name in data)


def metrics(entry: dict, data, items_a_second: float):
    """Pairs (name, value, split) of an entry of the history."""
    if "score" in entry:
        yield "score", entry["score"], "heldout"
    yield "items_per_second", items_a_second, "train"


def write(folder, estimator, data) -> None:
    """Nothing besides the model, which gets the names of its columns."""
    import numpy as np

    names = data.get("features", ())
    if names and len(set(names)) == len(names):
        estimator.feature_names_in_ = np.array(names, object)


def summary(estimator, data) -> dict:
    """Numbers of the run."""
    last = estimator.history_[-1] if estimator.history_ else {}
    return {
        "model": type(estimator).__name__, "shape": list(data["X"].shape),
        "passes": estimator.n_iter_, "seconds": last.get("seconds", 0.0),
        "lower_bound": estimator.lower_bound_, "score": last.get("score"),
        "simulated": engines.get(estimator.engine).simulated,
    }  # fmt: skip


def describe(result, estimator) -> list[str]:
    """The same as lines of text."""
    model = result["model"]
    if "n_components" in estimator.get_params():  # the default of some is one, which few want
        model += f" with --set n_components={estimator.n_components}"
    lines = [f"{model}: lower bound {result['lower_bound']:,.6g} nats"]
    if result["score"] is not None:
        lines.append(f"held-out score {result['score']:.6g}")
    return lines
