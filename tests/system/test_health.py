"""A real daemon on an interface that loses its packets: what it says of itself, and when it is well again."""

import json
import subprocess
import time
import urllib.error
import urllib.request

import pytest

from tests.system.conftest import SCENE, sensor_table
from tests.system.namespaces import HOST, SENSOR, link

__all__ = ["link"]
pytestmark = [pytest.mark.extended, pytest.mark.system]

FOUND_WITHIN_S = 30  # two looks a second and few packets are enough; the rest is for a busy machine
TIGHT = ("root", "tbf", "rate", "1mbit", "burst", "3000", "limit")


def tc(namespace, *arguments):
    namespace.run(lambda: subprocess.run(["tc", "qdisc", *arguments], check=True, capture_output=True))


def healthz(namespace, address):
    """Status and answer, from within the namespace."""

    def ask():
        try:
            with urllib.request.urlopen(f"{address}/healthz?verbose", timeout=10) as answer:  # noqa: S310 - the daemon's own loopback address
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, json.load(refused)

    return namespace.run(ask)


def await_fault(namespace, address, key, *, there):
    """The answer once a fault is unhealthy, or gone."""
    deadline = time.monotonic() + FOUND_WITHIN_S
    while time.monotonic() < deadline:
        status, answer = healthz(namespace, address)
        levels = [fault["level"] for fault in answer["faults"] if fault["fault"] == key]
        if levels == (["unhealthy"] if there else []):
            return status, answer
        time.sleep(0.2)
    pytest.fail(f"{key} must be {'there' if there else 'gone'} within {FOUND_WITHIN_S} s, got {answer['faults']}")


@pytest.mark.parametrize(
    ("queue_bytes", "key", "subject", "says"),
    [("3000", "queue_dropped", "lidar0", "by the queue"), ("1000000", "send_refused", "roof", "EAGAIN, the link is slower than the stream")],
    ids=["a short queue drops in silence", "a long queue fills the socket"],
)
def test_a_link_that_is_too_slow_is_unhealthy_within_seconds_and_reported_once(link, daemon, tmp_path, queue_bytes, key, subject, says):
    sensor, _ = link
    table = sensor_table("roof", 2368, 8308).replace("127.0.1.201", SENSOR).replace('source_ports = "any"', f'destination = "{HOST}"')
    (tmp_path / "rig.toml").write_text(SCENE + table)
    running = sensor.run(lambda: daemon(tmp_path / "rig.toml", wait=False))
    address = running.await_log(r'"metrics": "(http://[^"]+)/metrics"')[1]
    assert not [fault for fault in healthz(sensor, address)[1]["faults"] if fault["fault"] == key]

    tc(sensor, "add", "dev", "lidar0", *TIGHT, queue_bytes)
    status, answer = await_fault(sensor, address, key, there=True)
    (fault,) = (fault for fault in answer["faults"] if fault["fault"] == key)
    assert (status, answer["level"], fault["subject"]) == (503, "unhealthy", subject)
    assert says in fault["text"]

    tc(sensor, "del", "dev", "lidar0", "root")
    await_fault(sensor, address, key, there=False)
    running.await_log(rf'"event": "health\.fault_ended", "fault": "{key}"')
    told = [json.loads(line) for line in running.text().splitlines() if line.startswith("{")]
    assert [event["event"] for event in told if event.get("fault") == key and event["event"] != "health.fault_worsened"] == [
        "health.fault_began",
        "health.fault_ended",
    ]
    ended = next(event for event in told if event["event"] == "health.fault_ended" and event["fault"] == key)
    assert ended["duration_s"] >= 1.0
    began = next(event for event in told if event["event"] == "health.fault_began" and event["fault"] == key)
    assert (began["subject"], began["fault_level"] in {"degraded", "unhealthy"}) == (subject, True)
    assert any("roof sent" in record["counters"] for record in told if record["event"] == "health.counters_recorded")
    assert any(record["faults"] for record in answer["recorded"])
