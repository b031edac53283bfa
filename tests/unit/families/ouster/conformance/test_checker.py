"""What the check of an Ouster stream reports on the stream as a whole, and what it says of streams that it cannot judge whole."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

import hilsim
from hilsim.cli.verify import verify as verify_command
from hilsim.families.ouster.metadata_files import OusterMetadata
from hilsim.read.analysis.conformance.checker import StreamChecker
from hilsim.read.analysis.conformance.findings import Severity
from tests.ouster_sensors import sensor
from tests.ouster_streams import stream, write_capture

SENSOR = sensor(channels=16, mode="512x10")


def check(datagrams, *metadata):
    checker = StreamChecker({"ouster": OusterMetadata(metadata)})
    checker.feed(datagrams)
    return checker.result()


def rules(result, *severities):
    findings = [*result.findings, *(finding for found in result.sensors for finding in found.findings)]
    return {finding.rule for finding in findings if not severities or finding.severity in severities}


def test_figures_are_those_of_the_stream():
    result = check(stream(SENSOR, 5), SENSOR)
    (found,) = result.sensors
    summary = found.summary
    assert (summary.lidar_packets, summary.imu_packets, summary.frames, summary.lost_packets) == (160, 50, 5, 0)
    assert (summary.model, summary.firmware, summary.lidar_mode, summary.serial) == ("OS-1-16", "3.1.0", "512x10", 122247000785)
    assert (summary.stamp_grid_ns, summary.headers) == (8, "sensor")
    assert summary.column_period_us == pytest.approx(195.3125, rel=1e-3)
    assert 100 * summary.return_ratio == pytest.approx(66.0, abs=1.0)
    assert result.passed
    assert not any(rule.startswith("stream") for rule in rules(result))


def test_without_metadata_a_warning_asks_for_them_and_the_rest_is_judged():
    result = check(stream(SENSOR, 2))
    assert rules(result, Severity.WARNING) == {"ouster.metadata"}
    assert result.passed
    datagrams = stream(SENSOR, 2)
    payload = bytearray(datagrams[0].payload)
    payload[21] = 1
    datagrams[0] = replace(datagrams[0], payload=bytes(payload), link=None)
    assert "ouster.reserved" in rules(check(datagrams))


def test_a_sensor_that_is_initialised_again_is_a_warning_beside_the_new_id():
    after = replace(SENSOR, initialization_id=99)
    result = check(stream(SENSOR, 2, has_imu=False) + stream(after, 2, has_imu=False, first_frame=0), SENSOR)
    assert {"ouster.restart", "ouster.init_id"} <= rules(result)
    assert "ouster.frame_id" not in rules(result)


def test_a_packet_that_comes_twice_is_a_duplicate():
    datagrams = stream(SENSOR, 2, has_imu=False)
    assert "ouster.duplicate" in rules(check([*datagrams[:9], datagrams[8], *datagrams[9:]], SENSOR))


def test_imu_packets_alone_are_a_warning_and_belong_to_the_lidar_packets_that_follow():
    datagrams = stream(SENSOR, 2)
    imu = [each for each in datagrams if each.destination_port == 7503]
    assert rules(check(imu, SENSOR), Severity.WARNING) == {"ouster.no_lidar"}
    result = check(imu[:2] + [each for each in datagrams if each.destination_port == 7502] + imu[2:], SENSOR)
    assert [found.summary.imu_packets for found in result.sensors] == [20]


def test_other_datagrams_of_the_address_are_a_note():
    datagrams = stream(SENSOR, 2)
    other = replace(datagrams[0], payload=b"hello", source_port=5353, destination_port=5353)
    assert "ouster.other" in rules(check([*datagrams, other], SENSOR), Severity.NOTE)


def test_headers_of_the_loopback_interface_or_of_a_program_are_a_note_and_not_judged():
    loopback = [replace(each, link=bytes(12) + each.link[12:22] + b"\x80" + each.link[23:]) for each in stream(SENSOR, 2, source="127.0.0.1")]
    foreign = [replace(each, link=each.link[:22] + b"\x80" + each.link[23:]) for each in stream(SENSOR, 2, oui="02:00:00")]
    for datagrams in (loopback, foreign):
        assert rules(check(datagrams, SENSOR)) == {"ouster.headers"}


def test_several_macs_or_ports_of_one_sensor_are_reported():
    datagrams = stream(SENSOR, 2)
    datagrams[7] = replace(datagrams[7], link=datagrams[7].link[:11] + b"\7" + datagrams[7].link[12:])
    assert "ouster.mac" in rules(check(datagrams, SENSOR), Severity.WARNING)
    datagrams = stream(SENSOR, 2)
    datagrams[7] = replace(datagrams[7], source_port=999)
    assert "ouster.source_port" in rules(check(datagrams, SENSOR), Severity.ERROR)


def test_a_stream_at_another_pace_than_its_stamps_is_an_error():
    datagrams = stream(SENSOR, 18, has_imu=False)
    begin_ns = datagrams[0].host_stamp_ns
    slow = [replace(each, host_stamp_ns=begin_ns + (each.host_stamp_ns - begin_ns) * 101 // 100) for each in datagrams]
    assert "ouster.rate" in rules(check(slow, SENSOR), Severity.ERROR)
    assert check(datagrams, SENSOR).passed


def test_two_sensors_behind_one_address_are_judged_apart():
    other = sensor(channels=16, mode="512x10", serial="100000000001")
    both = sorted(stream(SENSOR, 2, has_imu=False) + stream(other, 2, has_imu=False, seed=9), key=lambda each: each.host_stamp_ns)
    result = check(both, SENSOR, other)
    assert sorted(found.summary.serial for found in result.sensors) == [100000000001, 122247000785]
    assert rules(result, Severity.ERROR, Severity.WARNING) <= {"ouster.source_port"}


def test_a_velodyne_beside_an_ouster_is_judged_by_its_own_rules():
    from tests.unit.families.velodyne.conformance.streams import vlp16  # noqa: PLC0415 - compiles kernels

    both = [*stream(SENSOR, 1), *vlp16(40).datagrams()]
    assert {found.summary.family if hasattr(found.summary, "family") else "velodyne" for found in check(both, SENSOR).sensors} == {
        "ouster",
        "velodyne",
    }


def test_the_command_and_the_api_read_metadata_beside_the_capture_or_given(tmp_path):
    beside = write_capture(tmp_path / "x.pcap", stream(SENSOR, 2), SENSOR)
    alone = write_capture(tmp_path / "y.pcap", stream(SENSOR, 2))
    assert hilsim.verify(beside).to_dict()["sensors"] == hilsim.verify(alone, metadata=tmp_path / "x.json").to_dict()["sensors"]
    shown = CliRunner().invoke(verify_command, [str(alone), "--metadata", str(tmp_path / "x.json"), "--json"])
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.output)["sensors"][0]["summary"]["model"] == "OS-1-16"
    assert "sensor    OS-1-16, firmware 3.1.0" in CliRunner().invoke(verify_command, [str(beside)]).output
