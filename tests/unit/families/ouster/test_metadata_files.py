"""Metadata of Ouster sensors are found beside captures, and by the packets that their sensors sent."""

import json
from pathlib import Path

import pytest

from hilsim.capture.pcap import CaptureFile
from hilsim.errors import CaptureError
from hilsim.families.ouster.metadata_files import OusterMetadata, given_metadata, load_metadata, metadata_beside, write_beside
from hilsim.families.ouster.protocol.metadata import metadata_document
from hilsim.families.ouster.recognition import OusterKind
from hilsim.protocols.recognise import recognise
from tests.ouster_sensors import sensor
from tests.unit.families.ouster.protocol.test_recognition import lidar_packet


def written(path, metadata):
    path.write_text(json.dumps(metadata_document(metadata)))
    return path


@pytest.mark.parametrize("name", ["x.pcap", "x.pcap.gz", "x.pcapng.zst"])
def test_files_with_the_name_of_the_capture_are_found_in_order(tmp_path, name):
    for other in ("x.json", "x.2.json", "x.1.json", "x_3.json", "xy.json", "x.a.json", "x.1.txt", "y.json"):
        (tmp_path / other).write_text("{}")
    assert [path.name for path in metadata_beside(tmp_path / name)] == ["x.1.json", "x.2.json", "x.json", "x_3.json"]


def test_a_pipe_has_no_files_beside_it():
    assert metadata_beside(Path("/does/not/exist/x.pcap")) == ()


def test_a_packet_finds_the_metadata_of_its_serial_number():
    sensors = [sensor(serial="100000000001"), sensor(serial="100000000002", header=None, profile="FUSA_RNG15_RFL8_NIR8_DUAL")]
    metadata = OusterMetadata(sensors)
    for each in sensors:
        found = metadata.identify(lidar_packet(each.lidar_profile, serial=each.serial))
        assert found.metadata is each
        assert found.is_sure


def test_of_two_metadata_of_one_unit_that_with_the_initialisation_id_of_the_packet_is_found():
    before, after = sensor(initialization_id=7), sensor(initialization_id=8)
    assert OusterMetadata([before, after]).identify(lidar_packet(initialization_id=8)).metadata is after


def test_a_packet_of_an_unknown_serial_number_is_of_the_only_sensor_with_its_size_but_not_surely():
    known = sensor(serial="100000000001")
    found = OusterMetadata([known, sensor(channels=64)]).identify(lidar_packet(serial="100000000009"))
    assert found.metadata is known
    assert not found.is_sure
    assert OusterMetadata([known, sensor(serial="100000000002")]).identify(lidar_packet(serial="100000000009")).metadata is None


def test_a_packet_without_header_is_of_the_only_sensor_with_its_size():
    known = sensor("LEGACY")
    assert OusterMetadata([known]).identify(lidar_packet("LEGACY")).is_sure


def test_files_beside_a_capture_are_read_only_when_a_packet_asks_for_them(tmp_path):
    (tmp_path / "x.json").write_text("no metadata")
    metadata = OusterMetadata(capture=tmp_path / "x.pcap")
    with pytest.raises(CaptureError, match=r"x\.json: Ouster metadata must be JSON"):
        metadata.identify(lidar_packet())


def test_metadata_of_a_recording_replace_those_of_a_former_one_and_no_other_file(tmp_path):
    capture, sensors = tmp_path / "x.pcap", [sensor(), sensor(serial="100000000001")]
    write_beside(capture, sensors)
    assert list(tmp_path.iterdir()) == []  # there is no capture yet
    capture.touch()
    for count in (2, 1):
        write_beside(capture, sensors[:count])
        assert list(OusterMetadata(capture=capture).sensors) == sensors[:count]
    (tmp_path / "x.json").write_text('{"mine": 1}')
    with pytest.raises(CaptureError, match=r"x\.json must be metadata of a former capture"):
        write_beside(capture, sensors)
    assert (tmp_path / "x.json").read_text() == '{"mine": 1}'


def test_a_file_beside_a_capture_with_an_unknown_profile_is_passed_over(tmp_path):
    document = metadata_document(sensor())
    document["lidar_data_format"]["udp_profile_lidar"] = "RNG15_RFL8_NIR8_ZONE16"
    (tmp_path / "x.json").write_text(json.dumps(document))
    assert OusterMetadata(capture=tmp_path / "x.pcap").identify(lidar_packet()).metadata is None
    with pytest.raises(CaptureError, match="udp_profile_lidar must be one of"):
        given_metadata([tmp_path / "x.json"])


def test_files_that_are_given_take_the_place_of_those_beside_the_capture(tmp_path):
    written(tmp_path / "x.json", sensor())
    given = written(tmp_path / "other.json", sensor(serial="100000000001"))
    assert [each.serial for each in given_metadata([given], tmp_path / "x.pcap").sensors] == ["100000000001"]
    assert [each.serial for each in given_metadata([], tmp_path / "x.pcap").sensors] == ["122247000785"]


def test_all_faults_of_given_files_are_named_at_once(tmp_path):
    (tmp_path / "a.json").write_text("[]")
    with pytest.raises(CaptureError, match=r"(?s)a\.json: Ouster metadata must be an object.*none\.json: cannot be opened"):
        given_metadata([tmp_path / "a.json", tmp_path / "none.json"])


def test_a_file_beyond_the_limit_is_refused(tmp_path):
    (tmp_path / "x.json").write_text(" " * (1 << 20) + "{}")
    with pytest.raises(CaptureError, match=r"metadata of an Ouster sensor must be at most 1,048,576 bytes"):
        load_metadata(tmp_path / "x.json")


def test_two_sensors_of_one_capture_are_distinguished_behind_their_fragments(capture):
    path = capture("ouster/same_ports_nonlegacy.pcap")
    metadata = OusterMetadata(capture=path)
    found = {
        datagram.source: metadata.identify(datagram.payload) for datagram in CaptureFile(path) if recognise(datagram.payload) is OusterKind.LIDAR
    }
    assert {source: (each.serial, each.is_sure, each.metadata.lidar_profile) for source, each in found.items()} == {
        "169.254.238.111": (122239000672, True, "RNG19_RFL8_SIG16_NIR16_DUAL"),
        "169.254.92.158": (122247000785, True, "FUSA_RNG15_RFL8_NIR8_DUAL"),
    }
