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
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*base, *([node.module] if node.module else [])])
            names.add(base)
            names.update(f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            argument = node.args[0]
            names.add(argument.value if isinstance(argument, ast.Constant) else "")
    return names


MODULES = {module_name(path): imports_of(path) for path in PACKAGE.rglob("*.py")}


def within(name, layer):
    return name == layer or name.startswith(layer + ".")


def importers(layer):
    return {name for name, used in MODULES.items() if any(within(u, layer) for u in used)}


FACE = {
    "dpsvi.commands", "dpsvi.component_prior", "dpsvi.engine_parameters", "dpsvi.estimator",
    "dpsvi.family", "dpsvi.hierarchical", "dpsvi.interop", "dpsvi.mixture_model", "dpsvi.monitor",
    "dpsvi.recommender", "dpsvi.report", "dpsvi.topic_fit", "dpsvi.topic_model",
}  # fmt: skip
RUNS = {"dpsvi.engines", "dpsvi.fit", "dpsvi.task", "dpsvi.cluster", "dpsvi.checkpoint"}
MPI_SIDE = {
    "dpsvi.engines.mpi", "dpsvi.cluster.channel", "dpsvi.cluster.pulse", "dpsvi.cluster.world",
    "dpsvi.cluster.lead", "dpsvi.cluster.follow",
}  # fmt: skip
# layer: what it must know nothing of, besides the layers of FACE
BLIND = {
    "dpsvi.base": {"dpsvi"},
    "dpsvi.errors": {"dpsvi"},
    "dpsvi.checks": {"dpsvi"},
    "dpsvi.schedules": RUNS
    | {"dpsvi.models", "dpsvi.svi", "dpsvi.corpus", "dpsvi.kernels", "dpsvi.jit"},
    "dpsvi.jit": RUNS | {"dpsvi.models", "dpsvi.svi", "dpsvi.kernels", "dpsvi.corpus"},
    "dpsvi.kernels": RUNS | {"dpsvi.models", "dpsvi.svi", "dpsvi.schedules", "dpsvi.corpus"},
    "dpsvi.expfam": RUNS | {"dpsvi.models", "dpsvi.svi", "dpsvi.schedules", "dpsvi.corpus"},
    "dpsvi.svi": RUNS | {"dpsvi.models", "dpsvi.schedules", "dpsvi.corpus"},
    "dpsvi.strategies": RUNS | {"dpsvi.models", "dpsvi.schedules", "dpsvi.corpus", "dpsvi.jit"},
    "dpsvi.engines": {"dpsvi.models", "dpsvi.kernels", "dpsvi.schedules", "dpsvi.evaluate"},
    "dpsvi.task": {"dpsvi.models", "dpsvi.kernels", "dpsvi.schedules", "dpsvi.evaluate"},
    "dpsvi.fit": {"dpsvi.models", "dpsvi.kernels", "dpsvi.schedules", "dpsvi.evaluate"},
    "dpsvi.passes": RUNS | {"dpsvi.models", "dpsvi.schedules", "dpsvi.svi", "dpsvi.jit"},
    "dpsvi.checkpoint": {"dpsvi.models", "dpsvi.kernels", "dpsvi.schedules", "dpsvi.cluster"},
    "dpsvi.cluster": {"dpsvi.models", "dpsvi.kernels", "dpsvi.schedules", "dpsvi.evaluate"},
    "dpsvi.cluster.master": MPI_SIDE,
    "dpsvi.cluster.worker": MPI_SIDE,
    "dpsvi.corpus": RUNS | {"dpsvi.models", "dpsvi.svi", "dpsvi.jit", "dpsvi.kernels"},
    "dpsvi.evaluate": RUNS | {"dpsvi.models", "dpsvi.svi"},
    "dpsvi.topics": RUNS | {"dpsvi.models", "dpsvi.svi", "dpsvi.schedules", "dpsvi.corpus"},
    "dpsvi.io": RUNS | {"dpsvi.models", "dpsvi.svi", "dpsvi.corpus"},
    "dpsvi.memory": {"dpsvi"},
    "dpsvi.telemetry": {"dpsvi"},
    "dpsvi.report": RUNS | {"dpsvi.models", "dpsvi.svi", "dpsvi.estimator"},
    "dpsvi.models.hdp_steps": RUNS | {"dpsvi.schedules", "dpsvi.svi", "dpsvi.corpus"},
    "dpsvi.models.lda_steps": RUNS | {"dpsvi.schedules", "dpsvi.svi", "dpsvi.corpus"},
}


@pytest.mark.parametrize("layer", BLIND)
def test_layer(layer):
    members = {name for name in MODULES if within(name, layer)}
    assert members, f"{layer} is gone: this table must follow"
    forbidden = BLIND[layer] | FACE - {layer}
    for member in sorted(members):
        for used in MODULES[member]:
            if not within(used, layer):
                bad = [f for f in forbidden if within(used, f)]
                assert not bad, f"{member} imports {used}"


def test_models_do_not_know_each_other():
    models = [name for name in MODULES if name.count(".") == 2 and within(name, "dpsvi.models")]
    assert {"dpsvi.models.lda", "dpsvi.models.gaussian_mixture"} <= set(models)
    for name in models:
        prefix = name + "_"  # lda and lda_steps are one model
        for used in MODULES[name]:
            if within(used, "dpsvi.models") and used != "dpsvi.models":
                assert used.startswith((name, prefix)), f"{name} imports {used}"


HOMES = {
    "mpi4py": {"dpsvi.cluster.channel", "dpsvi.cluster.pulse", "dpsvi.cluster.world"},
    "gensim": {"dpsvi.interop"},
    "torch": {"dpsvi.rl"},
    "matplotlib": set(),
    "pandas": set(),
    "joblib": set(),
    "tqdm": {"dpsvi.telemetry"},
    "pooch": {"dpsvi.datasets"},
    "safetensors": {"dpsvi.io"},
    "llvmlite": {"dpsvi.jit"},
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
    "import dpsvi.base, dpsvi.svi, dpsvi.schedules": [*SLOW, "sklearn", "scipy", "dpsvi.models"],
    "import dpsvi.fit, dpsvi.engines.threads": [*SLOW, "sklearn", "dpsvi.models"],
    "from dpsvi import Corpus, as_corpus, load_corpus": [*SLOW, "sklearn", "dpsvi.models"],
    # scikit-learn itself loads pandas where it is installed
    "from dpsvi import DPSVILDA": [*SLOW[2:], "gensim", "dpsvi.models.gaussian_mixture"],
    "from dpsvi import DPSVIHDP": [*SLOW[2:], "gensim", "dpsvi.models.lda"],
    "from dpsvi import DPSVIGaussianMixture": [*SLOW[2:], "gensim", "dpsvi.models.lda"],
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
