# Everything a fresh machine with Python, pip and make needs. `make help` lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOWEST := .venv-lowest
NEWEST := .venv-newest
# Twice quiet: errors are shown, but no warnings, which would hide what `make` itself has to say.
INSTALL := -m pip install --quiet --quiet
PIP := $(BIN)/python $(INSTALL) --constraint constraints.txt
# Tests of what is computed; those of commands and pages, and scikit-learn's own, which take half of the time, run once.
PORTABLE := tests --numprocesses 2 -m "not slow" --ignore tests/tabular/test_sklearn.py \
	$(addprefix --ignore tests/,cli examples experiments report)

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow test-portable test-lowest test-newest lint format bench clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

# A stamp is newer than what it was made from, so a second call installs nothing.
$(VENV)/.installed: pyproject.toml constraints.txt
	@echo "Installing imm into $(VENV) (a few minutes the first time) …"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) --editable .
	@touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	@$(PIP) --editable '.[test]'
	@touch $@

$(VENV)/.installed-lint: $(VENV)/.installed
	@$(PIP) --editable '.[lint]'
	@touch $@

demo: $(VENV)/.installed ## install, then run the main job in miniature
	@$(BIN)/imm demo

test: $(VENV)/.installed-test ## install what tests need, then run all that are not slow
	@$(BIN)/python -m pytest --numprocesses 2 -m "not slow"

test-slow: $(VENV)/.installed-test ## the tests that take minutes
	@$(BIN)/python -m pytest -m slow --timeout 3600

test-portable: $(VENV)/.installed-test ## tests of floating-point numbers as two other processors compute them
	@OPENBLAS_CORETYPE=Haswell ATEN_CPU_CAPABILITY=avx2 $(BIN)/python -m pytest $(PORTABLE)
	@OPENBLAS_CORETYPE=Prescott ATEN_CPU_CAPABILITY=default $(BIN)/python -m pytest $(PORTABLE)

test-lowest: $(VENV)/.installed ## the tests with the lowest versions that pyproject.toml admits (but torch's)
	@echo "Installing the lowest versions into $(LOWEST) (a few minutes the first time) …"
	@test -x $(LOWEST)/bin/python || $(PYTHON) -m venv $(LOWEST)
	@$(BIN)/python tools/lowest.py > $(LOWEST)/constraints.txt
	@$(LOWEST)/bin/python $(INSTALL) --constraint $(LOWEST)/constraints.txt --editable '.[test]'
	@$(LOWEST)/bin/python -m pytest --numprocesses 2 -m "not slow" -o filterwarnings=default

test-newest: ## the tests with the newest versions there are (but torch's)
	@echo "Installing the newest versions into $(NEWEST) (a few minutes the first time) …"
	@test -x $(NEWEST)/bin/python || $(PYTHON) -m venv $(NEWEST)
	@grep '^torch==' constraints.txt > $(NEWEST)/constraints.txt
	@$(NEWEST)/bin/python $(INSTALL) --upgrade --upgrade-strategy eager --constraint $(NEWEST)/constraints.txt --editable '.[test]'
	@$(NEWEST)/bin/python -m pytest --numprocesses 2 -m "not slow"

lint: $(VENV)/.installed-lint ## style, types, and that imports go down the rooms only
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: $(VENV)/.installed-lint ## rewrite the code in the house style
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(VENV)/.installed ## time and memory of the core
	@$(BIN)/python -m benchmarks.core

clean: ## remove the environment and all caches
	rm -rf $(VENV) $(LOWEST) $(NEWEST) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
