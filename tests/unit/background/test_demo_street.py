"""The demo street with its traffic, seen by a VLP-16 beside the road: the map is the street without the traffic.

The analytic depth of a cell is what the firings that fell into it see in the same world without what moves: the same rays, cast into a world that was
built without it, noise off, encoded as the packets are. A cell is a fifth of a degree wide, so a slanted wall has many of these depths in a cell. Seen without
noise too, the farthest return that the map takes must be one of them, within 1 mm and the packet's 2 mm: what a car left behind in the map would be none
of them. Seen with the profile's own noise, the mean must be theirs.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hilsim.assembly.build import build_lidar, build_scenery
from hilsim.capture.batches import DatagramArrays, read_only, sender_number
from hilsim.config.changes import Changes
from hilsim.config.rig import load_rig
from hilsim.errors import CaptureError
from hilsim.families.velodyne.background import VelodyneSource
from hilsim.families.velodyne.protocol.data import DATA_PACKET_SIZE
from hilsim.read.background.job import MapJob, PartialMapMaker
from hilsim.read.background.movement import check_standing
from hilsim.read.background.part import FoundSensor
from hilsim.read.background.partial import merge
from hilsim.read.background.surface import SurfaceRule, form_map
from hilsim.world.assets.scenes import scene_objects
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.rotations import rotate
from hilsim.world.geometry.tracks import PoseTrack, fixed_track
from hilsim.world.platforms.platform import build_platform, platform_state
from hilsim.world.scene.background import AzimuthGrid
from hilsim.world.scene.world import build_world
from tests.lidars import exact_signal
from tests.unit.background.slow_decoding import returns_by_cell

pytestmark = pytest.mark.extended

DEMO = Path(__file__).resolve().parents[3] / "profiles" / "rigs" / "demo.toml"
COLUMNS, SECONDS = 1800, 20
TOLERANCE_MM = 3
BESIDE_THE_ROAD = (5, 3.5)
"""Where the demo's car is after 5 s, and 3.5 m to its left."""


@pytest.fixture(scope="module")
def street():
    """The demo's driving lidar, and the demo's objects."""
    rig = load_rig(DEMO, Changes(settings=("sensor.roof.unit=ideal",)))
    lidar = build_lidar(rig, 0, build_scenery(rig), utc_epoch_ns=0, frames=False)
    objects, _ = scene_objects(rig.spec.scene, rig.directory)
    return lidar, objects


def without_noise(lidar):
    detector = replace(lidar.setting.spec.detector, range_noise_weak_m=0.0)
    spec = exact_signal(replace(lidar.setting.spec, range_noise_m=0.0, detector=detector))
    return replace(lidar, setting=replace(lidar.setting.with_sub_rays(1), spec=spec))


THIRDS = [(SECONDS * third / 3, SECONDS * (third + 1) / 3) for third in range(3)]


@pytest.fixture(scope="module")
def beside(street):
    """The lidar standing beside the road, with the traffic and without it."""
    lidar, objects = street
    at_s, left_m = BESIDE_THE_ROAD
    (x, y, z), turn = platform_state(lidar.platform, at_s * 10**9)
    aside_x, aside_y, _ = rotate(turn, (0.0, left_m, 0.0))
    standing = replace(lidar, platform=build_platform(fixed_track(Pose(position_m=(x + aside_x, y + aside_y, z), orientation=turn))))
    still = [thing for thing in objects if not isinstance(thing.placement, PoseTrack)]
    assert len(objects) - len(still) == 22
    return replace(standing, world=build_world(objects)), replace(standing, world=build_world(still))


@pytest.fixture(scope="module")
def analytic(beside):
    """Row, column and distance (mm) of the returns of the street without its traffic, noise off."""
    _, payloads, geometry = counted(without_noise(beside[1]), THIRDS)
    return returns_by_cell(payloads, geometry, COLUMNS)[0][:3]


def counted(lidar, thirds):
    """Partial maps of thirds of a time, and all payloads."""
    geometry = lidar.setting.spec.geometry
    grid = AzimuthGrid(columns=COLUMNS, elevation_deg=geometry.rows_deg)
    source = VelodyneSource(model="VLP-16", product=0x22)
    sensor = FoundSensor(address="127.0.0.1", sender=sender_number("127.0.0.1", 2368), source=source, packets=1)
    maker = PartialMapMaker(MapJob(grid=grid, source=source, named=lidar.setting.spec), sensor, "the street")
    parts, payloads = [], []
    for start_s, stop_s in thirds:
        packets = lidar.data_span(round(start_s * 1e9), round(stop_s * 1e9))
        count = packets.size.size
        payload = np.ascontiguousarray(packets.payload)
        start = np.arange(count) * DATA_PACKET_SIZE
        sender = np.full(count, sender_number("127.0.0.1", 2368))
        maker.add(DatagramArrays(read_only(payload.reshape(-1)), start, packets.size.astype(np.int64), packets.deadline_ns, sender), 0)
        parts.append(maker.take())
        payloads.append(payload)
    return parts, np.concatenate(payloads), geometry


@pytest.mark.timeout(300)
def test_the_map_of_a_standing_sensor_is_the_street_without_its_traffic(beside, analytic):
    parts, payloads, geometry = counted(without_noise(beside[0]), THIRDS)
    check_standing(parts[0], parts[2], "the street")

    formed = form_map(merge(parts), SurfaceRule(distance="farthest"))
    row, column, analytic_mm = analytic
    is_met = np.abs(formed.distance_mm[row, column].astype(np.int64) - analytic_mm) <= TOLERANCE_MM
    is_true = np.zeros(formed.used.shape, bool)
    is_true[row[is_met], column[is_met]] = True
    assert formed.used.sum() > 24_000
    assert is_true[formed.used].mean() > 0.999

    # and the traffic was there: in some cells most of a third's returns come from nearer
    (row, column, seen_mm, _), _ = returns_by_cell(payloads, geometry, COLUMNS)
    nearer = seen_mm < formed.distance_mm[row, column].astype(np.int64) - 1000
    assert nearer.sum() > 10_000


@pytest.mark.timeout(300)
def test_with_the_sensors_own_noise_the_map_lies_on_the_street(beside, analytic):
    parts, _, _ = counted(beside[0], THIRDS)
    formed = form_map(merge(parts), SurfaceRule())
    row, column, analytic_mm = analytic
    cell, shape = row * COLUMNS + column, formed.used.shape
    hits = np.bincount(cell, minlength=formed.used.size)
    mean_mm = np.bincount(cell, analytic_mm, minlength=formed.used.size) / np.maximum(hits, 1)
    nearest_mm, farthest_mm = np.full(formed.used.size, np.inf), np.zeros(formed.used.size)
    np.minimum.at(nearest_mm, cell, analytic_mm)
    np.maximum.at(farthest_mm, cell, analytic_mm)
    has_one_surface = (hits >= 20) & (farthest_mm - nearest_mm <= 100)
    errors = (formed.distance_mm - mean_mm.reshape(shape))[formed.used & has_one_surface.reshape(shape)]
    assert errors.size > 15_000
    is_near = abs(errors) < 50.0  # the others see through a hedge, or a walker who stood there
    assert is_near.mean() > 0.997
    assert abs(errors[is_near].mean()) < 1.0
    assert np.mean(abs(errors) < 10.0) > 0.98


@pytest.mark.timeout(300)
def test_the_driving_lidar_of_the_demo_is_refused(street):
    lidar, _ = street
    (first, _, last), _, _ = counted(without_noise(lidar), [(0.0, 0.5), (0.5, 1.0), (1.0, 1.5)])
    with pytest.raises(CaptureError, match=r"the drive: 3\d.\d% of 2\d,\d+ cells became nearer and 2\d.\d% farther .* the sensor must not move"):
        check_standing(first, last, "the drive")
