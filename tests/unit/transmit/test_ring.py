"""Rings between one producer and one consumer."""

import os
import threading

import numpy as np
import pytest

from hilsim.compilation.atomics import load_acquire, store_release
from hilsim.compilation.jit import kernel
from hilsim.transmit.ring import allocate_rings, clear, depth, push
from tests.rings import peek

PAYLOAD = np.arange(32, dtype=np.uint8)


@kernel
def _produce(rings, flow, count, row):
    for number in range(count):
        for i in range(row.size):
            row[i] = (number + i) & 0xFF
        while not push(rings, flow, number, -number, row, row.size):
            pass


@kernel
def _consume(rings, flow, count):
    torn = 0
    slots = rings.deadline_ns.shape[1]
    for number in range(count):
        while load_acquire(rings.tail, (flow, 0)) <= number:
            pass
        slot = number % slots
        is_whole = rings.deadline_ns[flow, slot] == number and rings.pose_ns[flow, slot] == -number
        for i in range(rings.size[flow, slot]):
            is_whole = is_whole and rings.payload[flow, slot, i] == (number + i) & 0xFF
        torn += not is_whole
        store_release(rings.head, (flow, 0), number + 1)
    return torn


def test_no_datagram_is_torn_or_lost_between_two_threads():
    rings = allocate_rings(2, 8, 256)
    count = 2_000 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 300_000
    _produce(rings, 0, 0, np.zeros(256, np.uint8))  # compile before the threads start
    _consume(rings, 0, 0)
    torn = []
    producer = threading.Thread(target=_produce, args=(rings, 1, count, np.zeros(256, np.uint8)))
    consumer = threading.Thread(target=lambda: torn.append(_consume(rings, 1, count)))
    consumer.start()
    producer.start()
    producer.join()
    consumer.join()
    assert torn == [0]
    assert rings.head[1, 0] == count


def test_datagrams_wait_in_order_with_their_times_and_bytes():
    rings = allocate_rings(2, 4, 64)
    assert push(rings, 1, 1000, 900, PAYLOAD, 32)
    assert push(rings, 1, 2000, 1900, PAYLOAD, 5)
    waiting = peek(rings, 1)
    assert [(each.deadline_ns, each.pose_ns, each.payload) for each in waiting] == [(1000, 900, bytes(range(32))), (2000, 1900, bytes(range(5)))]


def test_a_push_into_one_flow_leaves_the_others_alone():
    rings = allocate_rings(3, 4, 64)
    push(rings, 1, 1000, 900, PAYLOAD, 32)
    assert [depth(rings, flow) for flow in range(3)] == [0, 1, 0]


def test_a_full_ring_refuses_and_keeps_what_it_has():
    rings = allocate_rings(1, 4, 64)
    accepted = [push(rings, 0, number, 0, PAYLOAD, 32) for number in range(6)]
    assert accepted == [True] * 4 + [False] * 2
    assert [each.deadline_ns for each in peek(rings, 0)] == [0, 1, 2, 3]


def test_a_slot_is_used_again_once_its_datagram_was_taken():
    rings = allocate_rings(1, 4, 64)
    for number in range(4):
        push(rings, 0, number, 0, PAYLOAD, 32)
    rings.head[0, 0] += 1
    assert push(rings, 0, 4, 0, PAYLOAD, 32)
    assert [each.deadline_ns for each in peek(rings, 0)] == [1, 2, 3, 4]


def test_a_datagram_larger_than_the_slots_is_refused():
    rings = allocate_rings(1, 4, 16)
    assert not push(rings, 0, 0, 0, PAYLOAD, 17)
    assert depth(rings, 0) == 0


def test_a_cleared_ring_is_empty():
    rings = allocate_rings(1, 4, 64)
    push(rings, 0, 0, 0, PAYLOAD, 32)
    clear(rings, 0)
    assert peek(rings, 0) == []


def test_counts_of_different_flows_stand_in_different_cache_lines():
    rings = allocate_rings(3, 4, 64)
    addresses = [array[flow].ctypes.data for array in (rings.head, rings.tail) for flow in range(3)]
    assert all(address % 64 == 0 for address in addresses)
    assert len(set(addresses)) == 6


def test_payload_memory_begins_at_a_page():
    assert allocate_rings(3, 5, 1206).payload.ctypes.data % 4096 == 0


def test_a_ring_of_one_slot_is_refused():
    with pytest.raises(ValueError, match=r"slots must be 2 to 65536, got 1"):
        allocate_rings(1, 1, 64)
