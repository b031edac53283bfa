"""Pictures of Ouster frames: which frame, what its images hold, and what is missing."""

from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from hilsim.cli.picture import picture
from hilsim.errors import CaptureError
from hilsim.families.ouster.picture import FrameGatherer, frame_scan
from hilsim.families.ouster.points import OusterDecoder, stacked_payloads
from hilsim.families.ouster.protocol.profiles import PROFILES
from tests.ouster_sensors import sensor
from tests.ouster_streams import lidar_payloads, stream, write_capture

SENSOR = sensor(channels=16, mode="512x10")
OTHER = replace(SENSOR, serial="100000000001")


def payloads_of(metadata, frames=1):
    return [payload for _, payload in lidar_payloads(metadata, frames)]


@pytest.mark.parametrize("name", PROFILES)
def test_images_hold_the_first_returns_with_each_row_rotated_by_its_shift(name):
    metadata = sensor(name, 16, mode="512x10")
    decoder = OusterDecoder(metadata)
    payloads = stacked_payloads(payloads_of(metadata))
    scan = frame_scan(decoder, payloads)
    pixels = decoder.packets(payloads).pixels
    staggered = pixels.range_mm[:, 0].reshape(512, 16).T
    for row, shift in enumerate(metadata.pixel_shift_by_row):
        np.testing.assert_allclose(scan.range_m[row, (np.arange(512) + shift) % 512] * 1000.0, staggered[row])
    assert (scan.signal is None) == ("SIG16" not in name and name != "LEGACY")
    assert (scan.near_ir > 0).all()
    assert scan.returns == np.count_nonzero(pixels.range_mm)
    assert scan.absent_columns == 0


def test_the_first_whole_frame_is_drawn_though_the_stream_begins_within_one():
    gatherer, payloads = FrameGatherer(SENSOR), payloads_of(SENSOR, 3)
    for payload in payloads[5:]:
        gatherer.take(payload)
    assert gatherer.is_whole
    np.testing.assert_array_equal(gatherer.scan().range_m, frame_scan(OusterDecoder(SENSOR), stacked_payloads(payloads[32:64])).range_m)


def test_without_a_whole_frame_the_fullest_is_drawn_and_its_missing_columns_are_counted():
    gatherer = FrameGatherer(SENSOR)
    for payload in payloads_of(SENSOR)[:30]:
        gatherer.take(payload)
    assert not gatherer.is_whole
    assert gatherer.scan().absent_columns == 32


def test_a_frame_of_a_window_is_whole_with_its_packets():
    window = replace(SENSOR, column_window=(400, 83))
    gatherer = FrameGatherer(window)
    for payload in payloads_of(window):
        gatherer.take(payload)
    scan = gatherer.scan()
    assert scan.absent_columns == 0
    assert np.isnan(scan.range_m).any(axis=0).sum() > 200


def run(*arguments):
    return CliRunner().invoke(picture, [str(argument) for argument in arguments])


def test_the_command_draws_the_chosen_sensor_by_address_or_serial_number(tmp_path):
    both = sorted(stream(SENSOR, 2) + stream(OTHER, 2, seed=9), key=lambda each: each.host_stamp_ns)
    path = write_capture(tmp_path / "x.pcap", both, SENSOR, OTHER)
    for name in ("10.5.5.86", OTHER.serial):
        shown = run(path, "-o", tmp_path / "x.png", "--sensor", name)
        assert shown.exit_code == 0, shown.output
        assert "OS-1-16, 512x10, RNG19_RFL8_SIG16_NIR16, 8,192 pixels" in shown.output
        assert "note" not in shown.output
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_the_command_names_the_metadata_that_it_needs(tmp_path):
    alone = write_capture(tmp_path / "x.pcap", stream(SENSOR, 1))
    shown = run(alone, "-o", tmp_path / "x.png")
    assert isinstance(shown.exception, CaptureError)
    assert str(shown.exception).endswith("give the sensor's metadata (JSON)")
    assert not (tmp_path / "x.png").exists()


@pytest.mark.extended
def test_the_command_draws_a_sensor_of_a_rig(tmp_path):
    shown = run("ouster", "-o", tmp_path / "x.png")
    assert shown.exit_code == 0, shown.output
    assert "OS-1-64, 1024x10, RNG19_RFL8_SIG16_NIR16, 65,536 pixels" in shown.output
    assert "note" not in shown.output
