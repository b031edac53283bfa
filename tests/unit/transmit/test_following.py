"""The sending loop with followers: copies of what was sent, and of nothing else, on a queue each."""

import contextlib
import socket
import time

import numpy as np

from hilsim.compilation.atomics import publish
from hilsim.transmit.loop import FollowingState
from hilsim.transmit.packet_queue import queue_of, release, take
from hilsim.transmit.ring import push
from hilsim.transmit.specs import FlowSpec, SocketSpec, TransmitSpec
from hilsim.transmit.statistics import Counter
from hilsim.transmit.transmitter import Transmitter

MS = 1_000_000


def follow(bench, state=FollowingState.ON, queue=0):
    publish(bench.following.state[queue], 0, int(state))


def taken(bench, queue=0):
    return take(queue_of(bench.following.queues, queue), 1 << 16)


def missed(bench):
    return bench.following.missed[:, 0].tolist()


def words(datagrams):
    """``int64[n, 3]``: flow, number and deadline in each payload."""
    return np.ascontiguousarray(datagrams.payload[:, :24]).view(np.int64)


def put_many(bench, flows, count, start_ns):
    for number in range(count):
        for flow in range(flows):
            bench.put(flow, start_ns + number * MS // 4 + flow, number)


def test_the_queue_holds_what_arrived_in_its_order_with_its_deadlines(loop_bench):
    bench = loop_bench(flows=3, queues=1, queue_slots=256)
    follow(bench)
    put_many(bench, 3, 50, time.monotonic_ns() + 5 * MS)
    bench.start()
    bench.await_handled(150)
    bench.stop()
    recorded = taken(bench)
    assert np.array_equal(words(recorded), bench.received())
    assert np.array_equal(recorded.flow, words(recorded)[:, 0] + 100)  # the number of each flow, which is not its row
    assert np.array_equal(recorded.stamp_ns, words(recorded)[:, 2])
    assert set(recorded.size) == {24}
    assert np.all(recorded.time_ns >= recorded.stamp_ns)
    assert np.all(np.diff(recorded.time_ns) >= 0)
    assert recorded.time_ns[recorded.flow == 102][-1] == bench.statistics.counters[2, Counter.LAST_SEND_NS]
    assert missed(bench) == [0]


def test_nothing_is_queued_and_nothing_counted_without_followers(loop_bench):
    bench = loop_bench(queues=1, queue_slots=16)
    put_many(bench, 1, 10, time.monotonic_ns())
    bench.start()
    bench.await_handled(10)
    bench.stop()
    assert taken(bench).size.size == 0
    assert missed(bench) == [0]


def test_a_full_queue_is_counted_and_delays_nothing(loop_bench):
    bench = loop_bench(queues=1, queue_slots=16)
    follow(bench)
    put_many(bench, 1, 60, time.monotonic_ns())
    bench.start()
    bench.await_handled(60)
    bench.stop()
    assert bench.received()[:, 1].tolist() == list(range(60))
    assert words(taken(bench))[:, 1].tolist() == list(range(16))
    assert missed(bench) == [60 - 16]


def test_a_queue_whose_consumer_keeps_up_goes_round_and_loses_nothing(loop_bench):
    bench = loop_bench(queues=1, queue_slots=8)
    follow(bench)
    bench.start()
    seen = []
    for number in range(60):
        bench.put(0, time.monotonic_ns(), number)
        bench.await_handled(number + 1)
        seen += words(taken(bench))[:, 1].tolist()
    bench.stop()
    assert seen + words(taken(bench))[:, 1].tolist() == list(range(60))
    assert missed(bench) == [0]


def test_a_follower_that_has_ended_is_only_counted(loop_bench):
    bench = loop_bench(queues=1, queue_slots=16)
    follow(bench, FollowingState.ENDED)
    put_many(bench, 1, 10, time.monotonic_ns())
    bench.start()
    bench.await_handled(10)
    bench.stop()
    assert taken(bench).size.size == 0
    assert missed(bench) == [10]


def test_a_refused_datagram_is_neither_followed_nor_missing(loop_bench):
    bench = loop_bench(flows=2, queues=1, queue_slots=32)
    bench.table.descriptor[0, :] = 1_000_000
    follow(bench)
    put_many(bench, 2, 5, time.monotonic_ns())
    bench.start()
    bench.await_handled(10)
    bench.stop()
    assert taken(bench).flow.tolist() == [101] * 5
    assert missed(bench) == [0]


def test_following_begins_and_ends_while_packets_flow(loop_bench):
    bench = loop_bench(queues=1, queue_slots=64)
    bench.start()
    numbers = iter(range(100))
    recorded = []
    for state in (FollowingState.OFF, FollowingState.ON, FollowingState.OFF, FollowingState.ON):
        follow(bench, state)
        bench.await_turns()
        for _ in range(10):
            number = next(numbers)
            bench.put(0, time.monotonic_ns(), number)
            bench.await_handled(number + 1)
        bench.await_turns()
        recorded.append(words(taken(bench))[:, 1].tolist())
    assert recorded == [[], list(range(10, 20)), [], list(range(30, 40))]


def test_a_queue_without_a_consumer_costs_the_other_followers_nothing(loop_bench):
    bench = loop_bench(flows=2, queues=3, queue_slots=16)
    for queue in (0, 2):
        follow(bench, queue=queue)
    bench.start()
    seen = []
    for number in range(50):
        for flow in range(2):
            bench.put(flow, time.monotonic_ns(), number)
        bench.await_handled(2 * number + 2)
        bench.await_turns()
        seen += words(taken(bench, 2))[:, 1].tolist()
    bench.stop()
    assert sorted(seen) == sorted(2 * list(range(50)))
    assert words(taken(bench, 0))[:, 1].tolist() == [number for number in range(8) for _ in range(2)]
    assert taken(bench, 1).size.size == 0
    assert missed(bench) == [100 - 16, 0, 0]
    assert len(bench.received()) == 100


def test_without_a_follower_the_loop_sends(loop_bench):
    bench = loop_bench()
    put_many(bench, 1, 10, time.monotonic_ns())
    bench.start()
    bench.await_handled(10)
    bench.stop()
    assert bench.received()[:, 1].tolist() == list(range(10))


def test_a_number_is_given_again_only_when_no_queue_holds_anything_of_its_flow():
    with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as receiver:
        receiver.bind(("127.0.0.1", 0))
        target = SocketSpec(source="127.0.0.1", source_port=0, destination="127.0.0.1", destination_port=receiver.getsockname()[1])
        with Transmitter(TransmitSpec(scheduling="plain", lock_memory=False), flows=2, capacity=64, queues=2, queue_slots=8) as transmitter:
            for queue in range(2):
                transmitter.set_following(queue, FollowingState.ON)
            row = transmitter.add_flow(FlowSpec(name="first", socket=target, packet_rate_hz=10))
            first = transmitter.flow_number(row)
            transmitter.start()
            assert push(transmitter.rings, row, time.monotonic_ns(), 0, np.zeros(64, np.uint8), 64)
            assert receiver.recv(100)
            transmitter.remove_flow(row)
            release(transmitter.queue(0), 1)
            second = transmitter.flow_number(transmitter.add_flow(FlowSpec(name="second", socket=target, packet_rate_hz=10)))
            release(transmitter.queue(1), 1)
            third = transmitter.flow_number(transmitter.add_flow(FlowSpec(name="third", socket=target, packet_rate_hz=10)))
            assert (second != first, third) == (True, first)


def test_a_row_used_again_has_another_number_while_the_former_one_is_on_the_queue():
    with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as receiver:
        receiver.bind(("127.0.0.1", 0))
        target = SocketSpec(source="127.0.0.1", source_port=0, destination="127.0.0.1", destination_port=receiver.getsockname()[1])
        with Transmitter(TransmitSpec(scheduling="plain", lock_memory=False), flows=2, capacity=64, queues=1, queue_slots=8) as transmitter:
            transmitter.set_following(0, FollowingState.ON)
            rows = [transmitter.add_flow(FlowSpec(name=name, socket=target, packet_rate_hz=10)) for name in ("first", "other")]
            first, other = (transmitter.flow_number(row) for row in rows)
            transmitter.start()
            assert push(transmitter.rings, rows[0], time.monotonic_ns(), 0, np.zeros(64, np.uint8), 64)
            assert receiver.recv(100)
            transmitter.remove_flow(rows[0])
            assert transmitter.add_flow(FlowSpec(name="again", socket=target, packet_rate_hz=10)) == rows[0]
            again = transmitter.flow_number(rows[0])
            assert len({first, other, again}) == 3
            transmitter.remove_flow(rows[0])
            release(transmitter.queue(0), 1)
            row = transmitter.add_flow(FlowSpec(name="once more", socket=target, packet_rate_hz=10))
            assert transmitter.flow_number(row) in {first, again}
