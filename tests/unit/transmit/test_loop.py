"""The sending loop, run for real on loopback; nothing here depends on how fast the machine is."""

import ctypes
import errno
import os
import socket
import struct
import time

import numpy as np
import pytest

from hilsim.transmit.loop import LatePolicy, LoopEnd
from hilsim.transmit.statistics import Counter, bin_index

MS = 1_000_000
SO_TIMESTAMPNS = 35


def counter(bench, which, flow=0):
    return int(bench.statistics.counters[flow, which])


def test_datagrams_of_many_flows_leave_in_the_order_of_their_deadlines(loop_bench):
    bench = loop_bench(flows=20)
    generator = np.random.default_rng(3)
    start_ns = time.monotonic_ns() + 5 * MS
    for flow in range(20):
        for number, offset_ns in enumerate(np.sort(generator.integers(0, 50 * MS, 30))):
            bench.put(flow, start_ns + int(offset_ns), number)
    bench.start()
    bench.await_handled(600)
    arrived = bench.received()
    assert len(arrived) == 600
    assert np.all(np.diff(arrived[:, 2]) >= 0)


@pytest.mark.parametrize("spin_ns", [0, 50_000])
def test_no_datagram_leaves_before_its_deadline(loop_bench, spin_ns):
    bench = loop_bench(spin_ns=spin_ns)
    bench.receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    start_ns = time.monotonic_ns() + 5 * MS
    deadlines_ns = [start_ns + number * 1_327_104 for number in range(60)]
    for number, deadline_ns in enumerate(deadlines_ns):
        bench.put(0, deadline_ns, number)
    bench.start()
    bench.await_handled(60)
    clock_offset_ns = time.clock_gettime_ns(time.CLOCK_REALTIME) - time.monotonic_ns()  # at most a microsecond too small
    for deadline_ns in deadlines_ns:
        _, ancillary, _, _ = bench.receiver.recvmsg(64, 64)
        seconds, nanoseconds = struct.unpack("qq", ancillary[0][2])  # when the kernel took it, by its own clock
        assert seconds * 1_000_000_000 + nanoseconds - clock_offset_ns >= deadline_ns - 5000
    assert counter(bench, Counter.EARLY) == 0


def test_hopelessly_late_datagrams_are_dropped_and_counted_instead_of_sent_in_a_burst(loop_bench):
    bench = loop_bench(policy=LatePolicy.SKIP, late_limit_ns=10_000 * MS)
    past_ns = time.monotonic_ns() - 20_000 * MS
    for number in range(50):
        bench.put(0, past_ns + number, number)
    bench.put(0, time.monotonic_ns() + 20 * MS, 50)
    bench.start()
    bench.await_handled(51)
    assert bench.received()[:, 1].tolist() == [50]
    assert (counter(bench, Counter.LATE), counter(bench, Counter.DROPPED), counter(bench, Counter.PACKETS)) == (50, 50, 1)


def test_datagrams_of_a_silent_flow_are_counted_in_place_of_being_sent_and_are_never_late(loop_bench):
    bench = loop_bench(flows=2, policy=LatePolicy.STOP, late_limit_ns=10_000 * MS)
    bench.table.is_silent[0] = 1
    for number in range(50):
        bench.put(0, time.monotonic_ns() - 20_000 * MS + number, number)
    bench.put(1, time.monotonic_ns(), 50)
    bench.start()
    bench.await_handled(51)
    assert bench.received()[:, 1].tolist() == [50]
    assert [counter(bench, which) for which in (Counter.SILENCED, Counter.LATE, Counter.PACKETS, Counter.LAST_SEND_NS)] == [50, 0, 0, 0]
    bench.table.is_silent[0] = 0
    bench.put(0, time.monotonic_ns() + MS, 51)
    bench.await_handled(52)
    assert (counter(bench, Counter.SILENCED), counter(bench, Counter.PACKETS)) == (50, 1)


def test_late_datagrams_are_sent_and_counted_when_that_is_the_policy(loop_bench):
    bench = loop_bench(policy=LatePolicy.SEND, late_limit_ns=10_000 * MS)
    past_ns = time.monotonic_ns() - 20_000 * MS
    for number in range(50):
        bench.put(0, past_ns + number, number)
    bench.start()
    bench.await_handled(50)
    assert bench.received()[:, 1].tolist() == list(range(50))
    assert (counter(bench, Counter.LATE), counter(bench, Counter.DROPPED)) == (50, 0)


def test_a_late_datagram_ends_the_loop_when_that_is_the_policy(loop_bench):
    bench = loop_bench(policy=LatePolicy.STOP, late_limit_ns=10_000 * MS)
    bench.put(0, time.monotonic_ns() - 20_000 * MS)
    bench.start()
    bench.thread.join(30)
    assert bench.end == LoopEnd.TOO_LATE
    assert len(bench.received()) == 0


def test_a_datagram_within_the_limit_is_not_late(loop_bench):
    bench = loop_bench(policy=LatePolicy.SKIP)
    bench.put(0, time.monotonic_ns() - 5 * MS)
    bench.start()
    bench.await_handled(1)
    assert (counter(bench, Counter.LATE), counter(bench, Counter.PACKETS)) == (0, 1)


def test_a_late_packet_into_an_empty_ring_is_an_underrun(loop_bench):
    bench = loop_bench()
    bench.start()
    bench.await_turns()
    bench.put(0, time.monotonic_ns() - 1)
    bench.await_handled(1)
    assert counter(bench, Counter.UNDERRUN) == 1


def test_a_packet_that_waited_in_a_ring_is_no_underrun_however_late_it_is_sent(loop_bench):
    bench = loop_bench()
    for number in range(10):
        bench.put(0, time.monotonic_ns() - 5 * MS, number)
    bench.start()
    bench.await_handled(10)
    assert counter(bench, Counter.UNDERRUN) == 0


def test_a_closed_port_does_not_disturb_an_unconnected_socket(loop_bench):
    bench = loop_bench()
    address = bench.receiver.getsockname()
    bench.receiver.close()
    bench.point(0, bench.sender, address)
    start_ns = time.monotonic_ns()
    for number in range(50):
        bench.put(0, start_ns + number * MS // 2, number)
    bench.start()
    bench.await_handled(50)
    assert (counter(bench, Counter.PACKETS), counter(bench, Counter.SEND_ERROR)) == (50, 0)


def test_refused_datagrams_are_counted_by_errno_and_the_stream_continues(loop_bench):
    bench = loop_bench(flows=2)
    closed = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    closed.bind(("127.0.0.1", 0))
    connected = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    connected.connect(closed.getsockname())
    closed.close()
    bench.point(0, connected, None)
    start_ns = time.monotonic_ns()
    for number in range(40):
        bench.put(0, start_ns + number * MS // 2, number)
        bench.put(1, start_ns + number * MS // 2, number)
    bench.start()
    bench.await_handled(80)
    connected.close()
    refused = int(bench.statistics.send_errors[0, errno.ECONNREFUSED])
    assert refused >= 10  # an ICMP answer makes the next call fail: every second one
    assert counter(bench, Counter.SEND_ERROR) == refused
    assert counter(bench, Counter.PACKETS) == 40 - refused
    assert bench.received()[:, 1].tolist() == list(range(40))  # the other flow lost nothing


def test_a_closed_socket_is_counted_as_a_bad_descriptor(loop_bench):
    bench = loop_bench()
    bench.table.descriptor[0, :] = 1_000_000
    bench.put(0, time.monotonic_ns())
    bench.start()
    bench.await_handled(1)
    assert bench.statistics.send_errors[0, errno.EBADF] == 1


def test_the_loop_stops_soon_while_it_waits_for_a_far_deadline(loop_bench, wall_time):
    bench = loop_bench()
    bench.put(0, time.monotonic_ns() + 600_000 * MS)
    bench.start()
    bench.await_turns()
    asked = time.monotonic()
    bench.stop()
    assert wall_time.awake_s(asked, time.monotonic()) < 1.0
    assert bench.end == LoopEnd.STOPPED


def test_a_datagram_put_while_the_loop_waits_for_a_later_one_leaves_first(loop_bench):
    bench = loop_bench(flows=2)
    bench.put(0, time.monotonic_ns() + 600_000 * MS)
    bench.start()
    bench.await_turns()
    bench.put(1, time.monotonic_ns() + 10 * MS, 7)
    bench.await_handled(1)
    assert bench.received()[:, :2].tolist() == [[1, 7]]


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="the loop is Python then, and needs the lock itself")
def test_packets_leave_while_a_thread_holds_the_interpreter_lock(loop_bench):
    bench = loop_bench()
    bench.start()
    bench.await_turns()
    start_ns = time.monotonic_ns() + 10 * MS
    for number in range(50):
        bench.put(0, start_ns + number * MS, number)
    ctypes.PyDLL(None).usleep(900_000)  # PyDLL keeps the lock during the call
    held_until_ns = time.monotonic_ns()
    bench.stop()
    assert counter(bench, Counter.PACKETS) == 50
    assert counter(bench, Counter.LAST_SEND_NS) < held_until_ns - 200 * MS


def test_the_histograms_hold_what_the_last_send_says(loop_bench):
    bench = loop_bench()
    pose_ns = time.monotonic_ns() - 3 * MS
    bench.put(0, time.monotonic_ns(), pose_ns=pose_ns)
    bench.start()
    bench.await_handled(1)
    row = bench.statistics.counters[0]
    lateness_ns = row[Counter.LAST_SEND_NS] - row[Counter.LAST_DEADLINE_NS]
    assert bench.statistics.lateness[0, bin_index(lateness_ns)] == 1
    assert bench.statistics.pose_latency[0, bin_index(row[Counter.LAST_SEND_NS] - pose_ns)] == 1
    assert (row[Counter.LATENESS_SUM_NS], row[Counter.LATENESS_MAX_NS], row[Counter.BYTES]) == (lateness_ns, lateness_ns, 24)


def test_the_interval_error_is_the_difference_of_send_and_deadline_intervals(loop_bench):
    bench = loop_bench()
    bench.start()
    bench.put(0, time.monotonic_ns() - 7 * MS)
    bench.await_handled(1)
    row = bench.statistics.counters[0].copy()
    bench.put(0, time.monotonic_ns() + 4 * MS)
    bench.await_handled(2)
    after = bench.statistics.counters[0]
    sent_ns = after[Counter.LAST_SEND_NS] - row[Counter.LAST_SEND_NS]
    error_ns = abs(sent_ns - (after[Counter.LAST_DEADLINE_NS] - row[Counter.LAST_DEADLINE_NS]))
    assert bench.statistics.interval_error[0].sum() == 1
    assert bench.statistics.interval_error[0, bin_index(error_ns)] == 1
    assert after[Counter.INTERVAL_ERROR_SUM_NS] == error_ns


def test_a_datagram_without_a_pose_has_no_pose_latency(loop_bench):
    bench = loop_bench()
    bench.put(0, time.monotonic_ns())
    bench.start()
    bench.await_handled(1)
    assert bench.statistics.pose_latency.sum() == 0


def test_an_inactive_flow_keeps_its_datagrams(loop_bench):
    bench = loop_bench(flows=2)
    bench.table.active[0] = 0
    bench.put(0, time.monotonic_ns(), 1)
    bench.put(1, time.monotonic_ns(), 2)
    bench.start()
    bench.await_handled(1)
    bench.await_turns()
    assert bench.received()[:, :2].tolist() == [[1, 2]]
    assert counter(bench, Counter.PACKETS, flow=0) == 0
