"""Inspection of Ouster captures: what sensors, modes, frames and losses are found."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from hilsim.capture.pcap import CaptureFile
from hilsim.cli.inspect import inspect as inspect_command
from hilsim.families.ouster.inspection import OusterImu, OusterLidar
from hilsim.families.ouster.metadata_files import OusterMetadata
from hilsim.read.analysis.inspection.inspector import inspect
from hilsim.read.analysis.inspection.lines import Tone
from hilsim.read.analysis.inspection.report import CaptureFacts, render_text
from tests.ouster_sensors import sensor
from tests.ouster_streams import stream, write_capture

SENSOR = sensor(channels=16, mode="512x10")
FACTS = CaptureFacts(file="x.pcap", format="PCAP", size_bytes=0, frames=1, notes=())


def details(datagrams, *metadata):
    summary = inspect(datagrams, {"ouster": OusterMetadata(metadata)})
    flows = [flow.details for found in summary.sensors for flow in found.flows]
    return [each for each in flows if isinstance(each, OusterLidar)], [each for each in flows if isinstance(each, OusterImu)]


def problems(datagrams, *metadata):
    lines = render_text(FACTS, inspect(datagrams, {"ouster": OusterMetadata(metadata)}))
    return [line.text.strip(" !") for line in lines if line.tone is Tone.PROBLEM]


def lidar_only(datagrams):
    return [each for each in datagrams if each.destination_port == 7502]


def test_a_stream_with_metadata_is_described_whole():
    datagrams = stream(SENSOR, 4, first_frame=65_534)
    (lidar,), (imu,) = details(datagrams, SENSOR)
    assert (lidar.model, lidar.firmware, lidar.profile, lidar.lidar_mode) == ("OS-1-16", "3.1.0", "RNG19_RFL8_SIG16_NIR16", "512x10")
    assert (lidar.frames, lidar.first_frame_id, lidar.last_frame_id, lidar.frame_breaks) == (4, 65_534, 1, 0)
    assert (lidar.columns, lidar.invalid_columns, lidar.missing.packets, lidar.stamp_grid_ns) == (2048, 0, 0, 8)
    assert lidar.frame_rate_hz == pytest.approx(10.0, rel=1e-3)
    assert lidar.init_ids == (0xABCDE,)
    assert abs(lidar.clock.host_drift_ppm) < 1.0
    assert (imu.form, imu.measurements_per_packet) == ("LEGACY", 1)
    assert imu.rate_hz == pytest.approx(100.0)
    assert problems(datagrams, SENSOR) == []


def test_without_metadata_the_report_names_what_the_size_allows_and_asks_for_the_file():
    (lidar,), _ = details(stream(SENSOR, 2))
    assert (lidar.model, lidar.profile, lidar.channels, lidar.columns_per_frame) == (None, "RNG19_RFL8_SIG16_NIR16", 16, 512)
    assert problems(stream(SENSOR, 2)) == [
        "there are no metadata of this sensor: 3328 bytes fit RNG19_RFL8_SIG16_NIR16 with 16 channels: give the sensor's metadata (JSON)"
    ]


def test_missing_packets_are_counted_by_measurement_ids_across_frames():
    datagrams = lidar_only(stream(SENSOR, 4))
    kept = [each for number, each in enumerate(datagrams) if number not in {5, 6, 31, 32, 70}]
    (lidar,), _ = details(kept, SENSOR)
    assert (lidar.missing.packets, lidar.missing.runs, lidar.missing.longest_run) == (5, 3, 2)
    assert lidar.missing.longest_after.frame == datagrams[4].frame
    (unknown,), _ = details(kept)
    assert unknown.missing == lidar.missing


def test_a_late_packet_is_out_of_order_and_not_missing():
    datagrams = lidar_only(stream(SENSOR, 2))
    datagrams[10], datagrams[11] = datagrams[11], datagrams[10]
    (lidar,), _ = details(datagrams, SENSOR)
    assert (lidar.missing.packets, lidar.clock.out_of_order) == (0, 1)


@pytest.mark.parametrize("window", [(100, 299), (400, 83)])
@pytest.mark.parametrize("has_metadata", [True, False])
def test_packets_outside_the_azimuth_window_are_not_missing(window, has_metadata):
    metadata = replace(SENSOR, column_window=window)
    (lidar,), _ = details(stream(metadata, 3), *([metadata] if has_metadata else []))
    assert lidar.missing.packets == 0
    inside = (window[1] - window[0]) % 512 + 1
    assert lidar.columns - lidar.invalid_columns == 3 * inside


def test_a_reinitialised_sensor_has_two_ids_and_frame_ids_that_begin_anew():
    datagrams = stream(SENSOR, 3, has_imu=False) + stream(replace(SENSOR, initialization_id=99), 2, has_imu=False, first_frame=0)
    (lidar,), _ = details(datagrams, SENSOR)
    assert (lidar.init_ids, lidar.frame_breaks, lidar.frames) == ((0xABCDE, 99), 1, 5)
    found = problems(datagrams, SENSOR)
    assert "the metadata have initialisation id 703710, got 703710, 99" in found
    assert "frame ids begin anew once" in found


def test_two_sensors_behind_one_address_are_listed_by_their_serial_numbers():
    other = sensor(channels=16, mode="512x10", serial="100000000001")
    both = sorted(stream(SENSOR, 2) + stream(other, 2, seed=9), key=lambda each: each.host_stamp_ns)
    lidars, _ = details(both, SENSOR, other)
    assert [each.serial for each in lidars] == [122247000785, 100000000001]
    assert [each.missing.packets for each in lidars] == [0, 0]


def test_the_command_reads_metadata_beside_the_capture_or_given(tmp_path):
    beside = write_capture(tmp_path / "x.pcap", stream(SENSOR, 2), SENSOR)
    alone = write_capture(tmp_path / "y.pcap", stream(SENSOR, 2))
    for arguments in ([beside], [alone, "--metadata", tmp_path / "x.json"]):
        shown = CliRunner().invoke(inspect_command, [*map(str, arguments), "--json"])
        assert shown.exit_code == 0, shown.output
        (lidar,) = [flow["details"] for flow in json.loads(shown.output)[0]["sensors"][0]["flows"] if flow["kind"] == "Ouster lidar"]
        assert (lidar["model"], lidar["lidar_mode"], lidar["serial"]) == ("OS-1-16", "512x10", 122247000785)


def test_metadata_that_are_none_are_refused_with_their_name(tmp_path):
    path = write_capture(tmp_path / "x.pcap", stream(SENSOR, 1))
    (tmp_path / "x.json").write_text("{}")
    shown = CliRunner().invoke(inspect_command, [str(path)])
    assert shown.exit_code == 1
    assert "x.json: Ouster metadata: " in shown.output


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("OS-2-128-U1_v2.3.0_1024x10", ("OS-2-128", "2.3.0", "RNG19_RFL8_SIG16_NIR16", 1, 1024, 10, 10.0)),
        ("OS-0-32-U1_v2.2.0_1024x10", ("OS-0-32-U1", "2.2.0", "RNG19_RFL8_SIG16_NIR16_DUAL", 1, 1024, 10, 10.0)),
    ],
)
def test_captures_of_real_units_are_described(capture, name, expected):
    path = capture(f"ouster/{name}.pcap")
    (lidar,), (imu,) = _of_file(path)
    shown = lidar.model, lidar.firmware, lidar.profile, lidar.frames, lidar.columns, lidar.stamp_grid_ns
    assert shown == expected[:-1]
    assert lidar.frame_rate_hz == pytest.approx(expected[-1], rel=2e-3)
    assert (lidar.missing.packets, lidar.mismatch) == (0, "")
    assert (imu.form, round(imu.rate_hz, 2)) == ("LEGACY", 100.0)
    assert imu.acceleration_g == pytest.approx(1.0, abs=0.03)


@pytest.mark.parametrize(("name", "height_m"), [("OS-2-128-U1_v2.3.0_1024x10", 1.88), ("OS-0-32-U1_v2.2.0_1024x10", 1.31)])
def test_the_ground_is_found_under_real_units(capture, name, height_m):
    path = capture(f"ouster/{name}.pcap")
    (found,) = inspect(CaptureFile(path), {"ouster": OusterMetadata(capture=path)}).sensors
    assert found.ground.height_m == pytest.approx(height_m, abs=0.05)


def test_without_metadata_the_report_says_why_there_is_no_ground():
    (found,) = inspect(stream(SENSOR, 1)).sensors
    assert "metadata must be known" in str(found.ground)


def test_the_sensors_behind_fragments_are_described(capture):
    lidars, imus = _of_file(capture("ouster/same_ports_nonlegacy.pcap"))
    assert [(each.model, each.header, each.serial) for each in lidars] == [
        ("OS-1-64-AH", "STANDARD", 122239000672),
        ("OS-0-128", "FUSA", 122247000785),
    ]
    assert len(imus) == 2


def _of_file(path):

    summary = inspect(CaptureFile(path), {"ouster": OusterMetadata(capture=path)})
    flows = [flow.details for found in summary.sensors for flow in found.flows]
    return [each for each in flows if isinstance(each, OusterLidar)], [each for each in flows if isinstance(each, OusterImu)]
