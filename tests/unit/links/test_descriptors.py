"""Reading from a descriptor into a stream, and waiting, as the nogil loop does it."""

import errno
import os
import socket

import numpy as np
import pytest

from hilsim.protocols.mavlink.frames import allocate_stream, next_frame, pending
from hilsim.transmit.links.descriptors import Outcome, Readiness, allocate_waits, await_input, outcome_of, pass_on, receive
from hilsim.transmit.links.line import SerialSpec
from hilsim.transmit.links.serial_port import open_serial
from hilsim.transmit.packet_queue import allocate_packet_queue, take, waiting
from tests.mavlink import hil_sensor_bytes, mixture

MS = 1_000_000


@pytest.fixture
def line(cable):
    """A flight controller's end, and hilsim's port."""
    plug = cable()
    port = open_serial(SerialSpec(port=plug.device))
    yield plug, port.descriptor
    port.close()


def test_bytes_received_over_a_line_are_passed_on_unchanged(line):
    plug, descriptor = line
    stream, queue = allocate_stream(), allocate_packet_queue(16, 280)
    data = b"".join(mixture())
    for at in range(0, len(data), 50):
        plug.write(data[at : at + 50], to=descriptor)
        assert receive(stream, descriptor, is_stream=True) == Outcome.DONE
        while (frame := next_frame(stream)).state:
            assert pass_on(stream, frame, queue, 1000 + at)
    taken = take(queue, 16)
    assert [taken.payload[i, :size].tobytes() for i, size in enumerate(taken.size)] == mixture()
    assert taken.flow.tolist() == [0, 107, 163, 107, 110, 0]
    assert taken.time_ns.tolist() == sorted(taken.time_ns.tolist())


def test_a_full_packet_queue_refuses_a_frame(line):
    plug, descriptor = line
    stream, queue = allocate_stream(), allocate_packet_queue(1, 280)
    plug.write(hil_sensor_bytes() * 2, to=descriptor)
    receive(stream, descriptor, is_stream=True)
    assert [bool(pass_on(stream, next_frame(stream), queue, 0)) for _ in range(2)] == [True, False]
    assert waiting(queue) == 1


def test_a_silent_line_is_full_and_an_unplugged_one_is_gone(line):
    plug, descriptor = line
    stream = allocate_stream()
    assert receive(stream, descriptor, is_stream=True) == Outcome.FULL
    plug.pull()
    assert receive(stream, descriptor, is_stream=True) == Outcome.GONE


def test_a_controllers_end_sees_that_the_port_was_closed(cable):
    plug = cable()
    open_serial(SerialSpec(port=plug.device)).close()
    assert receive(allocate_stream(), plug.master, is_stream=True) == Outcome.GONE  # EIO, as of a USB device that is gone


def test_no_more_is_read_than_there_is_room_for(line):
    plug, descriptor = line
    stream = allocate_stream(560)
    plug.write(bytes(1000), to=descriptor)
    assert receive(stream, descriptor, is_stream=True) == Outcome.DONE
    assert pending(stream) == 560
    assert receive(stream, descriptor, is_stream=True) == Outcome.DONE
    assert pending(stream) == 560
    assert len(os.read(descriptor, 1000)) == 440


def test_a_closed_connection_is_gone():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(0)
        assert receive(allocate_stream(), ours.fileno(), is_stream=True) == Outcome.FULL
        theirs.close()
        assert receive(allocate_stream(), ours.fileno(), is_stream=True) == Outcome.GONE


def test_a_refused_datagram_and_an_empty_one_are_not_the_end_of_a_udp_link(udp_socket):
    ours, theirs = udp_socket(), udp_socket()
    ours.settimeout(0)
    ours.connect(theirs.getsockname())
    theirs.connect(ours.getsockname())
    theirs.send(b"")
    stream = allocate_stream()
    assert receive(stream, ours.fileno(), is_stream=False) == Outcome.DONE
    theirs.close()
    ours.send(b"to nobody")
    assert await_input(allocate_waits(), ours.fileno(), -1, 10_000 * MS) & Readiness.LINK_BROKEN
    assert receive(stream, ours.fileno(), is_stream=False) == Outcome.FULL
    assert receive(stream, ours.fileno(), is_stream=False) == Outcome.FULL


@pytest.mark.parametrize("number", [errno.EIO, errno.ENODEV, errno.ENXIO, errno.EBADF, errno.EPIPE, errno.ECONNRESET])
def test_an_error_of_an_unplugged_device_or_a_lost_connection_is_gone(number):
    assert outcome_of(-number, is_stream=True) == Outcome.GONE
    assert outcome_of(-number, is_stream=False) == Outcome.GONE


@pytest.mark.parametrize(
    ("result", "of_a_stream", "of_datagrams"),
    [
        (1, Outcome.DONE, Outcome.DONE),
        (0, Outcome.GONE, Outcome.DONE),
        (-errno.EAGAIN, Outcome.FULL, Outcome.FULL),
        (-errno.EINTR, Outcome.FULL, Outcome.FULL),
        (-errno.ECONNREFUSED, Outcome.GONE, Outcome.FULL),
        (-errno.ENOBUFS, Outcome.GONE, Outcome.FULL),
    ],
)
def test_what_a_result_means(result, of_a_stream, of_datagrams):
    assert (outcome_of(result, is_stream=True), outcome_of(result, is_stream=False)) == (of_a_stream, of_datagrams)


def test_waiting_ends_with_bytes_a_broken_line_or_a_word_from_another_thread(line):
    plug, descriptor = line
    waits, wake = allocate_waits(), os.eventfd(0)
    try:
        assert await_input(waits, descriptor, wake, 0) == 0
        assert await_input(waits, descriptor, wake, 2 * MS) == 0
        os.eventfd_write(wake, 1)
        assert await_input(waits, descriptor, wake, 10_000 * MS) == Readiness.WOKEN
        os.eventfd_read(wake)
        plug.write(b"x")
        assert await_input(waits, descriptor, wake, 10_000 * MS) == Readiness.LINK_READABLE
        assert await_input(waits, descriptor, -1, 10_000 * MS) == Readiness.LINK_READABLE
        os.read(descriptor, 1)
        plug.pull()
        assert await_input(waits, descriptor, wake, 10_000 * MS) & Readiness.LINK_BROKEN
        assert await_input(waits, -1, wake, 0) == 0
    finally:
        os.close(wake)


def test_the_memory_of_waiting_is_two_pollfds_and_a_timespec():
    assert allocate_waits().words.nbytes == 2 * 8 + 16
    assert np.dtype([("fd", "<i4"), ("events", "<i2"), ("revents", "<i2")]).itemsize == 8
