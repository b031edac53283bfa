"""A replay on a machine that stands still: nothing is lost, or the loss is reported and ends with a code of its own."""

import json
import signal
import subprocess
import sys
import time

import pytest

from tests.system.replaying import Arrivals
from tests.unit.replays.streams import Recording

pytestmark = [pytest.mark.extended, pytest.mark.system]

PACKETS = 2261  # three seconds
STANDSTILL_S = 0.4
LEFT_OUT = 3


@pytest.fixture
def capture(tmp_path):
    return Recording().add_turning(PACKETS).write(tmp_path / "turning.pcap")


def replay_with_a_standstill(capture, *options):
    """Stop the whole process for a while when packets flow; returns exit code, summary, standard error and what arrived."""
    arrivals = Arrivals(1)
    command = [
        sys.executable,
        "-m",
        "hilsim",
        "replay",
        str(capture),
        "--json",
        "--retime",
        "none",
        "--to",
        f"127.0.0.1:{arrivals.ports[0]}",
        *options,
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        until = time.monotonic() + 120
        while len(arrivals.datagrams) < 200:
            assert time.monotonic() < until
            assert process.poll() is None
            time.sleep(0.005)
        process.send_signal(signal.SIGSTOP)
        time.sleep(STANDSTILL_S)
        process.send_signal(signal.SIGCONT)
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
        datagrams = arrivals.close()
    return process.returncode, json.loads(out), err, datagrams


@pytest.mark.alone
def test_packets_after_a_stall_are_postponed_and_none_is_lost(capture):
    code, summary, log, datagrams = replay_with_a_standstill(capture)
    assert code == 0
    assert (summary["flows"][0]["sent_packets"], summary["flows"][0]["dropped_packets"]) == (PACKETS, 0)
    assert len(datagrams) == PACKETS
    assert summary["replays"][0]["postponed_s"] > STANDSTILL_S - 0.1
    assert "postponed by" in log
    stamps_ns = [datagram.host_stamp_ns for datagram in datagrams]
    within_5_ms = max(sum(1 for other in stamps_ns[at : at + 40] if other - stamp < 5_000_000) for at, stamp in enumerate(stamps_ns))
    assert within_5_ms < 40  # not more than the 20 ms that stood ready


@pytest.mark.alone
def test_packets_left_out_are_a_warning_and_an_exit_code_of_their_own(capture):
    code, summary, log, datagrams = replay_with_a_standstill(capture, "--late-policy", "skip")
    dropped = summary["flows"][0]["dropped_packets"]
    assert code == LEFT_OUT
    assert dropped > 100
    assert len(datagrams) == PACKETS - dropped
    assert f"warning: {dropped} of {PACKETS} packets were not sent" in log
