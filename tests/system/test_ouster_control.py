"""The control interface of an Ouster over sockets: HTTP as clients of several generations use it, commands at a TCP port, and hostile clients."""

import http.client
import json
import socket
import time

import pytest

from hilsim.families.ouster.protocol.metadata_reading import read_metadata
from hilsim.limits import SENSOR_BODY_BYTES, SENSOR_CONNECTIONS, SENSOR_LINE_BYTES
from tests.ouster_units import unit_in_thread


@pytest.fixture
def unit():
    with unit_in_thread() as found:
        yield found


def ask(unit, method, path, document=None, headers=(), target=""):
    """Status, headers and document of an answer."""
    connection = http.client.HTTPConnection(unit.address, unit.port, timeout=20)
    body = None if document is None else json.dumps(document)
    connection.request(method, target or f"/api/v1/{path}", body, {"Host": unit.address, **dict(headers)})
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, answer.headers, json.loads(text) if text else None


def until(condition, timeout_s=20.0):
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_client_sets_the_destination_and_a_mode_and_packets_follow(unit):
    for given in ("10.1.1.1", "@auto"):
        assert ask(unit, "POST", "sensor/config?reinit=False&persist=False", {"udp_dest": given})[0] == 204
    assert [state.streams.address for state in unit.packets.states] == ["10.1.1.1", "127.0.0.1"]
    assert ask(unit, "POST", "sensor/config?reinit=true&persist=true", {"lidar_mode": "512x10"})[0] == 204
    until(lambda: unit.state.status == "RUNNING")
    assert [state.status for state in unit.packets.states] == ["RUNNING", "RUNNING", "INITIALIZING", "RUNNING"]
    assert unit.packets.saved[-1].saved["lidar_mode"] == "512x10"
    status, headers, document = ask(unit, "GET", "sensor/metadata")
    assert (status, headers["Content-Type"], headers["Server"]) == (200, "application/json; charset=utf-8", "nginx")
    assert read_metadata(json.dumps(document)).columns_per_frame == 512


def test_what_packets_cannot_follow_is_refused_with_its_reason_and_changes_nothing(unit):
    unit.packets.refused = "2048x10"
    before = unit.state
    status, _, document = ask(unit, "POST", "sensor/config", {"lidar_mode": "2048x10"})
    assert (status, document["error"]["description"]) == (400, "the rig must not be 2048x10")
    assert unit.state is before


def test_a_second_reinitialisation_begins_anew_while_the_first_lasts():
    with unit_in_thread(boot_s=0.3) as unit:
        first = unit.state.initialization_id
        for mode in ("512x10", "512x20"):
            assert ask(unit, "POST", "sensor/config", {"lidar_mode": mode})[0] == 204
        until(lambda: unit.state.status == "RUNNING")
        assert (unit.state.initialization_id, unit.state.active["lidar_mode"]) == (first + 2, "512x20")
        assert [state.status for state in unit.packets.states] == ["INITIALIZING", "INITIALIZING", "RUNNING"]


def test_a_proxy_request_names_the_sensor_by_its_whole_address(unit):
    target = f"http://{unit.address}/api/v1/system/firmware"
    assert ask(unit, "GET", "", target=target)[2] == {"fw": unit.state.unit.image_rev}
    status, _, document = ask(unit, "GET", "", target="http://10.9.9.9/api/v1/system/firmware")
    assert status == 403
    assert "got '10.9.9.9:80'" in document["error"]["description"]


@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Origin": "http://evil.example"}])
def test_a_foreign_host_or_origin_is_refused(unit, headers):
    status, _, document = ask(unit, "GET", "system/firmware", headers=headers)
    assert status == 403
    assert "must be" in document["error"]["description"]


def test_the_old_sequence_of_requests_configures_and_reads_by_commands():
    with unit_in_thread(version="2.3.1") as unit:
        assert ask(unit, "GET", "system/firmware")[2]["fw"] == unit.state.unit.image_rev
        active = ask(unit, "GET", "sensor/cmd/get_config_param?args=active")[2]
        assert ask(unit, "GET", "sensor/cmd/set_udp_dest_auto")[2] == {}
        changed = json.dumps({**active, "udp_dest": "127.0.0.1", "lidar_mode": "512x10"}).replace(" ", "")
        quoted = "".join(f"%{byte:02X}" for byte in changed.encode())
        assert ask(unit, "GET", f"sensor/cmd/set_config_param?args=.+{quoted}")[2] == "set_config_param"
        assert ask(unit, "GET", "sensor/cmd/reinitialize")[2] == {}
        assert ask(unit, "GET", "sensor/cmd/save_config_params")[2] == {}
        until(lambda: ask(unit, "GET", "sensor/metadata/sensor_info")[2]["status"] == "RUNNING")
        assert ask(unit, "GET", "sensor/metadata/lidar_data_format")[2]["columns_per_frame"] == 512


def test_commands_at_the_tcp_port_are_answered_line_by_line(unit):
    with socket.create_connection((unit.address, unit.lines_port), 20) as client:
        lines = client.makefile("rw", encoding="utf-8", newline="\n")
        for line, answer in (
            ("set_config_param lidar_mode 512x20", "set_config_param"),
            ("set_udp_dest_auto", "set_udp_dest_auto"),
            ("reinitialize",) * 2,
        ):
            lines.write(f"{line}\n")
            lines.flush()
            assert lines.readline() == f"{answer}\n"
        lines.write("get_sensor_info\nno\n")
        lines.flush()
        assert json.loads(lines.readline())["prod_sn"] == unit.state.unit.serial
        assert lines.readline().startswith("error: command must be one of")
    assert unit.packets.states[0].status == "INITIALIZING"
    assert unit.state.active["lidar_mode"] == "512x20"


def test_a_body_beyond_the_bound_is_refused_before_it_is_read(unit):
    with socket.create_connection((unit.address, unit.port), 20) as client:
        head = f"POST /api/v1/sensor/config HTTP/1.1\r\nHost: {unit.address}\r\nContent-Length: 100000000\r\n\r\n"
        client.sendall(head.encode())
        client.sendall(b" " * (2 * SENSOR_BODY_BYTES.bound))
        assert client.recv(64).startswith(b"HTTP/1.1 413 ")


def test_a_line_beyond_the_bound_and_a_connection_beyond_it_are_refused(unit):
    with socket.create_connection((unit.address, unit.lines_port), 20) as client:
        client.sendall(b"x" * (SENSOR_LINE_BYTES.bound + 1))
        assert client.makefile("rb").readline() == b"error: a line must be at most 8,192 bytes, got more\n"
    until(lambda: answered(unit))
    clients = [socket.create_connection((unit.address, unit.lines_port), 20) for _ in range(SENSOR_CONNECTIONS.bound)]
    try:
        for client in clients:
            client.sendall(b"get_config_param active udp_dest\n")
            assert client.makefile("rb").readline() == b'"127.0.0.1"\n'
        with socket.create_connection((unit.address, unit.lines_port), 20) as further:
            assert further.makefile("rb").readline() == b"error: there must be at most 16 connections\n"
    finally:
        for client in clients:
            client.close()
    until(lambda: answered(unit))


def answered(unit):
    with socket.create_connection((unit.address, unit.lines_port), 20) as client:
        client.sendall(b"get_config_param active udp_dest\n")
        return client.makefile("rb").readline() == b'"127.0.0.1"\n'


def test_a_thousand_connections_leave_the_sensor_answering(unit):
    clients = []
    try:
        for _ in range(1000):
            client = socket.socket()
            client.settimeout(0)
            client.connect_ex((unit.address, unit.port))
            clients.append(client)
    finally:
        for client in clients:
            client.close()
    until(lambda: ask_or_none(unit) == {"fw": unit.state.unit.image_rev})


def ask_or_none(unit):
    try:
        return ask(unit, "GET", "system/firmware")[2]
    except OSError:
        return None


def test_random_bytes_end_in_an_answer_or_a_closed_connection(unit):
    for number, port in enumerate([unit.port, unit.lines_port] * 4):
        with socket.create_connection((unit.address, port), 20) as client:
            client.sendall(bytes((number * 37 + place * 101) % 256 for place in range(700)) + b"\r\n\r\n\n")
            client.shutdown(socket.SHUT_WR)
            while client.recv(4096):
                pass
    assert ask(unit, "GET", "system/firmware")[0] == 200
