"""The sending loop with faults of the network, run for real on loopback: what arrives is what the kernels give without a clock."""

import time

import numpy as np
import pytest

from hilsim.errors import ConfigError
from hilsim.transmit.faults.arrays import NEVER_NS, BrokenNetwork, NetworkCount, Pool, allocate_network_faults
from hilsim.transmit.faults.kernels import pass_network
from hilsim.transmit.loop import FollowingState
from hilsim.transmit.packet_queue import queue_of, take
from hilsim.transmit.ring import push
from hilsim.transmit.specs import FlowSpec, SocketSpec, TransmitSpec
from hilsim.transmit.statistics import Counter
from hilsim.transmit.transmitter import Transmitter
from tests.unit.transmit.test_network_faults import fault

MS = 1_000_000
GROSS_LIMIT_S = 30.0
SEVERAL = [
    fault("wifi"),
    fault("corrupt", share=0.2),
    fault("hold", hold_ms=10.0, every_ms=40.0, on="sensor-1"),
    fault("delay", delay_ms=8.0, jitter_ms=8.0, on="sensor-0"),
    fault("duplicate", share=0.2, delay_ms=3.0),
    fault("reorder", share=0.2),
]


def await_true(condition):
    until_s = time.monotonic() + GROSS_LIMIT_S
    while not condition():
        assert time.monotonic() < until_s
        time.sleep(0.001)


def is_idle(bench):
    return bool((bench.rings.head[:, 0] == bench.rings.tail[:, 0]).all()) and bench.network.arrays.pool[Pool.COUNT] == 0


def begun(bench, after_ns=0):
    """Rig time 0 of a bench, now or after a time."""
    bench.network.arrays.epoch_ns[0] = time.monotonic_ns() + after_ns
    return int(bench.network.arrays.epoch_ns[0])


def test_what_arrives_is_what_is_recorded_without_a_clock(loop_bench):
    bench = loop_bench(flows=3, slots=256, queues=1, queue_slots=4096)
    bench.following.state[0, 0] = FollowingState.ON
    bench.network.set_faults(SEVERAL)
    epoch_ns = begun(bench, 50 * MS)
    given = []
    for number in range(200):
        for flow in range(3):
            deadline_ns = number * MS + flow * MS // 7
            given.append((deadline_ns, flow, np.array([flow, number, deadline_ns], np.int64).view(np.uint8)))
            assert push(bench.rings, flow, epoch_ns + deadline_ns, 0, given[-1][2], 24)
    bench.start()
    await_true(lambda: is_idle(bench))
    bench.stop()
    recorded = take(queue_of(bench.following.queues, 0), 1 << 16)
    offline = BrokenNetwork(allocate_network_faults(3, 64), 5)
    for flow in range(3):
        offline.add_flow(flow, f"sensor-{flow}/data", has_headers=False, is_raw=False)
    offline.set_faults(SEVERAL)
    columns = [np.array(column) for column in list(zip(*given, strict=True))[:2]]
    out = np.zeros(2000, np.int64), np.zeros(2000, np.int64), np.zeros(2000, np.int32), np.zeros((2000, 68), np.uint8)
    payload = np.array([row for *_, row in given])
    _, count = pass_network(offline.arrays, *columns, np.full(600, 24, np.int32), payload, 0, NEVER_NS, *out)
    assert count > 500
    assert np.array_equal(recorded.stamp_ns - epoch_ns, out[0][:count])
    assert np.array_equal(recorded.flow - 100, out[1][:count])
    assert np.array_equal(recorded.payload[:, :24], out[3][:count, :24])
    assert np.array_equal(bench.received().view(np.uint8).reshape(-1, 24), out[3][:count, :24])
    assert np.array_equal(bench.network.arrays.counts, offline.arrays.counts)
    assert bench.statistics.counters[:, Counter.EARLY].sum() == 0
    assert (recorded.time_ns >= recorded.stamp_ns).all()


def test_a_network_breaks_and_mends_while_the_loop_runs(loop_bench):
    bench = loop_bench()
    begun(bench)
    bench.start()
    for number, faults in enumerate([(), (fault("loss", share=1.0),), (fault("loss", share=1.0, on="other"),)]):
        bench.network.set_faults(faults)
        bench.await_turns()
        bench.network.rest()
        assert bench.network.arrays.befallen[0] == (number == 1)
        bench.put(0, time.monotonic_ns() + MS, number)
        await_true(lambda: is_idle(bench))
    assert bench.received()[:, 1].tolist() == [0, 2]
    assert bench.network.arrays.counts[0, NetworkCount.LOST] == 1


def test_what_is_held_is_late_by_the_time_at_which_it_is_due(loop_bench):
    bench = loop_bench(late_limit_ns=20_000 * MS)
    bench.network.set_faults([fault("delay", delay_ms=30.0, jitter_ms=0.0)])
    begun(bench)
    due_ns = time.monotonic_ns() + MS
    bench.put(0, due_ns)
    bench.start()
    bench.await_handled(1)
    assert bench.statistics.counters[0, Counter.LAST_SEND_NS] >= due_ns + 30 * MS
    assert bench.statistics.counters[0, Counter.LAST_DEADLINE_NS] == due_ns + 30 * MS


@pytest.fixture
def transmitter():
    with Transmitter(TransmitSpec(late_policy="send", scheduling="plain"), flows=2, capacity=64, faults=4, seed=5) as made:
        yield made


def to(receiver, name):
    target = {"source": "127.0.0.1", "source_port": 0, "destination": "127.0.0.1", "destination_port": receiver.getsockname()[1]}
    return FlowSpec(name=name, socket=SocketSpec(**target), packet_rate_hz=100.0)


def test_what_is_held_of_a_removed_flow_does_not_go_to_the_one_that_takes_its_row(transmitter, loop_bench):
    receiver = loop_bench().receiver
    transmitter.set_faults([fault("delay", delay_ms=2000.0, jitter_ms=0.0, on="one")])
    transmitter.set_epoch(time.monotonic_ns())
    transmitter.start()
    row = transmitter.add_flow(to(receiver, "one/data"))
    push(transmitter.rings, row, time.monotonic_ns(), 0, np.full(8, 1, np.uint8), 8)
    await_true(lambda: transmitter.network.arrays.pool[Pool.COUNT] == 1)
    transmitter.remove_flow(row)
    assert transmitter.add_flow(to(receiver, "two/data")) == row
    push(transmitter.rings, row, time.monotonic_ns() + 2100 * MS, 0, np.full(8, 2, np.uint8), 8)
    await_true(lambda: transmitter.is_idle)
    receiver.settimeout(GROSS_LIMIT_S)
    assert receiver.recv(64) == bytes([2] * 8)
    assert transmitter.statistics.counters[row, Counter.PACKETS] == 1


def test_a_flow_whose_datagrams_are_lost_is_not_silent(transmitter, loop_bench):
    receiver = loop_bench().receiver
    transmitter.set_faults([fault("loss", share=1.0)])
    transmitter.set_epoch(time.monotonic_ns())
    row = transmitter.add_flow(to(receiver, "one/data"))
    transmitter.start()
    assert transmitter.last_due_ns(row) == 0
    due_ns = time.monotonic_ns() + MS
    push(transmitter.rings, row, due_ns, 0, np.full(8, 1, np.uint8), 8)
    await_true(lambda: transmitter.is_idle)
    assert transmitter.last_due_ns(row) == due_ns
    assert transmitter.statistics.counters[row, Counter.PACKETS] == 0


def test_more_faults_than_there_is_room_for_are_refused(transmitter):
    with pytest.raises(ConfigError, match="faults that act or will must be at most 4 in this run, got 5"):
        transmitter.set_faults([fault("loss", seed=seed) for seed in range(5)])
