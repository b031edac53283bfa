# make run   starts the demo: a moving street scene on 127.0.0.1:2368
# make test  installs and passes every check; CI calls exactly this
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CONSTRAINTS := .ci/constraints.txt
KERNEL_TESTS := $(addprefix tests/unit/,geometry vehicle protocols rangefinders sensor emulator)
FLIGHT_TESTS := $(addprefix tests/system/test_,flight_controller.py controller_process.py scripted_controller.py link_doctor.py rangefinders.py shipped_rigs.py)
SERVICE_TESTS := tests/interop tests/service
PROGRAM_TESTS := tests/system $(addprefix --ignore=,$(FLIGHT_TESTS))
STREAM_TESTS := $(addprefix tests/unit/,analysis background capture comparison conformance inspection picture)
UNIT_TESTS := tests $(addprefix --ignore=,tests/system tests/interop tests/service $(STREAM_TESTS))
BESIDE := -q -p no:cacheprovider
IN_TWO := --numprocesses=2 --dist=loadfile
# Tests start hundreds of programs: none shall compile the sources anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: run test kernels fuzz test-service kernels-as-python lint docs bench clean

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

lint: $(VENV)/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell

# Every kernel that shipped rigs need, before the tests wait for them one by one; beside the linters, which use one core.
kernels: $(VENV)/installed-test
	-$(BIN)/hilsim warm $(wildcard profiles/rigs/*.toml)

# Four runs beside each other, on two cores with six or seven processes: flights wait for the wall clock, tests of whole programs wait for packets, and the rest computes.
# Each run's own sockets and ports are apart from the others'. What all but the last say is printed when they have ended, and then what was skipped and why.
test: export HILSIM_SKIPS = .pytest_cache/skips
test: $(VENV)/installed-test
	@$(MAKE) --no-print-directory --jobs=2 lint kernels
	@mkdir -p .pytest_cache; rm -rf $$HILSIM_SKIPS; run="$(BIN)/python -m pytest $(BESIDE)"; \
	( $$run $(FLIGHT_TESTS); code=$$?; $$run $(SERVICE_TESTS) && exit $$code ) > .pytest_cache/flights.log 2>&1 & flights=$$!; \
	$$run $(IN_TWO) $(PROGRAM_TESTS) > .pytest_cache/programs.log 2>&1 & programs=$$!; \
	( $(MAKE) --no-print-directory kernels-as-python; code=$$?; $$run $(IN_TWO) $(STREAM_TESTS) && exit $$code ) > .pytest_cache/streams.log 2>&1 & streams=$$!; \
	$(BIN)/python -m pytest -q $(IN_TWO) $(UNIT_TESTS); code=$$?; \
	wait $$streams; read=$$?; cat .pytest_cache/streams.log; \
	wait $$flights; flown=$$?; cat .pytest_cache/flights.log; \
	wait $$programs; ran=$$?; cat .pytest_cache/programs.log; \
	$(BIN)/python -m tests.skips $$HILSIM_SKIPS; \
	exit $$((code || read || flown || ran))

# Compiled kernels are invisible to coverage, so their tests run once more with the kernels as plain Python.
kernels-as-python: $(VENV)/installed-test
	NUMBA_DISABLE_JIT=1 NUMBA_ENABLE_CUDASIM=1 $(BIN)/python -m coverage run -m pytest -q $(KERNEL_TESTS)
	$(BIN)/python -m coverage report --skip-covered --include='hilsim/geometry/*,hilsim/vehicle/*,hilsim/protocols/*,hilsim/sensor/*,hilsim/emulator/*' --fail-under=95

# Spoilt inputs for every parser: 10^6 each. FUZZ='--seconds 3600' takes an hour in all, FUZZ='--target npz --seed 7' one of them with others.
fuzz: $(VENV)/installed-test
	$(BIN)/python -m tests.fuzz $(FUZZ)

# Boots a Debian root under a real systemd (needs root and Debian's systemd-container and mmdebstrap).
test-service: $(VENV)/installed-test
	$(BIN)/python -m pytest -m service tests/service

docs: $(VENV)/installed-run
	$(BIN)/python -m hilsim.cli.reference

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

clean:
	rm -rf $(VENV) build dist .fuzz .pytest_cache .mypy_cache .ruff_cache .test-service
