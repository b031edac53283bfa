"""What really leaves: datagrams and frames between two network namespaces joined by a veth pair, read back as raw frames."""

import ctypes
import errno
import platform
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from hilsim.errors import TransmitError
from hilsim.transmit.ring import push
from hilsim.transmit.specs import FlowSpec, FrameSocketSpec, SocketSpec, TransmitSpec
from hilsim.transmit.statistics import Counter
from hilsim.transmit.transmitter import Transmitter
from tests.system.namespaces import HOST, SENSOR, link

__all__ = ["link"]

pytestmark = pytest.mark.system

ETH_P_ALL = 3
PAYLOAD = bytes(range(200))
SPEC = TransmitSpec(scheduling="plain", late_policy="send", lock_memory=False)


@pytest.fixture
def transmitter():
    with Transmitter(SPEC, flows=2, capacity=1514) as made:
        yield made


@pytest.fixture
def frames(link):
    """Read every frame that reaches the host and carries a text."""
    tap = link[1].run(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)))
    tap.bind(("host0", 0))

    def read(count, text=PAYLOAD):
        tap.settimeout(30)
        found = []
        while len(found) < count:
            frame, origin = tap.recvfrom(2000)
            if text in frame and origin[2] != socket.PACKET_OUTGOING:  # the host itself quotes it when no port is open
                found.append(frame)
        return found

    yield read
    tap.close()


@pytest.fixture
def receiver(link):
    """A UDP socket in the host's namespace."""
    made = []

    def bind(address, port):
        made.append(link[1].run(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)))
        made[-1].bind((address, port))
        made[-1].settimeout(30)
        return made[-1]

    yield bind
    for each in made:
        each.close()


def udp_flow(name="lidar/data", **changes):
    target = {"source": SENSOR, "source_port": 2368, "destination": HOST, "destination_port": 2368}
    return FlowSpec(name=name, socket=SocketSpec(**(target | changes)), packet_rate_hz=753.5)


def put(transmitter, row, payload=PAYLOAD, count=1):
    for _ in range(count):
        while not push(transmitter.rings, row, time.monotonic_ns(), 0, np.frombuffer(payload, np.uint8).copy(), len(payload)):
            time.sleep(0.001)


def await_errors(transmitter, row, number):
    deadline = time.monotonic() + 30
    while transmitter.statistics.send_errors[row, number] == 0:
        put(transmitter, row)
        time.sleep(0.001)
        assert time.monotonic() < deadline, np.flatnonzero(transmitter.statistics.send_errors[row])


def test_a_data_packet_has_the_ip_and_udp_header_of_the_real_sensor(link, transmitter, frames):
    row = link[0].run(transmitter.add_flow, udp_flow())
    transmitter.start()
    put(transmitter, row, count=3)
    for frame in frames(3):
        ip = frame[14:34]
        assert ip[4:6] == b"\x00\x00"  # identification
        assert ip[6:8] == b"\x40\x00"  # do not fragment
        assert ip[8:10] == b"\xff\x11"  # time to live 255, UDP
        assert frame[34:38] == b"\x09\x40\x09\x40"  # ports 2368
        assert frame[40:42] == b"\x00\x00"  # no UDP checksum
        assert frame[42:] == PAYLOAD


def test_a_position_packet_may_be_fragmented_and_has_a_checksum(link, transmitter, frames):
    flow = udp_flow(source_port=8308, destination_port=8308, ttl=64, dont_fragment=False, udp_checksum=True)
    row = link[0].run(transmitter.add_flow, flow)
    transmitter.start()
    put(transmitter, row)
    (frame,) = frames(1)
    assert frame[20:22] == b"\x00\x00"
    assert frame[22] == 64
    assert frame[40:42] != b"\x00\x00"


@pytest.mark.parametrize("destination", ["255.255.255.255", "192.168.1.255"])
def test_a_broadcast_reaches_every_station_with_the_broadcast_mac(link, transmitter, frames, receiver, destination):
    listening = receiver("0.0.0.0", 2368)  # noqa: S104 - inside the namespace
    row = link[0].run(transmitter.add_flow, udp_flow(destination=destination, broadcast=True))
    transmitter.start()
    put(transmitter, row)
    assert listening.recvfrom(2000) == (PAYLOAD, (SENSOR, 2368))
    (frame,) = frames(1)
    assert frame[:6] == b"\xff" * 6
    assert frame[30:34] == socket.inet_aton(destination)


def test_a_multicast_reaches_its_members_with_the_time_to_live_asked_for(link, transmitter, frames, receiver):
    listening = receiver("239.1.2.3", 2368)
    membership = socket.inet_aton("239.1.2.3") + socket.inet_aton(HOST)
    listening.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
    row = link[0].run(transmitter.add_flow, udp_flow(destination="239.1.2.3", interface="lidar0", ttl=17))
    transmitter.start()
    put(transmitter, row)
    assert listening.recvfrom(2000) == (PAYLOAD, (SENSOR, 2368))
    assert frames(1)[0][22] == 17


def test_frames_arrive_bit_for_bit(link, transmitter, frames):
    row = link[0].run(transmitter.add_flow, FlowSpec(name="lidar/data", socket=FrameSocketSpec(interface="lidar0"), packet_rate_hz=753.5))
    transmitter.start()
    sent = [b"\xff" * 6 + b"\x60\x76\x88\x10\x2f\x6f" + b"\x08\x00\x45\x00" + bytes([number]) * 20 + PAYLOAD for number in range(5)]
    for frame in sent:
        put(transmitter, row, frame)
    assert frames(5) == sent


def test_a_network_without_a_route_is_a_fault_that_says_what_to_do(link, transmitter):
    with pytest.raises(TransmitError, match=r"cannot send from 192\.168\.1\.201 to 10\.9\.9\.9:2368: Network is unreachable; there is no route"):
        link[0].run(transmitter.add_flow, udp_flow(destination="10.9.9.9"))


def test_a_route_that_vanishes_is_counted_and_packets_flow_again_when_it_returns(link, transmitter, receiver):
    sensor, _ = link
    listening = receiver(HOST, 2368)
    rows = [sensor.run(transmitter.add_flow, flow) for flow in (udp_flow(), udp_flow("other/data", source="127.0.0.1", destination="127.0.0.2"))]
    transmitter.start()
    sensor.ip("route", "delete", "192.168.1.0/24", "dev", "lidar0")
    await_errors(transmitter, rows[0], errno.ENETUNREACH)
    put(transmitter, rows[1])
    sensor.ip("route", "add", "192.168.1.0/24", "dev", "lidar0")
    put(transmitter, rows[0], b"back again")
    assert listening.recv(2000) == b"back again"
    assert transmitter.statistics.counters[rows[1], Counter.SEND_ERROR] == 0


def test_a_datagram_larger_than_the_link_is_refused_not_fragmented(link, transmitter):
    sensor, _ = link
    row = sensor.run(transmitter.add_flow, udp_flow())
    sensor.ip("link", "set", "lidar0", "mtu", 600)
    transmitter.start()
    put(transmitter, row, PAYLOAD * 6)
    deadline = time.monotonic() + 30
    while transmitter.statistics.counters[row, Counter.SEND_ERROR] == 0:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    assert transmitter.statistics.send_errors[row, errno.EMSGSIZE] == 1


def test_frames_through_an_interface_that_is_down_are_counted(link, transmitter):
    sensor, _ = link
    row = sensor.run(transmitter.add_flow, FlowSpec(name="lidar/data", socket=FrameSocketSpec(interface="lidar0"), packet_rate_hz=753.5))
    transmitter.start()
    sensor.ip("link", "set", "lidar0", "down")
    await_errors(transmitter, row, errno.ENETDOWN)


def test_frames_without_the_privilege_are_a_fault_that_says_what_to_grant(link, transmitter):
    def unprivileged():
        with ThreadPoolExecutor(1) as pool:
            pool.submit(lambda: ctypes.CDLL(None).syscall({"x86_64": 117, "aarch64": 147}[platform.machine()], 65534, 65534, 65534)).result()
            return pool.submit(transmitter.add_flow, flow).result()

    flow = FlowSpec(name="lidar/data", socket=FrameSocketSpec(interface="lidar0"), packet_rate_hz=753.5)
    with pytest.raises(TransmitError, match=r"lidar0: frames must be sent with CAP_NET_RAW, got Operation not permitted: grant it"):
        link[0].run(unprivileged)
