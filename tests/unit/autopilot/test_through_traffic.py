"""The whole way: a pseudo-terminal in place of the controller's cable, the kernels that read and write it, the packet queues, and ground stations on sockets."""

import asyncio
import os
import socket
import threading
import time

import pytest
from pymavlink.dialects.v20 import common

from hilsim.compilation.atomics import publish
from hilsim.parts.vehicle.autopilot.loop_context import ControlWord
from hilsim.parts.vehicle.autopilot.send_queue import allocate_outbox, build_pace, flush
from hilsim.parts.vehicle.ground_stations import forwarding
from hilsim.parts.vehicle.ground_stations.endpoints import Protocol, StationSpec
from hilsim.parts.vehicle.ground_stations.forwarding import forward
from hilsim.protocols.mavlink.frames import LARGEST_FRAME, FrameState, allocate_stream, next_frame
from hilsim.protocols.mavlink.messages import build_origin
from hilsim.transmit.links.descriptors import Outcome, allocate_waits, clear_wake, pass_on, receive, wake
from hilsim.transmit.links.line import SerialSpec
from hilsim.transmit.links.serial_port import open_serial
from hilsim.transmit.packet_queue import allocate_packet_queue
from tests.flight import FlyingLoop, vehicle_spec
from tests.mavlink import heartbeat_bytes, hil_sensor_bytes, mixture, packer, signing_packer

GROSS_LIMIT_S = 30
IS_STREAM = True
SENDER = build_origin(1, 200)
PACE = build_pace(line_bytes_per_s=None, station_bytes_per_s=1e6)


class Link:
    """What the nogil loop does for ground stations, a turn at a time."""

    def __init__(self, descriptor):
        self.descriptor = descriptor
        self.stream, self.outbox, self.waits = allocate_stream(), allocate_outbox(), allocate_waits()
        self.frames, self.commands = allocate_packet_queue(1024, LARGEST_FRAME), allocate_packet_queue(8, LARGEST_FRAME)
        self.arrival, self.wanted = os.eventfd(0, os.EFD_NONBLOCK), os.eventfd(0, os.EFD_NONBLOCK)

    def forward(self, *specs):
        return forward(specs, from_controller=self.frames, to_controller=self.commands, arrival_descriptor=self.arrival, link_descriptor=self.wanted)

    def turn(self):
        is_passed = False
        while receive(self.stream, self.descriptor, IS_STREAM) == Outcome.DONE:
            while (frame := next_frame(self.stream)).state != FrameState.NONE:
                is_passed |= pass_on(self.stream, frame, self.frames, time.monotonic_ns())
        if is_passed:
            wake(self.waits, self.arrival)
        clear_wake(self.waits, self.wanted)
        return flush(self.outbox, self.commands, SENDER, self.descriptor, IS_STREAM, time.monotonic_ns(), PACE)

    async def turns_until(self, holds):
        async with asyncio.timeout(GROSS_LIMIT_S):
            while not holds():
                self.turn()
                await asyncio.sleep(0)


@pytest.fixture
def link(cable):
    end = cable()
    opened = open_serial(SerialSpec(port=end.device))
    made = Link(opened.descriptor)
    made.controller = end
    yield made
    opened.close()
    os.close(made.arrival)
    os.close(made.wanted)


def taken(sock):
    came = []
    sock.settimeout(0)
    try:
        while True:
            came.append(sock.recv(1 << 16))
    except BlockingIOError:
        return came


@pytest.mark.asyncio
async def test_a_controller_that_speaks_byte_by_byte_is_heard_frame_by_frame(link, udp_socket):
    station, heard = udp_socket(), []
    async with link.forward(StationSpec(name="qgc", remote=station.getsockname())):
        for byte in b"".join(mixture()):
            link.controller.write(bytes([byte]))
            link.turn()
        await link.turns_until(lambda: heard.extend(taken(station)) or len(heard) >= 6)
    assert heard == mixture()


@pytest.mark.asyncio
async def test_two_megabytes_of_a_log_that_come_as_fast_as_a_cable_carries_them_reach_a_station_and_the_loop_loses_no_frame(
    cable, udp_socket, monkeypatch
):
    """The whole loop of a flying vehicle, in its own thread, beside a controller that writes its log without a pause."""
    monkeypatch.setattr(forwarding, "_BURST_BYTES_PER_S", 1e7)  # this station takes as much
    end, station, heard = cable(), udp_socket(), []
    mav = packer()
    sent = [common.MAVLink_log_data_message(7, 90 * number, 90, [number % 251] * 90).pack(mav) for number in range(-(-2_000_000 // 90))]
    loop = FlyingLoop(vehicle_spec()).begin()
    opened = open_serial(SerialSpec(port=end.device))
    os.set_blocking(end.master, True)
    writing = threading.Thread(target=lambda: [os.write(end.master, b"".join(sent[row : row + 30])) for row in range(0, len(sent), 30)])
    try:
        publish(loop.shared.control, ControlWord.LINK, opened.descriptor)
        async with forward(
            [StationSpec(name="qgc", remote=station.getsockname())],
            from_controller=loop.shared.to_stations,
            to_controller=loop.shared.to_controller,
            arrival_descriptor=int(loop.shared.wakes[1]),
            link_descriptor=int(loop.shared.wakes[0]),
        ):
            writing.start()
            async with asyncio.timeout(GROSS_LIMIT_S):
                while len(heard) < len(sent):
                    heard.extend(taken(station))
                    assert loop.count("UNFORWARDED_FRAMES") == 0
                    await asyncio.sleep(0)
        assert heard == sent
    finally:
        writing.join()
        loop.end()
        opened.close()


@pytest.mark.asyncio
async def test_the_largest_frame_there_is_goes_both_ways(link, udp_socket):
    station, heard, got = udp_socket(), [], []
    frame = common.MAVLink_encapsulated_data_message(1, [1 + each % 200 for each in range(253)]).pack(signing_packer())
    async with link.forward(StationSpec(name="qgc", remote=station.getsockname())) as forwarder:
        link.controller.write(frame)
        await link.turns_until(lambda: heard.extend(taken(station)) or heard)
        station.sendto(frame, ("127.0.0.1", forwarder.stations[0].port))
        await link.turns_until(lambda: got.append(link.controller.read()) or len(b"".join(got)) >= LARGEST_FRAME)
    assert (len(frame), heard, b"".join(got)) == (LARGEST_FRAME, [frame], frame)


@pytest.mark.asyncio
async def test_garbage_between_frames_reaches_no_station(link, udp_socket):
    station, heard = udp_socket(), []
    async with link.forward(StationSpec(name="qgc", remote=station.getsockname())):
        link.controller.write(
            b"nsh> \xfd\xfe" + hil_sensor_bytes() + b"\0" * 40 + hil_sensor_bytes()[20:] + heartbeat_bytes() * 20
        )  # \xfe claims 261 bytes
        await link.turns_until(lambda: heard.extend(taken(station)) or len(heard) >= 21)
    assert heard == [hil_sensor_bytes(), *[heartbeat_bytes()] * 20]


@pytest.mark.asyncio
async def test_two_stations_speak_at_once_and_the_controller_gets_whole_frames_of_both(link, udp_socket):
    sends, got = udp_socket(), []
    whole = b"".join(mixture())
    specs = StationSpec(name="udp", remote=sends.getsockname()), StationSpec(name="tcp", protocol=Protocol.TCP)
    async with link.forward(*specs) as forwarder:
        with socket.create_connection(("127.0.0.1", forwarder.stations[1].port)) as stream:
            for begin in range(0, len(whole), 97):
                stream.send(whole[begin : begin + 97])
                await asyncio.sleep(0)
                link.turn()
            for each in mixture():
                sends.sendto(each, ("127.0.0.1", forwarder.stations[0].port))
            await link.turns_until(lambda: got.append(link.controller.read()) or len(b"".join(got)) >= 2 * len(whole))
    rest, counts = b"".join(got), dict.fromkeys(mixture(), 0)
    while rest:
        frame = next(each for each in mixture() if rest.startswith(each))
        counts[frame] += 1
        rest = rest[len(frame) :]
    assert set(counts.values()) == {2}
