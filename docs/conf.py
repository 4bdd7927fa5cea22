"""How Sphinx builds the documentation: `make docs`, without a network and without a warning."""

import logging
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent)]

import dpsvi  # noqa: E402

# A part of the theme lets every INFO through, and a fit of an example says what it does.
logging.getLogger("dpsvi").setLevel(logging.WARNING)

project = "dpsvi"
author = "The dpsvi developers"
project_copyright = "The dpsvi developers"
version = release = dpsvi.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "command_help",
    "docstrings",
    "model_list",
    "page_checks",
]
exclude_patterns = ["_build", "_models.rst", "examples"]
templates_path = ["_templates"]

highlight_language = "none"  # of blocks that name no language
html_theme = "furo"
html_title = f"dpsvi {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
# Links of README, CONTRIBUTING and the results lead to files of the repository, not to pages.
suppress_warnings = ["myst.xref_missing", "myst.header"]

autosummary_generate = ["api.md", "_models.rst"]
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say them in words
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "generated/examples",
    "run_stale_examples": True,  # pictures follow from the package, too
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": float("inf"),  # a time of this build says nothing of another machine
}
