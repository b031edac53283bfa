"""The HTTP side, over a real socket on loopback."""

import asyncio
import contextlib
import json
import socket
import threading
import time
from dataclasses import replace

import aiohttp
import pytest
from aiohttp import web

from hilsim.config.tables.metrics import MetricsServerSpec
from hilsim.errors import TransmitError
from hilsim.limits import CONNECTIONS
from hilsim.telemetry import guard, http_server
from hilsim.telemetry.metrics_port import listen, metrics_url
from hilsim.telemetry.server import serve_metrics
from tests.unit.telemetry.conftest import LATE, SILENT

ANY_PORT = MetricsServerSpec(port=0)


ASK = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


async def fetch(host, port, path, **headers):
    async with aiohttp.ClientSession() as session, session.get(f"http://{host}:{port}{path}", headers=headers) as answer:
        return answer.status, answer.headers["Content-Type"], await answer.text()


@pytest.mark.parametrize(("address", "host"), [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")])
def test_where_metrics_are_read_is_an_address_that_a_browser_takes(address, host):
    with listen(MetricsServerSpec(address=address, port=0)) as port:
        assert metrics_url(port) == f"http://{host}:{port.getsockname()[1]}/metrics"


@pytest.mark.asyncio
async def test_metrics_are_plain_text_unless_openmetrics_is_asked_for(reading):
    async with serve_metrics(reading, ANY_PORT) as (host, port):
        status, content_type, text = await fetch(host, port, "/metrics")
    assert (status, content_type) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert 'hilsim_sent_packets_total{flow="data",sensor="front"} 753.0' in text


@pytest.mark.asyncio
async def test_metrics_are_openmetrics_where_the_scraper_accepts_it(reading):
    async with serve_metrics(reading, ANY_PORT) as (host, port):
        _, content_type, text = await fetch(host, port, "/metrics", Accept="application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text; version=1.0.0")
    assert text.endswith("# EOF\n")


@pytest.mark.asyncio
async def test_healthz_is_200_without_faults(reading):
    async with serve_metrics(reading, ANY_PORT) as (host, port):
        answer = await fetch(host, port, "/healthz")
    assert answer == (200, "application/json; charset=utf-8", '{"level": "healthy", "healthy": true, "faults": []}')


@pytest.mark.asyncio
async def test_healthz_is_503_and_names_every_fault(reading):
    since_ns = time.monotonic_ns() - 3_000_000_000
    async with serve_metrics(lambda: reading(faults=(replace(SILENT, since_ns=since_ns), LATE)), ANY_PORT) as (host, port):
        status, _, text = await fetch(host, port, "/healthz")
    assert status == 503
    answer = json.loads(text)
    assert (answer["level"], answer["healthy"]) == ("unhealthy", False)
    assert answer["faults"][0].pop("for_s") == pytest.approx(3.0, abs=1.0)
    assert answer["faults"] == [
        {"fault": "sensor_silent", "subject": "front", "level": "unhealthy", "text": "no data packet for 2.0 s"},
        {"fault": "packets_late", "subject": "front", "level": "degraded", "text": LATE.text, "for_s": 0.0},
    ]


@pytest.mark.asyncio
async def test_healthz_is_200_while_only_degraded_and_says_so(reading):
    async with serve_metrics(lambda: reading(faults=(LATE,)), ANY_PORT) as (host, port):
        status, _, text = await fetch(host, port, "/healthz")
    assert (status, json.loads(text)["level"], json.loads(text)["healthy"]) == (200, "degraded", False)


@pytest.mark.asyncio
async def test_healthz_adds_the_last_minute_when_asked_to_be_verbose(reading):
    async with serve_metrics(reading, ANY_PORT, lambda: {"step_s": 5, "counters": {"front sent": [3767]}}) as (host, port):
        _, _, brief = await fetch(host, port, "/healthz")
        _, _, text = await fetch(host, port, "/healthz?verbose")
    assert "counters" not in json.loads(brief)
    assert json.loads(text)["counters"] == {"front sent": [3767]}


@pytest.mark.asyncio
async def test_the_first_page_links_to_the_others(reading):
    async with serve_metrics(reading, ANY_PORT) as (host, port):
        status, content_type, text = await fetch(host, port, "/")
    assert (status, content_type) == (200, "text/html; charset=utf-8")
    assert 'href="/metrics"' in text
    assert 'href="/healthz"' in text


def test_the_default_is_loopback():
    assert MetricsServerSpec() == MetricsServerSpec(address="127.0.0.1", port=9464)


@pytest.mark.asyncio
async def test_a_port_in_use_is_named(reading):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        expected = rf"metrics address must be free and local, got 127.0.0.1:{port}: Address already in use \(another daemon\? --set metrics\.port=0 takes any"
        with pytest.raises(TransmitError, match=expected):
            async with serve_metrics(reading, MetricsServerSpec(port=port)):
                pytest.fail("served on a port that is in use")


@pytest.mark.asyncio
async def test_an_address_that_cannot_be_bound_is_named(reading):
    with pytest.raises(TransmitError, match=r"metrics address must be free and local, got 203\.0\.113\.9:9464: Cannot assign requested address"):
        async with serve_metrics(reading, MetricsServerSpec(address="203.0.113.9")):
            pytest.fail("served on an address of another host")


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [({"port": 70000}, "port must be 0 to 65535, got 70000"), ({"address": "bench.lan"}, "address must be an IP address, got 'bench.lan'")],
)
def test_a_wrong_address_is_refused(wrong, fault):
    with pytest.raises(ValueError, match=fault):
        MetricsServerSpec(**wrong)


@pytest.mark.asyncio
async def test_nothing_is_left_after_the_block_even_with_an_idle_client(reading, wall_time):
    async with serve_metrics(reading, ANY_PORT) as (host, port):
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
        began = time.monotonic()
    assert wall_time.awake_s(began, time.monotonic()) < 3
    writer.close()
    await writer.wait_closed()
    assert asyncio.all_tasks() == {asyncio.current_task()}
    with socket.create_server((host, port)):
        pass  # free again at once


@pytest.mark.asyncio
async def test_a_source_that_takes_its_time_does_not_hold_the_loop(reading):
    has_run = threading.Event()

    def slow_source():
        assert has_run.wait(30)
        return reading()

    async with serve_metrics(slow_source, ANY_PORT) as (host, port):
        scrape = asyncio.create_task(fetch(host, port, "/metrics"))
        for _ in range(5):
            await asyncio.sleep(0.01)
        has_run.set()
        assert (await scrape)[0] == 200


@pytest.mark.asyncio
async def test_a_scrape_under_way_does_not_hold_the_stop(reading, wall_time):
    entered = threading.Event()

    def slow_source():
        entered.set()
        time.sleep(2)
        return reading()

    async with serve_metrics(slow_source, ANY_PORT) as (host, port):
        _, writer = await asyncio.open_connection(host, port)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await asyncio.to_thread(entered.wait, 30)
        began = time.monotonic()
    assert wall_time.awake_s(began, time.monotonic()) < 1.5
    writer.close()
    await writer.wait_closed()


# -- strangers --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "accept",
    [
        "application/openmetrics-text;version=\xff",
        "application/openmetrics-text; version=one",
        "application/openmetrics-text;version=1.x.0",
        "text/plain;version=",
        "text/plain; version=\xb2",
        ";;;version=,,",
    ],
)
@pytest.mark.asyncio
async def test_an_accept_header_that_makes_no_sense_is_answered_in_plain_text(reading, accept):
    async with serve_metrics(reading, ANY_PORT) as (host, port):
        head = f"GET /metrics HTTP/1.1\r\nHost: {host}\r\nAccept: {accept}\r\nConnection: close\r\n\r\n".encode("latin-1")
        answer = await said(host, port, head)
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"text/plain; version=0.0.4" in answer


async def said(host, port, request):
    """Everything the server answers until it closes."""
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(request)
    async with asyncio.timeout(20):
        answer = await reader.read()
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()
    return answer


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:9464", "localhost", "LocalHost:80", "[::1]:9464", "192.168.1.77", "bench.lan:9464", socket.gethostname()]
)
@pytest.mark.asyncio
async def test_a_request_to_this_host_is_answered(reading, host):
    async with serve_metrics(reading, MetricsServerSpec(port=0, names=("bench.lan",))) as (address, port):
        status, _, _ = await fetch(address, port, "/healthz", Host=host)
    assert status == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:9464", "127.0.0.1.evil.example", "localhost.evil.example", "bench.lan"])
@pytest.mark.asyncio
async def test_a_request_by_a_name_that_is_not_this_hosts_is_refused(reading, host):
    async with serve_metrics(reading, ANY_PORT) as (address, port):
        status, _, text = await fetch(address, port, "/metrics", Host=host)
    assert status == 403
    assert text == f'Host must be an IP address, localhost, this host\'s name or one of [metrics] names, got "{host}"\n'


@pytest.mark.asyncio
async def test_a_host_that_is_no_text_is_refused_in_text(reading):
    async with serve_metrics(reading, ANY_PORT) as (address, port):
        answer = await said(address, port, b"GET /metrics HTTP/1.1\r\nHost: evil\xff\x82\r\nConnection: close\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert b'got "evil\\udcff\\udc82"' in answer


@pytest.mark.parametrize("name", ["", "bench.lan:80", "a b", "http://bench"])
def test_a_name_that_is_none_is_refused(name):
    with pytest.raises(ValueError, match="names must be host names without a port"):
        MetricsServerSpec(names=(name,))


@pytest.mark.asyncio
async def test_half_a_request_is_given_up(reading, monkeypatch):
    monkeypatch.setattr(http_server, "REQUEST_S", replace(http_server.REQUEST_S, bound=0.2))
    async with serve_metrics(reading, ANY_PORT) as (host, port):
        assert await said(host, port, b"GET /metrics HTTP/1.1\r\nHost: 127.0") == b""
        assert await said(host, port, b"") == b""


@pytest.mark.asyncio
async def test_a_head_without_end_is_refused(reading):
    async with serve_metrics(reading, ANY_PORT) as (host, port):
        assert (await said(host, port, b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 9000 + b"\r\n\r\n")).startswith(b"HTTP/1.0 400 ")
        assert (await said(host, port, b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: a\r\n" * 500 + b"\r\n")).startswith(b"HTTP/1.0 400 ")


@pytest.mark.asyncio
async def test_requests_that_make_no_sense_are_not_logged(reading, caplog):
    async with serve_metrics(reading, ANY_PORT) as (host, port):
        for request in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x00\xa5\r\n\r\n", b"GET / HTTP/9\r\n\r\n"):
            assert b" 400 " in await said(host, port, request)
    assert caplog.records == []


@pytest.mark.asyncio
async def test_our_own_faults_are_logged(caplog):
    def broken():
        raise RuntimeError("no reading")

    async with serve_metrics(broken, ANY_PORT) as (host, port):
        assert (await fetch(host, port, "/healthz"))[0] == 500
    assert "no reading" in caplog.text


@pytest.mark.asyncio
async def test_the_oldest_connection_without_a_request_gives_way_and_the_others_stay(reading):
    async with serve_metrics(reading, ANY_PORT) as (host, port):
        held = [await asyncio.open_connection(host, port) for _ in range(CONNECTIONS.bound)]
        assert (await said(host, port, ASK)).startswith(b"HTTP/1.1 200 ")
        assert await held[0][0].read() == b""
        held[1][1].write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert await held[1][0].readline() == b"HTTP/1.1 200 OK\r\n"
        for _, writer in held:
            writer.close()


@pytest.mark.parametrize("rounds", [4, pytest.param(10, marks=pytest.mark.extended)])
@pytest.mark.asyncio
async def test_a_flood_of_connections_without_requests_leaves_scrapes_answered(reading, rounds):
    async with serve_metrics(reading, ANY_PORT) as (host, port):
        held = []
        for _ in range(rounds):
            held += await asyncio.gather(*(asyncio.open_connection(host, port) for _ in range(CONNECTIONS.bound // 2)))
            assert (await said(host, port, ASK)).startswith(b"HTTP/1.1 200 ")
        for _, writer in held:
            writer.close()


@pytest.mark.parametrize(("held_s", "first"), [(60.0, b"HTTP/1.1 503 "), (0.0, b"HTTP/1.1 200 ")])
@pytest.mark.asyncio
async def test_connections_with_requests_give_way_only_after_a_time(monkeypatch, held_s, first):
    monkeypatch.setattr(guard, "HELD_S", held_s)
    under_way, all_are, done = [], asyncio.Event(), asyncio.Event()

    async def slow(request):
        under_way.append(request)
        if len(under_way) <= CONNECTIONS.bound:
            if len(under_way) == CONNECTIONS.bound:
                all_are.set()
            await done.wait()
        return web.Response()

    app = web.Application()
    app.add_routes([web.get("/healthz", slow)])
    with socket.create_server(("127.0.0.1", 0)) as listening:
        host, port = listening.getsockname()
        async with http_server.served(app, listening):
            held = [await asyncio.open_connection(host, port) for _ in range(CONNECTIONS.bound)]
            for _, writer in held:
                writer.write(ASK)
            await asyncio.wait_for(all_are.wait(), 30)
            assert (await said(host, port, ASK)).startswith(first)
            done.set()
            for _, writer in held:
                writer.close()


@pytest.mark.parametrize("head", ["Content-Length: 100", "Transfer-Encoding: chunked"])
@pytest.mark.asyncio
async def test_a_body_that_ends_early_or_is_slow_is_refused_without_a_traceback(monkeypatch, caplog, head):
    async def echo(request):
        return web.Response(body=await http_server.read_body(request))

    monkeypatch.setattr(http_server, "REQUEST_S", replace(http_server.REQUEST_S, bound=0.2))
    app = web.Application()
    app.add_routes([web.post("/", echo)])
    ask = f"POST / HTTP/1.1\r\nHost: localhost\r\n{head}\r\n\r\n5\r\nhal".encode()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        host, port = listening.getsockname()
        async with http_server.served(app, listening):
            assert (await said(host, port, ask)).startswith(b"HTTP/1.1 408 ")
            cut = [await asyncio.open_connection(host, port) for _ in range(20)]
            for _, writer in cut:
                writer.write(ask)
                writer.close()
                await writer.wait_closed()
    assert caplog.text == ""
