# The commands that people and CI run. Everything is installed into .venv, once per change of pyproject.toml.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
DOCS_READY := .venv/docs-ready
PYTEST := -m pytest -q -n auto --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all test-versions coverage check format bench bench-scale fuzz docs links wheel audit clean

help:            ## show this list
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 12

setup: $(READY)  ## install treegram and its tools into .venv

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "treegram needs Python 3.11 or newer; found " + sys.version.split()[0] + ". Choose another one: make PYTHON=python3.12 setup")'
	@$(PYTHON) -m venv --clear .venv
	@$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	@echo "Installing treegram and its tools into .venv ..."
	@$(BIN)/python -m pip install --quiet --editable '.[all]' --group test --group lint
	@touch $@

demo: $(READY)   ## compare two kernels on data that need no download, and write the page demo/report.html
	@mkdir -p demo
	@$(BIN)/treegram evaluate synthetic --kernel wl --kernel wlcl --repeats 2 --folds 5 --store demo/demo.sqlite
	@$(BIN)/treegram report demo/demo.sqlite -o demo/report.html --force

test: $(READY)   ## run the tests (those on real data need TREEGRAM_DATA, a folder with one folder per data set)
	@$(BIN)/python $(PYTEST) -m "not slow"

test-all: test   ## run the slow tests too
	@$(BIN)/python $(PYTEST) -m slow

test-versions: $(READY) ## run a selection of the tests with every Python found and with the lowest supported versions
	@$(BIN)/python .ci/test_versions.py

coverage: $(READY) ## measure statement and branch coverage of the Python code; fail below 95 % of the branches
	@$(BIN)/python -m pip install --quiet --group coverage
	@$(BIN)/coverage erase
	@$(BIN)/coverage run $(PYTEST)
	@$(BIN)/coverage combine --quiet && rm -f .coverage.*  # tests kill processes, whose data cannot be read
	@$(BIN)/coverage report
	@$(BIN)/coverage json --quiet -o .coverage.json
	@$(BIN)/python .ci/branch_coverage.py .coverage.json

check: $(READY)  ## run ruff, and mypy: strict for the package, lenient for tests and benchmarks
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/mypy --config-file tests/mypy.ini

format: $(READY) ## fix what ruff can fix
	@$(BIN)/ruff check --fix . && $(BIN)/ruff format .

bench: $(READY)  ## measure speed and memory, as ratios within one run
	@$(BIN)/python benchmarks/run.py

bench-scale: $(READY) ## measure clusters, Gram matrices on disk and a million graphs (SCALE="dask zarr" for some of these)
	@$(BIN)/python benchmarks/bench_scale.py $(SCALE)

fuzz: $(READY)   ## feed it mutated files and graphs, a minute of each kind (FUZZ="--seconds 600" for more)
	@$(BIN)/python benchmarks/fuzz.py $(FUZZ)

docs: $(DOCS_READY) ## build the documentation; a warning is an error
	@rm -rf docs/api docs/auto_examples docs/_build
	@$(BIN)/sphinx-build --quiet --fail-on-warning --doctree-dir docs/_build/doctrees docs docs/_build/html
	@echo "The documentation is in docs/_build/html/index.html"

links: $(DOCS_READY) ## check the documentation's links to the web (needs a network)
	@$(BIN)/sphinx-build --quiet -b linkcheck --doctree-dir docs/_build/doctrees docs docs/_build/links

$(DOCS_READY): $(READY) pyproject.toml
	@echo "Installing the documentation tools into .venv ..."
	@$(BIN)/python -m pip install --quiet --group docs
	@touch $@

wheel: $(READY)  ## build sdist and wheel into dist/, and try the wheel in a clean environment
	@rm -rf dist
	@$(BIN)/python -m pip install --quiet --group build
	@$(BIN)/python .ci/smoke.py dist

audit: $(READY)  ## look for known security advisories about the installed packages (needs a network)
	@$(BIN)/python -m pip install --quiet --group audit
	@$(BIN)/pip-audit --skip-editable

clean:           ## remove the environment, the built documentation and all caches
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist docs/api docs/auto_examples docs/_build .coverage*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
