"""A ring of datagrams of many flows between one producer and one consumer."""

import os
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilsim.compilation.jit import kernel
from hilsim.transmit.packet_queue import allocate_packet_queue, put, release, take, waiting

PAYLOAD = np.arange(64, dtype=np.uint8)


@kernel
def _produce(queue, count, row):
    for number in range(count):
        size = 1 + number % row.size
        for i in range(size):
            row[i] = (number + i) & 0xFF
        while not put(queue, number % 7, number, -number, row, size):
            pass


@kernel
def _consume(queue, count):
    torn = 0
    slots = queue.time_ns.size
    for number in range(count):
        while waiting(queue) == 0:
            pass
        slot = number % slots
        is_whole = queue.time_ns[slot] == number and queue.stamp_ns[slot] == -number and queue.flow[slot] == number % 7
        is_whole = is_whole and queue.size[slot] == 1 + number % queue.payload.shape[1]
        for i in range(queue.size[slot]):
            is_whole = is_whole and queue.payload[slot, i] == (number + i) & 0xFF
        torn += not is_whole
        release(queue, 1)
    return torn


def put_numbers(queue, numbers):
    return [bool(put(queue, number % 3, 10 * number, 10 * number + 1, np.full(4, number, np.uint8), 4)) for number in numbers]


@pytest.mark.extended
def test_no_datagram_is_torn_or_lost_between_two_threads():
    queue = allocate_packet_queue(8, 200)
    count = 2_000 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 300_000
    _produce(queue, 0, np.zeros(200, np.uint8))  # compile before the threads start
    _consume(queue, 0)
    torn = []
    producer = threading.Thread(target=_produce, args=(queue, count, np.zeros(200, np.uint8)))
    consumer = threading.Thread(target=lambda: torn.append(_consume(queue, count)))
    consumer.start()
    producer.start()
    producer.join()
    consumer.join()
    assert torn == [0]
    assert (queue.head[0], queue.tail[0], waiting(queue)) == (count, count, 0)


def test_datagrams_are_taken_in_order_with_all_that_was_put():
    queue = allocate_packet_queue(4, 64)
    assert put(queue, 5, 1000, 900, PAYLOAD, 64)
    assert put(queue, 2, 800, 700, PAYLOAD[3:], 2)
    assert waiting(queue) == 2
    taken = take(queue, 10)
    assert (taken.flow.tolist(), taken.time_ns.tolist(), taken.stamp_ns.tolist(), taken.size.tolist()) == ([5, 2], [1000, 800], [900, 700], [64, 2])
    assert taken.payload[0].tobytes() == bytes(range(64))
    assert taken.payload[1, :2].tolist() == [3, 4]
    assert waiting(queue) == 0


def test_a_full_packet_queue_refuses_and_keeps_what_it_has():
    queue = allocate_packet_queue(3, 8)
    assert put_numbers(queue, range(5)) == [True, True, True, False, False]
    assert take(queue, 10).time_ns.tolist() == [0, 10, 20]


def test_a_slot_is_used_again_once_its_datagram_was_taken():
    queue = allocate_packet_queue(3, 8)
    put_numbers(queue, range(3))
    assert take(queue, 2).time_ns.tolist() == [0, 10]
    assert put_numbers(queue, range(3, 6)) == [True, True, False]
    assert take(queue, 10).payload[:, 0].tolist() == [2, 3, 4]


def test_taken_packets_are_copies():
    queue = allocate_packet_queue(2, 8)
    put_numbers(queue, [1, 2])
    taken = take(queue, 2)
    put_numbers(queue, [3, 4])
    assert (taken.time_ns.tolist(), taken.payload[:, 0].tolist()) == ([10, 20], [1, 2])


def test_no_more_than_asked_for_is_taken_and_nothing_of_an_empty_packet_queue():
    queue = allocate_packet_queue(8, 8)
    put_numbers(queue, range(5))
    assert [take(queue, limit).size.size for limit in (0, 2, 10, 10)] == [0, 2, 3, 0]


def test_a_datagram_larger_than_the_slots_is_refused():
    queue = allocate_packet_queue(2, 16)
    assert not put(queue, 0, 0, 0, PAYLOAD, 17)
    assert put(queue, 0, 0, 0, PAYLOAD, 16)
    assert waiting(queue) == 1


def test_an_empty_datagram_is_one():
    queue = allocate_packet_queue(2, 16)
    assert put(queue, 1, 5, 6, PAYLOAD[:0], 0)
    assert take(queue, 1).size.tolist() == [0]


@given(slots=st.integers(1, 9), steps=st.lists(st.tuples(st.booleans(), st.integers(0, 12)), max_size=40))
def test_whatever_is_put_and_taken_it_is_a_queue_of_so_many_slots(slots, steps):
    queue, model, number = allocate_packet_queue(slots, 8), [], 0
    for is_put, count in steps:
        if is_put:
            for accepted in put_numbers(queue, range(number, number + count)):
                assert accepted == (len(model) < slots)
                if accepted:
                    model.append(number)
                number += 1
        else:
            taken = take(queue, count)
            assert taken.time_ns.tolist() == [10 * each for each in model[:count]]
            assert taken.payload[:, 3].tolist() == [each & 0xFF for each in model[:count]]
            del model[:count]
        assert waiting(queue) == len(model)


@pytest.mark.parametrize(
    ("slots", "capacity", "fault"), [(0, 8, "slots must be 1 to 1048576, got 0"), (8, 65_536, "capacity must be 1 to 65535 bytes, got 65536")]
)
def test_an_impossible_size_is_refused(slots, capacity, fault):
    with pytest.raises(ValueError, match=fault):
        allocate_packet_queue(slots, capacity)
