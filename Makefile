# What people and CI run. Everything installs into .venv, once per change of pyproject.toml.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
DOCS_READY := .venv/docs-ready

.DEFAULT_GOAL := help
.PHONY: help setup demo test check format bench docs clean

help:            ## show this list
	@grep -E '^[a-z]+: .*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 12

setup: $(READY)  ## install treegram and its tools into .venv

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "treegram needs Python 3.11 or newer; found " + sys.version.split()[0] + ". Name one: make PYTHON=python3.12 setup")'
	@$(PYTHON) -m venv --clear .venv
	@$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	@echo "Installing treegram and its tools into .venv ..."
	@$(BIN)/python -m pip install --quiet --editable '.[plot,networkx]' --group test --group lint
	@touch $@

demo: $(READY)   ## load, compute, cross-validate, draw: the main job on data that needs no download
	@$(BIN)/treegram demo

test: $(READY)   ## run the tests (data sets: TREEGRAM_DATA, or ../shared/data)
	@$(BIN)/python -m pytest -q -n auto --dist worksteal

check: $(READY)  ## ruff and mypy
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

format: $(READY) ## let ruff mend what it can
	@$(BIN)/ruff check --fix . && $(BIN)/ruff format .

bench: $(READY)  ## measure speed and memory, as ratios within one run
	@$(BIN)/python benchmarks/run.py

docs: $(DOCS_READY) ## build the documentation; a warning is an error
	@rm -rf docs/api docs/_build
	@$(BIN)/sphinx-build --quiet --fail-on-warning --doctree-dir docs/_build/doctrees docs docs/_build/html
	@echo "The documentation is in docs/_build/html/index.html"

$(DOCS_READY): $(READY) pyproject.toml
	@echo "Installing what builds the documentation into .venv ..."
	@$(BIN)/python -m pip install --quiet --group docs
	@touch $@

clean:           ## remove the environment, the built documentation and all caches
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist docs/api docs/_build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
