"""Packets that the kernel holds back for a receiver whose hardware address is not known, and what ``hilsim doctor`` says of them."""

import socket
from pathlib import Path

import pytest

from hilsim.cli.diagnosis.machine import _neighbour_queue
from tests.system.namespaces import HOST, link

__all__ = ["link"]
pytestmark = [pytest.mark.extended, pytest.mark.system]

QUEUE = "/proc/sys/net/ipv4/neigh/lidar0/unres_qlen_bytes"
SENT = 150


def released(link):
    """How many of the packets that were sent before the receiver had an address arrive once it has one."""
    sensor, host = link
    host.ip("address", "flush", "dev", "host0")
    receiver = host.run(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    with receiver, sensor.run(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as sender:
        receiver.bind(("", 2368))
        receiver.settimeout(60)
        for number in range(SENT):
            sender.sendto(number.to_bytes(2, "little") + bytes(1204), (HOST, 2368))
        host.ip("address", "add", f"{HOST}/24", "dev", "host0")
        found = [receiver.recv(2000)]
        receiver.settimeout(0.5)
        while True:
            try:
                found.append(receiver.recv(2000))
            except TimeoutError:
                return len(found)


def test_by_default_a_burst_waits_for_the_receiver_and_doctor_says_how_long(link):
    finding = link[0].run(_neighbour_queue)
    burst = released(link)
    assert finding.verdict == "fair"
    assert int(finding.fact.split()[2]) == pytest.approx(burst, rel=0.2)
    assert burst > 50


def test_settings_advised_by_the_doctor_give_no_burst(link):
    sensor, _ = link
    sensor.run(lambda: Path(QUEUE).write_text("2304"))
    assert sensor.run(_neighbour_queue).verdict == "good"
    assert released(link) == 1
