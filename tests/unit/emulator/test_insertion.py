"""Objects in single recorded packets: which bytes change, and to what."""

import numba
import numpy as np
import pytest

from hilsim.emulator.insertion.insertion import CAPACITY, Inserter, insert_recorded
from hilsim.emulator.insertion.packet import InsertionCount
from hilsim.emulator.insertion.unit import BYTE_CLASSES, RANGE_CLASSES_M
from hilsim.emulator.truth import allocate_truth
from hilsim.families.cepton.insertion import build_cepton_unit
from hilsim.families.cepton.protocol.stdv import POINT_DTYPE, PointFlag, decode_stdv_points, encode_stdv_packet
from hilsim.families.velodyne.insertion import build_velodyne_unit
from hilsim.families.velodyne.protocol.data import BLOCK_FLAG, DATA_PACKET_DTYPE, Product, ReturnMode, factory_bytes
from hilsim.families.velodyne.protocol.geometry import HDL_32E_GEOMETRY, VLP_16_GEOMETRY, vls_128_geometry
from hilsim.sensor.optics.beam import build_beam
from hilsim.sensor.response import Response
from hilsim.sensor.specs import BeamSpec
from hilsim.world.geometry.poses import Pose, extrinsics
from hilsim.world.geometry.tracks import fixed_track, linear_track
from hilsim.world.scene.materials import Material
from hilsim.world.scene.primitives import box
from hilsim.world.scene.world import SceneObject, build_world
from tests.compiled import COMPILED, compiled_only

NO_NOISE = np.zeros((len(BYTE_CLASSES) + 1, len(RANGE_CLASSES_M) + 1))
PAINT = Material(name="paint", reflectivity=50)
HALF_OPEN = Material(name="net", reflectivity=50, porosity=0.5)
BLACK = Material(name="black", reflectivity=0)
NO_RETURN = np.arange(1, 17, dtype=np.uint8)


def response(unit_m=0.002, threshold=0.0, **changed):
    values = {
        "unit_m": unit_m,
        "range_min_m": 0.1,
        "range_max_m": 120.0,
        "noise_m": 0.0,
        "weak_noise_m": 0.0,
        "noise_onset_m": 15.0,
        "drop_out_ratio": 0.0,
        "threshold_energy": threshold,
        "noise_ratio": 0.0,
        "merge_distance_m": 1.2,
        "diffuse_max": 100,
        "code_max": 65_535,
        "has_linear_scale": False,
        "saturation_energy": np.inf,
        "doubt_energy": 0.0,
        "seed": np.uint64(1),
        "stream": 0,
    }
    return Response(**values | changed)


def velodyne(geometry=VLP_16_GEOMETRY, sub_rays=1, threshold=0.0, **keys):
    beam = build_beam(BeamSpec(divergence_h_mrad=3.0, divergence_v_mrad=1.2), sub_rays)
    return build_velodyne_unit(
        geometry,
        response(unit_m=geometry.distance_unit_mm / 1000.0, threshold=threshold),
        beam,
        extrinsics((0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
        NO_NOISE,
        **({"stamps_last_firing": False, "no_return": NO_RETURN} | keys),
    )


def world(*things):
    return build_world([SceneObject(mesh=box(size_m, material), placement=track, label=7) for size_m, material, track in things])


def plate(distance_m, material=PAINT, width_m=0.3):
    """A plate ahead of the sensor, 2 mm thick, whose face is at a distance."""
    return (0.002, width_m, 1.0), material, fixed_track(Pose(position_m=(distance_m + 0.001, 0.0, 0.0)))


def packet(first_m, second_m=None, mode=ReturnMode.STRONGEST, product=Product.VLP_16, byte=20, unit_m=0.002):
    """A packet that looks ahead: azimuths around 0, the same ranges in all records of a block."""
    data = np.zeros(1, DATA_PACKET_DTYPE)
    data["blocks"]["flag"] = BLOCK_FLAG
    step = 40 * (np.arange(12) // (2 if mode.is_dual else 1))
    data["blocks"]["azimuth"] = (step - 100) % 36_000
    for block in range(12):
        range_m = second_m if mode.is_dual and block % 2 else first_m
        data["blocks"]["channels"]["distance"][0, block] = round(range_m / unit_m) if np.isfinite(range_m) else 0
        data["blocks"]["channels"]["reflectivity"][0, block] = byte
    data["return_mode"], data["product"] = factory_bytes(mode, product) & 0xFF, product
    return data.view(np.uint8).reshape(-1).copy()


def inserted(unit, objects, payload, *, track=None, packets=1, truth=None, size=None):
    inserter = Inserter(unit, track or fixed_track(Pose()), objects)
    written = payload.copy()
    for number in range(packets):
        rows = insert_recorded(inserter.insertion, written, size or payload.size, 0, 0, 1000 * number, number, truth)
    return inserter, written, rows


def records(payload):
    blocks = payload.view(DATA_PACKET_DTYPE)["blocks"]["channels"]
    return blocks["distance"][0].astype(int), blocks["reflectivity"][0].astype(int)


def test_an_object_before_a_recorded_return_replaces_it_and_one_behind_changes_nothing():
    payload = packet(10.0)
    inserter, written, _ = inserted(velodyne(), world(plate(4.0)), payload)
    distance, byte = records(written)
    touched = distance != 5000
    assert 5 < touched.sum() < 200
    assert np.abs(distance[touched] - 2000).max() <= 30  # the plate is flat, the beams are not parallel
    assert set(byte[touched]) <= {49, 50}
    assert inserter.count(InsertionCount.FIRINGS) == inserter.count(InsertionCount.INSERTED) == inserter.count(InsertionCount.HIDDEN) == touched.sum()
    for objects in (world(plate(11.0, width_m=3.0)), world(plate(-4.0)), world(plate(150.0)), world()):
        assert (inserted(velodyne(), objects, payload)[1] == payload).all()


def test_a_beam_that_is_covered_in_part_reports_what_its_return_mode_chooses():
    for mode, expected in ((ReturnMode.STRONGEST, {2000}), (ReturnMode.LAST, {5000})):
        distance, byte = records(inserted(velodyne(), world(plate(4.0, HALF_OPEN)), packet(10.0, mode=mode))[1])
        touched = (distance != 5000) | (byte != 20)
        assert touched.sum() > 5
        assert {round(each / 100) * 100 for each in distance[touched]} == expected
        assert set(byte[touched]) <= ({37, 38} if mode is ReturnMode.STRONGEST else {5})  # front and back take half of the light each
    distance, byte = records(inserted(velodyne(), world(plate(4.0, HALF_OPEN)), packet(10.0, 10.0, mode=ReturnMode.DUAL))[1])
    touched = (distance[1::2] != 5000) | (byte[1::2] != 20)
    assert np.abs(distance[1::2][touched] - 2000).max() <= 30
    assert set(distance[0::2][touched]) == {5000}
    assert set(byte[0::2][touched]) == {5}


def test_an_object_between_two_recorded_returns_replaces_the_farther_one():
    payload = packet(20.0, 6.0, mode=ReturnMode.DUAL)  # the last return first, then the strongest
    distance, _ = records(inserted(velodyne(), world(plate(12.0, width_m=2.0)), payload)[1])
    touched = distance[0::2] != 10_000
    assert touched.sum() > 5
    assert np.abs(distance[0::2][touched] - 6000).max() <= 20
    assert set(distance[1::2].flat) == {3000}


def test_a_surface_too_dark_to_be_detected_takes_the_return_away():
    inserter, written, _ = inserted(velodyne(threshold=1e-3), world(plate(4.0, BLACK)), packet(10.0))
    distance, byte = records(written)
    touched = np.argwhere(distance == 0)
    assert len(touched) == inserter.count(InsertionCount.HIDDEN) > 5
    assert all(byte[block, record] == NO_RETURN[record % 16] for block, record in touched)
    empty = packet(np.inf)
    assert (inserted(velodyne(threshold=1e-3), world(plate(4.0, BLACK)), empty)[1] == empty).all()
    assert (records(inserted(velodyne(), world(plate(4.0)), empty)[1])[0] > 0).sum() == len(touched)


def test_the_rim_of_an_object_mixes_with_what_is_near_behind_it():
    whole = records(inserted(velodyne(sub_rays=7), world(plate(9.5, width_m=0.5)), packet(10.0))[1])[0]
    is_mixed = (whole > 4760) & (whole < 4990)
    assert is_mixed.sum() >= 2


@pytest.mark.extended
@pytest.mark.parametrize(("geometry", "product"), [(HDL_32E_GEOMETRY, Product.HDL_32E), (vls_128_geometry(55_296), Product.VLS_128)])
def test_other_models_and_stamps_of_the_last_firing(geometry, product):
    unit_m = geometry.distance_unit_mm / 1000.0
    unit = velodyne(geometry, stamps_last_firing=True, no_return=np.zeros(len(geometry.elevation_deg), np.uint8))
    payload = packet(10.0, product=product, unit_m=unit_m)
    if product is Product.VLS_128:
        payload.view(DATA_PACKET_DTYPE)["blocks"]["azimuth"] = [36_000 - 40] * 4 + [0] * 4 + [40] * 4
    rows = allocate_truth(768)
    inserter, written, count = inserted(unit, world(plate(4.0, width_m=1.0)), payload, truth=rows)
    distance, _ = records(written)
    touched = distance != round(10.0 / unit_m)
    assert touched.sum() == count > 5
    assert np.abs(distance[touched] * unit_m - 4.0).max() < 0.1
    assert (rows.time_ns[:count] <= 0).all()
    assert (distance[rows.block[:count], rows.record[:count]] == rows.distance[:count]).all()
    assert set(rows.label[:count]) == {7}
    assert inserter.next_ns == 1


def test_a_packet_that_shows_no_rate_takes_it_from_the_one_before():
    payload = packet(10.0)
    payload.view(DATA_PACKET_DTYPE)["blocks"]["azimuth"] = (np.arange(12) * 3000) % 36_000  # a step of 30 degrees is a leap
    later = payload.copy()
    later.view(DATA_PACKET_DTYPE)["blocks"]["azimuth"] += 50
    later.view(DATA_PACKET_DTYPE)["timestamp"] = 1327
    inserter = Inserter(velodyne(), fixed_track(Pose()), world(plate(4.0, width_m=2.0)))
    for each in (payload, later):
        insert_recorded(inserter.insertion, each, each.size, 0, 0, 0, 0, None)
    assert inserter.insertion.workspace.recorded.azimuth_cdeg[31] == pytest.approx(50 + 50 * 110_592 / 1_327_000 * (55_296 + 34_560) / 110_592)


def test_worlds_begin_between_two_firings():
    payload = packet(10.0)
    near, far, between_ns = world(plate(4.0, width_m=3.0)), world(plate(6.0, width_m=3.0)), 600_000
    alone = [records(inserted(velodyne(), each, payload)[1])[0] for each in (near, far)]
    inserter = Inserter(velodyne(), fixed_track(Pose()), near)
    number = inserter.add(between_ns, far)
    assert inserter.begun_ns(number) is None
    written = payload.copy()
    insert_recorded(inserter.insertion, written, written.size, 0, 0, 0, 0, None)
    assert inserter.begun_ns(number) == between_ns
    block, record = np.indices((12, 32))
    fired_ns = 110_592 * block + 55_296 * (record // 16) + 2304 * (record % 16)
    assert (records(written)[0] == np.where(fired_ns < between_ns, *alone)).all()
    late = inserter.add(0, near)
    insert_recorded(inserter.insertion, payload.copy(), payload.size, 0, 50_000_000, 9, 1, None)
    assert inserter.begun_ns(late) > between_ns
    added = 0
    while inserter.has_room:
        inserter.add(0, near)
        added += 1
    assert CAPACITY - 3 < added < CAPACITY
    with pytest.raises(ValueError, match="at most 255 worlds may wait"):
        inserter.add(0, near)
    inserter.release_passed()
    inserter.close()


def test_objects_stay_where_they_are_while_the_sensor_moves():
    payload, here = packet(30.0), world(plate(10.0, width_m=2.0))
    track = linear_track([0, 10**9], [(0.0, 0.0, 0.0), (5.0, 0.0, 0.0)], [(1.0, 0.0, 0.0, 0.0)] * 2)
    for capture_ns, expected in ((0, 5000), (10**9, 2500)):
        inserter, written = Inserter(velodyne(), track, here), payload.copy()
        insert_recorded(inserter.insertion, written, written.size, capture_ns, 0, 0, 0, None)
        distance = records(written)[0]
        assert np.abs(distance[distance != 15_000] - expected).max() < 25


def test_any_bytes_are_read_and_nothing_beyond_the_packet_is_written():
    rng = np.random.default_rng(5)
    things, guard = world(plate(4.0, width_m=2.0), plate(-6.0, HALF_OPEN, width_m=9.0)), 64
    for number in range(40 if COMPILED else 16):
        size = 1206 if number % 2 else int(rng.integers(0, 1464))
        payload = rng.integers(0, 256, size + guard, np.uint8)
        if number % 2 == 0 and size >= 20:
            payload[:6], payload[17], payload[18:20] = (*b"STDV", 2, 24), rng.integers(8, 14), (rng.integers(0, 150), 0)
        for unit in (velodyne(sub_rays=7), velodyne(vls_128_geometry(55_296), no_return=np.zeros(128, np.uint8)), cepton()):
            written = inserted(unit, things, payload, size=size)[1]
            assert (written[size:] == payload[size:]).all()
            if unit.is_swept or size != 1206:
                continue
            blocks = written[:1200].reshape(12, 100)
            assert (blocks[:, :4] == payload[:1200].reshape(12, 100)[:, :4]).all()
            assert (written[1200:1206] == payload[1200:1206]).all()


@compiled_only
def test_models_of_a_family_share_their_kernels_and_families_do_not():
    types = [numba.typeof(unit) for unit in (velodyne(), velodyne(HDL_32E_GEOMETRY), velodyne(vls_128_geometry(55_296)), cepton())]
    assert types[0] == types[1] == types[2] != types[3]


def cepton_packet(ranges, *, is_dual=False, empty=()):
    """Points straight ahead, of one laser, 20 us apart, from left to right."""
    points = []
    for number, range_m in enumerate(ranges):
        x, y = np.sin(0.02 * (number - len(ranges) / 2)), np.cos(0.02 * (number - len(ranges) / 2))
        counts = (round(range_m * x / 0.005), round(range_m * y / 0.005), 0)
        flags = int(PointFlag.NO_RETURN) if number in empty else 0
        points.append((*((0, 0, 0) if number in empty else counts), 0 if number in empty else 30, 20, 3, flags))
        if is_dual:
            points.append((0, 0, 0, 0, 0, 3, int(PointFlag.SECOND_RETURN | PointFlag.NO_RETURN)))
    return np.frombuffer(encode_stdv_packet(np.array(points, POINT_DTYPE), stamp_us=5), np.uint8).copy()


def cepton():
    lidar = response(unit_m=0.005, has_linear_scale=True)
    return build_cepton_unit(lidar, build_beam(BeamSpec(), 1), extrinsics((0.0, 0.0, 0.0), (0.0, 0.0, 0.0)), NO_NOISE)


def test_a_ceptons_points_get_objects_along_their_own_directions_and_between_their_neighbours():
    payload = cepton_packet([10.0] * 21, empty={10, 0})
    rows = allocate_truth(768)
    inserter, written, count = inserted(cepton(), world(plate(4.0)), payload, truth=rows)
    old, new = decode_stdv_points(payload.tobytes()), decode_stdv_points(written.tobytes())
    changed = old != new
    assert changed[10]  # empty, between two points of its laser
    assert not changed[0]  # empty, at the edge
    ranges = 0.005 * np.sqrt(sum(new[axis].astype(float) ** 2 for axis in "xyz"))
    assert np.abs(ranges[changed] - 4.0).max() < 0.01
    assert (new["flags"][changed] & int(PointFlag.NO_RETURN) == 0).all()
    assert set(new["reflectivity"][changed]) == {50}
    assert changed.sum() == count == inserter.count(InsertionCount.INSERTED)
    assert (rows.record[:count] == np.flatnonzero(changed)).all()
    assert np.abs(rows.distance[:count] * 0.005 - 4.0).max() < 0.01
    for name in ("step_us", "channel"):
        assert (old[name] == new[name]).all()
    assert inserted(cepton(), world(plate(4.0)), payload, size=30)[1].tobytes() == payload.tobytes()


def test_a_ceptons_second_points_get_what_a_covered_beam_leaves():
    payload = cepton_packet([10.0] * 21, is_dual=True)
    new = decode_stdv_points(inserted(cepton(), world(plate(4.0, HALF_OPEN)), payload)[1].tobytes())
    first, second = new[0::2], new[1::2]
    touched = second["flags"] & int(PointFlag.NO_RETURN) == 0
    assert touched.sum() > 2
    assert np.abs(first["y"][touched] * 0.005 - 4.0).max() < 0.02
    assert np.abs(second["y"][touched] * 0.005 - 10.0).max() < 0.1
    assert (second["flags"][touched] & int(PointFlag.SECOND_RETURN) != 0).all()
    black = decode_stdv_points(inserted(cepton(), world(plate(4.0, Material(name="none", reflectivity=0))), payload)[1].tobytes())
    assert len(black) == 42
