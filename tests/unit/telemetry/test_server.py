"""The HTTP side, over a real socket on loopback."""

import asyncio
import socket
import threading
import time

import aiohttp
import pytest

from hilsim.errors import TransmitError
from hilsim.telemetry.server import serve_metrics
from hilsim.telemetry.specs import MetricsServerSpec

ANY_PORT = MetricsServerSpec(port=0)


async def fetch(host, port, path, **headers):
    async with aiohttp.ClientSession() as session, session.get(f"http://{host}:{port}{path}", headers=headers) as answer:
        return answer.status, answer.headers["Content-Type"], await answer.text()


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
    assert answer == (200, "application/json; charset=utf-8", '{"healthy": true, "faults": []}')


@pytest.mark.asyncio
async def test_healthz_is_503_and_names_every_fault(reading):
    faults = ("front/data: no packet for 2.0 s", "transmit: not real-time")
    async with serve_metrics(lambda: reading(faults=faults), ANY_PORT) as (host, port):
        status, _, text = await fetch(host, port, "/healthz")
    assert status == 503
    assert text == '{"healthy": false, "faults": ["front/data: no packet for 2.0 s", "transmit: not real-time"]}'


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
        expected = f"metrics address must be free and local, got 127.0.0.1:{port}: Address already in use"
        with pytest.raises(TransmitError, match=expected):
            async with serve_metrics(reading, MetricsServerSpec(port=port)):
                pytest.fail("served on a port that is in use")


@pytest.mark.asyncio
async def test_an_address_that_cannot_be_had_is_named(reading):
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
async def test_nothing_is_left_after_the_block_even_with_an_idle_client(reading):
    async with serve_metrics(reading, ANY_PORT) as (host, port):
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
        began = time.monotonic()
    assert time.monotonic() - began < 3
    writer.close()
    await writer.wait_closed()
    assert asyncio.all_tasks() == {asyncio.current_task()}
    with socket.create_server((host, port)):
        pass  # free again at once


@pytest.mark.asyncio
async def test_a_source_that_takes_its_time_does_not_hold_the_loop(reading):
    def slow_source():
        time.sleep(0.3)
        return reading()

    async with serve_metrics(slow_source, ANY_PORT) as (host, port):
        scrape = asyncio.create_task(fetch(host, port, "/metrics"))
        ticks = 0
        while not scrape.done():
            await asyncio.sleep(0.01)
            ticks += 1
        assert (await scrape)[0] == 200
    assert ticks > 5


@pytest.mark.asyncio
async def test_a_scrape_under_way_does_not_hold_the_stop(reading):
    entered = threading.Event()

    def slow_source():
        entered.set()
        time.sleep(2)
        return reading()

    async with serve_metrics(slow_source, ANY_PORT) as (host, port):
        _, writer = await asyncio.open_connection(host, port)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        await asyncio.to_thread(entered.wait, 5)
        began = time.monotonic()
    assert time.monotonic() - began < 1.5
    writer.close()
    await writer.wait_closed()
