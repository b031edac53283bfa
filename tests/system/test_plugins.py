"""A distribution beside hilsim brings a sink and a family: the commands know them, and a sink of a stranger costs the stream nothing."""

import csv
import json
import os
import subprocess
import sys

import pytest

from hilsim.capture.pcap import CaptureFile
from hilsim.families.velodyne.protocol.data import DATA_PACKET_SIZE
from tests.plugins import distribution, install_example
from tests.system.conftest import sensor_table
from tests.system.test_daemon import lost, metrics_of, value_of

pytestmark = pytest.mark.system

DEPARTURES = '[[sink]]\nkind = "departures"\nfile = "sent.csv"\n'

BROKEN = """
from dataclasses import dataclass
from hilsim.plugins import SinkPlugin

@dataclass
class Keys:
    batches: int = 1

class Broken:
    target = "nowhere"

    def __init__(self, keys, context):
        self.written, self._left = 0, keys.batches

    def check(self): ...
    def open(self, flows): ...

    def write(self, batch):
        if not self._left:
            raise ZeroDivisionError("a stranger's mistake")
        self._left -= 1
        self.written += batch.size.size

    def close(self):
        raise KeyError("closed twice")

BROKEN = SinkPlugin(settings=Keys, make=Broken)
"""


@pytest.fixture
def site(tmp_path):
    """Where the example is installed, and a sink that breaks."""
    place = install_example(tmp_path / "site")
    (place / "stranger.py").write_text(BROKEN)
    distribution(place, "company-sinks", "2.1", {"hilsim.sinks": {"broken": "stranger:BROKEN"}})
    return place


@pytest.fixture
def hilsim(site):
    """Runs a command to its end, with the distributions on its path."""

    def run(*words):
        words = [sys.executable, "-m", "hilsim", *map(str, words)]
        return subprocess.run(words, capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": str(site)})

    return run


def departures(directory):
    """What the example's sink wrote."""
    return list(csv.DictReader((directory / "sent.csv").read_text().splitlines()))


def spinner(data_port, status_port):
    return sensor_table("roof", data_port, status_port, extra='profile = "spinner16"')


def test_a_sink_of_a_plugin_follows_every_packet_to_the_last(daemon, rig, receiver, site, tmp_path):
    data, position = receiver(), receiver()
    running = daemon(rig(sensor_table("roof", data.port, position.port), DEPARTURES), environment={"PYTHONPATH": str(site)})
    data.take(400)
    assert value_of(metrics_of(running), "hilsim_recording") == 1
    code, _ = running.stop()
    rows = departures(tmp_path)
    ended = json.loads(next(line for line in running.text().splitlines() if '"recording.ended"' in line))
    stopped = json.loads(next(line for line in running.text().splitlines() if '"daemon.stopped"' in line))
    assert (code, ended["sink"], ended["packets"], ended["unrecorded_packets"]) == (0, "departures", len(rows), 0)
    assert len(rows) == stopped["sent_packets"]
    assert {(row["flow"], row["payload_bytes"]) for row in rows} == {("roof/data", "1206"), ("roof/position", "512")}
    sent_ns = [int(row["sent_ns"]) for row in rows]
    assert sent_ns == sorted(sent_ns)


@pytest.mark.extended
def test_a_sink_of_a_plugin_that_breaks_is_reported_and_counted_and_costs_nothing_else(daemon, rig, receiver, site, tmp_path):
    data, position = receiver(), receiver()
    path = rig(sensor_table("roof", data.port, position.port), DEPARTURES, '[[sink]]\nkind = "broken"\nbatches = 3\n')
    running = daemon(path, environment={"PYTHONPATH": str(site)})
    running.await_log(r'"event": "recording\.ended".*"sink": "broken"')
    received = data.take(400)
    metrics = metrics_of(running)
    running.await_log(r'"fault": "recording_ended", "subject": "broken"')
    code, _ = running.stop()
    received += data.drain()
    log = running.text()
    ended = {line["sink"]: line for line in map(json.loads, (line for line in log.splitlines() if '"recording.ended"' in line))}
    whose = "sink broken: company-sinks 2.1 (hilsim.sinks: broken = stranger:BROKEN): write raised ZeroDivisionError: a stranger's mistake"
    assert code == 0
    assert ended["broken"]["reason"] == whose
    assert ended["broken"]["unrecorded_packets"] > 0
    assert (value_of(metrics, "hilsim_recording"), value_of(metrics, "hilsim_unrecorded_packets_total") > 0) == (0, True)
    assert "Traceback" in log
    stopped = json.loads(next(line for line in log.splitlines() if '"daemon.stopped"' in line))
    assert ended["departures"]["unrecorded_packets"] == 0
    assert ended["departures"]["packets"] == len(departures(tmp_path))
    assert lost(received) <= stopped["dropped_packets"] + stopped["skipped_packets"]
    assert ended["departures"]["packets"] == stopped["sent_packets"]


def test_check_shows_what_a_plugins_sensor_and_sink_come_to(hilsim, rig):
    checked = hilsim("check", "--json", "--no-cost", rig(spinner(7200, 7201), DEPARTURES))
    assert checked.returncode == 0, checked.stderr
    effective = json.loads(checked.stdout)
    (sensor,) = effective["sensor"]
    assert (sensor["model"]["model"], sensor["model"]["family"], sensor["model"]["status_port"]) == ("Spinner-16", "spinner", 7001)
    assert effective["sink"] == [{"kind": "departures", "name": "departures", "file": "sent.csv", "flow": ""}]


@pytest.mark.extended
def test_a_family_of_a_plugin_is_recorded_with_its_own_ports_and_headers(hilsim, rig, tmp_path):
    table = spinner(7200, 7201).replace("data_port = 7200\nposition_port = 7201\n", "")
    done = hilsim("record", rig(table), "-o", tmp_path / "spinner.pcap", "--duration-s", "0.5")
    assert done.returncode == 0, done.stderr
    datagrams = list(CaptureFile(tmp_path / "spinner.pcap"))
    data = [bytes(datagram.payload) for datagram in datagrams if datagram.destination_port == 7000]
    assert {datagram.destination_port for datagram in datagrams} == {7000, 7001}
    assert {len(payload) for payload in data} == {DATA_PACKET_SIZE}
    assert {payload[-1] for payload in data} == {0x70}
    assert len(data) == pytest.approx(0.5 / (24 * 50e-6), abs=2)


def test_a_family_of_a_plugin_streams(daemon, rig, receiver, site):
    data, status = receiver(), receiver()
    running = daemon(rig(spinner(data.port, status.port)), environment={"PYTHONPATH": str(site)})
    assert {payload[-1] for payload, _ in data.take(200)} == {0x70}
    assert {len(payload) for payload, _ in status.take(2)} == {512}
    assert 'flow="points"' in metrics_of(running)
    assert running.stop()[0] == 0


@pytest.mark.extended
def test_a_plugin_that_is_not_installed_is_an_error_with_a_reason(rig):
    words = [sys.executable, "-m", "hilsim", "check", str(rig(sensor_table("roof", 7200, 7201), DEPARTURES))]
    checked = subprocess.run(words, capture_output=True, text=True, check=False)
    assert checked.returncode == 1
    assert 'sink[0].kind must be an installed sink (none is), got "departures"' in checked.stderr
