# Every target makes what it needs: a fresh machine with Python 3.11 and pip is enough.
.PHONY: demo test quick check bench docs clean
PYTHON ?= python3.11
BIN := .venv/bin
# Two test processes; a file's tests stay together, in the order of names.
SIDE_BY_SIDE := --numprocesses 2 --dist loadfile --no-loadscope-reorder
INSTALL := $(BIN)/pip install --quiet --constraint constraints.txt --editable

demo: .venv/.installed
	$(BIN)/talka demo

test: .venv/.installed-dev
	$(BIN)/pytest $(SIDE_BY_SIDE)

quick: .venv/.installed-dev
	$(BIN)/pytest $(SIDE_BY_SIDE) -m "not slow"

check: .venv/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/.installed-dev
	$(BIN)/python -m benchmarks.engine --preset smoke
	$(BIN)/python -m benchmarks.embeddings --preset smoke
	$(BIN)/python -m benchmarks.explain --preset smoke
	$(BIN)/python -m benchmarks.compressors --preset smoke
	$(BIN)/python -m benchmarks.slow_network --preset smoke
	$(BIN)/python -m benchmarks.parity --preset smoke
	$(BIN)/python -m benchmarks.graph --preset smoke
	$(BIN)/python -m benchmarks.graph_build --preset smoke
	$(BIN)/python -m benchmarks.graph_machines --preset smoke

docs: .venv/.installed-dev
	$(BIN)/python -m talka.cli.reference > docs/cli.md

clean:
	rm -rf .venv build

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.installed: .venv/bin/python pyproject.toml constraints.txt
	$(INSTALL) .
	touch $@

.venv/.installed-dev: .venv/.installed
	$(INSTALL) ".[cluster,bench,dev]"
	touch $@
