# Needs python3 (3.11 or newer) with pip, and make. Everything is installed into .venv.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

# Two test processes share two cores: threads inside the linear algebra would only get in each other's way.
export OPENBLAS_NUM_THREADS = 1
# Many tests start Python anew: with compiled modules kept it starts in half the time, also where the shell forbids them.
export PYTHONDONTWRITEBYTECODE =

.DEFAULT_GOAL := help
.PHONY: help install demo test slow check lint types docs gallery docs-coverage campaign campaigns mutants reach repeat bench bench-quick release-check bundle format clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "cosolve needs Python 3.11 or newer; try make PYTHON=python3.12")'
	@echo "installing cosolve and its tools into $(VENV) (once, a minute or two); the command is then $(BIN)/cosolve"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python tools/install.py --editable '.[dev]'
	@touch $@

install: $(STAMP)  ## create .venv with the package and the developer tools

demo: $(STAMP)  ## couple a model three ways, print a verdict, write a report
	@$(BIN)/cosolve demo

test: $(STAMP)  ## quick tests and docstring examples
	@$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder

slow: $(STAMP)  ## run the slow tests that are due, in shards of 20 minutes (hours), and write them down
	@$(BIN)/python -m tools.slow

check: lint types  ## lint, format, types, layers, docstrings, coverage table, bundle

types: $(STAMP)
	@$(BIN)/mypy

lint: $(STAMP)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python tools/coverage.py --check
	@$(BIN)/python -m tools.docstrings
	@$(BIN)/python -m tools.words
	@$(BIN)/python tools/bundle.py
	@$(BIN)/python -m tools.notebooks --check
	@$(BIN)/python -m tools.slow --due
	@$(BIN)/codespell

docs: $(STAMP) $(VENV)/.docs  ## build the documentation site into build/site and check its links (a minute, no network)
	@$(BIN)/python -m tools.notebooks
	@$(BIN)/python -m tools.gallery
	@$(BIN)/python -m tools.site

$(VENV)/.docs: pyproject.toml
	@$(BIN)/python tools/install.py --editable '.[docs]'
	@touch $@

gallery: $(STAMP)  ## run every example again and renew the pictures of docs/gallery (half an hour)
	@$(BIN)/python -m tools.gallery --run all

docs-coverage: $(STAMP)  ## rewrite docs/validation/coverage.md from the markers in tests/
	@$(BIN)/python tools/coverage.py

mutants: $(STAMP)  ## make small mistakes in places drawn by lot: does a test notice? docs/validation/mutants.md (MINUTES=30)
	@nice -n 10 $(BIN)/python -m tools.mutants --jobs 2 --minutes $(or $(MINUTES),30) --write

reach: $(STAMP)  ## run the quick tests once to see which functions each of them calls: tests for make mutants
	@$(BIN)/python -m pytest -q --tb=no -p tools.reach --reach .reach.json tests

repeat: $(STAMP)  ## run TESTS many times under load, as in TESTS=tests/a/test_b.py N=200: do they fail now and then?
	@$(BIN)/python -m tools.repeat -n $(or $(N),200) $(TESTS)

bench: $(STAMP)  ## measure cosolve and its peers, write benchmarks/RESULTS.md (half an hour, quiet machine)
	@$(BIN)/python benchmarks/bench.py

bench-quick: $(STAMP)  ## the same with small sizes, written to benchmarks/.work/RESULTS.md
	@$(BIN)/python benchmarks/bench.py --quick

campaign: $(STAMP)  ## one campaign against the package, as in NAME=faults (docs/validation/campaigns.md)
	@$(BIN)/python -m campaigns $(NAME)

campaigns: $(STAMP)  ## all of them (hours)
	@$(BIN)/python -m campaigns

release-check: $(STAMP)  ## build wheel and sdist, try them on every Python that is found (ten minutes)
	@$(BIN)/python -m tools.release

bundle:  ## build the page of cosolve view from frontend/ (needs node and npm; nothing else does)
	@cd frontend && npm ci --no-audit --no-fund --silent && node build.mjs

format: $(STAMP)  ## apply the formatter and the safe lint fixes
	@$(BIN)/ruff check --quiet --fix .
	@$(BIN)/ruff format --quiet .

clean:  ## remove .venv, caches and build output
	@rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
