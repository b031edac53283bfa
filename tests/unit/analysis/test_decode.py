"""Packets into points: hand-computed cases; ``tests/interop/test_decode.py`` holds real captures against an independent decoder."""

import math
import struct

import numpy as np
import pytest

from hilsim.families.cepton.points import decode_cepton
from hilsim.families.cepton.protocol.stdv import PointFlag
from hilsim.families.velodyne.points import decode_velodyne
from hilsim.families.velodyne.protocol.geometry import VLP_32C_GEOMETRY, vls_128_geometry
from hilsim.read.analysis.decode import POINT_DTYPE
from tests.unit.background.recordings import VLP16, batch, stdv_payload, vlp16_payloads

VLS128 = vls_128_geometry(55_277)  # as measured on a public capture
BANK_FLAGS = (0xEEFF, 0xDDFF, 0xCCFF, 0xBBFF)


def velodyne(payloads, geometry=VLP16):
    return decode_velodyne(batch(payloads), geometry)


def with_record(payload, block, record, distance, reflectivity=40):
    changed = bytearray(payload)
    at = 100 * block + 4 + 3 * record
    changed[at : at + 3] = struct.pack("<HB", distance, reflectivity)
    return bytes(changed)


def test_a_return_lies_where_its_laser_looked_when_it_fired():
    nothing = vlp16_payloads(2, distance=lambda *_: 0)
    points = velodyne([nothing[0], with_record(nothing[1], 2, 18, 5000, 77)])  # block 2, second sequence, laser 2
    (point,) = points
    azimuth_cdeg = 40 * (12 + 3) + 40 * (55_296 + 2 * 2304) / 110_592
    azimuth, elevation = math.radians(azimuth_cdeg / 100), math.radians(-13.0)
    expected = [10.0 * math.cos(elevation) * math.sin(azimuth), 10.0 * math.cos(elevation) * math.cos(azimuth), 10.0 * math.sin(elevation) + 9.7e-3]
    np.testing.assert_allclose([point[axis] for axis in "xyz"], expected, rtol=1e-6)
    assert (point["range"], point["azimuth"]) == (np.float32(10.0), pytest.approx(azimuth_cdeg / 100, rel=1e-6))
    assert (point["packet"], point["ring"], point["intensity"], point["return_number"], point["flags"]) == (1, 1, 77, 0, 0)
    assert point["time_ns"] == 1_327_000 + 2 * 110_592 + 55_296 + 2 * 2304


def test_the_last_block_turns_as_the_one_before():
    nothing = vlp16_payloads(1, distance=lambda *_: 0, step_cdeg=60)[0]
    (point,) = velodyne([with_record(nothing, 11, 31, 1000)])
    assert point["azimuth"] == pytest.approx((60 * 12 + 60 * (55_296 + 15 * 2304) / 110_592) / 100, rel=1e-6)


def test_both_returns_of_a_firing_are_numbered_and_a_copy_is_given_once():
    payload = with_record(vlp16_payloads(1, mode=0x39)[0], 3, 5, 3000, 90)  # block 3: the strongest of the second firing
    points = velodyne([payload])
    assert points.size == 6 * 32 + 1
    (number,) = np.flatnonzero(points["return_number"])
    strongest = points[number]
    (last,) = points[(points["time_ns"] == strongest["time_ns"]) & (points["return_number"] == 0)]
    assert (strongest["range"], last["range"], strongest["ring"], strongest["intensity"]) == (6.0, 10.0, last["ring"], 90)
    assert strongest["time_ns"] == 110_592 + 5 * 2304
    assert points["time_ns"].max() == 5 * 110_592 + 55_296 + 15 * 2304


def test_a_jump_of_the_field_of_view_turns_no_firing():
    payload = bytearray(vlp16_payloads(1, distance=lambda *_: 0)[0])
    for block in range(6, 12):
        payload[100 * block + 2 : 100 * block + 4] = struct.pack("<H", 27_000 + 40 * block)
    before, after = velodyne([with_record(with_record(bytes(payload), 5, 31, 500), 6, 31, 500)])
    turned_cdeg = 40 * (55_296 + 15 * 2304) / 110_592
    assert before["azimuth"] == pytest.approx((40 * 6 + turned_cdeg) / 100, rel=1e-5)
    assert after["azimuth"] == pytest.approx((27_000 + 240 + turned_cdeg) / 100, rel=1e-6)


def test_offsets_of_lasers_turn_their_points_and_azimuth_stays_below_360():
    payload = vlp16_payloads(1, distance=lambda *_: 1000, product=0x28, step_cdeg=1)[0]  # the first block at 0.01 degrees
    points = velodyne([payload], VLP_32C_GEOMETRY)[:32]
    offset = np.sort(np.unique(VLP_32C_GEOMETRY.azimuth_offset_deg))
    found = (points["azimuth"] + 180) % 360 - 180
    np.testing.assert_allclose(np.unique(np.round(found, 1)), offset)
    assert points["azimuth"].min() >= 0.0
    assert points["azimuth"].max() < 360.0


def vls128_dual(azimuth_cdeg, stamp_us, distance):
    """A packet of one firing sequence, in pairs of blocks, and four blocks of padding."""
    blocks = [struct.pack("<HH", flag, azimuth_cdeg) + struct.pack("<HB", distance, 9) * 32 for flag in BANK_FLAGS for _ in range(2)]
    return b"".join(blocks) + b"\xff" * 400 + struct.pack("<IBB", stamp_us, 0x39, 0xA1)


@pytest.mark.parametrize("stamps", [(1000, 1055, 1110), (1000, 1110, 1276)])  # one after the other, and with some lost
def test_a_vls128_in_dual_mode_turns_as_its_neighbours_tell(stamps):
    azimuths = [round((stamp - 1000) / 55.277 * 20) for stamp in stamps]
    points = velodyne([vls128_dual(*place, 2500) for place in zip(azimuths, stamps, strict=True)], VLS128)
    assert np.bincount(points["packet"]).tolist() == [128] * 3
    for packet, azimuth_cdeg in enumerate(azimuths):
        of_packet = points[points["packet"] == packet]
        order = np.argsort(np.argsort(VLS128.elevation_deg))
        np.testing.assert_array_equal(of_packet["ring"], order)
        expected = azimuth_cdeg / 100 + 0.2 * np.array(VLS128.delay_ns) / VLS128.sequence_ns + VLS128.azimuth_offset_deg
        np.testing.assert_allclose((of_packet["azimuth"] - expected + 180) % 360 - 180, 0.0, atol=0.003)  # stamps are whole microseconds


def test_only_the_chosen_datagrams_are_decoded():
    some = batch([b"", vlp16_payloads(1)[0], bytes(512)])
    assert decode_velodyne(some, VLP16, np.array([False, True, False])).size == 384
    with pytest.raises(ValueError, match="Velodyne data packets must be 1206 bytes each, got others among them"):
        decode_velodyne(some, VLP16)


def test_points_of_cepton_packets_have_their_own_times_and_places():
    rows = [(600, 800, -100, 50, 8, 0), (0, 2000, 0, 99, 7, PointFlag.NO_RETURN), (-600, 800, 0, 60, 0, PointFlag.SECOND_RETURN)]
    points = decode_cepton(batch([stdv_payload(rows, stamp_us=1 << 40), stdv_payload(rows)[:-1], stdv_payload(rows[:1])]))
    np.testing.assert_allclose(points["x"], [3.0, -3.0, 3.0])
    np.testing.assert_allclose(points["y"], 4.0)
    np.testing.assert_allclose(points["z"], [-0.5, 0.0, -0.5])
    np.testing.assert_allclose(points["range"], [math.sqrt(25.25), 5.0, math.sqrt(25.25)], rtol=1e-6)
    np.testing.assert_allclose(points["azimuth"], [36.869898, 323.130102, 36.869898], rtol=1e-6)
    assert points["time_ns"].tolist() == [1000 * ((1 << 40) + 8), 1000 * ((1 << 40) + 15), 8000]
    assert points["packet"].tolist() == [0, 0, 2]
    assert points["intensity"].tolist() == [50, 60, 50]
    assert points["return_number"].tolist() == [0, 1, 0]
    assert points["flags"].tolist() == [0, PointFlag.SECOND_RETURN, 0]


def test_of_nothing_there_are_no_points():
    assert velodyne([]).dtype == POINT_DTYPE
    assert decode_cepton(batch([])).size == 0
