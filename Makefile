# One command for each task of users and contributors; `make` lists them.
SHELL := /bin/sh
VENV ?= .venv
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3 python; do command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := $(VENV)/bin
t ?= tests
ARGS ?=

# Set in many container images. The tests start hundreds of processes; each of them would recompile its imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run demo test test-slow soak test-cloud test-one test-options cloud cloud-down lint format web test-web coverage bench bench-beside simulate changelog db-revision sample-config client-manual dashboard clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/.run: pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Blazar needs Python 3.11 or newer, and found none; install it or set PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

# The client and the conformance suite are distributions of their own, which the tests import.
$(BIN)/.dev: $(BIN)/.run client/pyproject.toml conformance/pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]' -e ./client -e ./conformance
	@touch $@

run: $(BIN)/.run ## serve on 127.0.0.1:1234 with a simulated cloud (BLAZAR_PORT, BLAZAR_DATA)
	@exec $(BIN)/blazar-standalone $(ARGS)

demo: $(BIN)/.run ## serve a cloud of 60 hosts with months of leases of several projects (BLAZAR_PORT, DEMO_DATA)
	@exec $(BIN)/blazar-standalone --demo --data $(or $(DEMO_DATA),./var/demo) $(ARGS)

# An idle worker steals tests from the other one; tests that share a fixture of their module mostly stay together.
TWO := -n 2 --dist worksteal

# Most of the fast tests write a database, for a moment: in memory, if there is a gibibyte for all of them.
IN_MEMORY = $(shell test -w /dev/shm && df -Pm /dev/shm | awk 'END { exit $$4 < 1024 }' && echo PYTEST_DEBUG_TEMPROOT=/dev/shm)

BESIDES ?=

test: $(BIN)/.dev ## the fast tests (2 to 6 minutes)
	$(IN_MEMORY) $(BIN)/python -m pytest -q $(TWO) -m "not slow and not cloud and not web $(BESIDES)" $(ARGS)

# What a change most likely breaks is tried with each change; with FULL=1 everything is, with all cases, as each night.
FULL ?=
CHOSEN := $(if $(FULL),, and not nightly)
SIZES := $(if $(FULL),\
	BLAZAR_PERCENT=$${BLAZAR_PERCENT:-100} \
	BLAZAR_CASES=$${BLAZAR_CASES:-10000} BLAZAR_FENCE_EVERY=$${BLAZAR_FENCE_EVERY:-1} \
	BLAZAR_KILLS=$${BLAZAR_KILLS:-220} BLAZAR_TRIALS=$${BLAZAR_TRIALS:-70} \
	BLAZAR_ROUNDS=$${BLAZAR_ROUNDS:-50} BLAZAR_LIVES=$${BLAZAR_LIVES:-200},\
	BLAZAR_PERCENT=$${BLAZAR_PERCENT:-10} \
	BLAZAR_CASES=$${BLAZAR_CASES:-300} BLAZAR_FENCE_EVERY=$${BLAZAR_FENCE_EVERY:-20} \
	BLAZAR_KILLS=$${BLAZAR_KILLS:-60} BLAZAR_TRIALS=$${BLAZAR_TRIALS:-20} \
	BLAZAR_ROUNDS=$${BLAZAR_ROUNDS:-10} BLAZAR_LIVES=$${BLAZAR_LIVES:-10})

# Tests that compute, or use one program of their own, keep both cores busy. Those that race, kill and wait take them for
# moments only: with each change two files of them run at a time, and each night, when some measure for an hour, one.
SIDE_BY_SIDE := tests/slow/test_fencing.py tests/manager tests/resources tests/enforcement tests/model tests/calendar \
	$(filter-out %/test_memory.py,$(wildcard tests/cmd/test_*.py)) \
	tests/examples tests/house tests/conformance tests/slow/test_wheel.py tests/slow/test_bench.py \
	tests/api tests/blazarclient tests/client tests/clouds tests/contract tests/rpc tests/store
APART := $(if $(FULL),,-n 2 --dist loadfile)
SLOW = $(SIZES) $(BIN)/python -m pytest -q -m "(slow or property) and not cloud and not web$(CHOSEN)" --timeout $(if $(FULL),1500,600) --durations 40

test-slow: test-slow-beside test-slow-apart ## the slow tests: races, kill -9, more cases, the upstream client and dashboard; FULL=1 all

test-slow-beside: $(BIN)/.dev
	$(SLOW) $(TWO) $(SIDE_BY_SIDE) $(ARGS)

test-slow-apart: $(BIN)/.dev
	$(SLOW) $(APART) $(SIDE_BY_SIDE:%=--ignore %) tests $(ARGS)

test-options: $(BIN)/.dev ## each option taken out of the file of the test that observes it, which has to fail (5 minutes)
	$(BIN)/python -m tests.house.unobserved $(ARGS)

soak: $(BIN)/.dev ## real processes that are killed and stopped, with checks: MINUTES=15 SEED=… DATABASE=postgresql|mariadb CUT=seconds
	$(BIN)/python -m tests.soak --minutes $(or $(MINUTES),15) --database $(or $(DATABASE),postgresql) $(if $(SEED),--seed $(SEED)) $(if $(CUT),--cut $(CUT))

# A small real OpenStack on this machine; cloud/README.md describes it. nova-scheduler loads our filter, Heat our client.
CLOUD := OPENSTACK_CLOUD_SERVICES=$${OPENSTACK_CLOUD_SERVICES:-cinder,heat} \
	OPENSTACK_CLOUD_RESERVATION_CLIENT=$(CURDIR)/client \
	NOVA_EXTRA_FILTERS=blazarnova.scheduler.filters.blazar_filter.BlazarFilter EXTRA_PYTHON_PACKAGE=$(CURDIR)/nova
CLOUD_PYTHON = $(or $(OPENSTACK_CLOUD_HOME),$(HOME)/.cache/openstack-cloud)/venv/bin/python

cloud: ## a real OpenStack on this machine (Debian 12, root; about 100 s the first time)
	$(CLOUD) cloud/up

cloud-down: ## stop it, keep its data
	$(CLOUD) cloud/down

test-cloud: $(BIN)/.dev cloud ## the tests that need the real OpenStack, a story for each type; FULL=1 all
	$(CLOUD_PYTHON) -m pip install --quiet --disable-pip-version-check pytest
	$(CLOUD_PYTHON) -m pytest -q -p no:cacheprovider --confcutdir=tests/nova tests/nova
	$(BIN)/python -m pytest -q -m "cloud$(CHOSEN)" --timeout 900 --durations 10 $(ARGS)

test-one: $(BIN)/.dev ## one file or test: make test-one t=tests/model/base/test_durations.py
	$(BIN)/python -m pytest -q $(t) $(ARGS)

lint: $(BIN)/.dev ## style, types, import order, words of the glossary
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	cd nova && $(abspath $(BIN))/mypy --config-file pyproject.toml
	cd client && $(abspath $(BIN))/mypy --config-file pyproject.toml
	$(BIN)/lint-imports
	cd conformance && $(abspath $(BIN))/lint-imports --config pyproject.toml
	$(BIN)/python -m tests.house.words

format: $(BIN)/.dev ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

WEB := web/node_modules/.package-lock.json
$(WEB): web/package.json web/package-lock.json web/.npmrc
	npm --prefix web ci --ignore-scripts --no-audit --no-fund
	@touch $@

web: $(WEB) ## build the web pages from web/src; needs Node 20 or newer
	cd web && npm run -s check && npm run -s lint && npm run -s test && npm run -s build

# At another time, in UTC, for the tests, the services and the browser alike; the clock of the machine stays.
AT ?=
SHIFTED := .cache/shifted_clock.so
$(SHIFTED): tests/web/shifted_clock.c
	@mkdir -p $(@D)
	$(CC) -shared -fPIC -o $@ $<
ELSEWHEN = $(if $(AT),at=$$(date -ud "$(AT)" +%s) && CLOCK_SHIFT=$$((at - $$(date +%s))) LD_PRELOAD=$(CURDIR)/$(SHIFTED))

test-web: $(BIN)/.dev $(WEB) $(if $(AT),$(SHIFTED)) ## the tests of the web pages in a browser (Chromium, Node); AT="Sunday 23:30"
	$(ELSEWHEN) $(BIN)/python -m pytest -q -n 2 --dist loadfile -m "web$(CHOSEN)" --timeout 300 $(ARGS)

# A tracer slows each line several times over, so what measures CPU is left out.
coverage: $(BIN)/.dev ## lines and branches that the fast tests run; the report is in .coverage-html (5 minutes)
	$(BIN)/python -m pytest -q $(TWO) -m "not slow and not cloud and not web" --cov --cov-report term --cov-report html:.coverage-html --ignore tests/house/test_parsers.py $(ARGS)

changelog: $(BIN)/.dev ## show what the next release brings, of the files in changes/
	@$(BIN)/towncrier build --draft 2>/dev/null

bench: $(BIN)/.dev ## measure; ARGS="--json --hosts 10,1000 --leases 0,10000"
	$(BIN)/python -m bench $(ARGS)

bench-beside: $(BIN)/.dev ## compare requests with those of another commit, in turn: make bench-beside COMMIT=HEAD~1
	$(BIN)/python -m bench.beside $(COMMIT) $(ARGS)

simulate: $(BIN)/.dev ## months of a virtual cloud with a waiting list; ARGS="--days 60 --seeds 5 --svg docs/waiting.svg"
	$(BIN)/python -m bench.waiting $(ARGS)

db-revision: $(BIN)/.dev ## a new migration: make db-revision m="what it does"
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && url=sqlite:///$$folder/blazar.sqlite && \
	$(BIN)/blazar-db-manage --database-url $$url upgrade && $(BIN)/blazar-db-manage --database-url $$url revision -m "$(m)"
	@$(BIN)/ruff format --quiet blazar/store/sql/migrations/versions

sample-config: $(BIN)/.dev ## regenerate etc/blazar/*.sample, docs/configuration.md and docs/metrics.md
	PYTHONWARNINGS=ignore $(BIN)/oslo-config-generator --config-file etc/blazar/blazar-config-generator.conf
	$(BIN)/oslopolicy-sample-generator --config-file etc/blazar/blazar-policy-generator.conf
	$(BIN)/python tools/configuration_page.py > docs/configuration.md
	$(BIN)/python tools/metrics_page.py > docs/metrics.md

dashboard: $(BIN)/.run ## write deploy/monitoring/dashboard.json for Grafana
	$(BIN)/python tools/dashboard.py > deploy/monitoring/dashboard.json

client-manual: $(BIN)/.dev ## write client/man/blazar.1 from the options of the commands
	$(BIN)/python tools/client_manual.py > client/man/blazar.1.new && mv client/man/blazar.1.new client/man/blazar.1

clean: ## remove the files of the other targets (not the data in ./var)
	rm -rf $(VENV) .venv-client .venv-dashboard .venv-focus .venv-tempest build dist *.egg-info client/build client/*.egg-info conformance/build conformance/*.egg-info .coverage .coverage-html .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
