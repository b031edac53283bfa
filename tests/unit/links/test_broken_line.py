"""Faults of a serial line over a real pseudo-terminal, judged at the other end by a receiver that knows the parameters alone."""

import asyncio
import contextlib
import os
import select
import threading
import time

import numpy as np
import pytest

from hilsim.errors import LinkError
from hilsim.faults.specs import FAULT_SPECS
from hilsim.transmit.links.broken_line import BreakableEndpoint, BrokenLine
from hilsim.transmit.links.endpoints import SerialEndpoint
from hilsim.transmit.links.line import SerialSpec
from tests.compiled import compiled_only

pytestmark = compiled_only
SIGMAS_99 = 2.576


def fault(kind, **keys):
    return FAULT_SPECS[kind](**keys)


class Bench:
    """A port that is opened through a line, and the far end of its cable."""

    def __init__(self, cable, *faults, seed=7):
        self.cable, self.line = cable, BrokenLine("one", seed)
        self.line.begin(time.monotonic_ns())
        self.line.set_faults(0, faults)
        self.endpoint = BreakableEndpoint(SerialEndpoint(SerialSpec(port=cable.device)), self.line)
        self.descriptor = asyncio.run(self.endpoint.open()).descriptor

    def now_s(self):
        return self.line._now_ns() / 1e9

    def send(self, data, frame=60):
        """Write frames at the port as a device does, and read them at the far end."""
        came = bytearray()
        for at in range(0, len(data), frame):
            self.put(data[at : at + frame])
            came += self.cable.read()
        return bytes(came + self.rest(self.cable.read))

    def put(self, chunk):
        end_s = time.monotonic() + 20.0
        while time.monotonic() < end_s:
            with contextlib.suppress(BlockingIOError):
                assert os.write(self.descriptor, chunk) == len(chunk)
                return
            time.sleep(0.0002)
        raise AssertionError("the line takes nothing")

    def take(self):
        with contextlib.suppress(BlockingIOError):
            return os.read(self.descriptor, 4096)
        return b""

    @staticmethod
    def rest(read):
        """What still comes, until nothing has come for a while."""
        came, quiet_s = bytearray(), time.monotonic()
        while time.monotonic() - quiet_s < 0.4:
            chunk = read()
            if chunk:
                came += chunk
                quiet_s = time.monotonic()
            time.sleep(0.001)
        return bytes(came)


@pytest.fixture
def bench(cable):
    made = []

    def make(*faults, **keys):
        made.append(Bench(cable(), *faults, **keys))
        return made[-1]

    yield make
    for each in made:
        each.endpoint.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "line-one"]


def random_bytes(count):
    return np.random.default_rng(3).bytes(count)


def within(found, count, share):
    """Whether a number of events is within its binomial 99 % interval."""
    return abs(found - count * share) <= SIGMAS_99 * np.sqrt(count * share * (1.0 - share)) + 0.5


def test_a_line_without_faults_has_no_thread_and_carries_every_byte(bench):
    line = bench()
    assert not [thread for thread in threading.enumerate() if thread.name == "line-one"]
    data = random_bytes(30_000)
    assert line.send(data) == data


@pytest.mark.parametrize("share", [0.02, 0.3])
def test_bytes_are_lost_at_their_share_each_by_itself(bench, share):
    sent = bytes(range(256)) * 240
    came = np.frombuffer(bench(fault("byte_loss", share=share)).send(sent), np.uint8).astype(int)
    lost = len(sent) - came.size
    assert within(lost, len(sent), share)
    steps = (np.diff(came) - 1) % 256  # a gap of so many bytes
    assert within(np.count_nonzero(steps >= 2), came.size, share * share)


def test_bits_are_wrong_at_their_ratio_and_the_same_ones_with_the_same_seed(bench):
    sent = bytes(60_000)
    came = [bench(fault("bit_errors", bit_error_ratio=2e-3), seed=seed).send(sent) for seed in (7, 7, 8)]
    wrong = [int(np.unpackbits(np.frombuffer(each, np.uint8)).sum()) for each in came]
    assert all(len(each) == len(sent) for each in came)
    assert all(within(each, 8 * len(sent), 2e-3) for each in wrong)
    assert came[0] == came[1] != came[2]


def test_half_frames_end_early_at_their_share(bench):
    frames = [bytes([number % 251]) * 40 for number in range(1500)]
    came = bench(fault("half_frames", share=0.2)).send(b"".join(frames), frame=40)
    runs = np.diff(np.flatnonzero(np.diff(np.frombuffer(came, np.uint8), prepend=255, append=255)))
    whole = np.count_nonzero(runs == 40)
    assert within(len(frames) - whole, len(frames), 0.2)


def test_an_adapter_holds_bytes_until_its_timer_or_a_full_transfer(bench):
    line = bench(fault("adapter_latency", timer_ms=80.0, transfer_bytes=62))
    first, times_s = b"", []
    line.cable.write(b"y" * 130)
    begin_s = time.monotonic()
    while len(first) < 130:
        chunk = line.take()
        if chunk:
            first += chunk
            times_s.append((time.monotonic() - begin_s, len(first)))
        time.sleep(0.0005)
    assert times_s[-1][0] >= 0.08  # the last six bytes wait for the timer
    assert any(count == 124 for _, count in times_s)
    assert next(at_s for at_s, count in times_s if count >= 124) < times_s[-1][0]


def test_faults_come_and_go_while_bytes_flow_and_no_byte_is_lost_in_between(bench):
    line = bench()
    line.line.set_faults(line.line._now_ns() + 100_000_000, [fault("adapter_latency", timer_ms=5.0, at_s=line.now_s() + 0.1, for_s=0.5)])
    data, came = random_bytes(1 << 16), bytearray()
    seen = False
    for at in range(0, len(data), 50):
        line.put(data[at : at + 50])
        came += line.cable.read()
        seen = seen or any(thread.name == "line-one" for thread in threading.enumerate())
        time.sleep(0.0008)
    came += line.rest(line.cable.read)
    assert bytes(came) == data
    assert seen
    end_s = time.monotonic() + 10.0
    while any(thread.name == "line-one" for thread in threading.enumerate()):
        assert time.monotonic() < end_s
        time.sleep(0.01)
    assert line.send(b"after") == b"after"


def test_a_cable_that_is_out_closes_the_port_for_both_ends_and_lets_it_open_again(bench):
    line = bench(fault("byte_loss", share=0.0))
    assert line.send(b"before") == b"before"
    line.line.set_faults(0, [fault("cable_out", at_s=line.now_s(), for_s=1.0)])
    end_s = time.monotonic() + 10.0
    while not _readable(line.descriptor):
        assert time.monotonic() < end_s
    assert os.read(line.descriptor, 16) == b""  # the end of the stream, as of a board that was unplugged
    line.endpoint.close_link()
    with pytest.raises(OSError, match="Input/output error"):
        os.read(line.cable.master, 16)
    with pytest.raises(LinkError, match="one: the cable must be in, got it out by the fault cable_out"):
        asyncio.run(line.endpoint.open())
    time.sleep(1.0)
    line.descriptor = asyncio.run(line.endpoint.open()).descriptor
    assert line.send(b"again") == b"again"


def _readable(descriptor):
    return bool(select.select([descriptor], [], [], 0.05)[0])
