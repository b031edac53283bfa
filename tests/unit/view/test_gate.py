"""The gate in front of the page: only a browser that has the token gets through, and only with messages that the page needs."""

import asyncio
import socket
import subprocess
import sys
from pathlib import Path

import aiohttp
import msgspec
import pytest
from aiohttp import WSMsgType, web
from aiohttp.test_utils import make_mocked_request
from viser import _messages, _viser

from hilsim.errors import TransmitError
from hilsim.limits import VIEW_CLIENTS, VIEW_MESSAGES_A_SECOND
from hilsim.show.view.gate import Gate, listen, new_token
from tests.unit.view.gates import PROTOCOL, admitted, camera, encoded, opened, origin, root, stream

CAMERA = camera()
pytestmark = pytest.mark.asyncio


async def _status(client, url, **options):
    async with client.get(url, allow_redirects=False, **options) as answer:
        return answer.status


async def _refused_stream(gate, client, **options):
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await stream(gate, client, **options)
    return refused.value.status


async def _close_code(connection):
    while True:
        message = await connection.receive(timeout=30)
        if message.type in {WSMsgType.CLOSE, WSMsgType.CLOSING, WSMsgType.CLOSED}:
            return connection.close_code


async def _until(condition):
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - another thread changes it
            await asyncio.sleep(0.01)


async def _until_page_is_served(gate, client):
    async with asyncio.timeout(60):
        while await _status(client, root(gate)) != 200:  # noqa: ASYNC110 - the gate has no event for it
            await asyncio.sleep(0.01)


async def _page_works(gate, server):
    """A new client loads the page, and its camera reaches viser."""
    before = set(server.get_clients())
    async with admitted(gate) as client, stream(gate, client) as connection:
        assert (await connection.receive(timeout=30)).type is WSMsgType.BINARY
        await connection.send_bytes(encoded(CAMERA))
        await _until(lambda: set(server.get_clients()) - before)


async def test_the_printed_url_sets_a_cookie_that_scripts_and_other_sites_cannot_use_and_leaves_the_token_out_of_the_address():
    async with opened() as (gate, _, _), aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as client:
        async with client.get(gate.url, allow_redirects=False) as answer:
            assert (answer.status, answer.headers["Location"]) == (303, "/")
            cookie = answer.headers["Set-Cookie"]
            assert "HttpOnly" in cookie
            assert "SameSite=Strict" in cookie
        async with client.get(root(gate)) as page:
            assert page.status == 200
            assert b"<html" in await page.read()
            assert "frame-ancestors 'none'" in page.headers["Content-Security-Policy"]


async def test_a_client_without_the_token_gets_neither_page_nor_stream():
    async with opened() as (gate, server, _), aiohttp.ClientSession() as client:
        assert await _status(client, root(gate)) == 401
        assert await _status(client, f"{root(gate)}?token={new_token()}") == 401
        assert await _refused_stream(gate, client) == 401
        assert gate.refused == {"no_token": 3}
        await _page_works(gate, server)


async def test_a_foreign_host_is_refused_before_the_token_is_looked_at():
    async with opened() as (gate, server, _), admitted(gate) as client:
        port = root(gate).rpartition(":")[2].rstrip("/")
        for host in (f"evil.example:{port}", "127.0.0.1:1", "127.0.0.1", ""):
            assert await _status(client, gate.url, headers={"Host": host}) == 403
        assert await _refused_stream(gate, client, headers={"Host": f"evil.example:{port}"}, origin=f"http://evil.example:{port}") == 403
        assert gate.refused == {"foreign_host": 5}
        await _page_works(gate, server)


async def test_a_page_of_another_server_cannot_open_the_stream():
    async with opened() as (gate, server, _), admitted(gate) as client:
        for foreign in ("http://evil.example", "null", "http://127.0.0.1:1", origin(gate).replace("http", "https"), None):
            assert await _refused_stream(gate, client, origin=foreign) == 403
        assert not server.get_clients()
        await _page_works(gate, server)


async def test_the_localhost_name_is_this_server():
    async with opened() as (gate, _, _), aiohttp.ClientSession() as client:
        assert await _status(client, gate.url.replace("127.0.0.1", "localhost")) == 303


@pytest.mark.parametrize(
    ("host", "is_own"), [("192.168.1.9:8080", True), ("localhost:8080", True), ("evil.example:8080", False), ("192.168.1.9", False)]
)
async def test_an_exposed_page_answers_to_addresses_and_not_to_strange_names(host, is_own):
    class Exposed:
        def getsockname(self):
            return "0.0.0.0", 8080  # noqa: S104 - no socket is bound

    gate = Gate(Exposed(), new_token())
    answer = gate._refusal(make_mocked_request("GET", "/", headers={"Host": host}))
    assert isinstance(answer, web.Response)
    assert answer.status == (401 if is_own else 403)


async def test_a_request_for_a_public_tunnel_reaches_nothing(monkeypatch):
    tunnels = []
    monkeypatch.setattr(_viser, "ViserTunnel", lambda *arguments: tunnels.append(arguments))
    async with opened() as (gate, server, path), admitted(gate) as client:
        async with stream(gate, client) as connection:
            await connection.send_bytes(encoded(_messages.ShareUrlRequest()))
            await connection.send_bytes(encoded(CAMERA))
            await _until(server.get_clients)
        assert gate.refused == {"not_permitted": 1}
        async with (
            aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(path))) as direct,
            direct.ws_connect("ws://viser/", protocols=(PROTOCOL,)) as connection,
        ):
            before = set(server.get_clients())
            await connection.send_bytes(encoded(_messages.ShareUrlRequest()))
            await connection.send_bytes(encoded(CAMERA))
            await _until(lambda: set(server.get_clients()) - before)
        with pytest.raises(AssertionError, match="never shared"):
            server.request_share_url()
    assert tunnels == []


async def test_viser_listens_at_a_private_unix_socket_and_at_no_port():
    def listening():
        own = _socket_inodes()
        lines = Path("/proc/self/net/tcp").read_text().splitlines()[1:]
        return {int(line.split()[1].partition(":")[2], 16) for line in lines if line.split()[3] == "0A" and int(line.split()[9]) in own}

    before = listening()  # of pytest's plug-ins
    async with opened() as (gate, _, path):
        assert listening() - before == {gate._port}
        assert path.parent.stat().st_mode & 0o077 == 0
    assert not path.parent.exists()


def _socket_inodes():
    targets = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            targets.append(str(entry.readlink()))
        except OSError:
            continue
    return {int(target[8:-1]) for target in targets if target.startswith("socket:[")}


async def test_a_control_is_changed_by_its_value_only():
    async with opened() as (gate, server, _), admitted(gate) as client, stream(gate, client) as connection:
        slider = server.gui.add_slider("size", 1, 10, 1, 5)
        await connection.send_bytes(encoded(CAMERA))
        await connection.send_bytes(encoded(_messages.GuiUpdateMessage(uuid=slider._impl.uuid, updates={"update_cb": 1, "value": 9})))
        await connection.send_bytes(encoded(_messages.GuiUpdateMessage(uuid=slider._impl.uuid, updates={"value": 7})))
        await _until(lambda: slider.value != 5)
        assert slider.value == 7


@pytest.mark.parametrize(
    "message",
    [
        *(b"\xc1", b"", b"\x81\xa4type\x01", b"\x91" * 5000, msgspec.msgpack.encode({"type": "ViewerCameraMessage"})[:-3]),
        *map(msgspec.msgpack.encode, ({"type": "ViewerCameraMessage"}, {"type": "GuiUpdateMessage", "updates": {}})),
        msgspec.msgpack.encode({"type": "TransformControlsUpdateMessage", "name": "a", "wxyz": [1, 0, 0, 0], "position": "b"}),
        msgspec.msgpack.encode({"type": "GuiFormSubmitMessage", "uuid": "a", "more": 1}),
    ],
)
async def test_a_malformed_message_ends_its_connection_only(message):
    async with opened() as (gate, server, _), admitted(gate) as client, stream(gate, client) as other:
        async with stream(gate, client) as connection:
            await connection.send_bytes(message)
            assert await _close_code(connection) == 1008
        assert gate.refused == {"malformed": 1}
        await other.send_bytes(encoded(CAMERA))
        await _until(server.get_clients)


async def test_a_message_of_60_megabytes_is_refused():
    async with opened() as (gate, server, _), admitted(gate) as client:
        async with stream(gate, client) as connection:
            try:
                await connection.send_bytes(bytes(60 << 20))
                assert await _close_code(connection) in {1006, 1009}
            except ConnectionError:
                pass  # the gate closed before all was sent
        await _until(lambda: "too_long" in gate.refused)
        await _page_works(gate, server)


async def test_a_text_message_is_refused():
    async with opened() as (gate, server, _), admitted(gate) as client:
        async with stream(gate, client) as connection:
            await connection.send_str("{}")
            assert await _close_code(connection) == 1003
        await _page_works(gate, server)


async def test_a_client_that_sends_without_pause_is_closed():
    async with opened() as (gate, server, _), admitted(gate) as client:
        async with stream(gate, client) as connection:
            for _ in range(4 * VIEW_MESSAGES_A_SECOND.bound):
                try:
                    await connection.send_bytes(encoded(CAMERA))
                except ConnectionError:
                    break
            assert await _close_code(connection) in {1006, 1008}
        assert gate.refused == {"too_many_messages": 1}
        await _page_works(gate, server)


async def test_one_client_more_than_the_limit_is_refused():
    async with opened() as (gate, server, _), admitted(gate) as client:
        streams = [await stream(gate, client) for _ in range(VIEW_CLIENTS.bound)]
        assert await _refused_stream(gate, client) == 503
        await streams.pop().close()
        await _until(lambda: len(gate._clients) < VIEW_CLIENTS.bound)
        await _page_works(gate, server)
        for connection in streams:
            await connection.close()


async def test_a_thousand_connections_do_not_end_the_page_of_an_admitted_browser():
    async with opened() as (gate, server, _), admitted(gate) as client, stream(gate, client) as connection:
        idle = []
        for _ in range(1000):
            one = socket.socket()
            one.setblocking(False)  # noqa: FBT003 - socket's signature
            idle.append(one)
            try:
                async with asyncio.timeout(30):
                    await asyncio.get_running_loop().sock_connect(one, ("127.0.0.1", gate._port))
            except ConnectionError:
                continue
        assert len(gate.held) == 1
        await connection.send_bytes(encoded(CAMERA))
        await _until(server.get_clients)
        for one in idle:
            one.close()
        await _until_page_is_served(gate, client)
        await _page_works(gate, server)


async def test_a_page_that_is_starting_answers_at_once():
    gate = Gate(listen("127.0.0.1", 0), new_token())
    async with gate.serve(), admitted(gate) as client:
        async with client.get(root(gate)) as page:
            assert "is starting" in await page.text()
        assert await _refused_stream(gate, client) == 400


async def test_a_busy_port_is_an_error_that_names_its_owner():
    code = "import socket, sys; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:  # noqa: ASYNC220 - it answers at once
        port = int(owner.stdout.readline())
        with pytest.raises(
            TransmitError, match=rf"^--at must be a free port of this machine, got 127\.0\.0\.1:{port}, in use by \S+ \(pid {owner.pid}\)"
        ):
            listen("127.0.0.1", port)
        owner.stdin.close()
