"""Objects in real recordings against an independent computation: directions by NumPy, hits by trimesh with Embree, points by velodyne-decoder."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest

import hilsim
from hilsim.capture.pcap import CaptureFile
from hilsim.families.velodyne.protocol.models import HDL_32E, VLP_16, VLP_32C, VLS_128, Model
from hilsim.read.analysis.conformance.checker import StreamChecker
from hilsim.read.analysis.conformance.findings import Severity
from tests.compiled import compiled_only

trimesh = pytest.importorskip("trimesh")

CAPTURES = {
    "vlp16_strongest_gps.pcap": VLP_16,
    "vlp16_dual.pcap": VLP_16,
    "vlp16_strongest_1200rpm.pcap": VLP_16,
    "hdl32e_strongest.pcap": HDL_32E,
    "vlp32c_strongest_fov.pcap": VLP_32C,
    "vls128_strongest.pcap": VLS_128,
}
HEIGHT_M = 1.7
RIG = """
name = "overlay"
[[replay]]
name = "drive"
file = "{file}"
overlay = true
retime = "none"
mount_position_m = [0.0, 0.0, 1.7]
"""
OBJECTS = """
[scene.materials]
even = { reflectivity = 35 }

[[scene.box]]
name = "wall"
material = "even"
size_m = [0.2, 6.0, 3.0]
position_m = [7.0, 1.0, 1.5]

[[scene.box]]
name = "car"
material = "even"
size_m = [4.2, 1.8, 1.5]
position_m = [-9.0, 4.0, 0.75]
rotation_deg = [0.0, 0.0, 30.0]

[[scene.cylinder]]
name = "pole"
material = "even"
radius_m = 0.3
height_m = 3.0
position_m = [1.0, -4.0, 1.5]

[[scene.box]]
name = "far house"
material = "even"
size_m = [8.0, 30.0, 20.0]
position_m = [10.0, -70.0, 10.0]
"""
BOXES = (((0.2, 6.0, 3.0), (7.0, 1.0, 1.5), 0.0), ((4.2, 1.8, 1.5), (-9.0, 4.0, 0.75), 30.0), ((8.0, 30.0, 20.0), (10.0, -70.0, 10.0), 0.0))

pytestmark = compiled_only


@dataclass
class Firings:
    """Firings of data packets by NumPy: ``n`` firings of ``r`` returns."""

    direction: np.ndarray
    """``[n, 3]``, x forward, y left, z up."""
    height_m: np.ndarray
    raw: np.ndarray
    """``[n, r]``"""
    byte: np.ndarray


def data_payloads(path):
    return np.stack([np.frombuffer(each.payload, np.uint8) for each in CaptureFile(path).datagrams() if len(each.payload) == 1206])


def firings_of(payloads: np.ndarray, model: Model) -> Firings:
    """The manual's formulas on whole arrays: azimuths are interpolated to the next group of blocks, behind the last one by the step before."""
    geometry, lasers = model.geometry, model.channels
    returns = 2 if payloads[0, 1204] == 0x39 else 1
    blocks = payloads[:, :1200].reshape(-1, 12, 100).astype(np.int64)
    per_group = max(lasers // 32, 1) * returns
    azimuth = (blocks[:, ::per_group, 2] | blocks[:, ::per_group, 3] << 8) / 100.0
    step = np.diff(azimuth, axis=1) % 360.0
    step = np.concatenate([step, step[:, -1:]], axis=1)
    leaps = step > 4.0
    for group in range(1, step.shape[1]):
        step[:, group] = np.where(leaps[:, group], step[:, group - 1], step[:, group])
    records = blocks[:, :, 4:].reshape(len(blocks), azimuth.shape[1], per_group // returns, returns, 32, 3)
    records = records.transpose(0, 1, 2, 4, 3, 5).reshape(len(blocks), azimuth.shape[1], -1, returns, 3)
    sequences = max(32 // lasers, 1)
    delay_ns = np.add.outer(np.arange(sequences) * geometry.sequence_ns, geometry.delay_ns).reshape(-1)
    turned = azimuth[..., None] + step[..., None] * delay_ns / (sequences * geometry.sequence_ns) + np.tile(geometry.azimuth_offset_deg, sequences)
    elevation = np.radians(np.tile(geometry.elevation_deg, sequences))
    turned = np.radians(turned)
    direction = np.stack(
        [np.cos(turned) * np.cos(elevation), -np.sin(turned) * np.cos(elevation), np.broadcast_to(np.sin(elevation), turned.shape)], -1
    )
    height_m = np.tile(np.array(geometry.vertical_offset_mm or [0.0] * lasers) / 1000.0, sequences)
    raw = records[..., 0] | records[..., 1] << 8
    return Firings(
        direction.reshape(-1, 3), np.broadcast_to(height_m, turned.shape).reshape(-1), raw.reshape(-1, returns), records[..., 2].reshape(-1, returns)
    )


def scene():
    meshes = []
    for size_m, position_m, yaw_deg in BOXES:
        pose = trimesh.transformations.rotation_matrix(np.radians(yaw_deg), (0, 0, 1))
        pose[:3, 3] = position_m
        meshes.append(trimesh.creation.box(size_m, pose))
    pole = trimesh.creation.cylinder(0.3, 3.0, sections=256)
    pole.apply_translation((1.0, -4.0, 1.5))
    return trimesh.util.concatenate([*meshes, pole])


def ranges_m(mesh, start_m, direction):
    """Range of each ray's first hit, ``inf`` for none."""
    points, rows, _ = mesh.ray.intersects_location(start_m, direction, multiple_hits=False)
    found = np.full(len(start_m), np.inf)
    found[rows] = np.linalg.norm(points - start_m[rows], axis=1)
    return found


def overlaid(tmp_path, path, objects=OBJECTS, **settings):
    rig = tmp_path / "rig.toml"
    keys = "\n".join(f"{name} = {value}" for name, value in settings.items())
    rig.write_text(RIG.format(file=path) + keys + "\n" + objects)
    written = tmp_path / "overlaid.pcap"
    hilsim.record(rig, written, duration_s=30.0)
    return written


def errors_of(path):
    """Rules that ``hilsim verify`` finds broken in a capture."""
    checker = StreamChecker()
    checker.feed(CaptureFile(path))
    result = checker.result()
    every = [*result.findings, *(finding for sensor in result.sensors for finding in sensor.findings)]
    return {finding.rule for finding in every if finding.severity is Severity.ERROR}


@pytest.mark.extended
@pytest.mark.parametrize("name", CAPTURES)
def test_touched_firings_are_those_of_an_independent_ray_caster(name, capture, tmp_path):
    """Whole beams on an object show its range, whole beams beside it or behind a recorded return keep their bytes."""
    model, path = CAPTURES[name], capture(name)
    before = data_payloads(path)
    after = data_payloads(overlaid(tmp_path, path))
    after = after[: len(before)]
    assert len(after) >= len(before) - 1
    before = before[: len(after)]
    assert (before[:, 1200:] == after[:, 1200:]).all()
    assert errors_of(tmp_path / "overlaid.pcap") == errors_of(path) == set()
    old, new = firings_of(before, model), firings_of(after, model)
    mesh = scene()
    start_m = np.array([0.0, 0.0, HEIGHT_M]) + old.height_m[:, None] * np.array([0.0, 0.0, 1.0])
    level = np.linalg.norm(old.direction[:, :2], axis=1)
    right = np.stack([old.direction[:, 1], -old.direction[:, 0], np.zeros(len(level))], 1) / level[:, None]
    upward = np.cross(right, old.direction)
    unit_m = model.distance_unit_mm / 1000.0
    reach = [ranges_m(mesh, start_m, old.direction)]
    for across, up in ((1, 0), (-1, 0), (0, 1), (0, -1), (0.7, 0.7), (-0.7, 0.7), (0.7, -0.7), (-0.7, -0.7)):
        beside = start_m + 0.008 * (across * right + up * upward)
        ahead = old.direction + 0.0022 * (across * right + up * upward)
        reach.append(ranges_m(mesh, beside, ahead / np.linalg.norm(ahead, axis=1, keepdims=True)))
    nearest, farthest = np.min(reach, axis=0), np.max(reach, axis=0)
    recorded = np.where(old.raw > 0, old.raw * unit_m, np.inf)
    near, far = recorded.min(axis=1), np.where(np.isfinite(recorded), recorded, -np.inf).max(axis=1)
    far = np.where(np.isfinite(far), far, np.inf)
    is_changed = (old.raw != new.raw).any(axis=1) | (old.byte != new.byte).any(axis=1)

    is_clear = (nearest > far) | np.isinf(nearest)
    assert is_clear.sum() > 1000
    assert not is_changed[is_clear].any()

    spread_m = np.where(np.isfinite(farthest), farthest - np.where(np.isfinite(nearest), nearest, 0.0), np.inf)
    is_covered = (farthest < near) & (spread_m < 0.3) & (farthest > 1.0) & (farthest < 40.0)
    assert is_covered.sum() > 300
    error_m = new.raw[is_covered] * unit_m - reach[0][is_covered][:, None]
    is_reported = new.raw[is_covered] > 0
    assert is_reported.all(axis=1).mean() > 0.999
    assert (np.abs(error_m) < 0.12 + spread_m[is_covered][:, None])[is_reported].all()
    assert abs(np.median(error_m[is_reported])) < 0.004
    if new.raw.shape[1] == 2:
        assert (new.raw[is_covered][:, 0] == new.raw[is_covered][:, 1]).all()


BYTES, RANGES_M = (2, 4, 8, 16, 32, 64, 101), (0.0, 5.0, 10.0, 20.0, 40.0)


@pytest.mark.parametrize("name", CAPTURES)
def test_an_independent_decoder_finds_the_wall_where_the_rig_has_it(name, capture, tmp_path):
    velodyne_decoder = pytest.importorskip("velodyne_decoder")
    models = {"VLP-16": "VLP16", "HDL-32E": "HDL32E", "VLP-32C": "VLP32C", "VLS-128": "AlphaPrime"}
    config = velodyne_decoder.Config(model=getattr(velodyne_decoder.Model, models[CAPTURES[name].name]))

    def on_the_wall(path):
        payloads, decoder = data_payloads(path), velodyne_decoder.StreamDecoder(config)
        payloads[:, 1205] = CAPTURES[name].product  # an early VLP-16 sends the byte of an HDL-32E, which the decoder refuses
        scans = [decoder.decode(1000.0 + 0.001 * at, payload.tobytes()) for at, payload in enumerate(payloads)]
        points = np.concatenate([np.asarray(scan[1])[:, :3] for scan in scans if scan is not None])
        is_there = (np.abs(points[:, 0] - 6.9) < 0.15) & (points[:, 1] > -1.9) & (points[:, 1] < 3.9) & (np.abs(points[:, 2]) < 1.2)
        return points[is_there]

    before, after = on_the_wall(capture(name)), on_the_wall(overlaid(tmp_path, capture(name)))
    assert len(after) > len(before) + 200
    assert abs(np.median(after[:, 0]) - 6.9) < 0.01  # the face of a wall 0.2 m thick around x = 7
    assert after[:, 0].std() < 0.04


def noise_m(raw, byte, unit_m, bytes_, ranges_m):
    """Standard deviation of ranges along a laser's scan, ``[firing, laser]``, within bounds of bytes and ranges: trimmed second differences."""
    range_m = np.where(raw > 0, raw * unit_m, np.nan)
    second = np.abs(range_m[2:] - 2 * range_m[1:-1] + range_m[:-2])
    level, away_m = np.stack([byte[2:], byte[1:-1], byte[:-2]]), range_m[1:-1]
    is_within = (level.min(axis=0) >= bytes_[0]) & (level.max(axis=0) < bytes_[1]) & (away_m >= ranges_m[0]) & (away_m < ranges_m[1])
    chosen = second[is_within & np.isfinite(second) & (second < 0.2)]
    chosen = chosen[chosen < 3.5 * max(np.median(chosen), unit_m)] if chosen.size else chosen
    return np.sqrt(np.mean(chosen**2) / 6.0) if chosen.size else np.nan, chosen.size


@pytest.mark.extended
@pytest.mark.parametrize("name", CAPTURES)
def test_an_inserted_surface_has_the_noise_of_the_capture(name, capture, tmp_path):
    """A dome around the sensor, at the brightness and the range that most returns of the capture have: the same noise within 20 %, by second differences."""
    model, path = CAPTURES[name], capture(name)
    lasers, unit_m = model.channels, model.distance_unit_mm / 1000.0
    old = firings_of(data_payloads(path), model)
    own = [
        (*noise_m(old.raw[:, 0].reshape(-1, lasers), old.byte[:, 0].reshape(-1, lasers), unit_m, bytes_, ranges_m), bytes_, ranges_m)
        for bytes_ in pairwise(BYTES)
        for ranges_m in pairwise(RANGES_M)
    ]
    compared = 0
    for own_m, count, bytes_, ranges_m in sorted(own, key=lambda each: -each[1])[:3]:
        bright, radius_m = (bytes_[0] + bytes_[1]) // 2, max(0.5 * (ranges_m[0] + ranges_m[1]), 1.5)
        dome = f"""
[scene.materials.dome]
reflectivity = {bright}

[[scene.sphere]]
name = "dome"
material = "dome"
radius_m = {radius_m}
tolerance_m = 0.01
position_m = [0.0, 0.0, 1.7]
"""
        new = firings_of(data_payloads(overlaid(tmp_path, path, dome, sub_rays=1)), model)
        is_dome = np.abs(new.raw[:, 0] * unit_m - radius_m) < 0.2
        raw = np.where(is_dome, new.raw[:, 0], 0).reshape(-1, lasers)
        inserted_m, inserted = noise_m(raw, new.byte[:, 0].reshape(-1, lasers), unit_m, bytes_, ranges_m)
        if count > 1000 and inserted > 1000:
            assert inserted_m == pytest.approx(own_m, rel=0.2)
            compared += 1
    assert compared
