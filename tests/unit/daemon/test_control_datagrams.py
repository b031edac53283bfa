"""Commands to a running daemon by UDP: obeyed from whom the rig names, refused and counted from anybody and anything else."""

import asyncio
import json
import socket

import pytest
import structlog

from hilsim.config.rig import ControlSpec
from hilsim.daemon.control import client, datagram_server
from hilsim.daemon.control.client import Client
from hilsim.daemon.control.datagram_server import CommandPort, serve_datagrams
from hilsim.daemon.control.grammar import COMMANDS
from hilsim.daemon.control.requests import REQUESTS
from hilsim.errors import ConfigError, TransmitError
from hilsim.limits import CONTROL_COMMANDS_A_SECOND, CONTROL_LINE_BYTES
from hilsim.telemetry.readings import CommandCounts
from tests.unit.daemon.test_control import paused, running  # noqa: F401 - a fixture for these tests too

FREE = ControlSpec(listen="127.0.0.1:0")


@pytest.fixture
def counted(running):  # noqa: F811 - pytest hands fixtures over by name
    running.commands = CommandCounts()
    return running


def refused(running):  # noqa: F811
    return {reason.value: count for reason, count in running.commands.refused.items() if count}


def told(running, *lines, spec=FREE):  # noqa: F811
    """The answers that ``hilsim control udp:…`` gets, one command after the other."""

    async def ask():
        async with serve_datagrams(running, spec) as (host, port):
            return [await asyncio.to_thread(Client(f"udp:{host}:{port}").exchange, line) for line in lines]

    return asyncio.run(ask())


def test_commands_are_obeyed_and_answered(counted):
    answers = told(counted, "pause rear", "status", "resume")
    assert [answers[0], answers[2]] == ["ok", "ok"]
    assert [replay["is_paused"] for replay in json.loads(answers[1])["replays"]] == [False, True]
    assert paused(counted) == {"front": False, "rear": False}
    assert (counted.commands.obeyed, refused(counted)) == (3, {})


def test_a_datagram_of_any_program_will_do_with_an_end_of_line_or_without(counted):
    async def ask():
        async with serve_datagrams(counted, FREE) as address:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as program:
                program.settimeout(60)
                program.connect(address)
                answers = []
                for datagram in (b"pause", b"resume\n", b"pause front\r\n"):
                    program.send(datagram)
                    answers.append(await asyncio.to_thread(program.recv, 100))
                return answers

    assert asyncio.run(ask()) == [b"ok\n"] * 3


def test_requests_in_json_are_the_same_as_words(counted):
    answers = told(counted, '{"id": 1, "do": "pause", "replay": "rear"}', '{"do": "status"}', '{"do": "seek", "position_s": -1}')
    paused_, status, refusal = map(json.loads, answers)
    assert paused_ == {"id": 1, "ok": True}
    assert [replay["is_paused"] for replay in status["replays"]] == [False, True]
    assert refusal == {"ok": False, "error": "position_s: a position must be 0 to 1e8 s, got -1"}
    assert (counted.commands.obeyed, refused(counted)) == (2, {"not_a_command": 1})


def test_only_commands_come_by_datagram(counted):
    port = CommandPort(running=counted, peers=frozenset())
    for request in (kind for kind in REQUESTS if kind not in COMMANDS):
        answer = json.loads(port.answer(json.dumps({"do": request}).encode(), "127.0.0.1"))
        assert answer["error"].startswith("do must be one of pause, resume, seek, status, health in a datagram")
        with pytest.raises(ConfigError, match="requests but pause, resume, seek, status, health must go to the control socket"):
            Client("udp:127.0.0.1:9").ask({"do": request})
    assert not any(REQUESTS[command].elsewhere for command in COMMANDS)


@pytest.mark.parametrize(
    "datagram",
    [
        b"",
        b"\0" * 100,
        b"\xff\xfe",
        b"pause\nresume",
        b"pause\nrear",
        b"pause\x1crear",
        b"dance",
        b"pause side",
        b"seek nan",
        "páuse".encode(),
        b"\x1b[2Jpause",
    ],
)
def test_an_invalid_command_is_answered_by_an_error_and_counted(counted, datagram):
    port = CommandPort(running=counted, peers=frozenset())
    assert port.answer(datagram, "127.0.0.1").startswith(b"error: ")
    assert (counted.commands.obeyed, refused(counted)) == (0, {"not_a_command": 1})
    assert paused(counted) == {"front": False, "rear": False}


def test_datagrams_longer_than_a_command_are_not_read(counted):
    port = CommandPort(running=counted, peers=frozenset())
    assert port.answer(b"pause" + b" " * CONTROL_LINE_BYTES.bound, "127.0.0.1") == b""
    assert refused(counted) == {"too_long": 1}
    assert paused(counted) == {"front": False, "rear": False}


def test_strangers_get_no_answer(counted):
    port = CommandPort(running=counted, peers=frozenset({"192.168.1.77"}))
    assert port.answer(b"pause", "192.168.1.78") == b""
    assert port.answer(b"pause front", "192.168.1.77") == b"ok\n"
    assert (counted.commands.obeyed, refused(counted)) == (1, {"stranger": 1})
    assert paused(counted) == {"front": True, "rear": False}


def test_a_flood_is_refused_beyond_its_limit_and_is_obeyed_again_after_it(counted):
    now_s = 100.0
    port = CommandPort(running=counted, peers=frozenset(), now_s=lambda: now_s)
    answers = [port.answer(b"pause", "127.0.0.1") for _ in range(500)]
    assert answers.count(b"ok\n") == CONTROL_COMMANDS_A_SECOND.bound
    assert answers[-1] == b""
    now_s += 0.1
    assert port.answer(b"resume", "127.0.0.1") == b"ok\n"
    assert refused(counted) == {"too_many": 500 - CONTROL_COMMANDS_A_SECOND.bound}


def test_refusals_are_logged_once_for_each_reason(counted):
    port = CommandPort(running=counted, peers=frozenset())
    with structlog.testing.capture_logs() as said:
        for _ in range(3):
            port.answer(b"dance", "127.0.0.1")
    assert [(event["event"], event["reason"], event["peer"]) for event in said] == [("control.datagram_refused", "not_a_command", "127.0.0.1")]


def test_an_answer_larger_than_a_datagram_is_reported_as_such(counted, monkeypatch):
    monkeypatch.setattr(datagram_server, "answer_at_once", lambda _connection, _request: {"ok": True, "text": "x" * 69_988})
    port = CommandPort(running=counted, peers=frozenset())
    assert port.answer(b"health", "127.0.0.1") == b"error: the answer has 70001 bytes, more than fit into a datagram: use the control socket\n"


def test_an_error_of_this_program_does_not_end_the_port(counted, monkeypatch):
    monkeypatch.setattr("hilsim.telemetry.guarded._AGAIN_S", 0.0)
    honest, calls = datagram_server.answer_at_once, []

    def spoilt(connection, request):
        calls.append(request)
        if len(calls) == 1:
            raise KeyError("pause")
        return honest(connection, request)

    monkeypatch.setattr(datagram_server, "answer_at_once", spoilt)

    async def ask():
        async with serve_datagrams(counted, FREE) as (host, port):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as program:
                program.sendto(b"pause", (host, port))
            while not calls:  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(0.001)
            return await asyncio.to_thread(Client(f"udp:{host}:{port}").exchange, "pause")

    with structlog.testing.capture_logs() as said:
        assert asyncio.run(ask()) == "ok"
    assert "helper.failed" in [event["event"] for event in said]


def test_a_port_that_another_has_is_refused_before_anything_is_sent(counted):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        with pytest.raises(TransmitError, match=r"control\.listen must be a free port of this host, got 127\.0\.0\.1:\d+: Address already in use"):
            told(counted, spec=ControlSpec(listen=f"127.0.0.1:{other.getsockname()[1]}"))


def test_a_port_without_a_listener_is_reported_at_once():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
    with pytest.raises(TransmitError, match=rf"a daemon must listen at udp:127\.0\.0\.1:{port}, got Connection refused"):
        Client(f"udp:127.0.0.1:{port}").exchange("pause")


def test_silence_is_reported_after_a_while(monkeypatch):
    monkeypatch.setattr(client, "_DATAGRAM_ANSWER_S", 0.2)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        with pytest.raises(TransmitError, match="must answer within 0 s, got nothing"):
            Client(f"udp:127.0.0.1:{silent.getsockname()[1]}").exchange("pause")


@pytest.mark.parametrize(
    ("keys", "fault"),
    [
        ({"listen": "9465"}, "listen must be ADDRESS:PORT like 127.0.0.1:9465, got"),
        ({"listen": "host:9465"}, "listen must be ADDRESS:PORT"),
        ({"listen": "127.0.0.1:70000"}, "listen must be ADDRESS:PORT"),
        ({"listen": "0.0.0.0:9465"}, r"peers must be given where listen is no loopback address, got none for 0\.0\.0\.0:9465"),
        ({"listen": "0.0.0.0:9465", "peers": ("bench",)}, 'peers must be IPv4 addresses, got "bench"'),
    ],
)
def test_the_rig_sets_who_may_command(keys, fault):
    with pytest.raises(ValueError, match=fault):
        ControlSpec(**keys)
