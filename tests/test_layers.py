"""Who may import whom, read from the source; and what an import costs."""

import ast
import os
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "dpsvi"


def module_name(path):
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path):
    """Every module that a file names in an import, at the top or inside a function."""
    package = module_name(path).split(".")
    if path.name != "__init__.py":
        package = package[:-1]
    names = set()
    text = path.read_text("utf-8")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*base, *([node.module] if node.module else [])])
            names.add(base)
            names.update(f"{base}.{alias.name}" for alias in node.names)
        elif (
            "import_module" in text and isinstance(node, ast.Call)
            and ast.unparse(node.func).endswith("import_module")
        ):  # fmt: skip
            argument = node.args[0]
            names.add(argument.value if isinstance(argument, ast.Constant) else "")
    return names


PATHS = {module_name(path): path for path in PACKAGE.rglob("*.py")}
MODULES = {name: imports_of(path) for name, path in PATHS.items()}


def within(name, layer):
    return name == layer or name.startswith(layer + ".")


def importers(layer):
    return {name for name, used in MODULES.items() if any(within(u, layer) for u in used)}


# Sub-packages and root modules, from the lowest layer to the highest: imports go down only.
LAYERS = [
    {"errors", "base"},
    {"files", "kernels", "ranking"},
    {"corpus"},
    {"datasets", "interop", "learners", "strategies"},
    {"expfam", "training"},
    {"cluster", "evaluation"},
    {"engines"},
    {"averaging", "estimators", "report"},
    {"optimize", "rl"},
    {"families"},
    {"models"},
    {"commands"},
    {"__main__"},
]
LAYER_OF = {part: layer for layer, parts in enumerate(LAYERS) for part in parts}
MPI_SIDE = {
    "dpsvi.engines.mpi", "dpsvi.cluster.ranks", "dpsvi.cluster.transports.channel",
    "dpsvi.cluster.transports.chunks",
}  # fmt: skip
# These know nothing of dpsvi, or of the second.
BLIND = {
    "dpsvi.base": {"dpsvi"},
    "dpsvi.errors": {"dpsvi"},
    "dpsvi.kernels.memory": {"dpsvi"},
    "dpsvi.training.progress": {"dpsvi"},
    "dpsvi.training.schedules": {"dpsvi.training"},
    "dpsvi.training.ledger": {"dpsvi.training"},
    "dpsvi.training.state": {"dpsvi.training"},
    "dpsvi.cluster.nodes": MPI_SIDE,
    "dpsvi.cluster.virtual": MPI_SIDE,
}


def part_of(name):
    return name.split(".")[1] if "." in name else None


def test_every_part_has_a_layer():
    assert {part_of(name) for name in MODULES} - {None} == set(LAYER_OF)


@pytest.mark.parametrize("name", sorted(MODULES))
def test_imports_go_down(name):
    if name == "dpsvi":
        return  # it names all that users import, and loads none of it
    for used in MODULES[name]:
        there = part_of(used)
        if not within(used, "dpsvi") or there not in LAYER_OF or there == part_of(name):
            continue
        assert LAYER_OF[there] < LAYER_OF[part_of(name)], f"{name} imports {used}"


def test_no_module_imports_itself_by_way_of_others():
    open_, closed = [], set()

    def visit(name):
        assert name not in open_, " -> ".join([*open_[open_.index(name) :], name])
        if name in closed:
            return
        open_.append(name)
        for used in sorted(MODULES[name] & MODULES.keys() - {"dpsvi"}):
            # `from package import module` names the package, too.
            if not within(name, used):
                visit(used)
        closed.add(open_.pop())

    for name in sorted(MODULES.keys() - {"dpsvi"}):
        visit(name)


@pytest.mark.parametrize("layer", BLIND)
def test_layer(layer):
    members = {name for name in MODULES if within(name, layer)}
    assert members, f"{layer} is gone: this table must follow"
    for member in sorted(members):
        for used in MODULES[member]:
            if not within(used, layer):
                bad = [f for f in BLIND[layer] if within(used, f)]
                assert not bad, f"{member} imports {used}"


@pytest.mark.parametrize("kind", ["engines", "learners", "strategies"])
def test_nobody_asks_for_its_name(kind):
    """What a module wants to know of an engine, a learner or a strategy, that one says itself."""
    names = {path.stem for path in (PACKAGE / kind).glob("[!_]*.py")}
    assert len(names) >= 3
    for name, path in PATHS.items():
        if within(name, f"dpsvi.{kind}"):
            continue
        assert not {f"dpsvi.{kind}.{other}" for other in names} & MODULES[name], name
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Compare):
                texts = [n.value for n in ast.walk(node) if isinstance(n, ast.Constant)]
                assert not names & {t for t in texts if isinstance(t, str)}, (
                    f"{name}:{node.lineno}: {ast.unparse(node)}"
                )


# Where a strategy is named all the same: not to ask which it is, but to say which is wanted.
# What the word means in `algorithm` is an algorithm, and in `update` a number of an update.
STRATEGIES_NAMED = {
    "dpsvi.cluster.options": {"decay"},  # the default
    # A published algorithm is this strategy beside other settings.
    "dpsvi.rl.algorithms": {"displacement", "gala", "local_sgd", "momentum"},
    "dpsvi.rl.actor_critic": {"gala"},  # algorithm
    "dpsvi.cluster.nodes.merging": {"decay"},  # update
    "dpsvi.cluster.nodes.worker": {"decay"},  # update
}


def test_only_settings_name_a_strategy():
    names = {path.stem for path in (PACKAGE / "strategies").glob("[!_]*.py")}
    found = {}
    for name, path in PATHS.items():
        texts = {
            node.value
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        if names & texts and not within(name, "dpsvi.strategies"):
            found[name] = names & texts
    assert found == STRATEGIES_NAMED


# Each transport is opened in one place; everybody else has what `cluster.contracts` says of it.
OPENED_IN = {
    "channel": {"dpsvi.cluster.ranks.world"},
    "memory": {"dpsvi.cluster.turns"},
    "virtual": {"dpsvi.cluster.virtual.peers", "dpsvi.engines.simulated"},
}


@pytest.mark.parametrize("transport", OPENED_IN)
def test_a_transport_is_named_where_it_is_opened(transport):
    assert importers(f"dpsvi.cluster.transports.{transport}") == OPENED_IN[transport]


def test_tests_mirror_the_folders():
    """But for what is common to models, strategies or the tests themselves."""
    here, others = Path(__file__).parent, {"common", "experiments", "members", "reference", "tools"}
    for path in here.rglob("test_*.py"):
        folder = path.parent.relative_to(here)
        # What lies below `files` are models and packages that its tests read.
        if folder.parts and folder.parts[0] not in others | {"files"}:
            assert (PACKAGE / folder).is_dir(), f"{path} mirrors nothing"
    for path in PACKAGE.glob("*/__init__.py"):
        assert (here / path.parent.name).is_dir(), f"no tests of {path.parent}"


def test_the_root_is_small():
    modules = [path.name for path in PACKAGE.glob("*.py")]
    assert len(modules) <= 6, modules


def test_models_do_not_know_each_other():
    models = {".".join(name.split(".")[:3]) for name in MODULES if within(name, "dpsvi.models")}
    assert {"dpsvi.models.lda", "dpsvi.models.gaussian_mixture"} <= models
    for name in MODULES:
        if within(name, "dpsvi.models") and name != "dpsvi.models":
            model = ".".join(name.split(".")[:3])
            for used in MODULES[name]:
                if within(used, "dpsvi.models") and used != "dpsvi.models":
                    assert within(used, model), f"{name} imports {used}"


HOMES = {
    "mpi4py": {
        "dpsvi.cluster.transports.chunks", "dpsvi.cluster.transports.failures",
        "dpsvi.cluster.ranks.heartbeat", "dpsvi.cluster.ranks.waiting",
        "dpsvi.cluster.ranks.world",
    },  # fmt: skip
    "gensim": {"dpsvi.interop"},
    "torch": set(),
    "matplotlib": set(),
    "pandas": set(),
    "joblib": set(),
    "tqdm": {"dpsvi.training.progress"},
    "pooch": {"dpsvi.datasets"},
    "safetensors": {"dpsvi.files.io"},
    "llvmlite": {"dpsvi.kernels"},
}


@pytest.mark.parametrize("library", HOMES)
def test_each_library_has_one_home(library):
    for name in importers(library):
        assert any(within(name, home) for home in HOMES[library]), f"{name} imports {library}"


# --- what is loaded ----------------------------------------------------------------------------

SLOW = ["gensim", "pandas", "matplotlib", "mpi4py", "torch", "tqdm", "pooch", "safetensors"]
VERY_SLOW = ["numpy", "scipy", "numba", "sklearn"]
LOADED = {
    "import dpsvi": SLOW + VERY_SLOW + ["dpsvi.models", "dpsvi.engines", "dpsvi.corpus"],
    "import dpsvi.__main__": SLOW + VERY_SLOW,
    "import dpsvi.base, dpsvi.training.state, dpsvi.training.schedules": [
        *SLOW, "sklearn", "scipy", "dpsvi.models",
    ],
    "import dpsvi.training.driver, dpsvi.engines.threads": [*SLOW, "sklearn", "dpsvi.models"],
    "from dpsvi import Corpus, as_corpus, load_corpus": [*SLOW, "sklearn", "dpsvi.models"],
    # scikit-learn itself loads pandas where it is installed
    "from dpsvi import DPSVILDA": [*SLOW[2:], "gensim", "dpsvi.models.gaussian_mixture"],
    "from dpsvi import DPSVIHDP": [*SLOW[2:], "gensim", "dpsvi.models.lda.estimator"],
    "from dpsvi import DPSVIGaussianMixture": [*SLOW[2:], "gensim", "dpsvi.models.lda.estimator"],
}


@pytest.mark.parametrize("statement", LOADED)
def test_not_loaded(statement):
    code = f"import sys; {statement}; print(*[m for m in {LOADED[statement]} if m in sys.modules])"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.split() == []


def cpu_seconds(*arguments):
    """Processor time of an interpreter, the median of five: less noisy than time of day."""
    taken = []
    for _ in range(5):
        before = os.times()
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
        after = os.times()
        taken.append(
            after.children_user - before.children_user
            + after.children_system - before.children_system
        )  # fmt: skip
    return statistics.median(taken)


@pytest.mark.parametrize("arguments", [["-c", "import dpsvi"], ["-m", "dpsvi", "--version"]])
def test_start_is_fast(arguments):
    assert cpu_seconds(*arguments) - cpu_seconds("-c", "pass") < 0.3


def test_public_names():
    import dpsvi

    assert set(dpsvi.__all__) <= set(dir(dpsvi))
    for name in dpsvi.__all__:
        assert getattr(dpsvi, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'LDA'"):
        dpsvi.LDA  # noqa: B018
