"""Attacks on the control of a daemon: each is refused in one sentence or closed, and the next honest request is answered."""

import asyncio
import json
import socket
from contextlib import suppress

import pytest

from hilsim.config.rig import ControlSpec
from hilsim.daemon.control.datagram_server import serve_datagrams
from hilsim.daemon.control.line_server import serve_lines
from hilsim.telemetry.readings import CommandCounts
from tests.unit.daemon.test_control_http import STATE, running, served  # noqa: F401 - a fixture for these tests too

DEEP = '{"do":' * 20_000
TEXTS = {
    "deep": DEEP,
    "deep list": '{"do": "change", "change": {"kind": ' + "[" * 20_000,
    "NaN": '{"do": "seek", "position_s": NaN}',
    "infinity": '{"do": "seek", "position_s": 1e999}',
    "many digits": '{"do": "seek", "position_s": 1' + "0" * 5000 + "}",
    "some digits": '{"do": "seek", "position_s": 1' + "0" * 400 + "}",
    "digits of an interval": '{"do": "subscribe", "every_s": 1' + "0" * 300 + "}",
    "surrogates": '{"do": "\\ud800", "\\udfff": 1}',
    "a key of surrogates": '{"do": "help", "\\udfff": 1}',
    "an object as the id": '{"id": {}, "do": "help"}',
    "true as the id": '{"id": true, "do": "help"}',
    "a number as the request": '{"do": 7}',
    "null": '{"do": null}',
    "a name that is no text": '{"do": "pause", "replay": ["front"]}',
}


def head(client, *lines, first="POST /v1/request HTTP/1.1"):
    return "\r\n".join((first, f"Host: {client.host}", f"Authorization: Bearer {client.token}", *lines, "", "")).encode()


# -- texts, at each listener --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_hostile_text_is_refused_in_one_sentence_over_http(running, tmp_path, text):  # noqa: F811
    async def check(client):
        return await client.ask(body=text.encode()), await client.ask(body=STATE)

    (status, answer), after = served(running, tmp_path, check)
    assert status in {200, 400, 413}
    assert answer["ok"] is False
    assert "\n" not in answer["error"]
    assert after[0] == 200


def test_hostile_texts_are_refused_at_the_socket_and_by_datagram(running, tmp_path):  # noqa: F811
    running.commands = CommandCounts()

    async def check():
        async with serve_lines(running, tmp_path / "control"), serve_datagrams(running, ControlSpec(listen="127.0.0.1:0")) as address:
            reader, writer = await asyncio.open_unix_connection(tmp_path / "control", limit=1 << 20)
            answers = []
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as program:
                program.settimeout(10)
                program.connect(address)
                for text in TEXTS.values():
                    if len(text) < 60_000:
                        writer.write(text.encode() + b"\n")
                        answers.append(json.loads(await reader.readline()))
                    if len(text) < 1000:
                        program.send(text.encode())
                        answers.append(json.loads(await asyncio.to_thread(program.recv, 65_507)))
                program.send(b'{"do": "change", "change": {"kind": "remove", "name": "walker"}}')
                answers.append(json.loads(await asyncio.to_thread(program.recv, 65_507)))
            writer.write(b'{"do": "help"}\n')
            after = json.loads(await reader.readline())
            writer.close()
        return answers, after

    answers, after = asyncio.run(check())
    assert len(answers) > 20
    assert all(answer["ok"] is False and answer["error"] for answer in answers)
    assert answers[-1]["error"].startswith("do must be one of pause, resume, seek, status, health in a datagram")
    assert (running.changes.made, after["ok"]) == ([], True)


@pytest.mark.parametrize("body", ["\ufeff{}".encode(), '{"do": "help"}'.encode("utf-16"), b'{"do": "help"}\0', b"\xff" * 100])
def test_another_encoding_is_refused(running, tmp_path, body):  # noqa: F811
    status, answer = served(running, tmp_path, lambda client: client.ask(body=body))
    assert (status, answer["ok"]) == (400, False)


def test_many_lines_and_a_line_without_end_leave_the_socket_usable(running, tmp_path):  # noqa: F811
    async def ask(data):
        reader, writer = await asyncio.open_unix_connection(tmp_path / "control", limit=1 << 20)
        with suppress(ConnectionError):
            writer.write(data)
            writer.write_eof()
            await asyncio.wait_for(reader.read(), 30)
        writer.close()

    async def check():
        async with serve_lines(running, tmp_path / "control"):
            connections = [await asyncio.open_unix_connection(tmp_path / "control") for _ in range(300)]
            await ask(b"dance\n" * 20_000)
            await ask(b"x" * 1_000_000)
            reader, writer = connections[0]
            writer.write(b'{"do": "help"}\n')
            answer = json.loads(await reader.readline())
            for _, each in connections:
                each.close()
        return answer["ok"], len(asyncio.all_tasks())

    assert asyncio.run(check()) == (True, 1)


# -- HTTP ---------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("Host", "localhost.:PORT", 403),
        ("Host", "user@127.0.0.1:PORT", 403),
        ("Host", "127.0.0.1:PORT\r\nHost: bench.example", 400),
        ("Host", "127.1:PORT", 403),
        ("Origin", "http://127.0.0.1:1", 403),
        ("Origin", "https://127.0.0.1:PORT", 403),
        ("Origin", "http://127.0.0.1:PORT\r\nOrigin: null", 403),
        ("Authorization", "Bearer " + "x" * 7000, 401),
        ("Authorization", "Bearer TOKEN\r\nAuthorization: Bearer TOKEN", 401),
        ("Authorization", "Bearer TOKEN TOKEN", 401),
    ],
)
def test_a_head_that_only_looks_right_is_refused(running, tmp_path, name, value, status):  # noqa: F811
    async def check(client):
        return await client.ask(body=STATE, **{name: value.replace("PORT", str(client.port)).replace("TOKEN", client.token)})

    assert served(running, tmp_path, check)[0] == status
    assert running.http.answered == 0


MALFORMED = {
    "length and chunks": (("Content-Length: 5", "Transfer-Encoding: chunked"), b"0\r\n\r\n"),
    "two lengths": (("Content-Length: 2", "Content-Length: 20"), b"{}"),
    "an unknown coding": (("Transfer-Encoding: cow",), b"{}"),
    "a folded line": (("X: a", " b", "Content-Length: 2"), b"{}"),
    "a negative length": (("Content-Length: -5",), b""),
    "a length beyond any": (("Content-Length: 1000000000000",), b""),
    "a long line": (("X: " + "x" * 1_000_000, "Content-Length: 2"), b"{}"),
    "many lines": ((*(f"X{number}: a" for number in range(5000)), "Content-Length: 2"), b"{}"),
    "a large body": (("Content-Length: 20000000",), b" " * 2_000_000),
    "a large chunk": (("Transfer-Encoding: chunked",), b"200000\r\n" + b" " * 0x200000),
    "a packed body": (("Content-Encoding: gzip", "Content-Length: 3"), b"\x1f\x8b\x08"),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_request_is_refused_and_the_next_one_answered(running, tmp_path, what):  # noqa: F811
    lines, body = MALFORMED[what]

    async def check(client):
        answer = await client.raw(head(client, *lines, "Connection: close") + body)
        return answer, await client.ask(body=STATE)

    answer, after = served(running, tmp_path, check)
    assert not answer or answer.split()[1] in {b"400", b"413", b"501"}
    assert (after[0], running.http.answered) == (200, 1)


@pytest.mark.parametrize("path", ["/v1/../v1/request", "/v1/%2e%2e/control.token", "/../../etc/passwd", "//v1/request", "/v1/request/"])
def test_another_path_is_not_found(running, tmp_path, path):  # noqa: F811
    assert served(running, tmp_path, lambda client: client.ask("GET", path))[0] in {400, 404, 405}


FRAMES = {
    "a length of 2^62": b"\x82\xff" + (1 << 62).to_bytes(8, "big") + bytes(4),
    "fragments": b"\x01\x81\0\0\0\0{" + b"\x00\x81\0\0\0\0 " * 100_000,
    "reserved bits": b"\xf1\x82\0\0\0\0{}",
    "text that is no UTF-8": b"\x81\x82\0\0\0\0\xff\xfe",
    "an unknown kind": b"\x83\x80\0\0\0\0",
    "a long ping": b"\x89\xfe\x01\x00\0\0\0\0" + bytes(256),
    "pings": b"\x89\x80\0\0\0\0" * 20_000,
}


@pytest.mark.parametrize("what", FRAMES)
def test_hostile_messages_of_a_web_socket_end_it_at_most(running, tmp_path, what):  # noqa: F811
    lines = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")

    async def check(client):
        reader, writer = await asyncio.open_connection("127.0.0.1", client.port)
        writer.write(head(client, *lines, first="GET /v1/stream HTTP/1.1"))
        assert b" 101 " in await reader.readline()
        with suppress(ConnectionError, TimeoutError):
            writer.write(FRAMES[what])
            await asyncio.wait_for(reader.read(), 1.0)
        writer.transport.abort()
        return await client.ask(body=STATE)

    assert served(running, tmp_path, check)[0] == 200
