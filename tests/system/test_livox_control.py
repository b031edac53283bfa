"""The control interface of a Livox over sockets: discovery by broadcast, commands, push messages, several sensors and hosts, and hostile datagrams."""

import asyncio
import itertools
import socket
import time

import pytest

from hilsim.errors import TransmitError
from hilsim.families.livox.daemon.server import open_ports
from hilsim.families.livox.interface.keys import HAP_PORTS, MID360_PORTS, SEARCH_PORT
from hilsim.families.livox.protocol.commands import (
    Command,
    ControlFrame,
    ReturnCode,
    counted,
    encode_frame,
    read_pairs,
)
from tests.livox_units import HOST, SENSOR, Host, counted_keys, destination, only_livox, read_answered_pairs, unit_of, units_in_thread  # noqa: F401 - a fixture

OTHER = "127.0.88.3"

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("only_livox")]


def test_all_sensors_of_the_machine_answer_a_broadcast_from_their_own_addresses():
    with units_in_thread(unit_of(SENSOR), unit_of(OTHER, "hap")), Host() as host:
        host.send(Command.SEARCH, to=("255.255.255.255", SEARCH_PORT))
        answers = {sender: frame.data for frame, sender in (host.take(), host.take())}
        assert {place: (data[1], data[18:22], int.from_bytes(data[22:], "little")) for place, data in answers.items()} == {
            (SENSOR, SEARCH_PORT): (9, socket.inet_aton(SENSOR), 56_100),
            (OTHER, SEARCH_PORT): (10, socket.inet_aton(OTHER), 56_000),
        }
        assert host.ask(Command.SEARCH, to=(SENSOR, SEARCH_PORT)) == answers[SENSOR, SEARCH_PORT]
        host.send(Command.SET, counted([(0x001A, b"\1")]), to=("255.255.255.255", SEARCH_PORT))
        assert host.is_silent()


def test_several_hosts_set_and_read_one_sensor_and_packets_follow():
    with units_in_thread(unit_of(SENSOR)) as [(packets, sensor)], Host() as first, Host("127.0.88.10") as second:
        assert first.ask(Command.SET, counted([destination(6, 56_301), destination(7, 56_401), (0x001A, b"\1")])) == b"\0\0\0"
        assert second.ask(Command.SET, counted([(0x0000, b"\3")])) == b"\0\0\0"
        assert read_answered_pairs(first.ask(Command.QUERY, counted_keys([0x8010, 0x0000]))) == [(0x8010, b"\1"), (0x0000, b"\3")]
        assert [state.values[0] for state in packets.states] == [b"\1", b"\3"]
        assert packets.shown[-1][1:] == (True, True)
        assert sensor.state.point_host.address == HOST


def test_what_packets_cannot_follow_fails_and_changes_nothing():
    with units_in_thread(unit_of(SENSOR)) as [(packets, sensor)], Host() as host:
        packets.refused, before = (0x0000, b"\2"), sensor.state
        assert host.ask(Command.SET, counted([(0x0000, b"\2")])) == bytes([ReturnCode.FAILED, 0, 0])
        assert sensor.state is before


def test_the_state_is_pushed_once_a_second_to_the_host_that_asks_for_it():
    with units_in_thread(unit_of(SENSOR, boot_s=3.2)), Host() as host, Host(port=56_201) as listener:
        assert listener.is_silent(1.2)
        host.ask(Command.SET, counted([destination(5, 56_201), (0x001A, b"\1")]))
        found = [listener.take() for _ in range(4)]
        assert {sender for _, sender in found} == {(SENSOR, 56_200)}
        assert [frame.sequence for frame, _ in found] == [1, 2, 3, 4]
        values = [dict(read_pairs(frame.data)) for frame, _ in found]
        times_ns = [int.from_bytes(each[0x8009], "little") for each in values]
        assert all(after // 10**9 > before // 10**9 for before, after in itertools.pairwise(times_ns[1:]))  # one in a second, none in a burst
        assert [each[0x8006][0] for each in values][-1] == 1
        host.ask(Command.REBOOT, bytes(2))
        assert dict(read_pairs(listener.take()[0].data))[0x8006] == b"\5"


def test_a_sensor_without_power_is_silent_and_starts_anew_with_it():
    with units_in_thread(unit_of(SENSOR, boot_s=30.0)) as [(packets, sensor)], Host() as host:
        assert host.ask(Command.SET, counted([(0x0001, b"\1")])) == bytes(3)
        packets.has_power = False
        host.send(Command.QUERY, counted_keys([0x8010]))
        assert host.is_silent()
        packets.has_power = True
        asyncio.run(sensor.start_again())
        assert read_answered_pairs(host.ask(Command.QUERY, counted_keys([0x0001, 0x8008]))) == [(0x0001, b"\1"), (0x8008, bytes((2, 0, 0, 0)))]


def test_what_is_no_request_is_not_answered():
    with units_in_thread(unit_of(SENSOR)), Host() as host:
        request = ControlFrame(command=Command.QUERY, sequence=1, data=counted_keys([0x8010]))
        good = encode_frame(request)
        others = [encode_frame(request.answer(b"\0")), good[:-1], good[:18] + b"\0\0" + good[20:], b"", b"\xaa" * 1400, good + b"\0"]
        for payload in others:
            host.socket.sendto(payload, (SENSOR, 56_100))
        assert host.is_silent()
        assert host.ask(Command.QUERY, counted_keys([0x8010])).hex() == "0001001080010001"


def test_a_flood_of_requests_leaves_the_sensor_answering():
    with units_in_thread(unit_of(SENSOR)), Host() as host:
        for _ in range(2000):
            host.send(Command.QUERY, counted_keys([0x8010]))
        time.sleep(1.0)
        answered = 0
        while not host.is_silent(0.2):
            answered += 1
        assert 1 <= answered < 500
        assert host.ask(Command.QUERY, counted_keys([0x8010])).hex() == "0001001080010001"


def test_a_port_that_is_taken_is_named():
    with (
        units_in_thread(unit_of(SENSOR)),
        pytest.raises(TransmitError, match=rf"network.source of top must have the free UDP port 56100, got {SENSOR}"),
    ):
        open_ports("top", SENSOR, MID360_PORTS)
    for ports in (MID360_PORTS, HAP_PORTS):
        for each in open_ports("top", SENSOR, ports).values():
            each.close()
