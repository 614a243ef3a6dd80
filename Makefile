# Each target makes its own virtual environment; nothing is needed but Python 3.11+, make and git, and a C compiler only where a dependency
# has no wheel.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNS := $(VENV)/.runs
READY := $(VENV)/.ready
# What is never imported need not be compiled: that is a third of the time.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt --editable
# Many processes start here, and what the first of them compiled the others read: a gate with its control process begins with 2 s of
# work instead of 6. Who has forbidden that for all of Python has it here.
export PYTHONDONTWRITEBYTECODE :=

COMPILED := .venv-compiled

.PHONY: test lint unit demo up test-peers test-optimized bench soak seeds compiled test-compiled clean

$(RUNS): pyproject.toml constraints.txt  # what the program itself needs, and the drawings of its pages
	@echo "installing swarmgate into $(VENV)"
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) '.[plots]'
	touch $(RUNS)

$(READY): $(RUNS)
	@echo "installing what its tests need"
	$(INSTALL) '.[test]'
	touch $(READY)

test: $(READY)  # both at once: lint has no need of the second processor
	$(MAKE) --no-print-directory -j 2 lint unit

lint: $(READY)
	$(BIN)/ruff check src tests benchmarks hatch_build.py
	$(BIN)/ruff format --check src tests benchmarks hatch_build.py
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python tests/file_length.py

unit: $(READY)  # a third of the time tests wait for sockets, so three at once for two processors
	$(BIN)/python -m pytest -n 3 -m "not peers and not seeds and not soak"

# Where Debian has servers, and a user does not look.
test-peers: export PATH := $(PATH):/usr/sbin
test-peers: $(READY)
	$(BIN)/python -m pytest -m peers -rs

# Those that a caller or a target sees; TESTS=tests for all of them.
END_TO_END := tests/gate/test_end_to_end.py tests/gate/test_sdks.py tests/gate/test_callers_live.py tests/gate/test_hostile_callers.py \
	tests/gate/test_hostile_targets.py tests/gate/egress/test_hostile_ends.py tests/cli/test_up.py

test-optimized: $(READY)  # the gate without its assertions, as under python -O
	PYTHONPATH=tests $(BIN)/python -m pytest -n 3 -p unasserted -m "not peers and not seeds and not soak" $(or $(TESTS),$(END_TO_END))

seeds: $(READY)
	$(BIN)/python -m pytest -m seeds -n 2 --timeout 3600

soak: $(READY)
	$(BIN)/python -m pytest -m soak -rP --timeout 1800

bench: $(READY) $(COMPILED)/.made
	$(BIN)/python benchmarks/run.py

demo: $(RUNS)
	$(BIN)/swarmgate demo

up: $(RUNS)
	$(BIN)/swarmgate up

$(COMPILED)/.made: $(RUNS) $(shell find src -name '*.py') hatch_build.py  # the same program, its hot modules translated to C
	@echo "compiling swarmgate: two to three minutes"
	rm -rf $(COMPILED) dist
	HATCH_BUILD_HOOK_ENABLE_CUSTOM=true PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	$(PYTHON) -m venv $(COMPILED)
	$(COMPILED)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt "swarmgate[plots] @ file://$$(echo $(CURDIR)/dist/*.whl)"
	touch $@

compiled: $(COMPILED)/.made

test-compiled: $(READY) $(COMPILED)/.made
	PYTHONPATH=$$($(COMPILED)/bin/python -c 'import sysconfig; print(sysconfig.get_path("platlib"))') \
	$(BIN)/python -m pytest -n 3 -m "not peers and not seeds and not soak and not interpreted" $(TESTS)

clean:
	rm -rf $(VENV) $(COMPILED) dist build
