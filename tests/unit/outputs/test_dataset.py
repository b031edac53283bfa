"""Data sets: every combination once, the same bytes whatever renders them, and an interrupted run goes on."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from hilsim.cli import cli
from tests.compiled import compiled_only
from tests.support import ROOM, write_rig

SPEC = """
rig = ["rig.toml"]
seeds = [1, 2]
duration_s = 0.25
format = "kitti"
[[axis]]
variant = [{ name = "clear" }, { name = "rain", set = ["weather.rain_mm_per_h=20"] }]
"""
NAMES = {"rig-clear-seed1", "rig-clear-seed2", "rig-rain-seed1", "rig-rain-seed2"}


@pytest.fixture
def spec(tmp_path):
    write_rig(tmp_path, ROOM)
    path = tmp_path / "spec.toml"
    path.write_text(SPEC)
    return path


def ran(*arguments):
    done = CliRunner().invoke(cli, ["dataset", *map(str, arguments), "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.output)


def rendering(pid):
    """Numbers of the processes that render for one."""
    children = [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return [child for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


def is_alive(pid):
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())  # empty of one that has ended and is not awaited
    except FileNotFoundError:
        return False


def digests(folder):
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.rglob("*")) if path.is_file()}


@compiled_only
@pytest.mark.extended
def test_each_combination_is_rendered_once_with_the_same_bytes_by_one_process_by_two_and_on_a_cluster(spec, tmp_path):
    one, two, cluster = (tmp_path / name for name in ("one", "two", "cluster"))
    assert ran(spec, "-o", one, "--workers", 1)["rendered"] == 4
    assert {path.name for path in one.iterdir()} == NAMES
    assert len(digests(one)) > 4 * 4
    ran(spec, "-o", two, "--workers", 2)
    assert digests(two) == digests(one)
    ran(spec, "-o", cluster, "--workers", 2, "--cluster", "local")
    assert digests(cluster) == digests(one)
    assert digests(one / "rig-clear-seed1") != digests(one / "rig-rain-seed1")
    assert digests(one / "rig-clear-seed1") != digests(one / "rig-clear-seed2")
    assert ran(spec, "-o", one)["rendered"] == 0


@pytest.mark.extended
@compiled_only
def test_a_run_whose_worker_is_killed_and_one_that_is_interrupted_come_to_the_same_bytes(spec, tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    ran(spec, "-o", whole, "--workers", 1)
    command = [sys.executable, "-m", "hilsim", "dataset", str(spec), "-o", str(broken), "--workers", "2"]
    with subprocess.Popen(command) as first:
        until_s = time.monotonic() + 120.0
        while not broken.exists() or not any(path.name.endswith(".part") for path in broken.iterdir()):
            assert time.monotonic() < until_s
            time.sleep(0.01)
        workers = rendering(first.pid)
        first.terminate()
    while any(map(is_alive, workers)):
        assert time.monotonic() < until_s
        time.sleep(0.01)
    assert len(workers) == 2
    assert digests(broken) != digests(whole)
    with subprocess.Popen(command) as second:
        killed = False
        while second.poll() is None:
            workers = rendering(second.pid)
            if not killed and len(workers) >= 2 and any(path.name.endswith(".part") for path in broken.iterdir()):
                os.kill(workers[-1], signal.SIGKILL)
                killed = True
            time.sleep(0.01)
    assert killed
    assert second.returncode == 0
    assert digests(broken) == digests(whole)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("seeds = [1, 2]", "seeds = []"), "seeds must have at least one seed"),
        (('"rig.toml"', '"none.toml"'), "none.toml"),
        (('name = "rain"', 'name = "clear"'), "variants must have different names"),
        (('"kitti"', '"dvd"'), "format"),
        (("weather.rain_mm_per_h=20", "weather.rain=20"), "weather.rain"),
    ],
)
def test_a_faulty_specification_is_refused_with_the_reason(spec, tmp_path, change, message):
    spec.write_text(spec.read_text().replace(*change))
    done = CliRunner().invoke(cli, ["dataset", str(spec), "-o", str(tmp_path / "out"), "--workers", "1"])
    assert done.exit_code != 0
    assert message in done.output + str(done.exception)
