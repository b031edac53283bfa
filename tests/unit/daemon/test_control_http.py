"""Requests over HTTP and WebSocket: answered for those who have the token, and refused, counted and bounded for everybody else."""

import asyncio
import http.client
import json
import os
import stat
from contextlib import suppress
from types import SimpleNamespace

import aiohttp
import pytest
import structlog

from hilsim.config.rig import ControlSpec
from hilsim.daemon.control import conversation, http_server
from hilsim.daemon.control.http_listening import serve_http
from hilsim.daemon.control.line_server import serve_lines
from hilsim.daemon.control.openapi import description
from hilsim.daemon.control.requests import REQUESTS
from hilsim.daemon.control.token_file import read_or_make_token
from hilsim.daemon.health import HealthMonitor
from hilsim.daemon.parts import RigClock
from hilsim.errors import ConfigError, TransmitError
from hilsim.limits import CONNECTIONS, CONTROL_REQUEST_BYTES, CONTROL_REQUESTS_A_SECOND, TOKENLESS_STREAMS, Limit
from hilsim.telemetry import guard
from hilsim.telemetry.allowance import Allowance
from hilsim.telemetry.readings import HttpCounts
from tests.unit.telemetry.conftest import make_reading

SPEC = ControlSpec(http="127.0.0.1:0")
STATE = {"id": 7, "do": "state"}
SOON = Limit(subject="time", bound=0.3, unit="s")


class Changes:
    """Makes every change at rig time 2."""

    def __init__(self):
        self.made = []

    async def make(self, change):
        self.made.append(change)
        return SimpleNamespace(change=change, at_ns=2_000_000_000, begun_ns={"roof": 2_000_000_000})


@pytest.fixture
def running():
    """The part of a running rig that requests are for."""
    changes = Changes()
    return SimpleNamespace(
        http=HttpCounts(),
        rig=SimpleNamespace(name="bench"),
        clock=RigClock(),
        live_pose=None,
        live_packets=None,
        reading=make_reading,
        health=HealthMonitor(),
        changes=changes,
        changer=SimpleNamespace(made=changes.made, object_names=lambda: ["walker"]),
        injected=lambda _rig_ns: (),
    )


class Client:
    """Requests by hand."""

    def __init__(self, port, token):
        self.port, self.token = port, token
        self.host = f"127.0.0.1:{port}"
        self.authorised = {"Authorization": f"Bearer {token}"}

    async def raw(self, data):
        """Everything that is answered to bytes, up to the end of the connection."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(data)
        answer = b""
        with suppress(ConnectionError):
            answer = await asyncio.wait_for(reader.read(), 15)
        writer.close()
        return answer

    async def ask(self, method="POST", path="/v1/request", body=b"", **headers):
        """Status and JSON of an answer."""
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = {"Host": self.host, "Authorization": f"Bearer {self.token}", "Content-Length": str(len(body)), "Connection": "close"} | headers
        head = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items() if value is not None)
        answer = await self.raw(head.encode() + b"\r\n" + body)
        top, _, content = answer.partition(b"\r\n\r\n")
        try:
            return int(top.split()[1]), json.loads(content)
        except ValueError:
            return int(top.split()[1]), content


def served(running, folder, check):
    """What ``check`` makes of a client, while requests are answered."""

    async def serve():
        async with serve_http(running, SPEC, folder) as (_, port):
            found = await check(Client(port, (folder / "control.token").read_text().strip()))
        assert len(asyncio.all_tasks()) == 1
        return found

    return asyncio.run(serve())


def refused(running):
    return {reason.value: count for reason, count in running.http.refused.items() if count}


# -- requests ---------------------------------------------------------------------------------------------------------------------------


def test_a_request_is_answered_as_at_the_socket(running, tmp_path):
    status, answer = served(running, tmp_path, lambda client: client.ask(body=STATE))
    assert (status, answer["ok"], answer["id"], answer["rig"], answer["objects"]) == (200, True, 7, "bench", ["walker"])
    assert (running.http.answered, refused(running)) == (1, {})


def test_a_change_is_made(running, tmp_path):
    change = {"do": "change", "change": {"kind": "move", "name": "walker", "position_m": [4.0, 1.0, 0.85]}}
    status, answer = served(running, tmp_path, lambda client: client.ask(body=change))
    assert (status, answer) == (200, {"ok": True, "at_s": 2.0, "sensors": {"roof": 2.0}})
    assert running.changes.made[0].name == "walker"


def test_a_request_that_cannot_be_done_is_answered_with_the_reason(running, tmp_path):
    status, answer = served(running, tmp_path, lambda client: client.ask(body={"id": "a", "do": "explode"}))
    assert (status, answer["ok"], answer["id"]) == (200, False, "a")
    assert answer["error"].startswith("do must be one of help, change,")


def test_events_cannot_be_sent_after_a_single_answer(running, tmp_path):
    status, answer = served(running, tmp_path, lambda client: client.ask(body={"do": "subscribe"}))
    assert (status, answer["ok"]) == (200, False)
    assert answer["error"].startswith("subscribe must come over a WebSocket (/v1/stream) or the control socket")


def test_the_requests_are_listed_without_a_token(running, tmp_path):
    status, answer = served(running, tmp_path, lambda client: client.ask("GET", "/v1/help", Authorization=None))
    assert (status, answer["ok"], answer["requests"].keys()) == (200, True, REQUESTS.keys())


def test_the_openapi_document_is_served_and_resolves_each_of_its_references(running, tmp_path):
    status, document = served(running, tmp_path, lambda client: client.ask("GET", "/v1/openapi.json", Authorization=None))
    assert (status, document) == (200, json.loads(json.dumps(description())))
    assert document["openapi"] == "3.1.0"
    references = [part.partition('"')[0] for part in json.dumps(document).split('"$ref": "#/components/schemas/')[1:]]
    assert set(references) == document["components"]["schemas"].keys()
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    assert len({operation["operationId"] for operation in operations}) == len(operations) == 5
    assert all(answer["description"] for operation in operations for answer in operation["responses"].values())


# -- refusals ---------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "status", "reason"),
    [
        ({"Authorization": None}, 401, "unauthorised"),
        ({"Authorization": "Bearer wrong"}, 401, "unauthorised"),
        ({"Authorization": "Bearer"}, 401, "unauthorised"),
        ({"Authorization": "Bearer \xff\xfe"}, 401, "unauthorised"),
        ({"Authorization": "Basic dTpw"}, 401, "unauthorised"),
        ({"Host": "bench.example"}, 403, "foreign"),
        ({"Host": "127.0.0.1"}, 403, "foreign"),
        ({"Host": "bench.example", "Authorization": None}, 403, "foreign"),
        ({"Origin": "http://bench.example"}, 403, "foreign"),
        ({"Origin": "null"}, 403, "foreign"),
        ({"Content-Length": "70000"}, 413, "too_long"),
    ],
)
def test_a_request_that_may_not_be_answered_is_refused_and_counted(running, tmp_path, headers, status, reason):
    got, answer = served(running, tmp_path, lambda client: client.ask(body=STATE, **headers))
    assert (got, answer["ok"]) == (status, False)
    assert (running.http.answered, refused(running)) == (0, {reason: 1})


def test_a_foreign_origin_is_refused_before_anything_else(running, tmp_path):
    status, _ = served(running, tmp_path, lambda client: client.ask("DELETE", "/nowhere", Origin="https://bench.example"))
    assert (status, refused(running)) == (403, {"foreign": 1})


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LOCALHOST"])
def test_the_server_has_two_names(running, tmp_path, name):
    async def check(client):
        place = f"{name}:{client.port}"
        return await client.ask(body=STATE, Host=place, Origin=f"http://{place}")

    assert served(running, tmp_path, check)[0] == 200


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/v1/request", 405), ("POST", "/v1/stream", 405), ("GET", "/", 404)])
def test_another_method_or_path_is_refused(running, tmp_path, method, path, status):
    assert served(running, tmp_path, lambda client: client.ask(method, path))[0] == status


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b"7", b"\xff", b'{"do":' * 5000, b'{"position_s": NaN}'])
def test_a_body_that_is_no_json_object_is_refused(running, tmp_path, body):
    status, answer = served(running, tmp_path, lambda client: client.ask(body=body))
    assert (status, answer["ok"]) == (400, False)
    assert answer["error"].startswith("a request must be a JSON object, got")
    assert refused(running) == {"not_a_request": 1}


def test_a_body_of_the_longest_length_is_read_and_a_longer_one_in_pieces_is_refused(running, tmp_path):
    longest = json.dumps(STATE).encode().ljust(CONTROL_REQUEST_BYTES.bound)

    async def check(client):
        piece = b"8000\r\n" + b" " * 0x8000 + b"\r\n"
        chunked = {"Content-Length": None, "Transfer-Encoding": "chunked"}
        return await client.ask(body=longest), await client.ask(body=piece * 40 + b"0\r\n\r\n", **chunked)

    accepted, too_long = served(running, tmp_path, check)
    assert accepted[0] == 200
    assert too_long[0] == 413


def test_a_compressed_body_is_not_unpacked(running, tmp_path):
    bomb = __import__("zlib").compress(b" " * 50_000_000)
    assert served(running, tmp_path, lambda client: client.ask(body=bomb, **{"Content-Encoding": "deflate"}))[0] == 400


def test_half_a_request_is_given_up(running, tmp_path, monkeypatch):
    monkeypatch.setattr(http_server, "REQUEST_S", SOON)
    status, answer = served(running, tmp_path, lambda client: client.ask(body=b'{"do": ', **{"Content-Length": "100"}))
    assert (status, answer["ok"], refused(running)) == (408, False, {"too_slow": 1})


@pytest.mark.parametrize("data", [b"\0" * 100, b"\x16\x03\x01\x02\0\x01\0", b"pause\n\n", b"GET / HTTP/9.9\r\n\r\n", b"\r\n\r\n{}\r\n\r\n"])
def test_bytes_that_are_not_http_are_refused_and_the_server_goes_on(running, tmp_path, data):
    async def check(client):
        return await client.raw(data), await client.ask(body=STATE)

    answer, (status, _) = served(running, tmp_path, check)
    assert answer.startswith(b"HTTP/1.")
    assert answer.split()[1] in {b"400", b"403", b"505"}
    assert status == 200


def test_a_burst_is_refused_beyond_its_limit(running, tmp_path):
    def burst(client):
        connection, statuses = http.client.HTTPConnection("127.0.0.1", client.port, timeout=60), []
        for _ in range(1000):
            connection.request("POST", "/v1/request", body='{"do": "help"}', headers=client.authorised)
            response = connection.getresponse()
            response.read()
            statuses.append(response.status)
        connection.close()
        return statuses

    async def check(client):
        begun_s = asyncio.get_running_loop().time()
        statuses = await asyncio.to_thread(burst, client)
        return statuses, asyncio.get_running_loop().time() - begun_s

    statuses, taken_s = served(running, tmp_path, check)
    accepted = statuses.count(200)
    assert set(statuses) <= {200, 429}
    assert CONTROL_REQUESTS_A_SECOND.bound <= accepted <= CONTROL_REQUESTS_A_SECOND.bound * (1.0 + taken_s) + 1
    assert (running.http.answered, refused(running).get("too_many", 0)) == (accepted, 1000 - accepted)


def test_strangers_do_not_use_up_the_allowance_of_those_with_the_token(running, tmp_path):
    async def check(client):
        statuses = [(await client.ask(Authorization=None))[0] for _ in range(3)]
        server_side = [allowance for allowance in made if allowance.most == CONTROL_REQUESTS_A_SECOND.bound]
        strangers = server_side[1]
        while strangers.take():
            pass
        return statuses, (await client.ask(Authorization=None))[0], (await client.ask(body=STATE))[0]

    made = []
    stopped = SimpleNamespace(now_s=0.0)

    def make(most):
        made.append(Allowance(most=most, now_s=lambda: stopped.now_s))
        return made[-1]

    original, http_server.Allowance = http_server.Allowance, make
    try:
        assert served(running, tmp_path, check) == ([401, 401, 401], 429, 200)
    finally:
        http_server.Allowance = original


def test_an_allowance_comes_back_with_time():
    now_s = 50.0
    allowance = Allowance(most=200, now_s=lambda: now_s)
    assert sum(allowance.take() for _ in range(500)) == 200
    now_s += 0.1
    assert sum(allowance.take() for _ in range(500)) == 20


def test_connections_beyond_the_bound_take_the_places_of_the_oldest(running, tmp_path):
    async def check(client):
        assert (await client.ask(body=STATE))[0] == 200
        connections = [await asyncio.open_connection("127.0.0.1", client.port) for _ in range(100)]

        async def is_closed(reader):
            with suppress(TimeoutError):
                return await asyncio.wait_for(reader.read(12), 1.0) == b""
            return False

        closed = await asyncio.gather(*(is_closed(reader) for reader, _ in connections))
        for _, writer in connections:
            writer.close()
        return closed

    closed = served(running, tmp_path, check)
    assert closed == [True] * (100 - CONNECTIONS.bound) + [False] * CONNECTIONS.bound


def test_a_refusal_is_logged_once_for_each_reason(running, tmp_path):
    async def check(client):
        for _ in range(3):
            await client.ask(Authorization="Bearer wrong")
        await client.ask(Host="bench.example")

    with structlog.testing.capture_logs() as logged:
        served(running, tmp_path, check)
    assert [event["reason"] for event in logged if event["event"] == "control.request_refused"] == ["unauthorised", "foreign"]


# -- streams ----------------------------------------------------------------------------------------------------------------------------


def streamed(running, folder, check, *, with_header=True, first=None):
    """What ``check`` makes of a WebSocket."""

    async def connect(client):
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(f"http://{client.host}/v1/stream", headers=client.authorised if with_header else {}) as stream,
        ):
            if first is not None:
                await stream.send_str(first.replace("TOKEN", client.token))
            return await check(stream)

    return served(running, folder, connect)


def test_a_stream_answers_requests_and_sends_events_until_it_is_unsubscribed(running, tmp_path):
    async def check(stream):
        await stream.send_str('{"id": 1, "do": "subscribe", "every_s": 0.05}')
        received = [await stream.receive_json() for _ in range(4)]
        await stream.send_str('{"id": 2, "do": "unsubscribe"}')
        while "id" not in (answer := await stream.receive_json()):
            pass
        await asyncio.sleep(0.2)
        await stream.send_str('{"id": 3, "do": "help"}')
        return received, answer, await stream.receive_json()

    received, unsubscribed, following = streamed(running, tmp_path, check)
    assert received[0] == {"id": 1, "ok": True}
    assert [event["event"] for event in received[1:]] == ["state"] * 3
    assert received[1]["rig"] == "bench"
    assert received[1]["rig_s"] <= received[2]["rig_s"] <= received[3]["rig_s"]  # equal where the machine stood still
    assert unsubscribed == {"id": 2, "ok": True}
    assert following["id"] == 3


@pytest.mark.parametrize(
    ("every_s", "error"),
    [
        (0.04, "every_s: time between two events must be at least 0.05 s, got 0.04 s"),
        (61, "every_s: time between two events must be at most 60 s, got 61 s"),
        ("1", 'every_s must be a number, got "1"'),
        (True, "every_s must be a number, got true"),
    ],
)
def test_an_interval_that_cannot_be_is_refused(running, tmp_path, every_s, error):
    async def check(stream):
        await stream.send_json({"do": "subscribe", "every_s": every_s})
        return await stream.receive_json()

    assert streamed(running, tmp_path, check) == {"ok": False, "error": error}


def test_the_token_may_be_the_first_message(running, tmp_path):
    async def check(stream):
        accepted = await stream.receive_json()
        await stream.send_json(STATE)
        return accepted, await stream.receive_json()

    accepted, state = streamed(running, tmp_path, check, with_header=False, first='{"token": "TOKEN"}')
    assert (accepted, state["rig"]) == ({"ok": True}, "bench")


def test_a_stream_is_not_closed_for_newer_connections(running, tmp_path, monkeypatch):
    monkeypatch.setattr(guard, "HELD_S", 0.0)

    async def check(client):
        async with aiohttp.ClientSession() as session, session.ws_connect(f"http://{client.host}/v1/stream", headers=client.authorised) as stream:
            await stream.send_json(STATE)
            before = await stream.receive_json()
            connections = [await asyncio.open_connection("127.0.0.1", client.port) for _ in range(2 * CONNECTIONS.bound)]
            await stream.send_json(STATE)
            after = await stream.receive_json()
            for _, writer in connections:
                writer.close()
        return before["ok"], after["ok"]

    assert served(running, tmp_path, check) == (True, True)


@pytest.mark.parametrize("first", ['{"do": "state"}', '{"token": "wrong"}', '{"token": 7}', "{", "[]"])
def test_a_stream_without_the_token_is_closed(running, tmp_path, first):
    async def check(stream):
        answer = await stream.receive_json()
        closed = await stream.receive()
        return answer["ok"], closed.type, stream.close_code

    assert streamed(running, tmp_path, check, with_header=False, first=first) == (False, aiohttp.WSMsgType.CLOSE, 1008)
    assert running.http.answered == 0
    assert sum(refused(running).values()) == 1


@pytest.mark.parametrize(
    ("headers", "status"), [({"Origin": "http://bench.example"}, 403), ({"Host": "bench.example"}, 403), ({}, 400)], ids=["origin", "host", "plain"]
)
def test_packets_have_the_gate_of_streams(running, tmp_path, headers, status):
    assert served(running, tmp_path, lambda client: client.ask("GET", "/v1/packets", **headers))[0] == status


def test_packets_need_the_token_and_a_rig_that_sends(running, tmp_path):
    running.live_packets = None

    async def follow(client):
        answers = []
        async with aiohttp.ClientSession() as session:
            for headers in ({}, client.authorised):
                async with session.ws_connect(f"http://{client.host}/v1/packets", headers=headers) as stream:
                    if not headers:
                        await stream.send_str('{"token": "wrong"}')
                    answers.append((await stream.receive_json(), (await stream.receive()).type, stream.close_code))
        return answers

    (refusal, *first), (answer, *second) = served(running, tmp_path, follow)
    assert "a request must have the token" in refusal["error"]
    assert first == [aiohttp.WSMsgType.CLOSE, 1008]
    assert answer == {"ok": False, "error": "packets must be asked for while packets flow"}
    assert second == [aiohttp.WSMsgType.CLOSE, 1013]


@pytest.mark.parametrize("path", ["request", "stream"])
def test_packets_are_refused_where_requests_are_answered(running, tmp_path, path):
    if path == "request":
        _, answer = served(running, tmp_path, lambda client: client.ask("POST", "/v1/request", {"do": "packets"}))
    else:

        async def check(stream):
            await stream.send_str('{"do": "packets"}')
            return await stream.receive_json()

        answer = streamed(running, tmp_path, check)
    assert answer == {"ok": False, "error": "packets must be asked for over the control socket, or as the WebSocket /v1/packets"}


def test_a_stream_whose_client_sends_no_token_is_closed(running, tmp_path, monkeypatch):
    monkeypatch.setattr(http_server, "REQUEST_S", SOON)

    async def check(stream):
        return (await stream.receive_json())["ok"], (await stream.receive()).type

    assert streamed(running, tmp_path, check, with_header=False) == (False, aiohttp.WSMsgType.CLOSE)
    assert refused(running) == {"too_slow": 1}


def test_streams_without_the_token_take_few_places(running, tmp_path):
    async def check(client):
        async with aiohttp.ClientSession() as session:
            address = f"http://{client.host}/v1/stream"
            waiting = [await session.ws_connect(address) for _ in range(TOKENLESS_STREAMS.bound)]
            with pytest.raises(aiohttp.WSServerHandshakeError, match="429"):
                await session.ws_connect(address)
            with_header = await session.ws_connect(address, headers=client.authorised)
            await waiting[0].send_json({"token": client.token})
            accepted = await waiting[0].receive_json()
            late = await session.ws_connect(address)
            for stream in (*waiting, with_header, late):
                await stream.close()
        return accepted

    assert served(running, tmp_path, check) == {"ok": True}
    assert refused(running)["too_many"] == 1


def test_changes_over_a_stream_need_not_wait_for_answers(running, tmp_path):
    async def check(stream):
        for number in range(150):
            await stream.send_json({"id": number, "do": "change", "change": {"kind": "remove", "name": f"crate {number}"}})
        await stream.send_json({"id": "last", "do": "help"})
        return [await stream.receive_json() for _ in range(151)]

    answers = streamed(running, tmp_path, check)
    assert [answer["id"] for answer in answers] == [*range(150), "last"]
    assert all(answer["ok"] for answer in answers[:-1])
    assert len(running.changes.made) == 150


def test_an_invalid_request_is_answered_and_only_a_too_long_one_ends_the_stream(running, tmp_path):
    async def check(stream):
        answers = []
        for send in (stream.send_str("{"), stream.send_bytes(b"{}"), stream.send_str(json.dumps(STATE))):
            await send
            answers.append((await stream.receive_json())["ok"])
        await stream.send_str(" " * (CONTROL_REQUEST_BYTES.bound + 1))
        return answers, (await stream.receive()).type, stream.close_code

    assert streamed(running, tmp_path, check) == ([False, False, True], aiohttp.WSMsgType.CLOSE, 1009)
    assert refused(running) == {"not_a_request": 1, "too_long": 1}


def test_requests_over_a_stream_are_bounded_too(running, tmp_path):
    async def check(stream):
        for _ in range(400):
            await stream.send_str('{"do": "script"}')
        return [(await stream.receive_json())["ok"] for _ in range(400)]

    answers = streamed(running, tmp_path, check)
    assert answers.count(False) == refused(running)["too_many"] > 0
    assert answers.count(True) == running.http.answered >= CONTROL_REQUESTS_A_SECOND.bound - 1


def test_a_plain_request_is_no_stream(running, tmp_path):
    status, answer = served(running, tmp_path, lambda client: client.ask("GET", "/v1/stream"))
    assert (status, answer["error"]) == (400, "a stream must be a WebSocket, got a plain request")


def test_an_open_stream_is_closed_when_the_daemon_ends(running, tmp_path):
    async def check():
        session = aiohttp.ClientSession()
        async with serve_http(running, SPEC, tmp_path) as (_, port):
            token = (tmp_path / "control.token").read_text().strip()
            stream = await session.ws_connect(f"http://127.0.0.1:{port}/v1/stream", headers={"Authorization": f"Bearer {token}"})
            await stream.send_str('{"do": "subscribe", "every_s": 60}')
            await stream.receive_json()
            await stream.receive_json()
            ending = asyncio.create_task(stream.receive())
        closed = await ending
        await session.close()
        return closed.type, stream.close_code

    assert asyncio.run(check()) == (aiohttp.WSMsgType.CLOSE, 1001)


# -- subscribers that do not read -------------------------------------------------------------------------------------------------------


@pytest.fixture
def made(running, monkeypatch):
    """An entry for each event made; each has 2 MB, and who reads nothing for 0.3 s is let go."""
    monkeypatch.setattr(conversation, "SUBSCRIBER_STALLED_S", SOON)
    running.rig.name = "x" * 2_000_000
    found = []

    def reading():
        found.append(1)
        return make_reading()

    running.reading = reading
    return found


async def are_events_sent(expected):
    """Until a task sends events, or none does."""
    async with asyncio.timeout(20):
        while ("control-events" in {task.get_name() for task in asyncio.all_tasks()}) is not expected:  # noqa: ASYNC110 - a task's end sets no Event
            await asyncio.sleep(0.02)


async def closed(reader, writer):
    """Until what the connection still holds is read, and its end."""
    writer.transport.resume_reading()
    with suppress(ConnectionError):
        await asyncio.wait_for(reader.read(), 10)
    writer.close()


def test_a_subscriber_of_the_socket_that_does_not_read_is_let_go_and_nothing_is_queued_for_it(running, made, tmp_path):
    async def check():
        async with serve_lines(running, tmp_path / "control"):
            reader, writer = await asyncio.open_unix_connection(tmp_path / "control", limit=1000)
            writer.write(b'{"do": "subscribe", "every_s": 0.05}\n')
            await reader.readline()
            writer.transport.pause_reading()
            await are_events_sent(expected=True)
            await are_events_sent(expected=False)
            await closed(reader, writer)

    asyncio.run(check())
    assert 1 <= len(made) <= 3


def test_a_subscriber_over_the_socket_gets_lines(running, tmp_path):
    async def check():
        async with serve_lines(running, tmp_path / "control"):
            reader, writer = await asyncio.open_unix_connection(tmp_path / "control")
            writer.write(b'{"id": 1, "do": "subscribe", "every_s": 0.05}\n')
            lines = [json.loads(await reader.readline()) for _ in range(3)]
            writer.write(b'{"id": 2, "do": "unsubscribe"}\n')
            while json.loads(await reader.readline()) != {"id": 2, "ok": True}:
                pass
            writer.write(b'{"id": 3, "do": "help"}\n')
            following = json.loads(await reader.readline())
            writer.close()
        return lines, following["id"], len(asyncio.all_tasks())

    lines, following, tasks = asyncio.run(check())
    assert lines[0] == {"id": 1, "ok": True}
    assert [line["event"] for line in lines[1:]] == ["state", "state"]
    assert (following, tasks) == (3, 1)


def test_a_stream_that_does_not_read_its_events_is_let_go(running, made, tmp_path):
    async def check(client):
        reader, writer = await asyncio.open_connection("127.0.0.1", client.port, limit=1000)
        head = (
            f"GET /v1/stream HTTP/1.1\r\nHost: {client.host}\r\nAuthorization: Bearer {client.token}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        )
        writer.write(head.encode() + b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
        text = b'{"do": "subscribe", "every_s": 0.05}'
        writer.write(bytes([0x81, 0x80 | len(text), 0, 0, 0, 0]) + text)
        await reader.readline()
        writer.transport.pause_reading()
        await are_events_sent(expected=True)
        await are_events_sent(expected=False)
        await closed(reader, writer)

    served(running, tmp_path, check)
    assert 1 <= len(made) <= 5


# -- the token and the port -------------------------------------------------------------------------------------------------------------


def test_a_token_is_made_for_the_daemons_user_alone_and_used_again(tmp_path):
    path = tmp_path / "control.token"
    token = read_or_make_token(path)
    assert len(token) >= 43
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_or_make_token(path) == token
    path.unlink()
    assert read_or_make_token(path) != token


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_token_that_others_can_read_is_refused(running, tmp_path, mode):
    path = tmp_path / "control.token"
    read_or_make_token(path)
    path.chmod(mode)
    with pytest.raises(ConfigError, match=rf"token_file must be readable by its owner only \(mode 0600\), got mode 0{mode:o} at .*control\.token"):
        served(running, tmp_path, None)


@pytest.mark.parametrize("content", ["", "short\n", "two words that are long enough\n", "x" * 600, "\u00fc" * 40])
def test_a_file_that_holds_no_token_is_refused(tmp_path, content):
    path = tmp_path / "control.token"
    path.write_text(content, encoding="utf-8")
    path.chmod(0o600)
    with pytest.raises(ConfigError, match=r"token_file .*control\.token must hold 16 to 512 characters"):
        read_or_make_token(path)


def test_a_token_must_be_in_a_regular_file_in_a_directory_that_exists(tmp_path):
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(ConfigError, match=r"token_file must be a regular file, got .*pipe"):
        read_or_make_token(tmp_path / "pipe")
    with pytest.raises(ConfigError, match=r"token_file must be a readable file, got .*: Is a directory"):
        read_or_make_token(tmp_path)
    with pytest.raises(ConfigError, match=r"token_file must be a file that can be created, got .*: No such file or directory"):
        read_or_make_token(tmp_path / "missing" / "control.token")


@pytest.mark.parametrize(
    "address", ["0.0.0.0:9466", "192.168.1.7:9466", "localhost:9466", "127.0.0.1", "127.0.0.1:", "127.0.0.1:70000", "[::]:9466", "::1:9466", "x"]
)
def test_an_address_that_others_can_reach_is_refused(address):
    with pytest.raises(ValueError, match=r"http must be a loopback ADDRESS:PORT like 127\.0\.0\.1:9466, got"):
        ControlSpec(http=address)


def test_a_rig_that_takes_requests_over_http_can_be_changed():
    assert ControlSpec(http="127.0.0.1:9466").takes_changes
    assert ControlSpec(http="[::1]:9466").http_endpoint == ("::1", 9466)
    assert ControlSpec(socket="control").takes_changes
    assert not ControlSpec(listen="127.0.0.1:9465").takes_changes
    with pytest.raises(ValueError, match="token_file must be given where http is, got none"):
        ControlSpec(http="127.0.0.1:9466", token_file="")


def test_without_an_address_there_is_no_server(running, tmp_path):
    async def check():
        async with serve_http(running, ControlSpec(), tmp_path) as place:
            return place

    assert asyncio.run(check()) is None
    assert not (tmp_path / "control.token").exists()


def test_a_port_that_is_in_use_is_reported(running, tmp_path):
    async def check(client):
        async with serve_http(running, ControlSpec(http=client.host), tmp_path):
            pass

    with pytest.raises(TransmitError, match=r"control\.http must be a free port of this host, got 127\.0\.0\.1:\d+: Address already in use"):
        served(running, tmp_path, check)
