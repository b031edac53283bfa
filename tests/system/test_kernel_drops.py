"""What the kernel loses behind a socket's back: real queues that are too small, between network namespaces joined by a veth pair."""

import socket
import subprocess
import time

import pytest

from hilsim.transmit.kernel_drops import InterfaceCounters, read_kernel_drops
from hilsim.transmit.sockets import open_udp_socket
from hilsim.transmit.specs import FrameSocketSpec, SocketSpec
from tests.system.namespaces import HOST, SENSOR, link

__all__ = ["link"]
pytestmark = [pytest.mark.extended, pytest.mark.system]

TARGET = SocketSpec(source=SENSOR, source_port=2368, destination=HOST, destination_port=2368)
SMALL_QUEUE = ("qdisc", "add", "dev", "lidar0", "root", "tbf", "rate", "1mbit", "burst", "3000", "limit", "3000")


def tc(namespace, *arguments):
    namespace.run(lambda: subprocess.run(["tc", *arguments], check=True, capture_output=True))


def send(namespace, count):
    """Send datagrams of a VLP-16's size at once; returns how many the kernel took."""

    def work():
        taken = 0
        with open_udp_socket(TARGET).socket as opened:
            for _ in range(count):
                taken += opened.sendto(bytes(1206), socket.MSG_DONTWAIT, (HOST, 2368)) > 0
        return taken

    return namespace.run(work)


def read(namespace, *targets):
    return namespace.run(lambda: read_kernel_drops(targets or (TARGET,)))


def test_a_full_queue_takes_everything_and_its_drops_are_seen_by_interface_and_by_udp(link):
    sensor, host = link
    tc(sensor, *SMALL_QUEUE)
    receiver = host.run(lambda: socket.create_server((HOST, 2368)))  # only so that the address resolves
    before = read(sensor)
    assert send(sensor, 200) == 200
    after = read(sensor)
    receiver.close()
    refused = after.udp_refused - before.udp_refused
    dropped = after.interfaces[0].queue_drops - before.interfaces[0].queue_drops
    assert [counters.interface for counters in after.interfaces] == ["lidar0"]
    assert dropped > 150
    assert refused == dropped


def test_a_queue_that_takes_everything_counts_what_passed(link):
    sensor, _ = link
    tc(sensor, "qdisc", "add", "dev", "lidar0", "root", "tbf", "rate", "1gbit", "burst", "30000", "limit", "3000000")
    before = read(sensor)
    send(sensor, 50)
    deadline = time.monotonic() + 10
    while (after := read(sensor)).interfaces[0].queue_packets < before.interfaces[0].queue_packets + 50 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert after.interfaces[0].queue_packets >= before.interfaces[0].queue_packets + 50
    assert after.interfaces[0].queue_drops == before.interfaces[0].queue_drops == 0
    assert after.udp_refused == before.udp_refused


@pytest.mark.parametrize(
    "target",
    [
        SocketSpec(source=SENSOR, source_port=2368, destination="192.168.1.255", destination_port=2368, broadcast=True),
        SocketSpec(source=SENSOR, source_port=2368, destination="255.255.255.255", destination_port=2368, broadcast=True, interface="lidar0"),
        SocketSpec(source=SENSOR, source_port=2368, destination="239.1.2.3", destination_port=2368),
        FrameSocketSpec(interface="lidar0"),
    ],
    ids=["subnet broadcast", "broadcast", "multicast", "frames"],
)
def test_the_interface_of_every_kind_of_target_is_found(link, target):
    sensor, _ = link
    assert read(sensor, target).interfaces == (InterfaceCounters("lidar0", 0, 0, 0),)


def test_a_target_without_a_route_has_no_interface(link):
    sensor, _ = link
    nowhere = SocketSpec(source=SENSOR, source_port=2368, destination="203.0.113.9", destination_port=2368)
    assert read(sensor, nowhere).interfaces == ()
    assert [counters.interface for counters in read(sensor, nowhere, TARGET).interfaces] == ["lidar0"]


def test_without_netlink_there_are_still_udps_own_counters(link, monkeypatch):
    sensor, _ = link
    permitted = socket.socket

    def forbidding(family=-1, *arguments, **keywords):
        if family == socket.AF_NETLINK:
            raise PermissionError(1, "Operation not permitted")
        return permitted(family, *arguments, **keywords)

    monkeypatch.setattr(socket, "socket", forbidding)
    found = read(sensor)
    assert found.interfaces == ()
    assert found.udp_refused is not None
