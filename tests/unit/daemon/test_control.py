"""Commands to a running daemon over a Unix socket."""

import asyncio
import json
import socket
import stat
from functools import partial
from types import SimpleNamespace

import pytest

from hilsim.config.rig import Rig, RigSpec
from hilsim.daemon.control.client import Client
from hilsim.daemon.control.grammar import in_words, parse_words
from hilsim.daemon.control.line_server import serve_lines
from hilsim.daemon.control.requests import answer_at_once
from hilsim.daemon.health import HealthMonitor
from hilsim.daemon.parts import RigContext, played
from hilsim.emulator.retime import StampClock
from hilsim.errors import ConfigError, TransmitError
from hilsim.parts.replays.part import Replays
from hilsim.parts.replays.specs import ReplaySpec
from hilsim.protocols.ethernet import PAYLOAD_ONLY
from hilsim.telemetry.faults import Fault
from hilsim.telemetry.readings import Reading
from hilsim.transmit.ring import allocate_rings
from hilsim.transmit.scheduling import ThreadSettings
from tests.unit.replays.streams import Recording

FAR_FUTURE_NS = 1 << 60


@pytest.fixture
def running(tmp_path):
    """Two replays that wait for a beginning in the far future: the part of a running rig that commands are for."""
    path = Recording().add_turning(1507).write(tmp_path / "turning.pcap")
    specs = tuple(ReplaySpec(name=name, file=path.name) for name in ("front", "rear"))
    replays = Replays(RigContext(rig=Rig(path=path, spec=RigSpec(name="none", parts={"replay": specs}), lidars=())))
    replays.prepare()
    for each in replays.playing.values():
        each.replay_source.open(allocate_rings(1, 64, 2048), lambda _track: (0, PAYLOAD_ONLY), ThreadSettings(scheduling="plain"))
        each.replay_source.start(FAR_FUTURE_NS, StampClock(0, 0))
        replays._started[each.spec.name] = each.replay_source
    yield SimpleNamespace(played=partial(played, [replays]), reading=lambda: replays.add_reading(Reading(), 0))
    replays.stop()


def obey(running, line):
    """Answer to a command."""
    return in_words(answer_at_once(running, parse_words(line)))


def states(running):
    return {name: each.state() for name, each in running.played().items()}


def paused(running):
    return {name: state.is_paused for name, state in states(running).items()}


# -- commands ---------------------------------------------------------------------------------------------------------------------------


def test_one_replay_or_all_of_them_are_held_back_and_let_go(running):
    assert obey(running, "pause rear") == "ok"
    assert paused(running) == {"front": False, "rear": True}
    assert obey(running, "pause\n") == "ok"
    assert paused(running) == {"front": True, "rear": True}
    assert obey(running, "resume front") == "ok"
    assert paused(running) == {"front": False, "rear": True}
    assert obey(running, "resume") == "ok"
    assert paused(running) == {"front": False, "rear": False}


def test_seeking_is_asked_of_the_named_replay_alone(running):
    assert obey(running, "seek 1.25 front") == "ok"
    assert running.played()["front"]._seek_ns in {1_250_000_000, None}  # None: the reading thread has taken it already
    assert running.played()["rear"]._seek_ns is None


def test_status_tells_every_replay(running):
    status = json.loads(obey(running, "status"))
    assert [replay["replay"] for replay in status["replays"]] == ["front", "rear"]
    assert {"position_s", "passes", "played_packets", "underruns", "is_paused", "has_ended", "ratio"} <= status["replays"][0].keys()


def test_health_tells_level_faults_and_the_last_minute():
    fault = Fault(key="sensor_silent", subject="front", text="no data packet for 2.0 s")
    monitor = HealthMonitor()
    told = json.loads(obey(SimpleNamespace(reading=lambda: Reading(faults=(fault,)), health=monitor), "health"))
    assert (told["level"], told["faults"][0]["text"]) == ("unhealthy", "no data packet for 2.0 s")
    assert (told["step_s"], told["counters"], told["recorded"]) == (5, {}, [])


@pytest.mark.parametrize("line", ["", "dance", "pause front rear", "seek", "seek 1 front rear", "status front", "PAUSE"])
def test_an_invalid_command_is_answered_with_the_valid_ones(running, line):
    with pytest.raises(
        ConfigError, match=rf'a command must be pause \[NAME\], resume \[NAME\], seek SECONDS \[NAME\], status or health, got "{line}"'
    ):
        obey(running, line)


@pytest.mark.parametrize("line", ["pause side", "resume side", "seek 1 side"])
def test_a_name_that_is_not_there_is_answered_with_those_that_are(running, line):
    with pytest.raises(ConfigError, match="a replay must be one of front, rear, got side"):
        obey(running, line)
    assert paused(running) == {"front": False, "rear": False}


@pytest.mark.parametrize("position", ["-1", "nan", "inf", "1e9", "soon"])
def test_a_position_that_cannot_be_is_refused(running, position):
    with pytest.raises(ConfigError, match=f"a position must be 0 to 1e8 s, got {position}"):
        obey(running, f"seek {position}")


# -- the socket -------------------------------------------------------------------------------------------------------------------------


def over_socket(running, path, *lines):
    """The answers that a client gets to lines of bytes, one connection each."""

    async def ask():
        async with serve_lines(running, path):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            answers = []
            for line in lines:
                reader, writer = await asyncio.open_unix_connection(path)
                writer.write(line)
                writer.write_eof()
                answers.append((await reader.read()).decode())
                writer.close()
            return answers

    return asyncio.run(ask())


def test_commands_are_obeyed_over_a_socket_for_this_user_alone_that_is_gone_afterwards(running, tmp_path):
    path = tmp_path / "control"
    assert over_socket(running, path, b"pause\n", b"resume front\npause rear\nstatus\n") == ["ok\n", f"ok\nok\n{obey(running, 'status')}\n"]
    assert paused(running) == {"front": False, "rear": True}
    assert not path.exists()


def test_a_refused_command_is_answered_and_the_connection_stays_open(running, tmp_path):
    answers = over_socket(running, tmp_path / "control", b"dance\npause side\npause\n", b"\xff\xfe\n", b"pau")
    assert [line.split(":")[0] for line in answers[0].splitlines()] == ["error", "error", "ok"]
    assert answers[1].startswith("error: a command must be")
    assert answers[2] == ""


def test_a_line_without_end_is_refused(running, tmp_path):
    assert over_socket(running, tmp_path / "control", b"x" * 70_000) == ["error: a request must be at most 65536 bytes\n"]


def test_a_command_in_words_is_short(running, tmp_path):
    answers = over_socket(running, tmp_path / "control", b"pause " + b"x" * 1100 + b"\n")
    assert answers == ["error: the control socket: a command must be at most 1,024 bytes, got 1,107 bytes\n"]


def test_without_a_path_there_is_no_socket(running):
    async def nothing():
        async with serve_lines(running, None):
            return True

    assert asyncio.run(nothing())


def told(running, path, *lines):
    async def ask():
        async with serve_lines(running, path):
            return [await asyncio.to_thread(Client(path).exchange, line) for line in lines]

    return asyncio.run(ask())


def test_a_client_tells_and_is_answered(running, tmp_path):
    answers = told(running, tmp_path / "control", "pause front", "status", "pause side")
    assert answers[0] == "ok"
    assert json.loads(answers[1])["replays"][0]["is_paused"]
    assert answers[2] == "error: a replay must be one of front, rear, got side"


def test_a_long_answer_arrives_whole(tmp_path):
    readings = [{"replay": "x" * 1000}] * 300

    async def ask(path):
        async def answer(reader, writer):
            await reader.readline()
            writer.write(json.dumps(readings).encode() + b"\n")
            await writer.drain()
            writer.close()

        async with await asyncio.start_unix_server(answer, path):
            return await asyncio.to_thread(Client(path).exchange, "status")

    assert json.loads(asyncio.run(ask(tmp_path / "long"))) == readings


@pytest.mark.parametrize(("name", "reason"), [("missing/control", "No such file or directory"), ("x" * 150, "AF_UNIX path too long")])
def test_a_path_that_cannot_be_made_is_named_with_the_reason(running, tmp_path, name, reason):
    with pytest.raises(TransmitError, match=rf"the control socket must be a path that can be created, got .*{name}: {reason}"):
        over_socket(running, tmp_path / name)


def test_a_file_that_is_no_socket_is_left_alone(running, tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    with pytest.raises(TransmitError, match=r"must be a path that can be created, got .*notes\.txt: Address already in use"):
        over_socket(running, path)
    assert path.read_text() == "mine"


def test_the_socket_of_a_daemon_that_died_is_replaced(running, tmp_path):
    path = tmp_path / "control"
    with socket.socket(socket.AF_UNIX) as abandoned:
        abandoned.bind(str(path))
    assert path.is_socket()
    assert over_socket(running, path, b"pause\n") == ["ok\n"]


def test_the_socket_of_a_daemon_that_lives_is_not_taken_from_it(running, tmp_path):
    path = tmp_path / "control"

    async def second():
        async with serve_lines(running, path):
            with pytest.raises(TransmitError, match=r"the control socket must belong to one daemon only, got .*control, where another one listens"):
                async with serve_lines(running, path):
                    pass
            return await asyncio.to_thread(Client(path).exchange, "pause")

    assert asyncio.run(second()) == "ok"


def test_a_client_that_only_waits_is_let_go_when_the_daemon_ends(running, tmp_path):
    async def wait():
        async with serve_lines(running, tmp_path / "control"):
            reader, writer = await asyncio.open_unix_connection(tmp_path / "control")
            writer.write(b"pause\n")
            assert await reader.readline() == b"ok\n"
        rest = await asyncio.wait_for(reader.read(), 10)
        writer.close()
        return rest, len(asyncio.all_tasks())

    assert asyncio.run(wait()) == (b"", 1)


def test_a_path_without_a_listener_is_reported(tmp_path):
    with pytest.raises(
        TransmitError, match=r"a daemon must listen at .*control, got No such file or directory; \[control\] socket in its rig sets the place"
    ):
        Client(tmp_path / "control").exchange("status")


def test_a_daemon_that_hangs_up_without_an_answer_is_a_fault(tmp_path):
    async def ask():
        async def hang_up(_reader, writer):
            writer.close()

        async with await asyncio.start_unix_server(hang_up, tmp_path / "control"):
            return await asyncio.to_thread(Client(tmp_path / "control").exchange, "pause")

    with pytest.raises(TransmitError, match=r"the daemon at .*control must answer within 10 s, got nothing"):
        asyncio.run(ask())
