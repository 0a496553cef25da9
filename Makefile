# Everything a contributor runs; `make` alone lists it. Needs python3 >= 3.11 with venv; the rest is installed in .venv.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-print-directory

PYTHON ?=
PYTEST_ARGS ?=
BENCH_ARGS ?=
DEMO_ARGS ?=

py := .venv/bin/python
chance := tests/pure tests/conformance/test_scenarios_of_chance.py
pip := $(py) -m pip -qq --disable-pip-version-check

.PHONY: help demo page test nightly lint bench docs proto wheel clean node-modules FORCE

help:
	@echo "make demo    the demo server, without any key   (DEMO_ARGS=\"--port 9000\")"
	@echo "make page    the web page of the demo           (needs Node.js 20 or newer, and npm)"
	@echo "make test    all tests                          (PYTEST_ARGS=\"tests/pure -q\")"
	@echo "make nightly the properties, many times as often (PYTEST_ARGS=\"tests/pure/test_think.py\")"
	@echo "make lint    style, types, import layers"
	@echo "make bench   cost per delta against a bare server (BENCH_ARGS=\"--floor-again\")"
	@echo "make docs    write the generated pages again"
	@echo "make proto   the module of the protobuf form again, of agui_bridge/wire/ag_ui.proto"
	@echo "make wheel   dist/*.whl"
	@echo "make clean   forget all that was installed and built here"

demo: .make/run
	@$(py) -m agui_bridge.cli demo $(DEMO_ARGS)

page: .make/place
	@$(if $(wildcard $(py)),$(py),python3) scripts/build_page.py

test: .make/dev node-modules
	@$(py) -m pytest -n auto $(PYTEST_ARGS)

nightly: .make/dev node-modules
	@HYPOTHESIS_PROFILE=nightly $(py) -m pytest -n auto -m hypothesis --timeout=7200 $(or $(PYTEST_ARGS),$(chance))

lint: .make/dev
	@$(py) -m ruff check --no-cache .
	@$(py) -m ruff format --check .
	@.venv/bin/basedpyright
	@.venv/bin/lint-imports

bench: .make/dev
	@$(py) -m bench.streams $(BENCH_ARGS)

docs: .make/dev
	@$(py) scripts/generate_docs.py

proto: .make/dev
	@$(py) -m grpc_tools.protoc --proto_path=. --python_out=. --pyi_out=. agui_bridge/wire/ag_ui.proto

wheel: .make/dev
	@rm -rf dist build
	@$(pip) wheel --no-deps --wheel-dir dist .
	@ls dist

clean:
	@rm -rf .venv .make dist build .pytest_cache .ruff_cache .hypothesis .import_linter_cache tests/node/node_modules demo_client/node_modules agui_bridge/web/static
	@find agui_bridge runtime tests bench scripts -name __pycache__ -type d -prune -exec rm -rf {} +

node-modules: .make/dev
	@$(py) -m scripts.node_modules

# An environment works only where it was made: a moved or copied clone makes its own, and so does one that lost it.
.make/place: FORCE
	@mkdir -p .make
	@if [ ! -x $(py) ] || ! pwd | cmp -s - $@; then pwd > $@; fi

.make/venv: .make/place scripts/make_venv.sh
	@sh scripts/make_venv.sh .venv "$(PYTHON)"
	@touch $@

# The demo runs from the clone: what it needs is installed, without a build and uncompiled, because that is quick.
.make/run: .make/venv pyproject.toml scripts/dependencies.py
	@echo "installing what agui-bridge needs"
	@$(py) scripts/dependencies.py > .make/requirements.txt
	@$(pip) install --no-compile -r .make/requirements.txt
	@touch $@

.make/dev: .make/run
	@echo "installing agui-bridge and the development tools"
	@$(pip) install --upgrade "pip>=25.1"
	@$(pip) install --editable . --group dev
	@touch $@
