"""Captures in Python: read, decoded, verified."""

import dataclasses

import numpy as np
import pytest

import hilsim
from tests.support import write_rig
from tests.unit.api.rigs import room, swept_room

TWO = '[[sensor]]\nname = "second"\nunit = "ideal"\n[sensor.network]\nsource = "127.0.1.202"\n'


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A capture of a lidar in a room for 1.2 s, and its rig."""
    directory = tmp_path_factory.mktemp("recorded")
    rig = room(directory)
    hilsim.record(rig, directory / "a.pcap", duration_s=1.2)
    return directory / "a.pcap", rig


def test_a_capture_is_the_packets_that_were_recorded(recorded):
    path, rig = recorded
    emulated = list(hilsim.Emulator(rig).packets(0.0, 1.2))
    captured = list(hilsim.read_capture(path))
    assert [(packet.payload, packet.frame, packet.source, packet.destination, packet.stream) for packet in captured] == [
        (packet.payload, packet.frame, packet.source, packet.destination, packet.stream) for packet in emulated
    ]
    assert {packet.sensor for packet in captured} == {emulated[0].source[0]}


def test_a_capture_that_is_not_there_is_a_capture_error(tmp_path):
    with pytest.raises(hilsim.CaptureError, match=r"nowhere\.pcap: cannot be opened"):
        next(hilsim.read_capture(tmp_path / "nowhere.pcap"))


def test_the_points_of_a_capture_are_those_of_its_packets(recorded):
    path, _ = recorded
    from_file, from_packets = hilsim.decode(path), hilsim.decode(hilsim.read_capture(path))
    np.testing.assert_array_equal(from_file, from_packets)
    assert from_file.dtype.names[:7] == hilsim.POINT_DTYPE.names[:7]
    assert from_file.size > 300_000


def test_a_point_says_which_packet_it_came_in(recorded):
    path, _ = recorded
    packets = list(hilsim.read_capture(path))
    points = hilsim.decode(packets)
    assert {packets[place].stream for place in np.unique(points["packet"])} == {"data"}
    place = int(points["packet"][200_000])
    alone = hilsim.decode(packets[place : place + 1], model="vlp-16")
    of_packet = points[points["packet"] == place]
    np.testing.assert_array_equal(alone[["time", "ring", "range", "intensity"]], of_packet[["time", "ring", "range", "intensity"]])


def test_payloads_alone_are_decoded_as_those_of_one_sensor(recorded):
    path, _ = recorded
    np.testing.assert_array_equal(hilsim.decode(packet.payload for packet in hilsim.read_capture(path)), hilsim.decode(path))


def test_points_of_a_cepton_style_sensor_are_decoded(tmp_path):
    rig = swept_room(tmp_path)
    hilsim.record(rig, tmp_path / "a.pcap", duration_s=0.2)
    points = hilsim.decode(tmp_path / "a.pcap")
    emulated = hilsim.Emulator(rig).points(0.0, 0.1)
    for field in ("x", "y", "z", "intensity", "ring", "return"):
        np.testing.assert_array_equal(points[field][: emulated.size], emulated[field], err_msg=field)


def test_of_several_sensors_one_must_be_named(tmp_path):
    rig = room(tmp_path, more=TWO)
    packets = list(hilsim.Emulator(rig).packets(0.0, 0.02))
    with pytest.raises(hilsim.CaptureError, match="sensor must be named if several sent points, got lidar and second"):
        hilsim.decode(packets)
    assert 1000 < hilsim.decode(packets, sensor="second").size < 6000


def test_a_model_that_is_not_known_is_named_with_those_that_are(recorded):
    with pytest.raises(ValueError, match=r'model must be one of VLP-16, .*, got "VLP-17"'):
        hilsim.decode(recorded[0], model="VLP-17")


def test_of_no_packets_there_are_no_points():
    assert hilsim.decode([]).size == 0


def test_a_recording_passes_and_says_so(recorded):
    report = hilsim.verify(recorded[0])
    assert (report.passed, report.errors, report.to_dict()["passed"]) == (True, 0, True)
    assert str(report).splitlines()[-1].startswith("passed: 0 errors")


def test_packets_are_checked_like_a_capture_of_them(recorded):
    path, _ = recorded
    assert hilsim.verify(hilsim.read_capture(path)).to_dict() == hilsim.verify(path).to_dict()


def test_a_wrong_byte_is_found(recorded):
    packets = list(hilsim.read_capture(recorded[0]))
    broken = [dataclasses.replace(packet, payload=b"\x00" + packet.payload[1:]) for packet in packets[:5]]
    report = hilsim.verify(broken + packets[5:])
    assert not report.passed
    assert report.errors > 0
    assert "FAILED" in str(report)


def test_ground_truth_is_written_beside_a_recording(tmp_path):
    pytest.importorskip("pyarrow", reason="the extra truth is not installed")
    result = hilsim.record(room(tmp_path), tmp_path / "a.pcap", duration_s=0.05, truth=tmp_path / "a.parquet")
    assert result.returns > 5000
    assert (tmp_path / "a.parquet").stat().st_size > 10_000


def test_a_recording_has_a_duration(tmp_path):
    with pytest.raises(ValueError, match=r"duration_s must be 0\.001 to 1e6, got 0"):
        hilsim.record(write_rig(tmp_path), tmp_path / "a.pcap", duration_s=0)
