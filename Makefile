# `make demo` and `make test` do all their own set-up: interpreter, virtual environment, packages.
#   LINT=no   `make test` without `make lint`, whose answer is the same for every interpreter
#   PYTHON=3.12, PYTHON=/path/to/python   another interpreter (3.10 to 3.13) than the best one found

PYTHON ?=
OUTPUT ?= demo_out
CORPUS ?=
RESTART ?=
PYTEST_ARGS ?=
LINT ?=
MUTATE_ARGS ?=
TRAIN_TEXT ?=
HELDOUT_TEXT ?=
TF_CPP_MIN_LOG_LEVEL ?= 3
export TF_CPP_MIN_LOG_LEVEL

# Version and path; empty when find_python.sh has said on stderr what is missing.
ifneq ($(filter-out help clean compatibility,$(MAKECMDGOALS)),)
FOUND := $(shell scripts/find_python.sh "$(PYTHON)")
endif
VENV := .venv-$(firstword $(FOUND))
INTERPRETER := $(wordlist 2,99,$(FOUND))
BIN := $(VENV)/bin

.PHONY: help demo docs test test-all test-long mutate compatibility lint install clean interpreter weights
.DEFAULT_GOAL := help

help:
	@echo "make demo    raw text to a served model, in three minutes: scripts/speedrun.sh (CORPUS=, OUTPUT=, RESTART=1)"
	@echo "make docs    the documents and a reference of the Python names, as a site: build/site/index.html"
	@echo "make test    the tests: of every table of cases a few (PYTEST_ARGS=)"
	@echo "make test-all   the tests, with every case of every table"
	@echo "make compatibility   the core of the tests and the wheel, from the oldest Python and TensorFlow to the newest"
	@echo "make test-long   the tests that take long: many kills of real runs"
	@echo "make mutate  changes a line in each of 40 modules: do their tests notice, or those of what imports them? (MUTATE_ARGS=)"
	@echo "make weights  weights of the shape of this package's, from text, in hours (TRAIN_TEXT=, HELDOUT_TEXT=, globs)"
	@echo "make lint    style, spelling, types, and the oldest Python that is supported"
	@echo "make install the virtual environment only"
	@echo "make clean   deletes virtual environments and demo_out"
	@echo "Every command takes PYTHON=, a version (3.10 to 3.13) or a path."

interpreter:
	@test -n "$(INTERPRETER)"

install: interpreter
	@scripts/install.sh "$(INTERPRETER)" "$(VENV)"
	@ln -sf ../../scripts/albert-tf "$(BIN)/albert-tf"

demo: install
	@$(if $(RESTART),rm -rf "$(OUTPUT)";) PYTHON="$(BIN)/python" CORPUS="$(CORPUS)" scripts/speedrun.sh "$(OUTPUT)"

# In an environment of its own. The variable silences an advertisement of the theme for its successor.
docs: interpreter
	@scripts/install.sh "$(INTERPRETER)" .venv-docs requirements-docs.txt
	@.venv-docs/bin/python scripts/make_site.py build/docs
	@NO_MKDOCS_2_WARNING=1 .venv-docs/bin/python -m mkdocs build --quiet --strict
	@echo build/site/index.html

# Vermin: nothing here needs a newer Python than the oldest that README.md promises.
PYTHON_SOURCES := albert_tf benchmarks data_pipeline demo experiments export tests

lint: install
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/codespell
	@$(BIN)/vermin --quiet --no-tips --violations --target=3.10- $(PYTHON_SOURCES)
	@$(BIN)/mypy --no-error-summary

# One process per core, up to four, each with whole files: the tests of a file share what is slow to make.
PYTEST := $(BIN)/python -m pytest --numprocesses=auto --maxprocesses=4 --dist=loadfile --no-loadscope-reorder

# The lint runs beside the tests, which leave a core idle at their start and at their end. What it says comes last, and
# the exit code is the one of the tests, or where they pass the one of the lint.
define test
@if [ "$(LINT)" = no ]; then exec $(PYTEST) $(1); fi; \
	said=$$(mktemp); $(MAKE) --no-print-directory lint >"$$said" 2>&1 & lint=$$!; \
	$(PYTEST) $(1); tests=$$?; \
	wait $$lint; linted=$$?; cat "$$said"; rm "$$said"; \
	exit $$((tests ? tests : linted))
endef

test: install
	$(call test,$(PYTEST_ARGS))

test-all: install
	$(call test,-m "not long" $(PYTEST_ARGS))

test-long: install
	@$(BIN)/python -m pytest -m long --numprocesses=0 $(PYTEST_ARGS)

weights: install
	@$(BIN)/python -m experiments.weights.train --init_checkpoint= --stages='experiments/weights/stages/scratch_*.flags' \
		--train_text="$(TRAIN_TEXT)" --heldout="$(HELDOUT_TEXT)" --output_dir="$${XDG_CACHE_HOME:-$$HOME/.cache}/albert-tf-weights"

# Not part of `make test`: it takes about twenty minutes.
mutate: install
	@$(BIN)/python scripts/mutate.py $(MUTATE_ARGS)

# The oldest and the newest Python of README.md, with what every user runs: layers, goldens, optimizers, the loop and its
# binary, text to records, exports. `make test-all` covers 3.11 or 3.12 in full.
COMPATIBILITY_PYTHONS := 3.10 3.13
CORE_TESTS := tests/conformance_test.py tests/keras_conformance_test.py tests/keras_compiled_test.py tests/albert_tf tests/data_pipeline tests/export/saved_model_test.py tests/end_to_end_test.py

# The wheel in fresh environments: with the oldest TensorFlow, with what pip chooses on the oldest and the newest Python,
# and with one in between, where the core of the tests runs as well.
compatibility:
	@scripts/check_wheel.sh 3.10 2.15
	@scripts/check_wheel.sh 3.10
	@scripts/check_wheel.sh 3.13
	@scripts/check_wheel.sh 3.11 2.18 $(CORE_TESTS) $(PYTEST_ARGS)
	@for version in $(COMPATIBILITY_PYTHONS); do \
		echo "Python $$version"; \
		$(MAKE) --no-print-directory test PYTHON=$$version PYTEST_ARGS="$(CORE_TESTS) $(PYTEST_ARGS)" || exit 1; \
	done

clean:
	rm -rf .venv-* .cache demo_out .pytest_cache .ruff_cache .mypy_cache build *.egg-info
