"""The client of a daemon's control socket: typed answers, clear refusals."""

import asyncio
import json

import pytest

from hilsim.api.control import Control
from hilsim.config.rig import ControlSpec
from hilsim.daemon.control.datagram_server import serve_datagrams
from hilsim.daemon.control.http_listening import serve_http
from hilsim.daemon.control.line_server import serve_lines
from hilsim.errors import ConfigError, TransmitError
from hilsim.telemetry.readings import CommandCounts, HttpCounts
from tests.unit.daemon.test_control import paused, running  # noqa: F401 - a fixture for these tests too


def asked(running, path, ask):  # noqa: F811
    """What ``ask`` makes of a client, while commands are obeyed at a socket."""

    async def serve():
        async with serve_lines(running, path):
            return await asyncio.to_thread(ask, Control(path))

    return asyncio.run(serve())


def answering(path, answer, ask):
    """What ``ask`` makes of a client of a program that answers every command alike."""

    async def serve():
        async def converse(reader, writer):
            await reader.readline()
            writer.write(answer.encode() + b"\n")
            await writer.drain()
            writer.close()

        async with await asyncio.start_unix_server(converse, path):
            return await asyncio.to_thread(ask, Control(path))

    return asyncio.run(serve())


def test_one_replay_is_paused_and_all_go_on(running, tmp_path):  # noqa: F811
    def ask(control):
        control.pause("rear")
        states = {replay.replay: replay.is_paused for replay in control.status().replays}
        control.resume()
        return states

    assert asked(running, tmp_path / "control", ask) == {"front": False, "rear": True}
    assert paused(running) == {"front": False, "rear": False}


def test_the_client_speaks_udp_too(running):  # noqa: F811
    running.commands = CommandCounts()

    async def serve():
        async with serve_datagrams(running, ControlSpec(listen="127.0.0.1:0")) as (host, port):
            await asyncio.to_thread(Control(f"udp:{host}:{port}").pause)

    asyncio.run(serve())
    assert paused(running) == {"front": True, "rear": True}


def asked_over_http(running, folder, ask):  # noqa: F811
    """What ``ask`` makes of a client, while requests are answered over HTTP."""
    running.http = HttpCounts()

    async def serve():
        async with serve_http(running, ControlSpec(http="127.0.0.1:0"), folder) as (host, port):
            return await asyncio.to_thread(ask, Control(f"http://{host}:{port}", token_file=folder / "control.token"))

    return asyncio.run(serve())


def test_the_client_speaks_http_too(running, tmp_path):  # noqa: F811
    asked_over_http(running, tmp_path, lambda control: control.pause("rear"))
    assert paused(running) == {"front": False, "rear": True}
    asked_over_http(running, tmp_path, lambda control: control.resume())
    assert paused(running) == {"front": False, "rear": False}
    with pytest.raises(ConfigError, match="a replay must be one of front, rear, got side"):
        asked_over_http(running, tmp_path, lambda control: control.seek(1.5, "side"))
    with pytest.raises(ConfigError, match="a position must be 0 to 1e8 s, got -1"):
        asked_over_http(running, tmp_path, lambda control: control.seek(-1))


def test_the_client_finds_a_daemon_by_the_name_of_its_host(running, tmp_path):  # noqa: F811
    running.http = HttpCounts()

    async def serve():
        async with serve_http(running, ControlSpec(http="127.0.0.1:0"), tmp_path) as (_, port):
            return await asyncio.to_thread(Control(f"http://localhost:{port}", token_file=tmp_path / "control.token").status)

    assert [replay.replay for replay in asyncio.run(serve()).replays] == ["front", "rear"]


@pytest.mark.parametrize(
    ("address", "keys", "reason"),
    [
        ("http://127.0.0.1:9466", {}, "token or token_file must be given for http://127.0.0.1:9466, got none"),
        ("http://127.0.0.1:9466", {"token": "x" * 20, "token_file": "a"}, "got both"),
        ("http://127.0.0.1:9466", {"token": "x" * 20 + "\r\nX: y"}, "token must hold 16 to 512 characters of printable ASCII without blanks"),
        ("http://127.0.0.1:9466", {"token_file": "/nowhere/token"}, "token_file must be a readable file, got /nowhere/token: No such file"),
        ("http://127.0.0.1", {"token": "x" * 20}, "ADDRESS must be http://HOST:PORT"),
        ("http://127.0.0.1:9466/v1", {"token": "x" * 20}, "ADDRESS must be http://HOST:PORT"),
        ("http://a@127.0.0.1:9466", {"token": "x" * 20}, "ADDRESS must be http://HOST:PORT"),
        ("http://127.0.0.1:x", {"token": "x" * 20}, "ADDRESS must be http://HOST:PORT"),
        ("control", {"token": "x" * 20}, "a token must come with an address http://HOST:PORT, got control"),
    ],
)
def test_an_address_or_token_that_cannot_be_used_is_refused(address, keys, reason):
    with pytest.raises(ConfigError, match=reason):
        Control(address, **keys)


def test_a_daemon_that_is_not_there_is_reported_over_http():
    with pytest.raises(TransmitError, match=r"a daemon must listen at http://127\.0\.0\.1:1, got Connection refused; \[control\] http in its rig"):
        Control("http://127.0.0.1:1", token="x" * 20).state()


def test_refusals_of_the_daemon_are_raised(running, tmp_path):  # noqa: F811
    with pytest.raises(ConfigError, match="a replay must be one of front, rear, got side"):
        asked(running, tmp_path / "control", lambda control: control.seek(1.5, "side"))


@pytest.mark.parametrize("name", ["", "front\nresume", "front rear"])
def test_a_name_cannot_be_another_command(name):
    with pytest.raises(ConfigError, match="a replay must be named by one word, got"):
        Control("/nowhere/control").pause(name)


def test_health_is_read_with_its_faults_and_what_a_newer_daemon_adds_is_left_out(tmp_path):
    fault = {"fault": "packets_missed", "subject": "roof", "level": "degraded", "text": "3 packets", "for_s": 2.0, "colour": "red"}
    answer = {"level": "degraded", "healthy": False, "faults": [fault], "step_s": 5, "counters": {"roof/data dropped": [0, 3]}, "recorded": []}
    health = answering(tmp_path / "control", json.dumps(answer), lambda control: control.health())
    assert (health.level, health.healthy, health.counters) == ("degraded", False, {"roof/data dropped": (0, 3)})
    assert [(found.fault, found.subject, found.for_s) for found in health.faults] == [("packets_missed", "roof", 2.0)]


def test_an_answer_of_another_version_is_named(tmp_path):
    with pytest.raises(TransmitError, match="must be of this version of hilsim, got an answer without level, healthy, step_s"):
        answering(tmp_path / "control", "{}", lambda control: control.health())
    with pytest.raises(TransmitError, match="must answer with a JSON object, got 'ok'"):
        answering(tmp_path / "again", "ok", lambda control: control.status())


def test_an_address_in_no_form_is_refused():
    with pytest.raises(ConfigError, match="ADDRESS must be udp:HOST:PORT with a port of 1 to 65535, got udp:here"):
        Control("udp:here")
