# `make demo` and `make test` are all a fresh machine needs: Python 3.11 with venv, and make.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN    := .venv/bin
PIP    := $(BIN)/python -m pip --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test test-hostile test-page test-wheel format bench docs clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: .venv/.stamp-run  ## solve a Poisson problem: error, estimate, times and a picture
	@$(BIN)/python examples/01_poisson.py

test: .venv/.stamp-dev  ## lint, format check, types, tests
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright
	$(BIN)/pytest

test-hostile: .venv/.stamp-dev  ## all hostile problems, mistakes, files and many solves: about an hour
	$(BIN)/pytest -n 2 -m hostile tests/hostile

test-page: .venv/.stamp-page  ## the tests of the page in a browser: Chromium and its driver must be installed
	@command -v chromium && command -v chromedriver || { echo "Install them first: apt-get install chromium chromium-driver"; exit 1; }
	$(BIN)/pytest -n 0 -m page tests/page

test-wheel: .venv/.stamp-dev  ## build the wheel, install it in a new environment and run the demo there
	rm -rf out/wheel
	$(BIN)/python -m build --outdir out/wheel
	$(PYTHON) -m venv out/wheel/env
	out/wheel/env/bin/python -m pip --quiet --disable-pip-version-check install out/wheel/*.whl
	cd out/wheel && env/bin/python ../../examples/01_poisson.py
	cd out/wheel && env/bin/pdofm solve poisson-lshape --tol 1e-8
	cd out/wheel && env/bin/python ../../tools/try_studio.py

format: .venv/.stamp-dev  ## format the code and repair what the linter can repair
	$(BIN)/ruff check --fix --exit-zero
	$(BIN)/ruff format

bench: .venv/.stamp-run  ## measure speed, as ratios within one run
	$(BIN)/python -m pdofm.cli bench

docs: .venv/.stamp-docs  ## build the documentation site in out/site
	$(BIN)/mkdocs build --strict

clean:  ## remove the environment, the caches and what the demo wrote
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis .jax_cache build dist out
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps make an installed environment free; a change of pyproject.toml installs anew.
.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.stamp-run: pyproject.toml | .venv/bin/python
	$(PIP) install -e .
	@touch $@

.venv/.stamp-dev: pyproject.toml | .venv/bin/python
	$(PIP) install -e '.[dev]'
	@touch .venv/.stamp-run $@

.venv/.stamp-page: pyproject.toml | .venv/bin/python
	$(PIP) install -e '.[page]'
	@touch .venv/.stamp-run .venv/.stamp-dev $@

.venv/.stamp-docs: pyproject.toml | .venv/bin/python
	$(PIP) install -e '.[docs]'
	@touch .venv/.stamp-run $@
