"""The example's family of its own has all that hilsim's families have, from its own folder: points, scans, rules, a picture, and what it serves."""

import asyncio
import importlib
import socket
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import hilsim
from hilsim.cli.check import check
from hilsim.cli.picture import picture
from hilsim.protocols.recognise import recognise
from hilsim.testing.sensor_rig import ROOM
from tests.plugins import EXAMPLE, install_example
from tests.support import write_rig

RIG = {"name": "bench", "scene": ROOM, "sensor": [{"name": "lidar", "profile": "lantern8", "unit": "ideal", "sub_rays": 1}]}
MAX_LINES = 450


@pytest.fixture
def recorded(plugin_site):
    install_example(plugin_site)
    path = plugin_site / "lantern.pcap"
    hilsim.record(RIG, path, duration_s=0.35)
    return path


def test_its_folder_is_small():
    folder = EXAMPLE / "hilsim_plugin_example" / "lantern"
    assert sum(path.read_text().count("\n") for path in folder.rglob("*.py")) <= MAX_LINES


def test_packets_are_recognised_and_decoded_to_the_points_of_the_truth(recorded):
    packets = list(hilsim.read_capture(recorded))
    assert {str(recognise(packet.payload)) for packet in packets} == {"Lantern columns"}
    decoded = hilsim.decode(recorded)
    known = hilsim.Emulator(RIG).points(0.0, 0.05)
    first = decoded[decoded["time"] < 50_000_000]
    for name in ("x", "y", "z", "intensity", "ring", "time"):
        np.testing.assert_array_equal(first[name], known[name])
    assert (known["label"] >= 0).all()


@pytest.mark.usefixtures("recorded")
def test_scans_are_turns():
    scans = list(hilsim.Emulator(RIG).scans(0.0, 0.25))
    assert [scan.stop_ns - scan.start_ns for scan in scans] == [100_000_000] * len(scans)
    assert len(scans) == 3


def test_verify_applies_its_rules(recorded):
    assert hilsim.verify(recorded).passed
    packets = list(hilsim.read_capture(recorded))
    report = hilsim.verify([*packets[:20], *packets[21:]])
    assert not report.passed
    assert "lantern.number" in str(report)


def test_check_refuses_packets_that_are_larger_than_the_family_says(plugin_site, monkeypatch):
    install_example(plugin_site)
    write_rig(
        plugin_site, 'name = "bench"\n[[scene.box]]\nname = "wall"\nsize_m = [1.0, 9.0, 3.0]\n[[sensor]]\nname = "lidar"\nprofile = "lantern8"\n'
    )
    module = importlib.import_module("hilsim_plugin_example.lantern.family")
    monkeypatch.setattr(module.LanternFamily, "largest_data_size", 1300)
    shown = CliRunner().invoke(check, [str(plugin_site / "rig.toml")])
    assert str(shown.exception) == "data packets of a Lantern-8 must be at most 1300 bytes (largest_data_size of its family), got 1308"


def test_a_picture_is_drawn(recorded, tmp_path):
    shown = CliRunner().invoke(picture, [str(recorded), "-o", str(tmp_path / "turn.png")])
    assert shown.exit_code == 0, shown.output
    assert (tmp_path / "turn.png").read_bytes().startswith(b"\x89PNG")


def test_it_serves_a_line_of_its_own_at_the_sensors_address(plugin_site):
    install_example(plugin_site)
    rig = {**RIG, "sensor": [{**RIG["sensor"][0], "web": {"port": 0}, "network": {"source": "127.0.1.77", "source_ports": "any"}}]}
    rig |= {"metrics": {"enabled": False}, "transmit": {"lock_memory": False}}
    from hilsim.config.rig import rig_of_table  # noqa: PLC0415 - as below
    from hilsim.daemon.interfaces.part import SensorInterfaces  # noqa: PLC0415 - of the daemon
    from hilsim.daemon.running_rig import RunningRig  # noqa: PLC0415

    running = RunningRig(rig=rig_of_table(rig, Path("bench.toml")))
    interfaces = running.part(SensorInterfaces)
    interfaces.open(None)

    async def asked():
        async with interfaces.serve(running.changes):
            port = interfaces._interfaces[0]._port.getsockname()[1]
            reader, writer = await asyncio.open_connection("127.0.1.77", port, family=socket.AF_INET)
            answer = await asyncio.wait_for(reader.read(), 20)
            writer.close()
            return answer

    try:
        assert asyncio.run(asked()) == b"Lantern-8 lidar\n"
    finally:
        interfaces.stop()
