"""A unit's angles from its calibration text: what is written, what PTC then answers, and sentences about texts with faults."""

import asyncio
import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from hilsim.cli.calibrate import calibrate
from hilsim.config.parse import parse_table
from hilsim.config.toml_file import read_toml
from hilsim.emulator.planning import build_lidar_plan
from hilsim.errors import CaptureError
from hilsim.families.hesai.daemon.packets import RigPackets
from hilsim.families.hesai.daemon.sensor import HesaiSensor
from hilsim.families.hesai.protocol.ptc import Command, Request
from hilsim.sensor.unit.spec import UnitSpec
from tests.hesai_sensors import hesai
from tests.lidars import lidar_setting
from tests.unit.families.hesai.test_following import Rig

ROWS = [f"{channel + 1},{14.91 - channel:.3f},{0.125 - 0.01 * channel:.3f}" for channel in range(32)]


def calibrated(tmp_path, rows, *options, profile="xt32"):
    (tmp_path / "angles.csv").write_text("\n".join(["Channel,Elevation,Azimuth", *rows, ""]))
    return CliRunner().invoke(calibrate, [str(tmp_path / "angles.csv"), "--profile", profile, *options], catch_exceptions=False)


def test_a_text_becomes_a_unit_whose_ptc_answers_with_it(tmp_path):
    done = calibrated(tmp_path, ROWS[::-1], "-o", str(tmp_path / "own.toml"))
    assert "laser.azimuth_error_deg  -0.185 to +0.125 deg" in done.output
    unit = parse_table(UnitSpec, read_toml(tmp_path / "own.toml"), "own.toml")
    assert (unit.model, unit.laser[1].elevation_error_deg, unit.laser[1].azimuth_error_deg) == ("XT32", -0.09, 0.115)
    rig = Rig()
    rig.plan = build_lidar_plan(replace(lidar_setting(hesai("xt32"), unit="drawn"), unit=unit), seed=0, utc_epoch_ns=0)
    packets = RigPackets(rig)
    answer = asyncio.run(HesaiSensor("top", packets.at_start(), packets).request(Request(Command.CALIBRATION, b"")))
    assert answer.endswith("\n".join(["Channel,Elevation,Azimuth", *ROWS, ""]).encode())
    assert json.loads(calibrated(tmp_path, ROWS, "--json").output)["unit"]["laser"][0] == {"elevation_error_deg": -0.09, "azimuth_error_deg": 0.125}


def test_a_mark_before_the_header_and_a_hash_at_the_end_are_no_channels(tmp_path):
    whole = calibrated(tmp_path, ROWS).output
    (tmp_path / "angles.csv").write_text("\n".join(["EEFF", "1,1", "Laser id,Elevation,Azimuth", *ROWS, "5f" * 32]))
    assert CliRunner().invoke(calibrate, [str(tmp_path / "angles.csv"), "--profile", "xt32"]).output == whole


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        (["1,15.0", *ROWS[1:]], "line 2 must be channel, elevation and azimuth, got '1,15.0'"),
        ([ROWS[0], "2,up,0", *ROWS[2:]], "line 3: elevation must be a number, got 'up'"),
        ([ROWS[0], *ROWS], "line 3: channel must be given once, got 1 again"),
        ([*ROWS[:-1], "32,-16,7.5"], "line 33: azimuth must be within 5 deg of a XT32's 0, got 7.5"),
        ([*ROWS[:-1], "32,nan,0"], "line 33: elevation must be within 5 deg"),
        ([], "channels must be 1 to 32 of a XT32, got none"),
    ],
)
def test_a_text_with_a_fault_gives_a_sentence(rows, fault, tmp_path):
    with pytest.raises(CaptureError, match=f"^angles.csv: {fault}"):
        calibrated(tmp_path, rows)


def test_a_file_that_is_no_text_gives_a_sentence(tmp_path):
    (tmp_path / "angles.csv").write_bytes(b"\xff\xfe")
    with pytest.raises(CaptureError, match="must be a calibration text, got byte 0xff at 0"):
        CliRunner().invoke(calibrate, [str(tmp_path / "angles.csv"), "--profile", "xt32"], catch_exceptions=False)
    with pytest.raises(CaptureError, match="cannot be opened"):
        CliRunner().invoke(calibrate, [str(tmp_path / "none.csv"), "--profile", "xt32"], catch_exceptions=False)
