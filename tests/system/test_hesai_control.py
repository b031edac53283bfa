"""The control interface of a Hesai over sockets: PTC and HTTP, several clients, bad frames, limits, loss of power and reboots."""

import asyncio
import contextlib
import http.client
import json
import socket
import struct
import threading
import time
from dataclasses import replace

import pytest

from hilsim.families.hesai.daemon import server
from hilsim.families.hesai.protocol.ptc import Command, ReturnCode, encode_frame
from hilsim.limits import REQUEST_S, SENSOR_CONNECTIONS, SENSOR_FRAME_BYTES
from tests.hesai_units import Client, unit_in_thread

OK = ReturnCode.OK

pytestmark = pytest.mark.system


@pytest.fixture
def unit():
    with unit_in_thread() as served:
        yield served


def fetch(unit, target, **headers):
    with contextlib.closing(http.client.HTTPConnection(*unit.http, timeout=20)) as connection:
        connection.request("GET", target, headers=headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


def test_one_connection_serves_many_requests_and_packets_follow(unit):
    with Client(unit.ptc) as client:
        for _ in range(3):
            assert len(client.ask(Command.INVENTORY)[1]) == 120
            assert client.ask(0x28) == (ReturnCode.UNSUPPORTED, b"")
        assert client.ask(Command.RETURN_MODE, b"\2") == (OK, b"")
        assert client.ask(Command.RETURN_MODE, b"\2") == (OK, b"")
        assert client.ask(Command.STANDBY, b"\1") == (OK, b"")
    assert [(state.values[Command.RETURN_MODE], state.is_sending) for state in unit.packets.states] == [(b"\2", True), (b"\2", False)]


def test_requests_that_arrive_in_one_piece_or_byte_by_byte_are_answered_in_order(unit):
    with Client(unit.ptc) as client:
        client.socket.sendall(encode_frame(Command.STATUS, b"") + encode_frame(Command.CONFIG, b"") + encode_frame(Command.PTP_DIAGNOSTICS, b"\4"))
        assert [len(client.take()[2]) for _ in range(3)] == [54, 47, 8]
        for byte in encode_frame(Command.SPIN_RATE, struct.pack(">H", 1200)):
            client.socket.sendall(bytes([byte]))
        assert client.take() == (Command.SPIN_RATE, OK, b"")


def test_several_clients_at_once_each_have_their_answers(unit):
    failed = []

    def ask(number):
        with Client(unit.ptc) as client:
            for _ in range(10):
                command, size = [(Command.CONFIG, 47), (Command.MONITOR, 64), (Command.STATUS, 54)][number % 3]
                if len(client.ask(command)[1]) != size:
                    failed.append(number)
                if number == 0 and client.ask(Command.SYNC_ANGLE, b"\1\0\x5a") != (OK, b""):
                    failed.append(number)

    clients = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for each in clients:
        each.start()
    for each in clients:
        each.join(20)
    assert not failed


def test_what_the_rig_refuses_has_a_return_code_and_changes_nothing(unit):
    unit.packets.refused, before = (Command.SPIN_RATE, struct.pack(">H", 300)), unit.sensor.state
    with Client(unit.ptc) as client:
        assert client.ask(Command.SPIN_RATE, struct.pack(">H", 300)) == (ReturnCode.OTHER, b"")
    assert unit.sensor.state is before


@pytest.mark.parametrize(
    "sent",
    [
        b"\x57\x75\2\5\0\0\0\0",
        b"GET / HTTP/1.1\r\n\r\n",
        encode_frame(Command.DESTINATION, b"")[:4] + struct.pack(">I", SENSOR_FRAME_BYTES.bound + 1),
        b"\x47\x74\5\0\xff\xff\xff\xff",
        bytes(range(200)),
    ],
)
def test_what_is_no_request_ends_its_connection_and_no_other(unit, sent):
    with Client(unit.ptc) as other, Client(unit.ptc) as client:
        client.socket.sendall(sent)
        assert client.take() is None
        assert other.ask(Command.STATUS)[0] is OK


def test_a_half_request_at_the_end_harms_nobody(unit):
    with Client(unit.ptc) as client:
        client.socket.sendall(b"\x47\x74\x20\0\0\0\0\x08\x0a")
        client.socket.shutdown(socket.SHUT_WR)
        assert client.take() is None
    with Client(unit.ptc) as client:
        assert client.ask(Command.STATUS)[0] is OK


def test_a_request_that_does_not_end_is_closed_and_an_idle_connection_is_not(unit, monkeypatch):
    monkeypatch.setattr(server, "REQUEST_S", replace(REQUEST_S, bound=0.2))
    with Client(unit.ptc) as idle, Client(unit.ptc) as client:
        client.socket.sendall(encode_frame(Command.DESTINATION, bytes(8))[:-1])
        assert client.take() is None
        assert idle.ask(Command.STATUS)[0] is OK


def test_a_connection_beyond_the_bound_is_closed(unit):
    clients = [Client(unit.ptc) for _ in range(SENSOR_CONNECTIONS.bound)]
    try:
        assert {client.ask(Command.STANDBY, b"\0")[0] for client in clients} == {OK}
        with Client(unit.ptc) as further:
            assert further.take() is None
    finally:
        for client in clients:
            client.socket.close()


def test_without_power_and_while_it_starts_it_closes_connections(unit):
    with Client(unit.ptc) as client:
        assert client.ask(Command.REBOOT) == (OK, b"")
        client.socket.sendall(encode_frame(Command.STATUS, b""))
        assert client.take() is None
    until_s = time.monotonic() + 20.0
    while unit.sensor.state.is_starting and time.monotonic() < until_s:
        time.sleep(0.01)
    assert [state.is_sending for state in unit.packets.states] == [False, True]
    with Client(unit.ptc) as client:
        assert client.ask(Command.STATUS)[1][40:44] == struct.pack(">I", 2)
        unit.packets.has_power = False
        client.socket.sendall(encode_frame(Command.STATUS, b""))
        assert client.take() is None


def test_power_that_is_back_while_it_starts_ends_the_start():
    with unit_in_thread(boot_s=60.0) as unit:
        with Client(unit.ptc) as client:
            assert client.ask(Command.REBOOT) == (OK, b"")
        asyncio.run(unit.sensor.start_again())
        with Client(unit.ptc) as client:
            assert client.ask(Command.STATUS)[1][40:44] == struct.pack(">I", 3)
        assert [state.is_sending for state in unit.packets.states] == [False, True]


def test_http_sets_the_same_and_refuses_pages_of_others(unit):
    assert fetch(unit, "/pandar.cgi?action=set&object=lidar&key=spin_speed&value=3") == (
        200,
        {"Head": {"ErrorCode": "0", "Message": "Success"}, "Body": {}},
    )
    assert unit.sensor.state.number(Command.SPIN_RATE) == 1200
    assert fetch(unit, "/pandar.cgi?action=get&object=lidar_monitor")[1]["Body"]["lidarInVol"] == "12.00 V"
    unit.packets.refused = (Command.SPIN_RATE, struct.pack(">H", 300))
    status, refused = fetch(unit, "/pandar.cgi?action=set&object=lidar&key=spin_speed&value=1")
    assert (status, refused["Head"]) == (200, {"ErrorCode": "7", "Message": "the rig must not be so"})
    assert fetch(unit, "/pandar.cgi?action=get&object=lidar_monitor", Origin="http://bad.example")[0] == 403
    assert fetch(unit, "/pandar.cgi?action=get&object=lidar_monitor", Host="bad.example")[0] == 403
