"""A real Prometheus scrapes a real metrics server over loopback: its recording rules yield figures, and its alerts fire."""

import asyncio
import itertools
import shutil
import socket
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest

from hilsim.config.tables.metrics import MetricsServerSpec
from hilsim.telemetry.faults import Fault, Level, all_faults
from hilsim.telemetry.metrics import LATENCY_BOUNDS_S, TIMING_BOUNDS_S, HistogramReading
from hilsim.telemetry.readings import FlowReading, Reading, SensorReading
from hilsim.telemetry.server import serve_metrics

RULES = Path(__file__).resolve().parents[2] / "systemd" / "prometheus" / "hilsim.rules.yml"

pytestmark = [
    pytest.mark.extended,
    pytest.mark.system,
    pytest.mark.skipif(shutil.which("prometheus") is None, reason="prometheus is not installed (Debian package prometheus)"),
]


def growing_source():
    """A daemon in which every scrape finds 750 packets more, all between 20 and 30 us late."""
    scrapes = itertools.count()

    def read():
        count = 750 * next(scrapes)
        timing = HistogramReading(cumulative=tuple(count if bound >= 30e-6 else 0 for bound in (*TIMING_BOUNDS_S, 1)), sum_s=count * 25e-6)
        latency = HistogramReading(cumulative=tuple(count if bound >= 5e-3 else 0 for bound in (*LATENCY_BOUNDS_S, 1)), sum_s=count * 4e-3)
        flow = FlowReading(
            sensor="roof",
            flow="data",
            sent_packets=count,
            sent_bytes=1206 * count,
            late_packets=0,
            dropped_packets=0,
            underrun_packets=0,
            early_packets=0,
            silenced_packets=0,
            send_errors={},
            ring_depth_packets=4,
            ring_capacity_packets=64,
            last_sent_age_s=0.001,
            lateness_max_s=0.0001,
            lateness=timing,
            interval_error=timing,
            pose_to_wire=latency,
        )
        sensor = SensorReading(
            sensor="roof",
            model="VLP-16",
            return_mode="strongest",
            rotation_rate_hz=10,
            device_clock_offset_s=0,
            render_late_packets=0,
            render_skipped_packets=0,
            render=timing,
        )
        return Reading(flows=(flow,), sensors=(sensor,), scheduling={"transmit": "fifo"}, loop_turn_age_s=0.001, memory_locked=True)

    return read


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def configuration(*ports):
    targets = ", ".join(f'"127.0.0.1:{port}"' for port in ports)
    return f"""
global: {{scrape_interval: 250ms, scrape_timeout: 250ms, evaluation_interval: 250ms}}
rule_files: ["{RULES}"]
scrape_configs:
  - job_name: hilsim
    static_configs: [{{targets: [{targets}]}}]
"""


def ailing_source():
    """A daemon of which everything is wrong that an alert is for, except that it does not answer."""
    healthy, faults = growing_source(), [Fault(key=key, subject="roof", text=meaning) for key, meaning in all_faults().items()]
    faults += [Fault(key="packets_late", subject="side", text="late", level=Level.DEGRADED)]

    def read():
        reading = healthy()
        (flow,) = reading.flows
        slow = HistogramReading(cumulative=tuple(flow.sent_packets if bound >= 2e-3 else 0 for bound in (*TIMING_BOUNDS_S, 1)), sum_s=1.0)
        return replace(reading, flows=(replace(flow, lateness=slow),), scheduling={"transmit": "plain"}, faults=tuple(faults))

    return read


@asynccontextmanager
async def prometheus_scraping(directory, *targets):
    """A Prometheus with the shipped rules; yields a session for its queries."""
    port = free_port()
    (directory / "prometheus.yml").write_text(configuration(*targets))
    prometheus = await asyncio.create_subprocess_exec(
        "prometheus",
        f"--config.file={directory}/prometheus.yml",
        f"--storage.tsdb.path={directory}/data",
        f"--web.listen-address=127.0.0.1:{port}",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
            yield session
    finally:
        prometheus.terminate()
        await prometheus.wait()


@pytest.mark.asyncio
@pytest.mark.timeout(120)
async def test_every_recording_rule_yields_a_figure_from_a_scraped_daemon(tmp_path):
    records = [line.split("record:")[1].strip() for line in RULES.read_text().splitlines() if "record:" in line]
    async with serve_metrics(growing_source(), MetricsServerSpec(port=0)) as (_, served), prometheus_scraping(tmp_path, served) as session:
        figures = {record: await await_figure(session, record) for record in records}
        targets = await query(session, "/api/v1/targets")
        alerts = await query(session, "/api/v1/alerts")
    assert [target["lastError"] for target in targets["activeTargets"]] == [""]
    assert 20e-6 <= figures["hilsim:lateness_seconds:p99"] <= 30e-6
    assert 3e-3 <= figures["hilsim:pose_to_wire_seconds:p99"] <= 5e-3
    assert figures["hilsim:late_packets:ratio1m"] == 0
    assert alerts["alerts"] == []


@pytest.mark.asyncio
@pytest.mark.timeout(180)
async def test_every_alert_fires_and_every_fault_raises_exactly_one(tmp_path):
    alerts = {line.split("alert:")[1].strip() for line in RULES.read_text().splitlines() if "alert:" in line}
    nobody = free_port()
    async with serve_metrics(ailing_source(), MetricsServerSpec(port=0)) as (_, served), prometheus_scraping(tmp_path, served, nobody) as session:
        firing = await await_alerts(session, alerts)
    assert firing.pop("HilsimDown") == [("", "", "critical")]
    assert firing["HilsimLatenessHigh"] == [("", "", "warning")]
    assert firing["HilsimNotRealTime"] == [("", "", "warning")]
    assert firing["HilsimDegraded"] == [("packets_late", "side", "warning")]
    told_by_another = {"sensor_silent"}
    assert firing["HilsimUnhealthy"] == sorted((key, "roof", "critical") for key in all_faults().keys() - told_by_another)


async def await_alerts(session, names):
    """Fault, subject and severity of what fires, by alert, once all of them do."""
    async with asyncio.timeout(120):
        while True:
            firing = {}
            with suppress(aiohttp.ClientError, KeyError):  # still starting
                for alert in (await query(session, "/api/v1/alerts"))["alerts"]:
                    labels = alert["labels"]
                    if alert["state"] == "firing":
                        firing.setdefault(labels["alertname"], []).append((labels.get("fault", ""), labels.get("subject", ""), labels["severity"]))
            if firing.keys() >= names:
                return {name: sorted(found) for name, found in firing.items()}
            await asyncio.sleep(0.5)


async def query(session, path, **parameters):
    async with session.get(path, params=parameters) as answer:
        return (await answer.json())["data"]


async def await_figure(session, expression):
    """The value of an expression, once it has one that is a number."""
    async with asyncio.timeout(60):
        while True:
            try:
                result = (await query(session, "/api/v1/query", query=expression))["result"]
            except (aiohttp.ClientError, KeyError):  # still starting
                result = []
            if result and result[0]["value"][1] != "NaN":
                return float(result[0]["value"][1])
            await asyncio.sleep(0.2)
