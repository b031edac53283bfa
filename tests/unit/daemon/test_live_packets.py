"""The stream of sent packets with a real transmitter: copied only while a client follows."""

import contextlib
import socket
import time

import numpy as np
import pytest

from hilsim.capture.pcap import pcap_file_header
from hilsim.daemon.sinks.live import LivePackets
from hilsim.telemetry.readings import StreamLoss
from hilsim.transmit.ring import push
from hilsim.transmit.specs import FlowSpec, SocketSpec, TransmitSpec
from hilsim.transmit.statistics import Counter
from hilsim.transmit.transmitter import Transmitter
from tests.unit.daemon.test_follower import UTC_NS, framed, numbers_in


class Bench:
    """A transmitter that sends to a loopback socket, with a stream of what it sends."""

    def __init__(self, stack):
        self.receiver = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        self.receiver.bind(("127.0.0.1", 0))
        settings = TransmitSpec(scheduling="plain", late_policy="send", slots=4096, lock_memory=False)
        self.transmitter = stack.enter_context(Transmitter(settings, flows=4, capacity=1248, queues=1, queue_slots=64))
        self.live = LivePackets(0)
        target = SocketSpec(source="127.0.0.1", source_port=0, destination="127.0.0.1", destination_port=self.receiver.getsockname()[1])
        self.row = self.transmitter.add_flow(FlowSpec(name="roof/data", socket=target, packet_rate_hz=100))
        self.live.add_flow(self.transmitter.flow_number(self.row), "roof/data", framed(2368))
        stack.callback(self.end)
        self.live.open(self.transmitter)
        self.live.start(utc_offset_ns=UTC_NS)
        self.transmitter.start()

    def send(self, *numbers):
        until = self.transmitter.statistics.counters[self.row, Counter.PACKETS] + len(numbers)
        for number in numbers:
            data = np.full(50, number, np.uint8)
            data[1:8] = 0
            assert push(self.transmitter.rings, self.row, time.monotonic_ns(), 0, data, data.size)
        await_true(lambda: self.transmitter.statistics.counters[self.row, Counter.PACKETS] == until)

    def copied(self):
        return int(self.transmitter.queue(0).tail[0])

    def end(self):
        self.transmitter.stop()
        self.live.end()
        self.live.stop()


def await_true(check):
    deadline = time.monotonic() + 30
    while not check():
        assert time.monotonic() < deadline
        time.sleep(0.001)


@pytest.fixture
def bench():
    with contextlib.ExitStack() as stack:
        yield Bench(stack)


def joined(bench):
    """A client whose packets are copied from now on."""
    client = bench.live.connect(lambda: None)
    await_true(lambda: bench.transmitter._following.state[0, 0] == 1)
    return client


def numbers(client, path, count):
    await_true(lambda: client.reading().sent_packets == count)
    chunks = iter(client.take, None)
    path.write_bytes(pcap_file_header() + b"".join(chunks))
    return numbers_in(path)


def test_nothing_is_copied_while_no_client_follows(bench, tmp_path):
    bench.send(1, 2)
    assert bench.copied() == 0
    client = joined(bench)
    bench.send(3, 4)
    assert numbers(client, tmp_path / "first.pcap", 2) == [3, 4]
    bench.live.disconnect(client)
    await_true(lambda: bench.transmitter._following.state[0, 0] == 0)
    bench.send(5)
    assert bench.copied() == 2
    second = joined(bench)
    bench.send(6)
    assert numbers(second, tmp_path / "second.pcap", 1) == [6]
    assert bench.live.reading().sent_packets == 3


def test_what_the_thread_did_not_take_in_time_is_counted(bench):
    joined(bench)
    with bench.live._sent._changing:  # the thread waits here
        bench.send(*range(100))
        assert bench.live.reading().lost_packets[StreamLoss.QUEUE_FULL] == 100 - 64


def test_an_error_of_the_stream_ends_the_stream_alone(bench, monkeypatch):
    monkeypatch.setattr(bench.live._streams, "write", lambda _batch: 1 / 0)
    joined(bench)
    bench.send(1)
    await_true(lambda: not bench.live._thread.is_alive())
    bench.send(2, 3)
    assert bench.copied() <= 1
