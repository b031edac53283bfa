"""The transmitter as the daemon uses it, on loopback."""

import contextlib
import os
import socket
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from hilsim.errors import TransmitError
from hilsim.transmit.loop import LoopEnd
from hilsim.transmit.ring import depth, push
from hilsim.transmit.scheduling import SchedulingMode
from hilsim.transmit.specs import FlowSpec, SocketSpec, TransmitSpec
from hilsim.transmit.statistics import Counter
from hilsim.transmit.transmitter import Transmitter

MS = 1_000_000
PATIENT = {"scheduling": "plain", "late_policy": "send", "slots": 1024, "lock_memory": False}


class Receiver:
    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.settimeout(0.0)

    def numbers(self):
        found = []
        with contextlib.suppress(BlockingIOError):
            while True:
                found.append(int.from_bytes(self.socket.recv(64), "little"))
        return found

    def flow(self, name, **changes):
        target = {"source": "127.0.0.1", "source_port": 0, "destination": "127.0.0.1", "destination_port": self.socket.getsockname()[1]}
        return FlowSpec(name=name, socket=SocketSpec(**(target | changes)), packet_rate_hz=753.5)


@pytest.fixture
def receivers():
    made = [Receiver() for _ in range(3)]
    yield made
    for each in made:
        each.socket.close()


@pytest.fixture
def transmitter():
    with Transmitter(TransmitSpec(**PATIENT), flows=3, capacity=64) as made:
        yield made


def put(transmitter, row, number, deadline_ns):
    assert push(transmitter.rings, row, deadline_ns, 0, np.frombuffer(number.to_bytes(8, "little"), np.uint8).copy(), 8)


def unheard(_number):
    """Announce a flow's number to no sink."""


def await_sent(transmitter, row, count):
    deadline = time.monotonic() + 30
    while transmitter.statistics.counters[row, Counter.PACKETS] < count:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_packets_put_into_a_ring_arrive(transmitter, receivers):
    row = transmitter.add_flow(receivers[0].flow("lidar/data"))
    transmitter.start()
    for number in range(100):
        put(transmitter, row, number, time.monotonic_ns() + MS)
    await_sent(transmitter, row, 100)
    assert receivers[0].numbers() == list(range(100))


def test_changing_one_flows_target_loses_nothing_of_any_flow(transmitter, receivers):
    rows = [transmitter.add_flow(receiver.flow(f"{index}/data")) for index, receiver in enumerate(receivers[:2])]
    start_ns = time.monotonic_ns() + 5 * MS
    for number in range(600):
        for row in rows:
            put(transmitter, row, number, start_ns + number * MS // 4)
    transmitter.start()
    await_sent(transmitter, rows[0], 100)
    transmitter.retarget_flow(rows[0], receivers[2].flow("0/data"), unheard)
    for row in rows:
        await_sent(transmitter, row, 600)
    assert receivers[1].numbers() == list(range(600))
    before, after = receivers[0].numbers(), receivers[2].numbers()
    assert before + after == list(range(600))
    assert len(before) >= 100
    assert after


def test_a_flow_may_be_retargeted_many_times_in_a_row(transmitter, receivers):
    row = transmitter.add_flow(receivers[0].flow("lidar/data"))
    start_ns = time.monotonic_ns() + 5 * MS
    for number in range(600):
        put(transmitter, row, number, start_ns + number * MS // 4)
    transmitter.start()
    for turn in range(40):
        transmitter.retarget_flow(row, receivers[turn % 3].flow("lidar/data", ttl=1 + turn), unheard)
    await_sent(transmitter, row, 600)
    assert sorted(sum((receiver.numbers() for receiver in receivers), [])) == list(range(600))  # noqa: RUF017 - three short lists
    assert transmitter.statistics.counters[row, Counter.SEND_ERROR] == 0


def test_a_former_socket_is_closed_only_after_the_loop_has_let_go_of_it(transmitter, receivers):
    row = transmitter.add_flow(receivers[0].flow("lidar/data"))
    transmitter.start()
    for change in (lambda: transmitter.retarget_flow(row, receivers[1].flow("lidar/data"), unheard), lambda: transmitter.remove_flow(row)):
        turns = int(transmitter.statistics.passes[0])
        change()
        assert transmitter.statistics.passes[0] >= turns + 3


def test_a_refused_target_leaves_the_flow_as_it_was(transmitter, receivers):
    row = transmitter.add_flow(receivers[0].flow("lidar/data"))
    transmitter.start()
    with pytest.raises(TransmitError, match=r"cannot send from 203\.0\.113\.7"):
        transmitter.retarget_flow(row, receivers[1].flow("lidar/data", source="203.0.113.7"), unheard)
    put(transmitter, row, 1, time.monotonic_ns())
    await_sent(transmitter, row, 1)
    assert receivers[0].numbers() == [1]


def test_removing_and_adding_flows_leaves_the_others_alone(transmitter, receivers):
    rows = [transmitter.add_flow(receiver.flow(f"{index}/data")) for index, receiver in enumerate(receivers[:2])]
    start_ns = time.monotonic_ns() + 5 * MS
    for number in range(400):
        put(transmitter, rows[1], number, start_ns + number * MS // 4)
    transmitter.start()
    await_sent(transmitter, rows[1], 50)
    transmitter.remove_flow(rows[0])
    again = transmitter.add_flow(receivers[2].flow("2/data"))
    put(transmitter, again, 9, time.monotonic_ns())
    await_sent(transmitter, rows[1], 400)
    await_sent(transmitter, again, 1)
    assert again == rows[0]
    assert receivers[1].numbers() == list(range(400))
    assert receivers[2].numbers() == [9]


def test_a_row_used_again_begins_with_an_empty_ring_and_zero_statistics(transmitter, receivers):
    row = transmitter.add_flow(receivers[0].flow("a/data"))
    transmitter.start()
    put(transmitter, row, 1, time.monotonic_ns())
    await_sent(transmitter, row, 1)
    put(transmitter, row, 2, time.monotonic_ns() + 600_000 * MS)
    transmitter.remove_flow(row)
    assert transmitter.add_flow(receivers[1].flow("b/data")) == row
    assert depth(transmitter.rings, row) == 0
    assert transmitter.statistics.counters[row, Counter.PACKETS] == 0


def test_flow_names_differ(transmitter, receivers):
    transmitter.add_flow(receivers[0].flow("lidar/data"))
    with pytest.raises(TransmitError, match=r'flow names must differ, got "lidar/data" twice'):
        transmitter.add_flow(receivers[1].flow("lidar/data"))


def test_more_flows_than_rows_are_a_fault(transmitter, receivers):
    for index in range(3):
        transmitter.add_flow(receivers[0].flow(f"{index}/data"))
    with pytest.raises(TransmitError, match=r"there must be at most 3 flows"):
        transmitter.add_flow(receivers[0].flow("3/data"))


def test_a_transmitter_can_be_stopped_and_started_again(transmitter, receivers):
    row = transmitter.add_flow(receivers[0].flow("lidar/data"))
    for number in range(3):
        transmitter.start()
        put(transmitter, row, number, time.monotonic_ns())
        await_sent(transmitter, row, number + 1)
        transmitter.stop()
    assert transmitter.end == LoopEnd.STOPPED
    assert receivers[0].numbers() == [0, 1, 2]


def test_a_second_start_is_refused(transmitter):
    transmitter.start()
    with pytest.raises(TransmitError, match=r"must be stopped before it is started again"):
        transmitter.start()


def test_stopping_takes_no_time_to_speak_of(transmitter, wall_time):
    transmitter.start()
    asked = time.monotonic()
    transmitter.stop()
    assert wall_time.awake_s(asked, time.monotonic()) < 1.0
    assert not transmitter.running


def test_leaving_leaves_no_thread_and_no_socket_behind(receivers):
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    with Transmitter(TransmitSpec(**PATIENT), flows=3, capacity=64) as transmitter:
        transmitter.add_flow(receivers[0].flow("a/data"))
        transmitter.start()
        assert any(thread.name == "transmit" for thread in threading.enumerate())
    assert not any(thread.name == "transmit" for thread in threading.enumerate())
    assert len(list(Path("/proc/self/fd").iterdir())) == descriptors


def test_the_loop_says_when_it_ended_because_a_packet_was_late(receivers):
    settings = PATIENT | {"late_policy": "stop", "late_limit_us": 1e7}
    with Transmitter(TransmitSpec(**settings), flows=1, capacity=64) as transmitter:
        row = transmitter.add_flow(receivers[0].flow("a/data"))
        put(transmitter, row, 0, time.monotonic_ns() - 20_000 * MS)
        transmitter.start()
        deadline = time.monotonic() + 30
        while transmitter.running and time.monotonic() < deadline:
            time.sleep(0.001)
        assert transmitter.end == LoopEnd.TOO_LATE


def test_fifo_demanded_for_a_load_that_would_be_throttled_is_a_fault(receivers):
    with Transmitter(TransmitSpec(**(PATIENT | {"scheduling": "fifo"})), flows=1, capacity=64) as transmitter:
        heavy = FlowSpec(name="fleet", socket=receivers[0].flow("x").socket, packet_rate_hz=300_000)
        with pytest.raises(TransmitError, match=r"load of a SCHED_FIFO thread must be at most 80% of a core, got 105%"):
            transmitter.add_flow(heavy)


def test_a_running_fifo_thread_is_moved_off_fifo_when_its_load_grows_too_heavy(receivers):
    with Transmitter(TransmitSpec(**(PATIENT | {"scheduling": "auto"})), flows=2, capacity=64) as transmitter:
        row = transmitter.add_flow(receivers[0].flow("a/data"))
        transmitter.start()
        if transmitter.scheduling.mode != SchedulingMode.FIFO:
            pytest.skip(transmitter.scheduling.reason)
        thread_id = next(thread.native_id for thread in threading.enumerate() if thread.name == "transmit")
        transmitter.add_flow(FlowSpec(name="fleet", socket=receivers[1].flow("x").socket, packet_rate_hz=300_000))
        assert os.sched_getscheduler(thread_id) & ~os.SCHED_RESET_ON_FORK == os.SCHED_OTHER
        assert "would throttle it" in transmitter.scheduling.reason
        put(transmitter, row, 1, time.monotonic_ns())
        await_sent(transmitter, row, 1)
