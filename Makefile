# `make` lists the targets.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
READY := $(VENV)/.ready
INSTALL := $(RUN)/python -m pip install --quiet --disable-pip-version-check --editable
# Without cached bytecode, every worker and every command in a test compiles the same files again.
unexport PYTHONDONTWRITEBYTECODE

help:
	@echo "make demo     run a whole loop in a temporary project and show its replay"
	@echo "make test     run the tests (about two minutes)"
	@echo "make check    run lint, types and tests"
	@echo "make lint     run ruff"
	@echo "make types    run mypy in strict mode"
	@echo "make docs     generate the reference tables and the payload types"
	@echo "make torture  run long fault campaigns (about half an hour; GSD_TORTURE=0.1 for a tenth)"
	@echo "make bench    measure speed as ratios"
	@echo "make hook     bundle gsd_fsm/core into the hook file, and write the plugin"
	@echo "make profile  record what ordinary stops use in scripts/hot_path.txt, then bundle"
	@echo "make e2e      run the real client against a scripted model (installs it once; needs npm)"
	@echo "make test-windows  run core, hook and the stories of commands on Windows Python under Wine"
	@echo "make clean    remove everything that these targets created"

$(INSTALLED): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) .
	@touch $@

$(READY): $(INSTALLED)
	$(INSTALL) '.[dev]'
	@touch $@

demo: $(INSTALLED)
	@$(RUN)/python scripts/demo.py

test: $(READY)
	$(RUN)/python -m pytest -q -n 5 --dist worksteal

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

docs: $(READY)
	$(RUN)/python scripts/generate.py

hook: $(READY)
	$(RUN)/python scripts/build_hook.py
	$(RUN)/python scripts/build_plugin.py

profile: $(READY)
	$(RUN)/python scripts/profile_hook.py
	@$(MAKE) --no-print-directory hook

e2e: $(READY)
	$(RUN)/python -m pytest -q -m e2e tests/e2e

test-windows:
	@scripts/test-windows --tools
	@$(MAKE) --no-print-directory $(READY)
	scripts/test-windows

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis

.PHONY: help demo test lint types check torture bench docs hook profile e2e test-windows clean
