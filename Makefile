# Everything is set up by these targets alone: Python 3.11 to 3.13 with venv is all that a machine needs.
PYTHON ?= python3
VENV := .venv
ENGINE := .secagg-spec/engine
BIN := $(VENV)/bin
# A worker for each core: one more collects, builds and caches the same again, which costs more than waiting does.
WORKERS ?= 2
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
LOCKED := $(PIP) install --no-deps --only-binary=:all: --require-hashes
export OPENBLAS_NUM_THREADS ?= 1
# The tests start a thousand processes; each would compile all modules again where Python may not keep what it compiled.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo test quick whole check claims pages proofs formal formal-mutants docs docs-serve vectors targets engine engine-packages reproduce power mutate soak harden bench growth locks clean
.DEFAULT_GOAL := help
.NOTPARALLEL:

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)

# Every package is in a lock with its version and its hashes: `make locks` writes them. One lock for each extra.
$(VENV)/core: locks/core.txt pyproject.toml Makefile | $(BIN)/python
	$(LOCKED) -r $<
	$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/%: locks/%.txt Makefile | $(VENV)/core
	$(LOCKED) -r $<
	@touch $@

# PyTorch's build for CPUs where pip finds it; elsewhere, on Linux, that of the public index with 3 GB of CUDA.
$(VENV)/train: locks/train.txt locks/cpu.txt locks/cuda.txt Makefile | $(VENV)/core
	$(LOCKED) -r $<
	@$(LOCKED) -r locks/cpu.txt 2> /dev/null || $(LOCKED) -r locks/cuda.txt
	@touch $@

$(VENV)/test: $(addprefix $(VENV)/,docs plot train cluster)

setup: $(VENV)/core  ## install the command secagg-spec into .venv, and nothing else

demo: $(VENV)/core  ## judge five released frameworks, live, and print one screen (FULL=1: all cases, every failure)
	@$(BIN)/secagg-spec demo $(if $(filter 1,$(FULL)),--full)

test: $(VENV)/test  ## all tests, the checks of `make check` first
	$(MAKE) --no-print-directory check
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --durations=12

quick: $(VENV)/test  ## the fast tests, and a sample of the long ones
	HYPOTHESIS_PROFILE=quick $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m 'not slow'

check: $(VENV)/test  ## ruff, mypy --strict, import-linter, and whether each mutant fits the source
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --num-workers 2
	$(BIN)/lint-imports
	$(BIN)/secagg-spec power --edits

claims: $(VENV)/test  ## verify every claim, from stored results where it rests on training, and sum up
	$(BIN)/secagg-spec claims --verify
	$(BIN)/secagg-spec claims

whole: $(VENV)/test  ## all tests, with all cases of those of which `make test` takes a part (long)
	SECAGG_SPEC_WHOLE=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

proofs: $(VENV)/test  ## the tests of proofs and of privacy, with all cases (long)
	SECAGG_SPEC_WHOLE=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal tests/proofs tests/privacy

formal: $(VENV)/core  ## build the theorems that a prover checks, and say which clause and claim each carries (needs coqc)
	$(BIN)/python proofs/formal/check.py $(FORMAL)

formal-mutants: $(VENV)/core  ## the same, and plant faults in the theorems: the prover has to refuse each (long; needs coqc)
	$(BIN)/python proofs/formal/check.py --mutants

docs: $(VENV)/docs  ## build the site into site/ (needs npm for KaTeX)
	$(BIN)/python docs/build_site.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

docs-serve: $(VENV)/core  ## serve the built site on this machine, without a network (PORT=8000)
	@test -f site/index.html || $(MAKE) --no-print-directory docs
	@echo "The site is at http://127.0.0.1:$(or $(PORT),8000)/ (Ctrl-C ends it)"
	@$(BIN)/python -m http.server --bind 127.0.0.1 --directory site $(or $(PORT),8000) > /dev/null

pages: $(VENV)/test  ## open every page of the site in a browser, in two widths and two schemes (long; needs chromium)
	SECAGG_SPEC_PAGES=1 $(BIN)/python -m pytest tests/site/test_browser.py

vectors: $(VENV)/core  ## ask the reference for all results of spec/vectors again, and write the files
	$(BIN)/secagg-spec vectors --regenerate

targets: $(VENV)/core  ## judge the released implementations again, and store what the site shows
	mkdir -p build
	$(BIN)/secagg-spec conform --jobs 2 --json build/targets.json \
		$$($(BIN)/python -m secagg_spec.conformance.reports.results --targets)
	$(BIN)/python -m secagg_spec.conformance.reports.results build/targets.json
	$(BIN)/secagg-spec text --regenerate

# Flower pins older versions of some packages than the tests do, so it has an environment of its own.
$(ENGINE)/ready: locks/test.txt locks/flower.txt
	$(MAKE) --no-print-directory VENV=$(ENGINE) engine-packages
	@touch $@

engine-packages: $(VENV)/core
	$(LOCKED) -r locks/test.txt
	$(LOCKED) -r locks/flower.txt

engine: $(ENGINE)/ready  ## the workflow and the mod for Flower in Flower's own places, its costs, and nodes that are killed (long; ROUNDS=40: at random moments as well)
	$(ENGINE)/bin/python -m pytest -W ignore tests/engine
	$(ENGINE)/bin/python -m tests.engine.compare
	$(ENGINE)/bin/python -m tests.engine.memory
	$(ENGINE)/bin/python -m tests.engine.simulated
	$(ENGINE)/bin/python -m tests.engine.deployment
	$(if $(ROUNDS),$(ENGINE)/bin/python -m tests.engine.deployment --rounds $(ROUNDS))

reproduce: $(VENV)/test  ## run the papers' experiments at their default size, and store what the site shows (long)
	$(BIN)/secagg-spec reproduce all --anew --out build/reproduced
	$(BIN)/python docs/pictures.py build/reproduced

power: $(VENV)/test  ## search again for what finds each mutant, 20 seeds each, and store it (long)
	$(BIN)/secagg-spec power --regenerate --anew

mutate: $(VENV)/test  ## 1,000 single edits of the source: which of them no test sees (long; SEED=1, CHANGED=1 or a revision, SHARD=1/4)
	$(BIN)/python -m tests.mutate --seed $(or $(SEED),1) --shard $(or $(SHARD),1/1) $(and $(CHANGED),--changed $(patsubst 1,HEAD,$(CHANGED)))

soak: $(VENV)/core  ## 10,000 cases and more of each right implementation, without an alarm (CASES=500, SEED=1, STORIES=1000)
	$(BIN)/secagg-spec conform --jobs 2 --target reference --target node --fuzz $(or $(CASES),500) --seed $(or $(SEED),1)
	$(BIN)/python -m tests.stories --stories $(or $(STORIES),1000) --seed $(or $(SEED),1)
	$(BIN)/python -m tests.stories --holes --seed $(or $(SEED),1)

harden: $(VENV)/test $(VENV)/harden  ## try to break it: a million inputs, 200 kills, other settings, builds, stories (long; INPUTS=, KILLS=, SEED=1)
	$(BIN)/python -m tests.harden --inputs $(or $(INPUTS),1000000) --kills $(or $(KILLS),200) --seed $(or $(SEED),1)
	$(BIN)/python -m tests.stories --stories $(or $(STORIES),10000) --seed $(or $(SEED),1)
	$(BIN)/python -m tests.mutate --seed $(or $(SEED),1) --count $(or $(EDITS),100)

bench: $(VENV)/test  ## measure speeds as ratios within one run, and store what the site shows (some 10 min)
	$(BIN)/python -m tests.benchmarks --json docs/benchmarks/records.json

growth: $(VENV)/test  ## measure how costs grow with users, and store what plans are scaled by (some minutes)
	$(BIN)/python -m tests.benchmarks.growth

locks: $(VENV)/lock  ## lock again what is installed (needs a package index; UPGRADE=--upgrade for the newest versions)
	$(BIN)/python -m tests.locks $(UPGRADE)

clean:  ## remove what the other targets made
	rm -rf $(VENV) .secagg-spec build dist site repro reproduced demo.html .hypothesis .pytest_cache .mypy_cache .ruff_cache
