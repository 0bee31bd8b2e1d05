# make run: install and run the example.  make test: everything CI checks.  make bench: side-by-side measurements.
# make soak SECONDS=3600: random operations, with memory and handles watched.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input -q
BACKENDS := backends/opencl backends/rocm backends/level_zero
SOURCES := pyproject.toml CMakeLists.txt $(wildcard zluda/client/*.py zluda/client/CMakeLists.txt zluda/client/src/*) \
	$(wildcard zluda/spec/*.py spec/*.toml spec/driver_api/*.toml) $(addsuffix /pyproject.toml,$(BACKENDS))

unexport PYTHONPATH
unexport PYTHONHOME
export PIP_ROOT_USER_ACTION := ignore

.PHONY: run test check bench soak lock clean
.DELETE_ON_ERROR:

run: $(VENV)/.installed examples/vector_add
	$(BIN)/zluda run -- $(BIN)/python examples/saxpy.py

test: $(VENV)/.installed-tests check
	$(BIN)/python -m pytest -n 2 --dist loadgroup --max-worker-restart 0

check: $(VENV)/.installed-tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.installed-tests
	$(BIN)/python -m benchmarks

SECONDS ?= 60
soak: $(VENV)/.installed-tests
	$(BIN)/python tools/soak.py $(SECONDS)

examples/vector_add: examples/vector_add.c $(VENV)/.installed
	$(CC) -std=c11 -O2 -Wall -Wextra -I"$$($(BIN)/zluda env --include)" $< -o $@ -L"$$($(BIN)/zluda env --library)" -l:libcuda.so.1

$(VENV)/.python:
	@$(PYTHON) -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "zluda needs Python 3.11 or newer with the venv module (Debian: apt install python3-venv); $(PYTHON) is not that. Name another with: make PYTHON=python3.12"; exit 1; }
	@echo "Creating $(VENV)"
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.requirements: requirements/run.txt | $(VENV)/.python
	@echo "Installing what the project runs on (about 900 MB with the OpenCL CPU device; this takes a few minutes)"
	$(PIP) install -r requirements/run.txt
	@touch $@

$(VENV)/.installed: $(VENV)/.requirements $(SOURCES)
	@echo "Building and installing zluda and its backends"
	$(PIP) install --no-deps --no-build-isolation -e . $(addprefix -e ,$(BACKENDS))
	@touch $@

$(VENV)/.installed-tests: requirements/test.txt $(VENV)/.installed
	@echo "Installing the test tools"
	$(PIP) install -r requirements/test.txt
	@touch $@

# Pins both requirement sets anew, from an empty environment.
lock:
	rm -rf build/lock && $(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip install -q -r requirements/run.in
	{ echo "# Made by 'make lock' from run.in."; build/lock/bin/python -m pip freeze | sed -E '/^(intel-|tbb|tcmlib)/s/$$/ ; platform_machine == "x86_64"/'; } > requirements/run.txt
	build/lock/bin/python -m pip install -q -r requirements/test.in
	{ echo "# Made by 'make lock' from test.in."; build/lock/bin/python -m pip freeze | grep -vxFf requirements/run.txt; } > requirements/test.txt
	rm -rf build/lock

clean:
	rm -rf build examples/vector_add $(VENV)
