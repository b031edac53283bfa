"""``hilsim calibrate``: a table for people, a file for rigs, JSON for programs."""

import json

import pytest
from click.testing import CliRunner

from hilsim.cli.calibrate import calibrate
from hilsim.config.parse import parse_table
from hilsim.config.rig import load_rig
from hilsim.config.toml_file import read_toml
from hilsim.errors import CaptureError
from hilsim.sensor.unit.spec import UnitSpec
from tests.support import ROOM, write_rig

GPS = "vlp16_strongest_gps.pcap"


def test_a_unit_is_printed_written_and_used_by_a_rig(capture, tmp_path):
    path = tmp_path / "own.toml"
    done = CliRunner().invoke(calibrate, [str(capture(GPS)), "-o", str(path)])
    assert done.exit_code == 0, done.output
    assert "oscillator_ppm" in done.output
    assert "not learned: capture times leave a doubt of" in done.output
    text = path.read_text(encoding="utf-8")
    assert "# oscillator_ppm: not learned: " in text
    assert str(tmp_path) not in text
    unit = parse_table(UnitSpec, read_toml(path), "own.toml")
    assert load_rig(write_rig(tmp_path, ROOM.replace('unit = "ideal"', 'unit = "own.toml"'))).lidars[0].unit == unit


def test_programs_get_the_figures_as_json(capture):
    done = CliRunner().invoke(calibrate, [str(capture(GPS)), "--json"])
    parts = json.loads(done.output)
    assert parts["model"] == "VLP-16"
    assert parts["unit"]["laser"][0]["baseline"] == 9
    assert {figure["name"] for figure in parts["figures"] if not figure["learned"]} >= {"oscillator_ppm", "laser.elevation_error_deg"}


def test_what_cannot_be_calibrated_gives_a_sentence(capture, tmp_path):
    done = CliRunner().invoke(calibrate, [str(capture(GPS)), "-o", str(tmp_path / "unit.txt")])
    assert done.exit_code == 2
    assert "must end in .toml" in done.output
    with pytest.raises(CaptureError, match="at least 100 Velodyne data packets of one sensor, got 0"):
        CliRunner().invoke(calibrate, [str(capture("cepton_hr80_two_sensors.pcap"))], catch_exceptions=False)
    with pytest.raises(CaptureError, match=r"hdl32e_strongest\.pcap: the sensor must stand still"):
        CliRunner().invoke(calibrate, [str(capture("hdl32e_strongest.pcap"))], catch_exceptions=False)
