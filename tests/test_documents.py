"""Every example of the documentation runs, and the pages name what there is."""

import doctest
import importlib.util
import inspect
import pkgutil
import re
import runpy
import warnings
from pathlib import Path

import pytest

import dpsvi

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(p for p in DOCS.rglob("*.md") if not {"_build", "generated"} & set(p.parts))
EXAMPLES = sorted((DOCS / "examples").glob("plot_*.py"))
MODULES = [p for p in sorted((ROOT / "dpsvi").rglob("*.py")) if ">>> " in p.read_text("utf-8")]
GENSIM = re.compile(r"\bload_lee|\.to_gensim\(|\.coherence\(")  # it holds the Lee texts
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def name_of(path):
    return path.relative_to(ROOT).with_suffix("").as_posix()


def skip_without_gensim(code):
    """Where gensim is needed and cannot be installed."""
    if GENSIM.search(code):
        pytest.importorskip("gensim")


def code_of(test):
    return "".join(example.source for example in test.examples)


def run(test):
    """Run the examples of a docstring or a page; says all that went wrong."""
    skip_without_gensim(code_of(test))
    said = []
    doctest.DocTestRunner(optionflags=FLAGS).run(test, out=said.append)
    assert not said, "".join(said)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_examples_of_pages(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # models that they save
    text = page.read_text("utf-8")
    # What is no Python ends an example; lines keep their numbers.
    text = re.sub(r"^(```|:::).*$", "", text, flags=re.M)
    run(doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0))


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_examples_of_docstrings(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # files that they write
    name = name_of(path).removesuffix("/__init__").replace("/", ".")
    found = doctest.DocTestFinder().find(importlib.import_module(name), name)
    # Those that may be skipped come last.
    for test in sorted(found, key=lambda test: bool(GENSIM.search(code_of(test)))):
        run(test)


def public():
    """What users call: names of the package, and public methods of its classes."""
    from dpsvi import averaging, ranking, report, rl

    exported = [getattr(dpsvi, name) for name in dpsvi.__all__ if name != "__version__"]
    for module in (averaging, ranking, report, rl):
        found = [getattr(module, name) for name in getattr(module, "__all__", dir(module))]
        exported += [
            one for one in found
            if getattr(one, "__module__", "").startswith(module.__name__)
            and not one.__name__.startswith("_")
        ]  # fmt: skip
    for one in exported:
        yield one
        if inspect.isclass(one):
            for name, method in inspect.getmembers(one, callable):
                method = inspect.unwrap(getattr(method, "__func__", method))
                ours = str(getattr(method, "__module__", "")).startswith("dpsvi.")
                if ours and not name.startswith("_") and name != "check_params":
                    yield method


def test_every_public_function_has_an_example():
    """`check_params` is called by all fits, and its examples are those of a fit that it refuses."""
    without = {
        f"{one.__module__}.{one.__qualname__}"
        for one in public()
        if ">>> " not in (inspect.getdoc(one) or "")
    }
    assert not without


def test_examples_of_the_readme(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names, text = {}, (ROOT / "README.md").read_text("utf-8")
    for block in re.findall(r"```python\n(.*?)```", text, re.S):
        skip_without_gensim(block)
        exec(compile(block, "README.md", "exec"), names)
    assert names


def extension(name):
    """A module of `docs/_ext`."""
    spec = importlib.util.spec_from_file_location(name, DOCS / "_ext" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_names_all_that_is_exported():
    model_list = extension("model_list")
    page = (DOCS / "api.md").read_text("utf-8")
    assert f".. include:: {model_list.NAME}\n" in page
    listed = re.findall(r"^   (\w+)$", page + model_list.text(), re.M)
    assert sorted(listed) == sorted(set(dpsvi.__all__) - {"__version__"})


def test_flaws_of_built_pages_are_found(tmp_path):
    """Sound links, among them one with a blank in it, are none."""
    pytest.importorskip("sphinx")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a b.html").write_text('<h1 id="one">1</h1><img src="p.png" alt="">')
    (tmp_path / "in" / "p.png").touch()
    page = """<a href="in/a%20b.html#one">y</a> <a href="#here">y</a> <p id="here">
        <a href="https://example.org/">y</a> <a href="mailto:me@example.org">y</a>
        <a href="in/a%20b.html#two">n</a> <a href="#there">n</a> <a href="gone.html">n</a>
        <img src="in/p.png"> <script src="//example.org/a.js"></script>
        <link rel="stylesheet" href="https://example.org/a.css">"""
    (tmp_path / "index.html").write_text(page)
    assert extension("page_checks").flaws(tmp_path) == [
        "index.html: picture in/p.png has no alt",
        "index.html: //example.org/a.js is on another machine",
        "index.html: https://example.org/a.css is on another machine",
        "index.html: in/a%20b.html#two leads nowhere",
        "index.html: #there leads nowhere",
        "index.html: gone.html leads nowhere",
    ]


def test_every_model_has_a_guide():
    from dpsvi import models

    pages = {path.stem for path in (DOCS / "guide").glob("*.md")}
    assert pages >= {"dpsgd", *models.names()}


def test_every_guide_shows_the_picture_of_its_model():
    for path in (ROOT / "experiments" / "gallery").glob("[a-z]*.py"):
        page = (DOCS / "guide" / f"{path.stem}.md").read_text("utf-8")
        assert f"results/gallery/{path.stem}.png" in page, path.stem


@pytest.mark.parametrize("path", EXAMPLES, ids=name_of)
def test_an_example_asks_runs_and_draws(path, tmp_path, monkeypatch):
    """Without a warning, which the build of the documentation would only print."""
    text = path.read_text("utf-8")
    assert text.splitlines()[1].endswith("?") and 20 <= len(text.splitlines()) <= 60
    skip_without_gensim(text)
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    plt.close("all")  # figures of other tests
    monkeypatch.setattr(plt, "show", lambda: None)  # there is no screen
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        runpy.run_path(str(path), run_name="__main__")
    figures = [plt.figure(number) for number in plt.get_fignums()]
    plt.close("all")
    assert len(figures) == 1 and all(axes.has_data() for axes in figures[0].axes)
    assert not list(tmp_path.iterdir()), "an example leaves no files"


def test_every_command_has_its_help():
    from dpsvi.__main__ import COMMANDS

    shown = re.findall(r"^```{command-help} (\w+)$", (DOCS / "commands.md").read_text(), re.M)
    assert shown == list(COMMANDS)


def test_links_of_pages_lead_somewhere():
    for page in PAGES:
        for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text("utf-8")):
            assert (page.parent / link).exists(), f"{page.name} links to {link}"
        for path in re.findall(r"^```{include} (\S+)$", page.read_text("utf-8"), re.M):
            assert (page.parent / path).exists(), f"{page.name} includes {path}"
            # Where pages are read as files, a directive shows nothing.
            assert f"]({path})." in page.read_text("utf-8"), f"{page.name} has no link to {path}"


@pytest.mark.parametrize(
    "page", [*(ROOT / name for name in ("README.md", "CHANGELOG.md", "data/README.md")), *PAGES],
    ids=name_of,
)  # fmt: skip
def test_names_of_the_package_can_be_imported(page):
    names = re.findall(r"(?<![\w/.-])dpsvi(?:\.[A-Za-z_]\w*)+", page.read_text("utf-8"))
    for name in set(names):
        pkgutil.resolve_name(name)


@pytest.mark.parametrize("page", ["README.md", "docs/strategies.md", "docs/engines.md"])
def test_engines_and_strategies_are_named(page):
    from dpsvi import engines, strategies

    text = (ROOT / page).read_text("utf-8")
    wanted = [] if "strategies" in page else engines.names()
    wanted += [] if "engines" in page else strategies.names()
    assert [name for name in wanted if not re.search(rf'[`"]{name}["`]', text)] == []
