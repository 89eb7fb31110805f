# Everything runs from here; `make` alone lists what there is.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin
READY := $(VENV)/.ready
# Without bytecode every worker and every command of a test would compile the same files anew.
unexport PYTHONDONTWRITEBYTECODE

help:
	@echo "make demo     play a whole loop in a temporary project and show its replay"
	@echo "make test     the tests (about two minutes)"
	@echo "make check    lint, types, tests"
	@echo "make lint     ruff"
	@echo "make types    mypy, strict"
	@echo "make torture  long fault campaigns (about half an hour; GSD_TORTURE=0.1 for a tenth)"
	@echo "make bench    speed as ratios"
	@echo "make hook     bundle gsd_fsm/core into the one file that agents run"
	@echo "make profile  list in scripts/hot_path.txt what ordinary stops use, and bundle again"
	@echo "make e2e      the real client against a scripted model (installs it once; needs npm)"
	@echo "make test-windows  the core and the hook on a Windows Python under Wine (opt-in)"
	@echo "make clean    remove what the targets above made"

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(RUN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(READY)
	@$(RUN)/python scripts/demo.py

test: $(READY)
	$(RUN)/python -m pytest -q -n 4 --dist worksteal

lint: $(READY)
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .

types: $(READY)
	$(RUN)/mypy
	$(RUN)/mypy --platform win32
	$(RUN)/mypy $(filter-out scripts/hook_loader.py,$(wildcard scripts/*.py))

check: lint types test

torture: $(READY)
	$(RUN)/python -m pytest -q -n 2 -m torture --durations=0

bench: $(READY)
	@$(RUN)/python scripts/bench.py

hook: $(READY)
	$(RUN)/python scripts/build_hook.py

profile: $(READY)
	$(RUN)/python scripts/profile_hook.py
	$(RUN)/python scripts/build_hook.py

e2e: $(READY)
	$(RUN)/python -m pytest -q -m e2e tests/e2e

test-windows: $(READY)
	scripts/test-windows

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis

.PHONY: help demo test lint types check torture bench hook profile e2e test-windows clean
