"""A minute of fuzzing: the first inputs of every target that compiles nothing. ``make fuzz`` goes on for as long as one likes."""

import os
import re
import subprocess
import sys

import pytest

COUNTS = {
    "inspect": 36,
    "verify": 12,
    "replay": 36,
    "rig": 28,
    "sensor": 36,
    "vehicle": 36,
    "obj": 96,
    "ply": 48,
    "stl": 72,
    "dae": 48,
    "sdf": 48,
    "discovery": 240,
    "osi": 240,
    "osi-trace": 240,
    "osi-mcap": 72,
    "mcap": 72,
    "bag-mcap": 36,
    "bag-sqlite": 36,
    "bag-metadata": 24,
    "bag-ros1": 24,
    "script": 72,
    "script-lines": 72,
    "glb": 48,
    "gltf": 48,
    "png": 48,
    "geotiff": 72,
    "ground": 48,
    "dem": 48,
    "trajectory": 72,
    "npz": 72,
    "poses": 240,
    "servos": 240,
    "sf45": 72,
    "nmea": 72,
    "stdv": 240,
    "ouster": 72,
    "hesai": 240,
    "livox": 240,
    "control": 240,
    "request": 240,
    "change": 36,
    "fault": 92,
    "fault-script": 36,
}
"""Inputs a target: ten seconds of a core in all."""
pytestmark = [pytest.mark.extended, pytest.mark.timeout(1200)]
"""The first test waits for all targets: a minute of a core of its own, ten beside others."""
PLAIN = os.environ | {"NUMBA_DISABLE_JIT": "1"}


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """Output of each target's run, all in one process: starting takes longer than most of them."""
    folder = tmp_path_factory.mktemp("fuzz")
    targets = [word for name, count in COUNTS.items() for word in ("--target", f"{name}={count}")]
    command = [sys.executable, "-m", "tests.fuzz", "--here", *targets, "--seed", "0", "--output", str(folder)]
    done = subprocess.run(command, env=PLAIN, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return {text.split()[0]: text for text in re.split(r"\n(?! )", done.stdout) if text}


@pytest.mark.parametrize("target", sorted(COUNTS))
def test_only_errors_that_an_operator_can_correct_are_raised(told, target):
    assert f" {COUNTS[target]:,} inputs" in told[target]
    assert " 0 failures" in told[target], told[target]


def test_an_input_is_the_same_whenever_it_is_made(tmp_path):
    program = (
        "import sys, hashlib; from pathlib import Path; from random import Random; from tests.fuzz import corpus, mutation\n"
        "sound = corpus.objects(Path(sys.argv[1])) + corpus.gltf(Path(sys.argv[1]))\n"
        "corrupted = [mutation.spoil_text(Random(f'seed {number}'), sound) for number in range(50)]\n"
        "print(hashlib.sha256(b''.join(corrupted)).hexdigest())"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    said = {subprocess.run(command, capture_output=True, text=True, check=True, env=PLAIN).stdout for _ in range(2)}
    assert len(said) == 1


def test_what_may_not_come_out_is_reported_with_a_file_to_reproduce_it(tmp_path):
    program = (
        "import sys; from pathlib import Path; from tests.fuzz.harness import Target, fuzz\n"
        "def run(data, folder):\n    raise KeyError('no such tag')\n"
        "target = Target(name='broken', corpus=lambda folder: [b'abc'], mutate=lambda random, corpus: corpus[0], run=run)\n"
        "print(fuzz(target, Path(sys.argv[1]), seed=3, count=1).failures)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True)
    assert "input 0: KeyError: 'no such tag' at <string>:3" in done.stdout
    assert (tmp_path / "broken-3-0.bin").read_bytes() == b"abc"
