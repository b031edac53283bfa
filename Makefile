# make run   starts the demo: a moving street scene on 127.0.0.1:2368
# make view  does that, and shows it in a browser
# make test  installs, then lint, types, layers and pytest: twenty minutes on two cores in a fresh clone; CI calls exactly this
# make test-all  everything that can be checked on this machine, with one summary at its end
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CONSTRAINTS := .ci/constraints.txt
FAMILY_CORE := $(addprefix families/,velodyne/protocol cepton/protocol cepton/test_lidar.py cepton/test_pairs.py cepton/test_response.py) \
	$(addprefix families/ouster/,protocol interface test_lidar.py test_changes.py) \
	$(addprefix families/livox/,protocol interface test_lidar.py test_pattern.py) families/hesai/protocol
KERNEL_TESTS := $(addprefix tests/unit/,geometry vehicle protocols rangefinders rovers/test_protocol.py sensor emulator external/test_osi.py $(FAMILY_CORE))
KERNELS_OF := $(addprefix kernels-of/,$(wildcard profiles/rigs/*.toml))
# Tests start hundreds of programs: none shall compile the sources anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: run view test test-all test-deep mutants kernels $(KERNELS_OF) judges fuzz test-service test-lowest kernels-as-python kernels-checked lint wheel image docs bench clean

$(VENV)/installed-run: pyproject.toml $(CONSTRAINTS)
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "hilsim needs Python >= 3.11, got " + sys.version.split()[0] + "; try: make PYTHON=python3.12 $(MAKECMDGOALS)")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --constraint $(CONSTRAINTS) --editable .
	touch $@

# What tests need: $(call install,ENVIRONMENT,WHAT). uv is faster than pip, but reads no pip.conf: where it finds no index, pip installs.
install = $(BIN)/uv pip install --quiet --python $(1) $(2) || $(1)/bin/python -m pip install --quiet $(2)

$(VENV)/installed-test: $(VENV)/installed-run
	$(BIN)/python -m pip install --quiet uv
	$(call install,$(VENV),--constraint $(CONSTRAINTS) --group test)
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
CORE_TESTS := tests/golden $(addprefix tests/unit/,geometry render emulator protocols api config compilation $(FAMILY_CORE)) tests/system/test_daemon.py tests/system/test_record.py
$(LOWEST)/installed: pyproject.toml
	rm -rf $(LOWEST)
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet uv
	$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST) --resolution lowest-direct --editable '.[truth,cluster,testing]'
	$(LOWEST)/bin/uv pip freeze --quiet --python $(LOWEST) --exclude-editable | grep -v '^pytest==' > $(LOWEST)/lowest.txt
	$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST) --constraint $(LOWEST)/lowest.txt \
		'hypothesis>=6.130' 'pymavlink>=2.4.50' 'pynmeagps>=1.0.44' 'pytest>=9' 'pytest-asyncio>=1.0' 'pytest-rerunfailures>=15' 'pytest-timeout>=2.3' 'pytest-xdist>=3.6' 'scipy>=1.14'
	touch $@

test-lowest: $(LOWEST)/installed
	$(LOWEST)/bin/python -m pytest -q -m "not alone" -W ignore::DeprecationWarning $(CORE_TESTS)

# Other software that tests ask, in environments of its own: ouster-sdk requires older versions of click and rosbags than hilsim, py-livox2 an older numpy, and
# ROS 2's wheels restart each Python process. Where one cannot be installed, its tests are skipped with that reason.
OUSTER := .venv-ouster
OUSTER_CONSTRAINTS := .ci/ouster-constraints.txt
$(OUSTER)/installed: pyproject.toml $(OUSTER_CONSTRAINTS) $(VENV)/installed-test
	$(PYTHON) -m venv $(OUSTER)
	$(OUSTER)/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(call install,$(OUSTER),--constraint $(OUSTER_CONSTRAINTS) --group ouster)
	touch $@

LIVOX := .venv-livox
LIVOX_CONSTRAINTS := .ci/livox-constraints.txt
$(LIVOX)/installed: pyproject.toml $(LIVOX_CONSTRAINTS) $(VENV)/installed-test
	$(PYTHON) -m venv $(LIVOX)
	$(LIVOX)/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(call install,$(LIVOX),--constraint $(LIVOX_CONSTRAINTS) --group livox)
	touch $@

ROS := .venv-ros
ROS_CONSTRAINTS := .ci/ros-constraints.txt
$(ROS)/installed: pyproject.toml $(ROS_CONSTRAINTS) $(VENV)/installed-test
	$(PYTHON) -m venv $(ROS)
	$(call install,$(ROS),--constraint $(CONSTRAINTS) --constraint $(ROS_CONSTRAINTS) --editable '.[ros2]')
	touch $@

judges:
	-@$(MAKE) --no-print-directory --keep-going $(OUSTER)/installed $(LIVOX)/installed $(ROS)/installed

# Every kernel that shipped rigs need, before the tests wait for them one by one; of two rigs at a time, once the linters leave a core.
$(KERNELS_OF): kernels-of/%: $(VENV)/installed-test
	-@$(BIN)/hilsim warm $*
kernels: $(KERNELS_OF)

# `pytest` alone runs the same tests; compiling beside the linters first saves waiting for kernels one by one.
test: $(VENV)/installed-test
	@$(MAKE) --no-print-directory --jobs=2 lint kernels judges
	$(BIN)/python -m pytest -q

# Each step runs to its end whatever the others came to; the summary judges them all.
STEP = @$(BIN)/python -m tests.summary
test-all: $(VENV)/installed-test
	@rm -rf .test-all
	$(STEP) lint $(MAKE) --no-print-directory --jobs=2 lint kernels judges
	$(STEP) tests $(BIN)/python -m pytest -q -n $$(nproc) -m "not alone and not service"
	$(STEP) alone $(BIN)/python -m pytest -q -n0 -m alone
	$(STEP) as-python $(MAKE) --no-print-directory kernels-as-python
	$(STEP) checked $(MAKE) --no-print-directory kernels-checked
	$(STEP) deep $(MAKE) --no-print-directory test-deep
	$(STEP) service $(MAKE) --no-print-directory test-service
	$(STEP) lowest $(MAKE) --no-print-directory test-lowest
	@$(BIN)/python -m tests.summary

# Properties with many examples, drawn anew in each run, and whole packets whose kernels a Numba compiled that is not known.
DEEPER_TESTS := tests/unit/compilation/test_plain.py tests/unit/families/cepton/test_lidar.py tests/interop/test_velodyne_decoder.py
test-deep: $(VENV)/installed-test
	HILSIM_TEST_DEPTH=deep $(BIN)/python -m pytest -q -m hypothesis --timeout=3000
	HILSIM_TEST_DEPTH=deep $(BIN)/python -m pytest -q -m "" $(DEEPER_TESTS)

# Eighty small faults in the pure core and beside it, one at a time: which of them `make test` finds, and which only `make test-all`.
mutants: $(VENV)/installed-test
	$(BIN)/python -m tests.mutants

# Compiled kernels are invisible to coverage, so their tests run once more with the kernels as plain Python.
kernels-as-python: $(VENV)/installed-test
	NUMBA_DISABLE_JIT=1 NUMBA_ENABLE_CUDASIM=1 $(BIN)/python -m coverage run -m pytest -q -n0 -m "not alone" $(KERNEL_TESTS)
	$(BIN)/python -m coverage report --skip-covered --include='hilsim/world/geometry/*,hilsim/world/platforms/*,hilsim/protocols/*,hilsim/sensor/*,hilsim/emulator/*,hilsim/families/*/protocol/*,hilsim/parts/*/protocol.py,hilsim/parts/vehicle/physics/*,hilsim/families/*/packets.py,hilsim/families/*/plan.py,hilsim/families/*/family.py,hilsim/families/*/specs.py' --fail-under=95

# Kernels that check the bounds of their arrays: what counts packets, copies them and changes what sends them. The cache has them beside those without checks.
CHECKED_TESTS := $(addprefix tests/unit/,transmit sinks replays external daemon/test_follower.py daemon/test_live_packets.py) \
	$(addprefix tests/unit/emulator/,test_segments.py test_retime.py test_insertion.py test_clock_changes.py)
kernels-checked: $(VENV)/installed-test
	NUMBA_BOUNDSCHECK=1 $(BIN)/python -m pytest -q --timeout=3000 $(CHECKED_TESTS)

# Corrupted inputs for every parser: 10^6 each. FUZZ='--seconds 3600' takes an hour in all, FUZZ='--target npz --seed 7' one of them with others.
fuzz: $(VENV)/installed-test
	$(BIN)/python -m tests.fuzz $(FUZZ)

# Boots a Debian root under a real systemd (needs root and Debian's systemd-container and mmdebstrap).
test-service: $(VENV)/installed-test
	$(BIN)/python -m pytest -n0 -m service tests/service

# The kernels of the shipped rigs for x86-64-v3 and -v4 are in both, so that what is installed starts in seconds. KERNELS='--rig demo': of fewer rigs.
wheel: $(VENV)/installed-run
	$(BIN)/python -m tools.kernels $(KERNELS) build/kernels
	HILSIM_KERNELS=$(CURDIR)/build/kernels $(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

# IMAGE='--build-arg BASE=ubuntu:24.04': arguments of the Containerfile.
image:
	$(or $(firstword $(foreach tool,podman buildah docker,$(shell command -v $(tool)))),$(error podman, buildah or docker must be installed)) build -f Containerfile -t hilsim $(IMAGE) .

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
	$(BIN)/python bench/bench_background.py
	$(BIN)/python bench/bench_ground.py

clean:
	rm -rf $(VENV) $(LOWEST) $(OUSTER) build dist .fuzz .pytest_cache .mypy_cache .ruff_cache .test-all .test-service
