"""``hilsim.decode`` and ``hilsim export`` read captures of Ouster sensors with their metadata."""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

import hilsim
from hilsim.api.packet import read_capture
from hilsim.cli.export.command import export
from hilsim.errors import CaptureError
from hilsim.families.ouster.scans import DECODED_OUSTER_DTYPE
from tests.ouster_sensors import sensor
from tests.ouster_streams import stream, write_capture

SENSOR = sensor("RNG19_RFL8_SIG16_NIR16_DUAL", 16, mode="512x10")
OTHER = replace(SENSOR, serial="100000000001")


@pytest.fixture
def one(tmp_path):
    return write_capture(tmp_path / "one.pcap", stream(SENSOR, 2), SENSOR)


def test_a_capture_is_decoded_by_the_metadata_beside_it(one):
    points = hilsim.decode(one)
    assert points.dtype == DECODED_OUSTER_DTYPE
    assert points.size > 5000
    assert set(np.unique(points["return"])) == {0, 1}
    packets = list(read_capture(one))
    assert {packets[number].stream for number in np.unique(points["packet"])} == {"lidar"}
    assert {packet.stream for packet in packets} == {"lidar", "imu"}


def test_payloads_alone_are_decoded_by_given_metadata(one):
    payloads = [packet.payload for packet in read_capture(one)]
    np.testing.assert_array_equal(hilsim.decode(payloads, metadata=one.with_suffix(".json")), hilsim.decode(one))


def test_without_metadata_the_error_names_what_the_size_allows(tmp_path):
    alone = write_capture(tmp_path / "alone.pcap", stream(SENSOR, 1))
    with pytest.raises(CaptureError, match=r"10\.5\.5\.86: 4352 bytes fit .* give the sensor's metadata \(JSON\)$"):
        hilsim.decode(alone)


def test_metadata_of_another_unit_are_refused(tmp_path):
    path = write_capture(tmp_path / "x.pcap", stream(SENSOR, 1), OTHER)
    with pytest.raises(CaptureError, match="metadata must be of serial number 122247000785, got 100000000001"):
        hilsim.decode(path)


def test_one_of_two_sensors_behind_an_address_is_named_by_its_serial_number(tmp_path):
    both = sorted(stream(SENSOR, 1) + stream(OTHER, 1, seed=9), key=lambda each: each.host_stamp_ns)
    path = write_capture(tmp_path / "x.pcap", both, SENSOR, OTHER)
    with pytest.raises(CaptureError, match="sensor must be a serial number"):
        hilsim.decode(path)
    alone = write_capture(tmp_path / "y.pcap", stream(OTHER, 1, seed=9), OTHER)
    np.testing.assert_array_equal(hilsim.decode(path, sensor=OTHER.serial)["range"], hilsim.decode(alone)["range"])


def test_export_writes_a_cloud_for_each_frame_with_reflectivity_and_both_returns(one, tmp_path):
    shown = CliRunner().invoke(export, [str(one), "-o", str(tmp_path / "scans"), "--format", "npz", "--json"])
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.output)["scans"] == 2
    points = hilsim.decode(one)
    with np.load(tmp_path / "scans" / "10.5.5.86" / "000000.npz") as cloud:
        first = points[: cloud["x"].size]
        np.testing.assert_allclose(np.stack([cloud[axis] for axis in "xyz"]), np.stack([first["y"], -first["x"], first["z"]]))
        np.testing.assert_array_equal(cloud["intensity"], first["intensity"])
        assert set(np.unique(cloud["return_type"])) == {3, 7}


def test_export_without_metadata_says_what_it_needs(tmp_path):
    alone = write_capture(tmp_path / "alone.pcap", stream(SENSOR, 1))
    shown = CliRunner().invoke(export, [str(alone), "-o", str(tmp_path / "scans"), "--format", "npz"])
    assert isinstance(shown.exception, CaptureError)
    assert "need metadata (--metadata)" in str(shown.exception)
