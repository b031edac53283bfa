"""The ground below each sensor in the report on a capture."""

import json

import pytest

from hilsim.capture.pcap import CaptureFile
from hilsim.read.analysis.ground import Ground, Reason
from hilsim.read.analysis.inspection.inspector import inspect
from tests import commands
from tests.grounds import WALLS, record_ground


@pytest.mark.parametrize("profile", ["vlp16", "hdl32e", "hr80w-like"])
def test_the_report_has_a_line_with_the_ground_of_each_sensor(tmp_path, profile):
    record_ground(tmp_path / "yard.pcap", profile, 1.8, 1.0, 4.0, seconds=0.3)
    result = commands.run("inspect", tmp_path / "yard.pcap")
    result.check_returncode()
    (line,) = (line for line in result.stdout.splitlines() if "ground" in line)
    assert line.startswith("  ground 1.80 m below the sensor, tilted by 4.1 deg (roll 1.0, pitch 4.0), from ")
    found = json.loads(commands.run("inspect", "--json", tmp_path / "yard.pcap").stdout)[0]["sensors"][0]["ground"]
    assert (found["height_m"], found["roll_deg"], found["pitch_deg"]) == pytest.approx((1.8, 1.0, 4.0), abs=0.01)
    assert set(found) == {"normal", "height_m", "roll_deg", "pitch_deg", "inlier_ratio", "rms_m"}


def test_a_sensor_between_walls_has_a_reason(tmp_path):
    record_ground(tmp_path / "walls.pcap", "vlp16", 1.5, 0.0, 0.0, scene=WALLS)
    result = commands.run("inspect", tmp_path / "walls.pcap")
    assert "\n  ground not found: " in result.stdout
    assert set(json.loads(commands.run("inspect", "--json", tmp_path / "walls.pcap").stdout)[0]["sensors"][0]["ground"]) == {"reason"}


def test_real_captures_have_a_ground_where_the_floor_is_seen(capture):
    grounds = {name: inspect(CaptureFile(capture(f"{name}_strongest.pcap"))).sensors[0].ground for name in ("hdl32e", "vls128")}
    assert isinstance(grounds["hdl32e"], Ground)
    assert grounds["hdl32e"].height_m == pytest.approx(2.24, abs=0.03)
    assert isinstance(grounds["vls128"], Ground)
    assert grounds["vls128"].height_m == pytest.approx(1.97, abs=0.03)
    (room,) = inspect(CaptureFile(capture("vlp16_dual.pcap"))).sensors
    assert isinstance(room.ground, Reason)


def test_points_that_cannot_be_decoded_have_no_line(capture):
    assert {sensor.ground for sensor in inspect(CaptureFile(capture("cepton_hr80_two_sensors.pcap"))).sensors} == {None}
