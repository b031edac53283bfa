"""``hilsim background --cluster tcp://...``: a Dask scheduler and two workers, each a process of its own."""

import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest

from hilsim.read.background.files.archive import read_archive
from tests import commands
from tests.unit.background.recordings import BEGIN_NS, vlp16_payloads, write_capture

pytestmark = [pytest.mark.extended, pytest.mark.system]

START_TIMEOUT_S = 60.0
WORKERS = 2


def await_true(what, process):
    deadline = time.monotonic() + START_TIMEOUT_S
    while not what():
        assert process.poll() is None, f"ended with {process.returncode}"
        assert time.monotonic() < deadline, "took too long"
        time.sleep(0.05)


@pytest.fixture
def cluster(tmp_path):
    """The address of a scheduler that two workers have joined."""
    pytest.importorskip("distributed")
    told = tmp_path / "scheduler.json"
    common = ["--host", "127.0.0.1", "--no-dashboard"]
    environment = os.environ | {"DASK_TEMPORARY_DIRECTORY": str(tmp_path)}
    processes = []

    def start(module, *arguments):
        with (tmp_path / f"{len(processes)}.log").open("w") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments], cwd=tmp_path, env=environment, stdout=log, stderr=subprocess.STDOUT
            )
        processes.append(process)
        return process

    try:
        scheduler = start("distributed.cli.dask_scheduler", *common, "--port", "0", "--scheduler-file", str(told))
        await_true(lambda: told.is_file() and told.read_text().strip().endswith("}"), scheduler)
        address = json.loads(told.read_text())["address"]
        for number in range(WORKERS):
            worker = start("distributed.cli.dask_worker", address, *common, "--nthreads", "1", "--no-nanny", "--name", f"worker-{number}")
            log = tmp_path / f"{len(processes) - 1}.log"
            await_true(lambda log=log: "Registered to" in log.read_text(), worker)
        yield address
    finally:
        for process in reversed(processes):  # the scheduler last: a worker takes its leave of it
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()  # it waits for a process that has ended
                process.wait()


@pytest.fixture
def day(tmp_path):
    """Captures of one place at several times."""
    paths = []
    for number in range(4):
        payloads = vlp16_payloads(100 + 20 * number, distance=lambda azimuth, laser, packet: 4000 + azimuth // 20 + 8 * laser + packet % 3)
        paths.append(write_capture(tmp_path / f"{number}.pcap", payloads, begin_ns=BEGIN_NS + number))
    return paths


def background(*arguments):
    return commands.run("background", *arguments)


WHO_MAPPED = """
import json, sys
from distributed import Client
with Client(sys.argv[1]) as client:
    print(json.dumps(list(client.run(lambda: "hilsim.read.background.job" in __import__("sys").modules).values())))
"""


def who_mapped(address):
    """Of each worker, whether it was handed something to map; asked by a process of its own, because Dask's client leaves sockets to the garbage collector."""
    asked = subprocess.run([sys.executable, "-c", WHO_MAPPED, address], capture_output=True, text=True, timeout=60, check=True)
    return json.loads(asked.stdout)


@pytest.mark.timeout(300)
def test_two_workers_of_a_scheduler_elsewhere_change_no_bit(cluster, day, tmp_path):
    assert cluster.startswith("tcp://127.0.0.1:")
    for name, more in (("here", ["--workers", "1"]), ("there", ["--cluster", cluster])):
        result = background(*day, "-o", tmp_path / name, *more)
        assert result.returncode == 0, result.stderr
    here, there = (read_archive(tmp_path / f"{name}.npz") for name in ("here", "there"))
    assert here.provenance == there.provenance
    assert who_mapped(cluster) == [True, True]  # both did some of it
    for name in ("distance_mm", "intensity", "flags", "hit_count", "confidence"):
        assert np.array_equal(getattr(here, name), getattr(there, name)), name
    for suffix in (".bmp", "-grey.png", ".ply"):
        assert (tmp_path / f"here{suffix}").read_bytes() == (tmp_path / f"there{suffix}").read_bytes(), suffix


@pytest.mark.timeout(300)
def test_a_fault_on_a_worker_elsewhere_is_reported_in_one_line(cluster, day, tmp_path):
    (tmp_path / "broken.pcap").write_bytes(b"no capture")
    result = background(*day, tmp_path / "broken.pcap", "-o", tmp_path / "there", "--cluster", cluster)
    assert result.returncode == 1
    assert f"{tmp_path / 'broken.pcap'}: must be a PCAP or PCAPNG capture" in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "there.npz").exists()
