"""Grounds under sensors whose height and tilt are known, recorded with the profiles' own noise, and captures as points."""

import numpy as np

from hilsim.capture.batches import CaptureBatches
from hilsim.config.rig import load_rig
from hilsim.families.cepton.points import decode_cepton
from hilsim.families.velodyne.points import decode_velodyne
from hilsim.families.velodyne.protocol.models import BY_NAME
from hilsim.offline.record import record
from hilsim.read.analysis.ground import points_of
from hilsim.read.background.survey import choose, survey

_YARD = """
name = "yard"
[platform]
kind = "fixed"
position_m = [0.0, 0.0, {height_m}]
rotation_deg = [{roll_deg}, {pitch_deg}, 30.0]
[[sensor]]
name = "lidar"
unit = "ideal"
profile = "{profile}"
[sensor.network]
source = "127.0.1.201"
destination = "127.0.0.1"
"""
FLOOR = '[[scene.plane]]\nsize_m = [300.0, 300.0]\nmaterial = "asphalt"\n'
HOUSES = """
[[scene.box]]
position_m = [14.0, 12.0, 3.0]
size_m = [8.0, 10.0, 6.0]
[[scene.box]]
position_m = [-9.0, 3.0, 2.0]
size_m = [1.0, 20.0, 4.0]
[[scene.box]]
position_m = [6.0, 5.0, 0.7]
size_m = [4.0, 1.8, 1.4]
[[scene.cylinder]]
position_m = [5.0, 9.0, 1.0]
radius_m = 0.3
height_m = 2.0
"""
WALLS = """
[[scene.box]]
position_m = [4.0, 0.0, 0.0]
size_m = [1.0, 9.0, 60.0]
[[scene.box]]
position_m = [-5.0, 0.0, 0.0]
size_m = [1.0, 11.0, 60.0]
[[scene.box]]
position_m = [0.0, 4.5, 0.0]
size_m = [12.0, 1.0, 60.0]
[[scene.box]]
position_m = [0.0, -3.0, 0.0]
size_m = [12.0, 1.0, 60.0]
"""


def record_ground(path, profile, height_m, roll_deg, pitch_deg, *, scene=FLOOR + HOUSES, seconds=0.5):
    """Write a capture of a scene, seen from a height with a roll and a pitch, and its rig beside it."""
    rig = path.with_suffix(".toml")
    rig.write_text(_YARD.format(profile=profile, height_m=height_m, roll_deg=roll_deg, pitch_deg=pitch_deg) + scene)
    record(load_rig(rig), path, duration_ns=int(seconds * 1e9), utc_epoch_ns=0, batch_ms=100, threads=1, progress=lambda _: None)


def capture_points(path):
    """``float64[n, 3]`` of the points of a capture's one sensor, in the order of its packets."""
    found = choose(survey(CaptureBatches(path), ""), "", str(path))
    parts = []
    for batch in CaptureBatches(path):
        is_chosen = found.source.recognise(batch) & (batch.sender == found.sender)
        model = BY_NAME.get(found.source.model)
        decoded = decode_velodyne(batch, model.geometry, is_chosen) if model else decode_cepton(batch, is_chosen)
        parts.append(points_of(decoded))
    return np.concatenate(parts)
