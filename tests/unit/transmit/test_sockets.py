"""UDP sockets on loopback: options, faults and sharing. What leaves the wire is read back in tests/system."""

import socket

import pytest

from hilsim.errors import TransmitError
from hilsim.transmit.pool import SocketPool
from hilsim.transmit.sockets import open_packet_socket, open_udp_socket
from hilsim.transmit.specs import FrameSocketSpec, SocketSpec


def spec_from(source, port, **changes):
    return SocketSpec(**({"source": source, "source_port": port, "destination": "127.0.0.1", "destination_port": 9} | changes))


@pytest.fixture
def opened():
    made = []

    def make(spec):
        made.append(open_udp_socket(spec))
        return made[-1]

    yield make
    for each in made:
        each.socket.close()


@pytest.fixture
def other():
    """A socket of another program, at an address."""
    made = []

    def make(address, *, reuse=False):
        made.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        made[-1].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(reuse))
        made[-1].bind((address, 0))
        return made[-1].getsockname()[1]

    yield make
    for each in made:
        each.close()


def test_a_socket_is_bound_to_its_source(opened):
    assert opened(spec_from("127.0.1.201", 0)).socket.getsockname()[0] == "127.0.1.201"


@pytest.mark.parametrize("reuse", [False, True])
def test_a_busy_source_port_is_a_fault_that_names_address_and_port(opened, other, reuse):
    port = other("127.0.1.202", reuse=reuse)
    with pytest.raises(TransmitError, match=rf"source port must be free, got 127\.0\.1\.202:{port} in use"):
        opened(spec_from("127.0.1.202", port))


def test_a_receiver_on_all_addresses_that_shares_leaves_the_port_usable_and_is_mentioned(opened, other):
    port = other("0.0.0.0", reuse=True)  # noqa: S104 - the case itself
    assert opened(spec_from("127.0.1.203", port)).shortfalls == (
        f"port {port} of 127.0.1.203 is shared with a program that listens on all addresses",
    )


def test_a_receiver_on_all_addresses_that_does_not_share_is_a_fault(opened, other):
    port = other("0.0.0.0")  # noqa: S104 - the case itself
    with pytest.raises(TransmitError, match=rf"127\.0\.1\.203:{port} in use"):
        opened(spec_from("127.0.1.203", port))


def test_an_address_of_another_host_is_a_fault_that_says_what_to_do(opened):
    with pytest.raises(TransmitError, match=r"cannot send from 203\.0\.113\.7: Cannot assign requested address; give this host the address"):
        opened(spec_from("203.0.113.7", 0))


def test_an_interface_that_is_not_there_is_a_fault(opened):
    with pytest.raises(TransmitError, match=r"cannot send through interface nowhere7: No such device"):
        opened(spec_from("127.0.0.1", 0, interface="nowhere7"))


def test_a_broadcast_that_was_not_asked_for_is_a_fault(opened):
    with pytest.raises(TransmitError, match=r"Permission denied; a broadcast address needs broadcast = true"):
        opened(spec_from("127.0.0.1", 0, destination="127.255.255.255"))


def test_broadcasting_is_allowed_only_where_asked_for(opened):
    quiet = opened(spec_from("127.0.0.1", 0)).socket
    loud = opened(spec_from("127.0.0.1", 0, destination="127.255.255.255", broadcast=True)).socket
    assert [each.getsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST) for each in (quiet, loud)] == [0, 1]


def test_a_send_buffer_is_as_large_as_asked_for_or_the_shortfall_is_reported(opened):
    made = opened(spec_from("127.0.0.1", 0, send_buffer_bytes=300_000))
    assert made.shortfalls or made.socket.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) >= 600_000


def test_a_fault_leaves_no_socket_open(other):
    port = other("127.0.1.202")
    for _ in range(3):
        with pytest.raises(TransmitError):
            open_udp_socket(spec_from("127.0.1.202", port))  # an unclosed socket would warn, and warnings are errors


def test_frames_through_an_interface_that_is_not_there_are_a_fault():
    with pytest.raises(TransmitError, match=r"nowhere7"):
        open_packet_socket(FrameSocketSpec(interface="nowhere7"))


@pytest.fixture
def pool():
    made = SocketPool()
    yield made
    made.close()


@pytest.fixture
def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.1.204", 0))
        return probe.getsockname()[1]


def test_flows_from_the_same_address_and_port_share_a_socket(pool, free_port):
    first = pool.acquire(spec_from("127.0.1.204", free_port))
    assert pool.acquire(spec_from("127.0.1.204", free_port, destination_port=10)) is first


def test_a_shared_socket_is_closed_with_its_last_flow(pool, free_port):
    spec = spec_from("127.0.1.204", free_port)
    shared = pool.acquire(spec)
    pool.acquire(spec)
    pool.release(spec)
    assert shared.fileno() >= 0
    pool.release(spec)
    assert shared.fileno() < 0


def test_flows_that_share_must_agree_on_the_options(pool, free_port):
    pool.acquire(spec_from("127.0.1.204", free_port, ttl=64))
    with pytest.raises(TransmitError, match=rf"flows from 127\.0\.1\.204:{free_port} must have the same socket options, got ttl = 64 and 255"):
        pool.acquire(spec_from("127.0.1.204", free_port, ttl=255))


def test_a_flow_that_has_a_socket_to_itself_may_change_its_options(pool, free_port):
    former = spec_from("127.0.1.204", free_port, ttl=64)
    first = pool.acquire(former)
    changed = pool.acquire(spec_from("127.0.1.204", free_port, ttl=255), former)
    assert changed is first
    assert changed.getsockopt(socket.IPPROTO_IP, socket.IP_TTL) == 255
