# Everything one can do here. `make` alone tells. It needs Python 3.11 or newer and make; the rest goes into .venv.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
CORES  := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
# Tests wait for disks and other processes half of their time: there are more workers than cores.
WORKERS := -n $(shell echo $$(($(CORES) + 2))) --dist loadfile
FEWER  := -n $(shell echo $$(($(CORES) + 1))) --dist loadfile
# What is measured shares no core.
TWO    := -n 2 --dist loadfile
# What tests import is compiled once, also where Python is told to keep nothing: else each worker and each process of a test does it anew.
PYTEST := env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest
# The files of tests that have some text: collecting all others takes each worker ten seconds.
with    = $(shell grep -rlE '$(1)' tests --include='test_*.py')
SLOW    = $(shell cut -d: -f1 tests/durations.txt | sort -u)
TYPES   := types-linux types-win32 types-darwin
PIP    := $(BIN)/python -m pip -qq --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: $(TYPES) help demo test test-rest test-all durations test-ladybug test-http test-spark frameworks typescript fuzz worlds releases schema lab mutants bench bench-large lint format release-check requirements references docs pictures page-pictures page-times notebook clean

help:  ## this list
	@echo "graphstore: what was true, what did we believe, what superseded it, and why"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/demo  ## take this clone's own history into a store and ask it the five questions
	@$(BIN)/graphstore demo --folder .demo

test: $(VENV)/dev  ## the fast tests of every module, and the stories of README: two minutes
	$(PYTEST) $(WORKERS) -m "not (rest or slow or by_hand)" $(ARGS)

test-rest: $(VENV)/dev $(VENV)/s3 test-ladybug test-http  ## all others: slow tests, random histories, kills, processes, the other driver, through a server
	$(PYTEST) $(FEWER) -m "(rest or slow) and not by_hand" $(ARGS) $(sort $(call with,mark.rest|SEEDS|seeds) $(SLOW))

test-all: test test-rest  ## and the tasks of agents over the other transports
	$(PYTEST) $(WORKERS) -m by_hand $(ARGS) $(call with,mark.by_hand)

durations: $(VENV)/dev  ## measure which tests are slow, on a quiet machine: tests/durations.txt
	$(PYTEST) $(TWO) -m "not (rest or by_hand)" --write-durations $(ARGS)

test-ladybug: $(VENV)/dev  ## the tests of the graph tables on the other driver
	GRAPHSTORE_DRIVER=ladybug HYPOTHESIS_PROFILE=quick $(PYTEST) $(WORKERS) -m driver $(ARGS) $(call with,mark.driver)

test-http: $(VENV)/dev  ## the tests of the public methods, through a server of a folder, whose standings are compared with what rests on what
	GRAPHSTORE_DOOR=http GRAPHSTORE_HOME=folder HYPOTHESIS_PROFILE=quick $(PYTEST) $(WORKERS) -m "served and not rest" $(ARGS) $(call with,mark.served)

test-spark: $(VENV)/dev $(VENV)/spark  ## the views of sql/ in Spark, by hand: it loads half a gigabyte from PyPI and needs Java 17
	$(PYTEST) -n 0 tests/interchange/test_spark.py $(ARGS)

frameworks: $(VENV)/dev  ## the adapters and examples whose frameworks CI does not install, each in an environment of its own, by hand: ARGS="google-adk strands crewai typescript"
	$(BIN)/python tools/frameworks.py $(ARGS)

typescript: $(VENV)/dev  ## build the TypeScript client and pack it, into build/typescript
	$(BIN)/python tools/typescript_client.py $(ARGS)

fuzz: $(VENV)/dev  ## random histories against the oracle, for a night: FUZZ_MINUTES= (480); prints what it wrote and compared
	HYPOTHESIS_PROFILE=fuzz $(PYTEST) $(WORKERS) -m rest $(call with,SEEDS|seeds)
	$(BIN)/python -m lab oracle --minutes $(or $(FUZZ_MINUTES),480) $(ARGS)

schema: $(VENV)/dev  ## every operation of the server's OpenAPI document against a server, with both tokens: two minutes
	$(BIN)/python tools/schema_check.py $(ARGS)

worlds: $(VENV)/dev  ## how things stand in random worlds, beside the oracle: ANSWERS= (5000000), ARGS="--first 1000"
	$(BIN)/python -m lab worlds --answers $(or $(ANSWERS),5000000) $(ARGS)

releases: $(VENV)/dev  ## answers beside those of another release on random histories: ANSWERS= (5000000), ARGS="--commit v0.1 --first 1000"
	$(BIN)/python -m lab releases --answers $(or $(ANSWERS),5000000) $(ARGS)

lab: $(VENV)/dev  ## real processes on one store under kills, stops and failing system calls: LAB_MINUTES= (60), ARGS="--seed 1 --only kill"
	$(BIN)/python -m lab --minutes $(or $(LAB_MINUTES),60) $(ARGS)

mutants: $(VENV)/mutants  ## changes that no test notices of MODULE=graphstore/values/period.py (ARGS="--sample 50 --seed 7", or --measure)
	HYPOTHESIS_PROFILE=quick $(BIN)/python tools/mutants.py $(MODULE) $(ARGS)

bench: $(VENV)/benchmarks  ## what it costs, beside SQLite, DuckDB, tgms, tiramemsu and the bare disk; ARGS=--write puts it into benchmarks/README.md
	$(BIN)/python -m benchmarks $(ARGS)

bench-large: $(VENV)/benchmarks  ## the same at a million versions and at ten
	$(BIN)/python -m benchmarks --size 1m,10m $(ARGS)

lint: $(VENV)/dev  ## ruff, mypy (also of what Windows and macOS have) and deptry
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/deptry graphstore
	@$(MAKE) --no-print-directory -j $(CORES) $(TYPES)

$(TYPES): types-%: $(VENV)/dev
	$(BIN)/mypy --strict --platform $* --cache-dir .mypy_cache/$*

format: $(VENV)/dev  ## let ruff lay out and mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

requirements:  ## pin anew what is installed here, with hashes, for each Python found
	$(PYTHON) tools/requirements.py

references: $(VENV)/dev  ## write the reference pages of docs/ anew
	$(BIN)/python docs/references.py

docs: $(VENV)/docs/bin/mkdocs  ## make docs/ and the docstrings a site in .site/, and fail on a broken link
	$(VENV)/docs/bin/mkdocs build --strict --quiet --site-dir .site

pictures: $(VENV)/dev  ## draw the pictures of README anew
	$(BIN)/python docs/pictures/make.py

page-pictures: $(VENV)/dev  ## every tab of the page at 1280 and at 390 px, light and dark, of a made-up team, into .pictures/ to be looked at
	$(BIN)/python tools/page_pictures.py $(ARGS)

page-times: $(VENV)/dev  ## how long the page takes beside 100,000 versions and 50,000 messages: the first page, and a cursor moved on each tab
	$(BIN)/python tools/page_times.py

notebook: $(VENV)/dev  ## run the example notebook and keep its outputs
	$(BIN)/python docs/notebook.py

release-check: $(VENV)/dev  ## build the release and use it in an empty environment of each Python found
	$(BIN)/python tools/release_check.py

clean:  ## remove what was made here
	rm -rf $(VENV) .site .demo .pictures dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks .mutants
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Each mark stands for a set of packages in the environment; it is made anew when what is to be there changes. On Linux they are the pinned ones, checked
# by their hashes, and they are all: nothing is looked for beside them. Elsewhere, and for a Python without a file in requirements/, what pyproject.toml allows.
comma := ,
LOCKS := $(wildcard requirements/*.txt)

define install
	@lock=requirements/$(1)-$$($(BIN)/python -c 'import sys; print("%d.%d" % sys.version_info[:2])').txt; \
	if [ "$$(uname -s)" = Linux ] && [ -f $$lock ]; \
	then $(PIP) install --require-hashes --no-deps --requirement $$lock && $(PIP) install --no-deps --no-build-isolation --editable .; \
	else $(PIP) install --editable '.[$(2)]'; fi
	@touch $@
endef

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "graphstore needs Python 3.11 or newer, and there is no $(PYTHON) here. Say where it is: make PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "graphstore needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V 2>&1). Say which one: make PYTHON=python3.12"; exit 1; }
	@echo "making $(VENV) with $$($(PYTHON) -V) …"
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "The venv module is missing or broken here; Debian and Ubuntu have it as the package python3-venv."; exit 1; }

$(VENV)/demo: pyproject.toml $(LOCKS) | $(BIN)/python
	@echo "installing graphstore …"
	$(call install,demo,git$(comma)server)

$(VENV)/dev: pyproject.toml $(LOCKS) | $(BIN)/python
	@echo "installing graphstore and the tools of its tests …"
	$(call install,dev,dev$(comma)ladybug)

# Not among the others: it would hold some of them back.
$(VENV)/spark: | $(BIN)/python
	@echo "installing Spark …"
	@rm -rf $(VENV)/spark-python && $(BIN)/python -m venv --without-pip $(VENV)/spark-python
	@$(PIP) --python $(VENV)/spark-python/bin/python install 'pyspark>=4.1,<5'
	@touch $@

# A program in an environment of its own, $(VENV)/NAME: what requirements/NAME.in names.
define program
	@rm -rf $(VENV)/$(1) && $(BIN)/python -m venv --without-pip $(VENV)/$(1)
	@lock=requirements/$(1)-$$($(BIN)/python -c 'import sys; print("%d.%d" % sys.version_info[:2])').txt; \
	if [ "$$(uname -s)" = Linux ] && [ -f $$lock ]; then set -- --require-hashes --no-deps --requirement $$lock; \
	else set -- --requirement requirements/$(1).in; fi; \
	$(PIP) --python $(VENV)/$(1)/bin/python install "$$@"
endef

$(VENV)/s3: requirements/s3-server.in $(LOCKS) | $(BIN)/python
	@echo "installing a server that speaks S3 …"
	$(call program,s3-server)
	@touch $@

$(VENV)/docs/bin/mkdocs: requirements/docs.in $(LOCKS) | $(BIN)/python
	@echo "installing what makes the documentation a site …"
	$(call program,docs)
	@touch $@

$(VENV)/benchmarks: $(VENV)/dev
	@-$(PIP) install 'tgms==0.8.0' 'tiramemsu==0.7.0'
	@touch $@

$(VENV)/mutants: $(VENV)/dev
	@$(PIP) install 'coverage>=7.6'
	@touch $@
