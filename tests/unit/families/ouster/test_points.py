"""Points of Ouster's lidar packets: places, values, returns, and packets that give none."""

from dataclasses import replace

import numpy as np
import pytest

from hilsim.families.ouster.points import OusterDecoder, stacked_payloads
from hilsim.families.ouster.protocol.headers import ColumnField
from hilsim.families.ouster.protocol.pixels import allocate_pixels
from hilsim.families.ouster.protocol.profiles import PROFILES
from tests.ouster_sensors import columns_of, encoded, header_of, layout_of, sensor
from tests.ouster_streams import lidar_payloads

SENSOR = sensor("RNG19_RFL8_SIG16_NIR16_DUAL", 16, mode="512x10")


def one_packet(metadata=SENSOR, first=128, packet_type=1, **values):
    """A packet with one pixel: column 3, row 2."""
    pixels = allocate_pixels(metadata.profile, metadata.beams.channels)
    for name, entries in values.items():
        for number, value in enumerate(entries):
            getattr(pixels, name)[number, 3, 2] = value
    columns = columns_of(metadata.profile, first)
    return encoded(layout_of(metadata), header_of(metadata, packet_type=packet_type), columns, pixels)[np.newaxis]


def test_a_pixel_is_a_point_for_each_return_with_all_that_was_measured():
    payload = one_packet(range_mm=(10_000, 12_345), reflectivity=(20, 9), signal=(300, 120), near_ir=(77,), flags=(0, 1))
    first, second = OusterDecoder(SENSOR).points(payload)
    assert (first["range"], second["range"]) == pytest.approx((10.0, 12.345))
    assert [each["return_number"] for each in (first, second)] == [0, 1]
    assert [(each["intensity"], each["signal"], each["near_ir"], each["flags"]) for each in (first, second)] == [(20, 300, 77, 0), (9, 120, 77, 1)]
    assert first["column"] == second["column"] == 131
    assert first["time_ns"] == columns_of(SENSOR.profile, 128)[3, ColumnField.TIMESTAMP_NS]
    assert first["ring"] == 16 - 1 - 2  # row 0 is the top beam, ring 0 the lowest


def test_azimuth_and_place_agree_and_column_0_looks_back_to_the_connector():
    beams = replace(SENSOR.beams, azimuth_deg=(0.0,) * 16, elevation_deg=tuple(np.linspace(8.0, -8.0, 16).tolist()))
    decoder = OusterDecoder(replace(SENSOR, beams=beams))
    for first, azimuth_deg in ((0, 180.0), (128, 270.0), (256, 0.0), (384, 90.0)):
        (point,) = decoder.points(one_packet(first=first, range_mm=(50_000,)))
        expected_deg = (azimuth_deg + 3 * 360.0 / 512) % 360.0
        assert point["azimuth"] == pytest.approx(expected_deg)
        assert np.degrees(np.arctan2(point["x"], point["y"])) % 360.0 == pytest.approx(expected_deg, abs=0.01)


def test_pixels_without_a_return_and_columns_that_are_not_valid_give_no_points():
    assert OusterDecoder(SENSOR).points(one_packet()).size == 0
    window = replace(SENSOR, column_window=(20, 99))
    payloads = stacked_payloads([payload for _, payload in lidar_payloads(window)])
    points = OusterDecoder(window).points(payloads)
    assert (int(points["column"].min()), int(points["column"].max())) == (20, 99)


def test_packets_of_another_type_give_no_points_and_keep_their_numbers():
    both = np.concatenate((one_packet(packet_type=2, range_mm=(9000,)), one_packet(range_mm=(9000,))))
    assert OusterDecoder(SENSOR).points(both)["packet"].tolist() == [1]


def test_packets_of_another_size_are_refused_with_both_sizes():
    with pytest.raises(ValueError, match=r"lidar packets of OS-1-16 must be 4352 bytes each, got \(1, 3328\)"):
        OusterDecoder(SENSOR).points(np.zeros((1, 3328), np.uint8))


@pytest.mark.parametrize("name", PROFILES)
def test_every_profile_gives_as_many_points_as_ranges(name):
    metadata = sensor(name, 16, mode="512x10")
    decoder = OusterDecoder(metadata)
    payloads = stacked_payloads([payload for _, payload in lidar_payloads(metadata)])
    ranges = decoder.packets(payloads).pixels.range_mm
    points = decoder.points(payloads)
    assert points.size == np.count_nonzero(ranges)
    np.testing.assert_allclose(np.sort(points["range"]), np.sort(ranges[ranges > 0]) / 1000.0, rtol=1e-6)
    assert (np.diff(points["packet"].astype(np.int64)) >= 0).all()
