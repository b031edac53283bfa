"""Settings of sending: rules and defaults."""

import pytest

from hilsim.transmit.specs import FlowSpec, FrameSocketSpec, SocketSpec, TransmitSpec

GOOD = {"source": "127.0.1.201", "source_port": 2368, "destination": "127.0.0.1", "destination_port": 2368}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"source": "localhost"}, 'source must be an IPv4 address, got "localhost"'),
        ({"destination": "::1"}, 'destination must be an IPv4 address, got "::1"'),
        ({"source_port": 70_000}, "source_port must be 0 to 65535, got 70000"),
        ({"destination_port": 0}, "destination_port must be 1 to 65535, got 0"),
        ({"destination": "127.0.1.201"}, "destination must not be the source itself, got 127.0.1.201:2368 for both"),
        ({"destination": "255.255.255.255"}, "broadcast must be true for destination 255.255.255.255"),
        ({"interface": "an-interface-name-too-long"}, "interface must be at most 15 bytes"),
        ({"ttl": 0}, "ttl must be 1 to 255, got 0"),
        ({"send_buffer_bytes": -1}, "send_buffer_bytes must be 0 or more, got -1"),
    ],
)
def test_a_socket_that_cannot_be_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        SocketSpec(**(GOOD | change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"priority": 0}, "priority must be 1 to 99, got 0"),
        ({"cpu": -2}, r"cpu must be -1 \(any\) or 0 to 1023, got -2"),
        ({"spin_us": 51.0}, "spin_us must be 0 to 50, or -1 to have it chosen, got 51.0"),
        ({"late_limit_us": 1.0}, "late_limit_us must be 10 to 10000000, got 1.0"),
        ({"slots": 1}, "slots must be 4 to 65536, or 0 to follow the rate, got 1"),
    ],
)
def test_settings_out_of_range_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        TransmitSpec(**change)


def test_a_frame_socket_needs_an_interface():
    with pytest.raises(ValueError, match=r'interface must be 1 to 15 bytes, got ""'):
        FrameSocketSpec(interface="")


def test_a_flow_needs_a_name():
    with pytest.raises(ValueError, match=r"name must not be empty"):
        FlowSpec(name="", socket=SocketSpec(**GOOD), packet_rate_hz=753.5)


@pytest.mark.parametrize(("destination", "expected"), [("239.1.2.3", True), ("192.168.1.77", False), ("192.168.1.255", False)])
def test_a_multicast_destination_is_known_by_its_address(destination, expected):
    assert SocketSpec(**(GOOD | {"destination": destination})).is_multicast is expected
