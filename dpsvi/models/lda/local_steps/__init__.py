"""Local steps of LDA, one file each; the user names one as ``local_step``.

Each has a function ``local`` with the signature of :attr:`dpsvi.base.Model.local`, whose `hyper`
holds :class:`dpsvi.kernels.fold.Options`, and ``DEFAULTS``, what a fit with it takes where the user
does not say.  It may have a function ``fields(n_words, n_columns)``: a dict of the fields of
:class:`dpsvi.base.Model` in which its models differ from others.
"""

from __future__ import annotations

from dpsvi.files import plugins


def names() -> list[str]:
    """Names of the local steps, in alphabetical order."""
    return plugins.names(__name__)


def get(name: str):
    """The module of local step `name`; raises ValueError naming the known ones."""
    return plugins.load(__name__, name, "local", "DEFAULTS")
