# Two commands set everything up on a machine with git, make and Python >= 3.11: `make demo`, `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Python keeps the bytecode of what it imports, whatever the shell says: the tests start hundreds of processes, and
# each would compile NumPy, SciPy and scikit-learn anew, for three seconds.
unexport PYTHONDONTWRITEBYTECODE
# A file is one worker's, in the order of the folders: sorted by their numbers of tests, long files of few tests would
# come last and leave one worker alone.
WORKERS := -n 2 --dist loadfile --no-loadscope-reorder

.PHONY: demo check test test-full test-machines departures lint kernels docs docs-check notebook bench wheel clean

demo: $(VENV)/.installed-cli
	$(BIN)/learnable compare

# Daily work: style, types and the tests of what changed since the main branch.
check: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m tests.changed

# Types are checked while the kernels compile, in two processes; it would else be done by every process of the tests.
test: $(VENV)/.installed-test
	$(MAKE) -j2 lint kernels
	$(BIN)/python -m pytest $(WORKERS) -m "not long" -q --durations=15

# Everything, the whole of other packages' tests on our classes too; then again as other machines would run it.
test-full: $(VENV)/.installed-test lint
	LEARNABLE_HYPOTHESIS=explore $(BIN)/python -m pytest $(WORKERS) -q --durations=15
	$(MAKE) test-machines

# Other kernels of OpenBLAS, other instruction sets, one thread and two, every core busy.
test-machines: $(VENV)/.installed-test
	$(BIN)/python -m tests.machines

# The page of what differs from scikit-learn, from what signatures, docstrings and lists of tests say.
departures: $(VENV)/.installed-test
	$(BIN)/python -m tests.conformance.departures

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

kernels: $(VENV)/.installed-test
	$(BIN)/python -m tests.warm

# Kernels for the common levels of processors, compiled and checked; then the wheel that carries them.
wheel: $(VENV)/.installed-cli $(VENV)/.installed-dask
	$(BIN)/python tools/build_kernels.py
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	ls -l dist

docs: $(VENV)/.installed-docs
	$(BIN)/mkdocs build --strict

# Every page in a browser, from the disk: width of a phone, links, console, network, search. Needs playwright and a Chromium.
docs-check: docs
	$(BIN)/python -m pip install --quiet playwright
	$(BIN)/python -m tools.check_site site

# The outputs of the notebook tour, on its page and in the notebook.
notebook: $(VENV)/.installed-docs
	$(BIN)/python -m tools.notebook

bench: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# Not compiled: a small part of the installed modules is ever imported, and Python keeps what it compiles then.
$(VENV)/.installed: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --no-compile --editable .
	touch $@

$(VENV)/.installed-%: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --no-compile --editable ".[$*]"
	touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) site build dist src/learnable/compiled .pytest_cache .mypy_cache .ruff_cache .hypothesis
