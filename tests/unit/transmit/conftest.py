"""The real sending loop on loopback sockets."""

import contextlib
import socket
import threading
import time

import numpy as np
import pytest

from hilsim.compilation.atomics import publish
from hilsim.transmit.faults.arrays import BrokenNetwork, allocate_network_faults
from hilsim.transmit.flow_table import allocate_flow_table, pack_address, select_target, set_active
from hilsim.transmit.loop import LatePolicy, LoopSettings, allocate_following, send_loop
from hilsim.transmit.ring import allocate_rings, push
from hilsim.transmit.statistics import Counter, allocate_statistics

GROSS_LIMIT_S = 30
LATE_LIMIT_NS = 10_000_000_000


class LoopBench:
    """A sending loop with its arrays; every flow goes to the same receiver until pointed elsewhere."""

    def __init__(self, flows=1, slots=64, policy=LatePolicy.SEND, late_limit_ns=LATE_LIMIT_NS, spin_ns=0, queues=0, queue_slots=1):
        self.rings = allocate_rings(flows, slots, 64)
        self.table = allocate_flow_table(flows)
        self.statistics = allocate_statistics(flows)
        self.following = allocate_following(queues, flows, queue_slots, 64)
        self.network = BrokenNetwork(allocate_network_faults(flows, 64), 5)
        self.following.number[:] = np.arange(flows)[:, np.newaxis] + 100
        self.stop_flag = np.zeros(8, np.int64)
        self.settings = LoopSettings(spin_ns, late_limit_ns, int(policy))
        self.receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self.receiver.bind(("127.0.0.1", 0))
        self.sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.thread = None
        self.end = None
        for flow in range(flows):
            self.point(flow, self.sender, self.receiver.getsockname())
            self.network.add_flow(flow, f"sensor-{flow}/data", has_headers=False, is_raw=False)
            set_active(self.table, flow, active=True)

    def point(self, flow, sender, address):
        select_target(self.table, flow, sender.fileno(), pack_address(*address) if address else b"")

    def put(self, flow, deadline_ns, number=0, pose_ns=0):
        """A datagram whose payload says flow, number and deadline."""
        payload = np.array([flow, number, deadline_ns], np.int64).view(np.uint8)
        assert push(self.rings, flow, deadline_ns, pose_ns, payload, payload.size)

    def start(self):
        def run():
            self.end = send_loop(self.rings, self.table, self.statistics, self.following, self.network.arrays, self.stop_flag, self.settings)

        publish(self.stop_flag, 0, 0)
        self.thread = threading.Thread(target=run)
        self.thread.start()

    def await_count(self, *counters, at_least, flows=slice(None)):
        """Wait until the counters' sum over the flows has reached a figure."""
        deadline = time.monotonic() + GROSS_LIMIT_S
        while self.statistics.counters[flows][..., list(counters)].sum() < at_least:
            assert time.monotonic() < deadline, f"{self.statistics.counters[flows][..., :8]}"
            time.sleep(0.001)

    def await_handled(self, at_least):
        self.await_count(Counter.PACKETS, Counter.DROPPED, Counter.SEND_ERROR, Counter.SILENCED, at_least=at_least)

    def await_turns(self, count=3):
        begun = self.statistics.passes[0]
        while self.statistics.passes[0] < begun + count:
            time.sleep(0.001)

    def stop(self):
        publish(self.stop_flag, 0, 1)
        if self.thread is not None:
            self.thread.join()
            self.thread = None

    def received(self):
        """``int64[n, 3]``: flow, number and deadline of every datagram that arrived, in order."""
        self.receiver.settimeout(0.0)
        rows = []
        with contextlib.suppress(BlockingIOError):
            while True:
                rows.append(np.frombuffer(self.receiver.recv(64), np.int64))
        return np.array(rows).reshape(-1, 3)

    def close(self):
        self.stop()
        self.receiver.close()
        self.sender.close()


@pytest.fixture
def loop_bench():
    made = []

    def make(**arguments):
        made.append(LoopBench(**arguments))
        return made[-1]

    yield make
    for bench in made:
        bench.close()
