"""Ground stations on real sockets; the controller's side is the two packet queues."""

import asyncio
import contextlib
import os
import socket
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from hilsim.errors import LinkError
from hilsim.parts.vehicle.ground_stations.endpoints import Protocol, StationSpec
from hilsim.parts.vehicle.ground_stations.forwarding import forward
from hilsim.protocols.mavlink.frames import LARGEST_FRAME
from hilsim.transmit.packet_queue import allocate_packet_queue, put, take, waiting
from tests.mavlink import heartbeat_bytes, hil_sensor_bytes, mixture, packer, unknown_bytes

GROSS_LIMIT_S = 30
MIXTURE_IDS = [0, 107, 163, 107, 110, 0]


class Controller:
    """The nogil loop's end of both packet queues."""

    def __init__(self, slots=8):
        self.frames, self.commands = allocate_packet_queue(4096, LARGEST_FRAME), allocate_packet_queue(slots, LARGEST_FRAME)
        self.arrival, self.link = os.eventfd(0, os.EFD_NONBLOCK), os.eventfd(0, os.EFD_NONBLOCK)

    def forward(self, *specs):
        return forward(specs, from_controller=self.frames, to_controller=self.commands, arrival_descriptor=self.arrival, link_descriptor=self.link)

    def says(self, *frames, message_ids=None):
        for frame, message_id in zip(frames, message_ids or [0] * len(frames), strict=True):
            assert put(self.frames, message_id, 0, 0, np.frombuffer(frame, np.uint8), len(frame))
        os.eventfd_write(self.arrival, 1)

    def hears(self):
        taken = take(self.commands, 1 << 20)
        return [taken.payload[row, :size].tobytes() for row, size in enumerate(taken.size)]

    async def hears_within_limit(self, count):
        heard = []
        await until(lambda: heard.extend(self.hears()) or len(heard) >= count)
        return heard


@pytest.fixture
def controller():
    made = Controller()
    yield made
    os.close(made.arrival)
    os.close(made.link)


@pytest.fixture
def free_port(udp_socket):
    def find():
        with contextlib.closing(udp_socket()) as probe:
            return probe.getsockname()[1]

    return find


def open_descriptors():
    return sorted(each.name for each in Path("/proc/self/fd").iterdir())


async def until(holds):
    async with asyncio.timeout(GROSS_LIMIT_S):
        while not holds():  # noqa: ASYNC110 - sockets and packet queues have no event
            await asyncio.sleep(0.001)


def received(sock):
    sock.settimeout(0)
    came = []
    with contextlib.suppress(BlockingIOError):
        while True:
            came.append(sock.recv(1 << 16))
    return came


async def received_bytes(sock, count):
    """At least ``count`` bytes of datagrams or of a stream, as a list of what each read gave."""
    came = []
    await until(lambda: came.extend(received(sock)) or sum(map(len, came)) >= count)
    return came


def at(sock):
    return StationSpec(name=f"station-{sock.getsockname()[1]}", remote=sock.getsockname())


def tcp(**arguments):
    return StationSpec(name="tcp", protocol=Protocol.TCP, **arguments)


async def connected(port):
    loop = asyncio.get_running_loop()
    sock = socket.socket()
    sock.settimeout(0)
    await loop.sock_connect(sock, ("127.0.0.1", port))
    return sock


@pytest.mark.asyncio
async def test_every_frame_of_the_controller_reaches_every_station_byte_for_byte(controller, udp_socket):
    udp_1, udp_2, data = udp_socket(), udp_socket(), mixture()
    async with controller.forward(at(udp_1), at(udp_2), tcp()) as forwarder:
        with await connected(forwarder.stations[2].port) as stream:
            await until(lambda: forwarder.readings()[2].peers == 1)
            controller.says(*data, message_ids=MIXTURE_IDS)
            size = len(b"".join(data))
            assert await received_bytes(udp_1, size) == data
            assert await received_bytes(udp_2, size) == data
            assert b"".join(await received_bytes(stream, size)) == b"".join(data)
        assert [each.frames_to_station for each in forwarder.readings()] == [6] * 3


@pytest.mark.asyncio
async def test_every_frame_of_a_station_reaches_the_controller_byte_for_byte(controller, udp_socket):
    udp, data = udp_socket(), mixture()
    async with controller.forward(at(udp), tcp()) as forwarder:
        for each in data:
            udp.sendto(each, ("127.0.0.1", forwarder.stations[0].port))
        assert await controller.hears_within_limit(6) == data
        udp.sendto(b"".join(data), ("127.0.0.1", forwarder.stations[0].port))
        assert await controller.hears_within_limit(6) == data
        assert os.eventfd_read(controller.link) >= 1
        with await connected(forwarder.stations[1].port) as stream:
            whole = b"".join(data)
            for begin in range(0, len(whole), 7):
                stream.send(whole[begin : begin + 7])
                await asyncio.sleep(0)
            assert await controller.hears_within_limit(6) == data
        assert [each.frames_from_station for each in forwarder.readings()] == [12, 6]
        assert [each.skipped_bytes for each in forwarder.readings()] == [0, 0]


@pytest.mark.asyncio
async def test_a_burst_goes_to_stations_in_pieces_with_pauses_that_nothing_shortens(controller, udp_socket, monkeypatch):
    udp, mav, pauses_s, loop = udp_socket(), packer(), [], asyncio.get_running_loop()
    later = loop.call_later
    monkeypatch.setattr(loop, "call_later", lambda delay_s, *call: pauses_s.append(delay_s) or later(delay_s, *call))
    sent = [hil_sensor_bytes(mav, time_usec=number) for number in range(150)]
    async with controller.forward(at(udp)) as forwarder:
        controller.says(*sent)
        for _ in range(3):
            forwarder._deliver()
            assert forwarder.readings()[0].frames_to_station == 64
        assert pauses_s == [64 * len(sent[0]) / 500_000]
        assert await received_bytes(udp, 150 * len(sent[0])) == sent
        assert forwarder._pause is None


@pytest.mark.asyncio
async def test_a_message_can_be_withheld_from_one_station(controller, udp_socket):
    all_of_it, less = udp_socket(), udp_socket()
    spec = StationSpec(name="less", remote=less.getsockname(), withhold=(107, 163))
    async with controller.forward(at(all_of_it), spec) as forwarder:
        controller.says(*mixture(), message_ids=MIXTURE_IDS)
        await until(lambda: forwarder.readings()[0].frames_to_station == 6)
    assert len(received(all_of_it)) == 6
    assert received(less) == [mixture()[0], mixture()[4], mixture()[5]]


@pytest.mark.asyncio
async def test_peers_of_a_learned_port_are_those_that_sent_a_frame_until_they_are_silent(controller, udp_socket, free_port, monkeypatch):
    first, second, noisy = udp_socket(), udp_socket(), udp_socket()
    port = free_port()
    async with controller.forward(StationSpec(name="learned", port=port, most_peers=2)) as forwarder:
        controller.says(heartbeat_bytes())  # no peer is known yet
        noisy.sendto(b"hello", ("127.0.0.1", port))
        first.sendto(heartbeat_bytes(), ("127.0.0.1", port))
        second.sendto(unknown_bytes(), ("127.0.0.1", port))
        assert await controller.hears_within_limit(2) == [heartbeat_bytes(), unknown_bytes()]
        noisy.sendto(heartbeat_bytes(), ("127.0.0.1", port))  # one more than may be
        await until(lambda: forwarder.readings()[0].strangers == 2)
        controller.says(hil_sensor_bytes())
        assert await received_bytes(first, 74) == await received_bytes(second, 74) == [hil_sensor_bytes()]
        assert (forwarder.readings()[0].peers, received(noisy), controller.hears()) == (2, [], [])
        loop = asyncio.get_running_loop()
        now_s = loop.time()
        with monkeypatch.context() as patched:
            patched.setattr(loop, "time", lambda: now_s + 31)
            forwarder.stations[0].deliver(heartbeat_bytes())
        assert forwarder.readings()[0].peers == 0


@pytest.mark.asyncio
async def test_a_fixed_station_may_send_from_another_port_of_its_host(controller, udp_socket):
    listens, sends = udp_socket(), udp_socket()
    async with controller.forward(at(listens)) as forwarder:
        sends.sendto(heartbeat_bytes(), ("127.0.0.1", forwarder.stations[0].port))
        assert await controller.hears_within_limit(1) == [heartbeat_bytes()]
        controller.says(hil_sensor_bytes())
        assert await received_bytes(listens, 74) == [hil_sensor_bytes()]


@pytest.mark.asyncio
async def test_a_stranger_at_another_address_is_not_heard(controller, udp_socket):
    station = udp_socket()
    spec = StationSpec(name="fixed", address="0.0.0.0", remote=("127.0.0.2", station.getsockname()[1]))  # noqa: S104 - to be reached from two addresses
    async with controller.forward(spec) as forwarder:
        station.sendto(heartbeat_bytes(), ("127.0.0.1", forwarder.stations[0].port))
        await until(lambda: forwarder.readings()[0].strangers == 1)
        assert controller.hears() == []


@pytest.mark.asyncio
async def test_a_station_that_floods_loses_only_frames_of_its_own(controller, udp_socket):
    flooding, quiet = udp_socket(), udp_socket()
    flood = hil_sensor_bytes()
    async with controller.forward(at(flooding), at(quiet)) as forwarder:
        for number in range(20):
            for _ in range(100):
                flooding.sendto(flood * 10, ("127.0.0.1", forwarder.stations[0].port))
            await asyncio.sleep(0.005)
            if number == 10:
                quiet.sendto(heartbeat_bytes(), ("127.0.0.1", forwarder.stations[1].port))
        await until(lambda: forwarder.readings()[1].frames_from_station == 1)
        heard = []
        while heartbeat_bytes() not in heard:
            before = len(heard)
            heard += controller.hears()
            await until(lambda: waiting(controller.commands) > 0)
        assert before <= 8  # it waited behind one packet queue, not behind the flood's queue
        flooded, calm = forwarder.readings()
        assert flooded.dropped_from_station > 1000
        assert (calm.dropped_from_station, len(forwarder.stations[0].peers[0].incoming) <= 256) == (0, True)


@pytest.mark.asyncio
async def test_a_tcp_station_that_never_reads_delays_no_other_and_loses_its_oldest_frames(controller, udp_socket):
    udp = udp_socket()
    frame = hil_sensor_bytes()
    async with controller.forward(tcp(queue_frames=100), at(udp)) as forwarder:
        with await connected(forwarder.stations[0].port) as stuck:
            stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            await until(lambda: forwarder.readings()[0].peers == 1)
            mav, sent, came = packer(), [], 0
            while forwarder.readings()[0].dropped_to_station < 1000:
                batch = [hil_sensor_bytes(mav, time_usec=len(sent) + number) for number in range(100)]
                sent += batch
                controller.says(*batch)
                came += len(b"".join(await received_bytes(udp, 100 * len(frame)))) // len(frame)
            assert came == len(sent)
            assert len(forwarder.stations[0].peers[0].outgoing) == 100
            last = b""
            while not last.endswith(sent[-1]):
                last += b"".join(await received_bytes(stuck, 1))
        assert len(last) % 74 == 0
        got = [last[begin : begin + 74] for begin in range(0, len(last), 74)]
        places = {each: place for place, each in enumerate(sent)}
        order = [places[each] for each in got]  # every frame whole, none twice, in order
        assert order == sorted(set(order))
        assert got[-100:] == sent[-100:]


@pytest.mark.asyncio
async def test_a_tcp_station_that_sends_more_than_the_link_takes_is_made_to_wait_and_loses_nothing(controller):
    async with controller.forward(tcp(queue_frames=64)) as forwarder:
        mav = packer()
        sent = [hil_sensor_bytes(mav, time_usec=number) for number in range(3000)]
        with await connected(forwarder.stations[0].port) as stream:
            sending = asyncio.create_task(asyncio.get_running_loop().sock_sendall(stream, b"".join(sent)))
            heard, most = [], 0
            while len(heard) < len(sent):
                heard += await controller.hears_within_limit(1)
                most = max(most, len(forwarder.stations[0].peers[0].incoming))
            await sending
        assert heard == sent
        assert most <= 32 + 8192 // 74 + 1
        assert forwarder.readings()[0].dropped_from_station == 0


@pytest.mark.asyncio
async def test_a_station_that_is_absent_and_comes_back_costs_the_others_nothing(controller, udp_socket, free_port):
    port = free_port()
    udp = udp_socket()
    async with controller.forward(StationSpec(name="absent", remote=("127.0.0.1", port)), at(udp)) as forwarder:
        controller.says(*mixture())
        assert await received_bytes(udp, len(b"".join(mixture()))) == mixture()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as late:
            late.bind(("127.0.0.1", port))
            controller.says(heartbeat_bytes())
            assert await received_bytes(late, 21) == [heartbeat_bytes()]
        controller.says(heartbeat_bytes(), heartbeat_bytes())
        assert await received_bytes(udp, 63) == [heartbeat_bytes()] * 3
        assert forwarder.readings()[1].dropped_to_station == 0


@pytest.mark.asyncio
async def test_a_station_without_a_route_is_counted_as_refused(controller, udp_socket):
    udp = udp_socket()
    nowhere = StationSpec(name="nowhere", address="127.0.0.1", remote=("192.0.2.1", 14550))  # from loopback there is no way out of the host
    async with controller.forward(nowhere, at(udp)) as forwarder:
        controller.says(heartbeat_bytes())
        assert await received_bytes(udp, 21) == [heartbeat_bytes()]
        assert (forwarder.readings()[0].refused, forwarder.readings()[0].frames_to_station) == (1, 0)


@pytest.mark.asyncio
async def test_a_tcp_station_that_vanishes_makes_room_for_the_next(controller):
    async with controller.forward(tcp(most_peers=1)) as forwarder:
        station = forwarder.stations[0]
        with await connected(station.port) as first:
            await until(lambda: forwarder.readings()[0].peers == 1)
            with await connected(station.port) as second:
                await until(lambda: forwarder.readings()[0].strangers == 1)
                assert await asyncio.get_running_loop().sock_recv(second, 10) == b""
            first.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # leaves with a reset
        await until(lambda: forwarder.readings()[0].peers == 0)
        controller.says(heartbeat_bytes())
        with await connected(station.port) as third:
            await until(lambda: forwarder.readings()[0].peers == 1)
            controller.says(hil_sensor_bytes())
            assert b"".join(await received_bytes(third, 74)) == hil_sensor_bytes()


@pytest.mark.asyncio
async def test_half_a_frame_on_tcp_is_forgotten_after_half_a_second(controller):
    async with controller.forward(tcp()) as forwarder:
        with await connected(forwarder.stations[0].port) as stream:
            stream.send(hil_sensor_bytes()[:30])
            await until(lambda: forwarder.readings()[0].skipped_bytes == 30)
            stream.send(heartbeat_bytes())
            assert await controller.hears_within_limit(1) == [heartbeat_bytes()]
            assert forwarder.readings()[0].skipped_bytes == 30


@pytest.mark.asyncio
async def test_a_frame_whose_rest_waits_at_the_socket_while_the_event_loop_is_busy_is_whole(controller):
    async with controller.forward(tcp()) as forwarder:
        with await connected(forwarder.stations[0].port) as stream:
            stream.send(hil_sensor_bytes()[:30])
            await until(lambda: forwarder.stations[0].peers and forwarder.stations[0].peers[0].stream.place[1] == 30)
            stream.send(hil_sensor_bytes()[30:])
            time.sleep(0.7)  # noqa: ASYNC251 - the event loop is held up on purpose
            assert await controller.hears_within_limit(1) == [hil_sensor_bytes()]
            assert forwarder.readings()[0].skipped_bytes == 0


@pytest.mark.asyncio
async def test_frames_that_wait_for_a_link_are_bounded_and_can_be_discarded(controller, udp_socket):
    udp = udp_socket()
    async with controller.forward(StationSpec(name="udp", remote=udp.getsockname(), queue_frames=20)) as forwarder:
        for _ in range(100):
            udp.sendto(heartbeat_bytes(), ("127.0.0.1", forwarder.stations[0].port))
        await until(lambda: forwarder.readings()[0].frames_from_station == 100)
        assert (waiting(controller.commands), forwarder.readings()[0].dropped_from_station) == (8, 72)
        assert forwarder.discard() == 20
        assert forwarder.readings()[0].dropped_from_station == 92
        assert len(controller.hears()) == 8
        udp.sendto(unknown_bytes(), ("127.0.0.1", forwarder.stations[0].port))
        assert await controller.hears_within_limit(1) == [unknown_bytes()]


@pytest.mark.asyncio
async def test_a_tcp_station_that_was_made_to_wait_goes_on_after_its_frames_were_thrown_away(controller):
    async with controller.forward(tcp(queue_frames=64)) as forwarder:
        with await connected(forwarder.stations[0].port) as stream:
            stream.send(heartbeat_bytes() * 100)
            await until(lambda: forwarder.readings()[0].frames_from_station == 100)
            assert (len(controller.hears()), forwarder.discard()) == (8, 92)
            stream.send(unknown_bytes())
            assert await controller.hears_within_limit(1) == [unknown_bytes()]


@pytest.mark.asyncio
async def test_noise_in_a_datagram_is_counted_and_does_not_reach_the_next(controller, udp_socket):
    udp = udp_socket()
    async with controller.forward(at(udp)) as forwarder:
        address = ("127.0.0.1", forwarder.stations[0].port)
        udp.sendto(b"\xfd\x09" + b"noise", address)
        udp.sendto(heartbeat_bytes()[:15], address)
        udp.sendto(b"\r\r\r" + heartbeat_bytes() + b"\0\0", address)
        assert await controller.hears_within_limit(1) == [heartbeat_bytes()]
        await until(lambda: forwarder.readings()[0].skipped_bytes == 7 + 15 + 5)


@pytest.mark.asyncio
async def test_of_a_datagram_longer_than_any_router_makes_the_rest_is_skipped(controller, udp_socket):
    udp = udp_socket()
    async with controller.forward(at(udp)) as forwarder:
        udp.sendto(heartbeat_bytes() * 238, ("127.0.0.1", forwarder.stations[0].port))
        await until(lambda: forwarder.readings()[0].frames_from_station == 195)
        assert forwarder.readings()[0].skipped_bytes == 238 * 21 - 195 * 21


@pytest.mark.asyncio
async def test_noise_made_to_cost_the_most_takes_little_of_the_others_time(controller, udp_socket):
    noisy, quiet = udp_socket(), udp_socket()
    async with controller.forward(at(noisy), at(quiet)) as forwarder:
        for _ in range(20):
            noisy.sendto(b"\xfd\xff\x00" * 1300, ("127.0.0.1", forwarder.stations[0].port))
        quiet.sendto(heartbeat_bytes(), ("127.0.0.1", forwarder.stations[1].port))
        assert await controller.hears_within_limit(1) == [heartbeat_bytes()]
        assert forwarder.readings()[0].skipped_bytes <= 4 * 3900  # the quiet one had its turn after that, not after all of it
        await until(lambda: forwarder.readings()[0].skipped_bytes == 20 * 3900)


@pytest.mark.asyncio
async def test_a_port_that_is_taken_names_its_holder_and_leaves_nothing_open(controller):
    script = "import socket, sys; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); sys.stdin.read()"
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", script, stdin=pipe, stdout=pipe)
    try:
        port = int(await process.stdout.readline())
        open_before = open_descriptors()
        with pytest.raises(
            LinkError, match=rf"udp port 127.0.0.1:{port}: the port must be free, got it in use by python\S* \(pid {process.pid}\): end it"
        ):
            async with controller.forward(tcp(), StationSpec(name="taken", port=port)):
                pass
        assert open_descriptors() == open_before
    finally:
        await process.communicate(b"")  # its standard input ends, and so does it


@pytest.mark.asyncio
async def test_two_stations_of_one_name_are_refused(controller):
    with pytest.raises(ValueError, match="names of ground stations must differ, got tcp, tcp"):
        async with controller.forward(tcp(), tcp()):
            pass


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({"name": "", "port": 1}, 'name must not be empty, got ""'),
        ({"address": "localhost", "port": 1}, 'address must be an IPv4 address, got "localhost"'),
        ({"port": 65536}, "port must be 0 to 65535, got 65536"),
        ({}, "port must be above 0 where no remote is given, got 0"),
        ({"protocol": Protocol.TCP, "remote": ("127.0.0.1", 1)}, r"remote must be left out for tcp, got \('127.0.0.1', 1\)"),
        ({"remote": ("127.0.0.1", 0)}, r"remote must be an IPv4 address and a port from 1 to 65535, got \('127.0.0.1', 0\)"),
        ({"port": 1, "withhold": (1 << 24,)}, r"withhold must be message ids, got \(16777216,\)"),
        ({"port": 1, "most_peers": 0}, "most_peers must be 1 to 64, got 0"),
        ({"port": 1, "queue_frames": 0}, "queue_frames must be 1 to 4096, got 0"),
        ({"port": 1, "silence_s": 0.0}, "silence_s must be positive, got 0"),
    ],
)
def test_an_impossible_station_is_refused(arguments, fault):
    with pytest.raises(ValueError, match=fault):
        StationSpec(**{"name": "station", **arguments})
