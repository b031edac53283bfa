# make run   starts the demo: a moving street scene on 127.0.0.1:2368
# make view  does that, and shows it in a browser
# make quick checks what changed in three minutes
# make test  installs and passes every check; CI calls exactly this
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CONSTRAINTS := .ci/constraints.txt
KERNEL_TESTS := $(addprefix tests/unit/,geometry vehicle protocols rangefinders sensor emulator)
# Tests start hundreds of programs: none shall compile the sources anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: run view test test-disturbed test-deep mutants quick kernels judges fuzz test-service test-lowest kernels-as-python kernels-checked lint docs bench clean

$(VENV)/installed-run: pyproject.toml $(CONSTRAINTS)
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "hilsim needs Python >= 3.11, got " + sys.version.split()[0] + "; try: make PYTHON=python3.12 $(MAKECMDGOALS)")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --constraint $(CONSTRAINTS) --editable .
	touch $@

$(VENV)/installed-test: $(VENV)/installed-run
	$(BIN)/python -m pip install --quiet --constraint $(CONSTRAINTS) --group test
	touch $@

run: $(VENV)/installed-run
	$(BIN)/hilsim run profiles/rigs/demo.toml

$(VENV)/installed-view: $(VENV)/installed-run
	$(BIN)/python -m pip install --quiet --constraint $(CONSTRAINTS) --editable '.[view]'
	touch $@

view: $(VENV)/installed-view
	$(BIN)/hilsim run profiles/rigs/demo.toml --view

lint: $(VENV)/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell

# The lowest versions that pyproject.toml declares, in an environment of their own: the core of the tests and the start of a daemon.
# What tests alone need is as new as it may be beside them; what old versions do that new ones deprecate is no fault here.
LOWEST := .venv-lowest
CORE_TESTS := tests/golden $(addprefix tests/unit/,geometry render emulator protocols api config compilation) tests/system/test_daemon.py tests/system/test_record.py
$(LOWEST)/installed: pyproject.toml
	rm -rf $(LOWEST)
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet uv
	$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST) --resolution lowest-direct --editable '.[truth,cluster,testing]'
	$(LOWEST)/bin/uv pip freeze --quiet --python $(LOWEST) --exclude-editable | grep -v '^pytest==' > $(LOWEST)/lowest.txt
	$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST) --constraint $(LOWEST)/lowest.txt \
		'hypothesis>=6.130' 'pynmeagps>=1.0.44' 'pytest>=9' 'pytest-asyncio>=1.0' 'pytest-timeout>=2.3' 'pytest-xdist>=3.6' 'scipy>=1.14'
	touch $@

test-lowest: $(LOWEST)/installed
	$(LOWEST)/bin/python -m pytest -q -p no:cacheprovider --numprocesses=2 --dist=loadfile -W ignore::DeprecationWarning $(CORE_TESTS)

# Another vendor's software that tests ask, in an environment of its own: it requires older versions of click and rosbags than hilsim.
# Where it cannot be installed, those tests are skipped with that reason.
OUSTER := .venv-ouster
OUSTER_CONSTRAINTS := .ci/ouster-constraints.txt
$(OUSTER)/installed: pyproject.toml $(OUSTER_CONSTRAINTS)
	$(PYTHON) -m venv $(OUSTER)
	$(OUSTER)/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(OUSTER)/bin/python -m pip install --quiet --constraint $(OUSTER_CONSTRAINTS) --group ouster
	touch $@

judges:
	-@$(MAKE) --no-print-directory $(OUSTER)/installed

# Every kernel that shipped rigs need, before the tests wait for them one by one; beside the linters, which use one core.
kernels: $(VENV)/installed-test
	-$(BIN)/hilsim warm $(wildcard profiles/rigs/*.toml)

# Lint, types and layers; then all tests in groups beside each other, and a second look at what failed (tests/runs).
test: $(VENV)/installed-test
	@$(MAKE) --no-print-directory --jobs=2 lint kernels judges
	@$(BIN)/python -m tests.runs

# The same as on a bad machine: two busy processes beside it, and stopped thirty times for 0.1 to 1.2 s.
test-disturbed: $(VENV)/installed-test
	$(BIN)/python -m tests.runs.disturb $(MAKE) --no-print-directory test

# Properties with many examples, drawn anew in each run, and whole packets whose kernels a Numba compiled that is not known.
DEEPER_TESTS := $(addprefix tests/,unit/compilation/test_plain.py unit/render/test_cells.py unit/emulator/test_cepton_lidar.py interop/test_velodyne_decoder.py)
test-deep: $(VENV)/installed-test
	HILSIM_TEST_DEPTH=deep $(BIN)/python -m pytest -q -p no:cacheprovider --numprocesses=2 -m hypothesis --timeout=3000 tests
	HILSIM_TEST_DEPTH=deep $(BIN)/python -m pytest -q -p no:cacheprovider $(DEEPER_TESTS)

# Sixty small faults in the pure core, one at a time: which of them its tests find.
mutants: $(VENV)/installed-test
	$(BIN)/python -m tests.runs.mutants

# Lint and types of what changed since BASE, and the tests that the change can reach, nearest first, within MINUTES.
BASE ?= HEAD
MINUTES ?= 3
quick: $(VENV)/installed-test
	@$(BIN)/python -m tests.runs.quick --base $(BASE) --minutes $(MINUTES)

# Compiled kernels are invisible to coverage, so their tests run once more with the kernels as plain Python.
kernels-as-python: $(VENV)/installed-test
	NUMBA_DISABLE_JIT=1 NUMBA_ENABLE_CUDASIM=1 $(BIN)/python -m coverage run -m pytest -q $(KERNEL_TESTS)
	$(BIN)/python -m coverage report --skip-covered --include='hilsim/geometry/*,hilsim/vehicle/*,hilsim/protocols/*,hilsim/sensor/*,hilsim/emulator/*' --fail-under=95

# Kernels that check the bounds of their arrays: what counts packets, copies them and changes what sends them. The cache has them beside those without checks.
CHECKED_TESTS := $(addprefix tests/unit/,transmit sinks replay external daemon/test_follower.py daemon/test_live_packets.py) \
	$(addprefix tests/unit/emulator/,test_segments.py test_retime.py test_insertion.py test_clock_changes.py)
kernels-checked: $(VENV)/installed-test
	NUMBA_BOUNDSCHECK=1 $(BIN)/python -m pytest -q -p no:cacheprovider --numprocesses=2 --dist=loadfile --timeout=3000 $(CHECKED_TESTS)

# Corrupted inputs for every parser: 10^6 each. FUZZ='--seconds 3600' takes an hour in all, FUZZ='--target npz --seed 7' one of them with others.
fuzz: $(VENV)/installed-test
	$(BIN)/python -m tests.fuzz $(FUZZ)

# Boots a Debian root under a real systemd (needs root and Debian's systemd-container and mmdebstrap).
test-service: $(VENV)/installed-test
	$(BIN)/python -m pytest -m service tests/service

docs: $(VENV)/installed-run
	$(BIN)/python -m tools.reference

bench: $(VENV)/installed-test
	$(BIN)/python bench/bench_timing.py
	$(BIN)/python bench/bench_daemon.py
	$(BIN)/python bench/bench_overload.py
	$(BIN)/python bench/bench_flight.py --seconds 60
	$(BIN)/python bench/bench_replay.py
	$(BIN)/python bench/bench_render.py
	$(BIN)/python bench/bench_optics.py
	$(BIN)/python bench/bench_cells.py
	$(BIN)/python bench/bench_background.py
	$(BIN)/python bench/bench_ground.py

clean:
	rm -rf $(VENV) $(LOWEST) $(OUSTER) build dist .fuzz .pytest_cache .mypy_cache .ruff_cache .test-service
