import asyncio
import socket
import time

import pytest

from hilsim.capture import live
from hilsim.capture.live import Listener
from hilsim.errors import CaptureError


@pytest.fixture(autouse=True, scope="module")
def stamping():
    """A kernel that stamps what arrives: it begins a moment after the first socket of the machine asks for it, and stamps what is read until then."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ours:
        ours.setsockopt(socket.SOL_SOCKET, live._SO_TIMESTAMPNS, 1)
        ours.bind(("127.0.0.1", 0))
        ours.settimeout(30)
        until_s = time.monotonic() + 60
        while True:
            ours.sendto(b"", ours.getsockname())
            sent_ns = time.time_ns()
            time.sleep(0.01)
            (_, _, data) = ours.recvmsg(16, 64)[1][0]
            seconds, nanoseconds = live._TIMESPEC.unpack(data)
            if seconds * 1_000_000_000 + nanoseconds <= sent_ns:
                break
            assert time.monotonic() < until_s
        yield


async def take(listener, count):
    taken = []
    async for datagram in listener:
        taken.append(datagram)
        if len(taken) == count:
            break
    return taken


@pytest.mark.asyncio
async def test_datagrams_arrive_with_addresses_and_a_stamp_between_send_and_read():
    async with Listener(host="127.0.0.1", ports=(0,)) as listener:
        (port,) = listener.bound_ports()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.bind(("127.0.1.201", 0))
            before = time.time_ns()
            sender.sendto(b"abc", ("127.0.0.1", port))
            (datagram,) = await asyncio.wait_for(take(listener, 1), 10)
            source_port = sender.getsockname()[1]
    assert (datagram.source, datagram.source_port, datagram.destination, datagram.destination_port) == ("127.0.1.201", source_port, "127.0.0.1", port)
    assert (datagram.payload, datagram.link) == (b"abc", None)
    assert before <= datagram.host_stamp_ns <= time.time_ns()


@pytest.mark.asyncio
async def test_the_stamp_is_the_kernels_and_not_that_of_reading():
    async with Listener(host="127.0.0.1", ports=(0,)) as listener:
        (port,) = listener.bound_ports()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"abc", ("127.0.0.1", port))
        sent = time.time_ns()
        await asyncio.sleep(0.05)
        (datagram,) = await asyncio.wait_for(take(listener, 1), 10)
    assert datagram.host_stamp_ns <= sent


@pytest.mark.asyncio
async def test_a_reader_that_lags_gets_datagrams_of_two_ports_in_the_order_they_arrived(monkeypatch):
    """More wait on one port than is taken at once, and fewer on the other: the other's last ones came after them."""
    monkeypatch.setattr(live, "_MAX_AT_ONCE", 8)
    sent = [bytes([number]) for number in range(100)]
    async with Listener(host="127.0.0.1", ports=(0, 0)) as listener:
        many, few = listener.bound_ports()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for number, payload in enumerate(sent):
                sender.sendto(payload, ("127.0.0.1", few if number % 20 == 19 else many))
        taken = await asyncio.wait_for(take(listener, len(sent)), 10)
    assert [datagram.payload for datagram in taken] == sent


@pytest.mark.asyncio
async def test_datagrams_of_two_ports_come_in_the_order_they_arrived():
    async with Listener(host="127.0.0.1", ports=(0, 0)) as listener:
        first, second = listener.bound_ports()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for index in range(20):
                sender.sendto(bytes([index]), ("127.0.0.1", second if index % 2 else first))
        taken = await asyncio.wait_for(take(listener, 20), 10)
    assert [datagram.payload[0] for datagram in taken] == list(range(20))


@pytest.mark.asyncio
async def test_a_busy_port_is_named():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
        with pytest.raises(CaptureError, match=rf"127\.0\.0\.1:{port}: cannot listen: the port is in use by another program"):
            await Listener(host="127.0.0.1", ports=(port,)).__aenter__()


@pytest.mark.asyncio
async def test_an_address_of_another_machine_is_named():
    with pytest.raises(CaptureError, match=r"192\.0\.2\.1:0: cannot listen: the address is not one of this machine's"):
        await Listener(host="192.0.2.1", ports=(0,)).__aenter__()


@pytest.mark.asyncio
async def test_a_port_beyond_65535_is_named():
    with pytest.raises(CaptureError, match="cannot listen: the port must be 0 to 65535"):
        await Listener(host="127.0.0.1", ports=(70000,)).__aenter__()


@pytest.mark.asyncio
async def test_a_failed_second_port_frees_the_first():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        free = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        free.bind(("127.0.0.1", 0))
        free_port = free.getsockname()[1]
        free.close()
        with pytest.raises(CaptureError, match="in use"):
            await Listener(host="127.0.0.1", ports=(free_port, other.getsockname()[1])).__aenter__()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as again:
            again.bind(("127.0.0.1", free_port))
