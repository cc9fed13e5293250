# Every target makes what it needs: a fresh machine with Python 3.11 and pip is enough.
.PHONY: demo test quick check bench bench-compare docs clean
PYTHON ?= python3.11
BIN := .venv/bin
# Two test processes; tests/groups.py says which tests stay together, and in which order.
SIDE_BY_SIDE := --numprocesses 2 --dist loadscope --no-loadscope-reorder --durations 10
SPELLED := src tests docs benchmarks examples tools *.md Makefile pyproject.toml
INSTALL := $(BIN)/pip install --constraint constraints.txt --editable

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
	$(BIN)/codespell $(SPELLED)
	$(BIN)/python tools/plain_english.py --check

bench: .venv/.installed-bench
	$(BIN)/python -m benchmarks.engine --preset smoke
	$(BIN)/python -m benchmarks.embeddings --preset smoke
	$(BIN)/python -m benchmarks.explain --preset smoke
	$(BIN)/python -m benchmarks.explain_exchanges --preset smoke
	$(BIN)/python -m benchmarks.explain_graphs --preset smoke
	$(BIN)/python -m benchmarks.follow --preset smoke
	$(BIN)/python -m benchmarks.compressors --preset smoke
	$(BIN)/python -m benchmarks.collectives --preset smoke
	$(BIN)/python -m benchmarks.slow_network --preset smoke
	$(BIN)/python -m benchmarks.rhythm_predictions --preset smoke
	$(BIN)/python -m benchmarks.parity --preset smoke
	$(BIN)/python -m benchmarks.rhythm_accuracy --preset smoke
	$(BIN)/python -m benchmarks.rhythms --preset smoke
	$(BIN)/python -m benchmarks.graph --preset smoke
	$(BIN)/python -m benchmarks.graph_build --preset smoke
	$(BIN)/python -m benchmarks.graph_machines --preset smoke

# Is this tree slower than another commit? make bench-compare BASE=HEAD~1
bench-compare: .venv/.installed-dev
	$(BIN)/python -m benchmarks.compare $(BASE)

docs: .venv/.installed-dev
	$(BIN)/python -m talka.cli.reference > docs/cli.md

clean:
	rm -rf .venv build

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.installed: .venv/bin/python pyproject.toml constraints.txt
	@echo "Installing talka and what it needs into .venv; about a minute on the first run."
	$(INSTALL) ".[train]"
	touch $@

.venv/.installed-dev: .venv/bin/python pyproject.toml constraints.txt
	@echo "Installing talka and what its tests need into .venv; about a minute on the first run."
	$(INSTALL) ".[all,dev]"
	touch $@ .venv/.installed

# Peers of benchmarks; without them a table says "not installed".
.venv/.installed-bench: .venv/.installed-dev
	$(INSTALL) ".[bench]"
	touch $@
