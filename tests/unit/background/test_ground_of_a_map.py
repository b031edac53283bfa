"""The ground that a map shows: in the report, in the rig, and in the points to place objects by."""

import json
import math

import numpy as np
import pytest
import trimesh

from hilsim.assembly.build import build_scenery, pose_at_start
from hilsim.config.rig import load_rig
from hilsim.world.geometry.rotations import roll_pitch_yaw_rad
from tests import commands
from tests.grounds import WALLS, record_ground

pytestmark = pytest.mark.extended

TILT = {"vlp16": (1.73, 2.0, -3.0), "hr80w-like": (2.5, -1.5, 8.0)}
ERROR = {"vlp16": (0.01, 0.1), "hr80w-like": (0.02, 0.15)}
"""Metres and degrees; a cell of the image grid is 0.25 degrees wide, and its distance is that of one part of it."""


def mapped(directory, profile, *options):
    """What the command prints of a map of the capture in a directory."""
    named = ("--profile", profile) if profile.startswith("hr") else ()
    result = commands.run("background", directory / "yard.pcap", "-o", directory / "yard map", *named, *options)
    result.check_returncode()
    return result.stdout


@pytest.mark.parametrize("profile", TILT)
def test_the_rig_of_a_map_has_the_ground_at_z_0(tmp_path, profile):
    height_m, roll_deg, pitch_deg = TILT[profile]
    record_ground(tmp_path / "yard.pcap", profile, height_m, roll_deg, pitch_deg, seconds=2)
    said = mapped(tmp_path, profile)
    error_m, error_deg = ERROR[profile]
    assert "\nground " in said
    assert " m below the sensor, tilted by " in said
    rig = load_rig(tmp_path / "yard map.toml")
    pose = pose_at_start(build_scenery(rig).platform)
    roll, pitch, yaw = np.degrees(roll_pitch_yaw_rad(pose.orientation))
    assert pose.position_m == pytest.approx((0.0, 0.0, height_m), abs=error_m)
    assert (roll, pitch, yaw) == pytest.approx((roll_deg, pitch_deg, 90.0), abs=error_deg)
    points = trimesh.load(tmp_path / "yard map.ply").vertices
    near = points[np.hypot(points[:, 0], points[:, 1]) < 8.0 * height_m]
    counts, edges = np.histogram(near[:, 2], np.arange(-1.005, 3.0, 0.01))
    assert edges[counts.argmax()] == pytest.approx(-0.005, abs=0.011)


def test_a_height_that_is_given_is_the_rigs_and_the_ground_is_still_reported(tmp_path):
    record_ground(tmp_path / "yard.pcap", "vlp16", *TILT["vlp16"], seconds=1)
    found = json.loads(mapped(tmp_path, "vlp16", "--height-m", 1.5, "--json"))["ground"]
    assert found["height_m"] == pytest.approx(1.73, abs=0.01)
    assert (found["roll_deg"], found["pitch_deg"]) == pytest.approx((2.0, -3.0), abs=0.1)
    assert math.hypot(*found["normal"]) == pytest.approx(1.0)
    assert load_rig(tmp_path / "yard map.toml").spec.scene.background[0].position_m is None


def test_a_map_of_walls_leaves_the_height_to_be_given(tmp_path):
    record_ground(tmp_path / "yard.pcap", "vlp16", 1.5, 0.0, 0.0, scene=WALLS, seconds=1)
    assert "\nground not found: " in mapped(tmp_path, "vlp16")
    assert "\nheight_m = 0.0 " in (tmp_path / "yard map.toml").read_text()
