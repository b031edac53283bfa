"""What hilsim sends for Cepton-style sensors passes its own checker, in every mode, without a warning; other families beside it are checked too."""

import dataclasses

import pytest

from hilsim.capture.datagram import CapturedDatagram
from hilsim.capture.pcap import CaptureFile
from hilsim.config.parse import read_toml
from hilsim.config.profiles import profiles_directory
from hilsim.config.sensor_profiles import parse_profile
from hilsim.families.cepton.setting import CeptonSetting
from hilsim.read.analysis.conformance.checker import StreamChecker
from hilsim.read.analysis.conformance.findings import Severity
from hilsim.read.analysis.conformance.report import render_text, to_json
from hilsim.sensor.specs import ClockSetting
from tests.compiled import compiled_only
from tests.unit.emulator.optical_scenes import diffuse, wall
from tests.unit.emulator.swept_scenes import UTC_EPOCH_NS, swept_lidar
from tests.unit.families.cepton.conformance.streams import datagrams, stream
from tests.unit.families.velodyne.conformance.streams import vlp16

INFORMED = CeptonSetting(info_packets=True, serial=4165)
SECOND_NS = 10**9
EDGES = [wall(20.0, diffuse(60), y=(-60.0, -1.0)), wall(12.0, diffuse(30), z=(-60.0, 0.3)), wall(25.0, diffuse(20), y=(-900.0, 900.0), z=(-9.0, 9.0))]


def profile(name):
    return parse_profile(read_toml(profiles_directory() / "sensors" / f"{name}.toml"), name)


def sent(lidar, duration_s, source="127.0.2.1"):
    """Datagrams of a lidar in the order in which they are due."""
    batches = [lidar.data_span(0, round(duration_s * SECOND_NS)), lidar.position_span(0, round(duration_s * SECOND_NS))]
    rows = sorted(
        (int(due), row[:size].tobytes()) for batch in batches for due, row, size in zip(batch.deadline_ns, batch.payload, batch.size, strict=True)
    )
    return [
        CapturedDatagram(UTC_EPOCH_NS + due, source, 8808, "127.0.0.1", 8808, payload, None, is_ethernet=False, frame=frame)
        for frame, (due, payload) in enumerate(rows, 1)
    ]


def check(stream_of):
    checker = StreamChecker()
    checker.feed(stream_of)
    return checker.result()


def weighty(result):
    """Findings that are no notes."""
    told = [*result.findings, *(finding for sensor in result.sensors for finding in sensor.findings)]
    return [finding for finding in told if finding.severity is not Severity.NOTE]


@compiled_only
@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("hr80w-like", {"cepton": INFORMED}),
        ("hr80w-like", {"cepton": INFORMED, "return_mode": "dual", "sub_rays": 7}),
        ("hr80t-like", {"cepton": INFORMED, "return_mode": "last"}),
        ("hr80t-like", {"cepton": CeptonSetting(header_version=1, info_packets=True), "return_mode": "dual", "sub_rays": 7}),
        ("hr80w-like", {"cepton": INFORMED, "clock": ClockSetting(stamps="utc", oscillator_ppm=200.0)}),
        ("hr80w-like", {"cepton": INFORMED, "clock": ClockSetting(sync="free", offset_s=500.0, oscillator_ppm=-900.0, stamp_ppm=140.0)}),
        ("x90-generic", {}),
    ],
    ids=["single", "dual", "last", "version 1", "utc", "free and slow", "without information"],
)
def test_our_own_stream_passes_without_a_warning(name, setting):
    result = check(sent(swept_lidar(EDGES, profile(name), **setting), 1.6))
    assert weighty(result) == []
    assert result.sensors[0].summary.frames >= 13
    assert (result.sensors[0].summary.second_ratio > 0.0) == (setting.get("return_mode") == "dual")


@compiled_only
def test_a_laser_beyond_the_models_is_noticed_in_our_own_stream():
    spec = dataclasses.replace(profile("x90-generic"), model_code=25)  # Nova B1: 48 lasers, and this has 64
    result = check(sent(swept_lidar(EDGES, spec, cepton=INFORMED), 0.1))
    assert {finding.rule for finding in weighty(result)} == {"lasers.count"}


def test_several_sensors_are_distinguished_by_their_source_address():
    one, other = datagrams(stream(0.5), "10.0.0.1"), datagrams(stream(0.5, dual=True, seed=2), "10.0.0.2")
    result = check(datagram for pair in zip(one, other, strict=False) for datagram in pair)
    assert [(sensor.source, sensor.summary.returns) for sensor in result.sensors] == [("10.0.0.1", 1), ("10.0.0.2", 2)]
    assert weighty(result) == []


def test_a_stream_of_both_families_is_checked_by_the_rules_of_each():
    velodyne, cepton = vlp16().datagrams(), datagrams(stream(0.5), "10.0.0.9")
    broken = cepton[:200] + cepton[250:]
    result = check([*velodyne, *broken])
    assert [(sensor.source, {finding.rule for finding in sensor.findings}) for sensor in result.sensors][-1] == ("10.0.0.9", {"sequence.lost"})
    alone = StreamChecker()
    alone.feed(velodyne)
    assert result.sensors[:-1] == alone.result().sensors
    assert result.datagrams == len(velodyne) + len(broken)


def test_position_packets_of_a_velodyne_beside_a_cepton_sensor_are_no_error():
    position = [each for each in vlp16().datagrams() if each.destination_port == 8308]
    result = check([*datagrams(stream(0.6), "10.0.0.9"), *position])
    assert (weighty(result), [sensor.source for sensor in result.sensors]) == ([], ["192.168.1.201", "10.0.0.9"])


def test_findings_are_reported_once_as_they_become_known():
    cepton = datagrams(stream(0.6), "10.0.0.9")
    checker = StreamChecker()
    changed = cepton[20].payload[:4] + b"\7" + cepton[20].payload[5:]
    told = checker.feed([*cepton[:20], dataclasses.replace(cepton[20], payload=changed)])
    assert [(source, finding.rule) for source, finding in told] == [("10.0.0.9", "stdv.version")]
    assert checker.feed(cepton[21:]) == []


def test_the_report_and_the_json_are_those_of_other_sensors():
    result = check(datagrams(stream(0.6)))
    lines, table = render_text(result), to_json(result)
    assert lines[0] == "192.168.32.87"
    assert "  sensor    synthetic (model 24), serial number 77, 1 return(s) a firing" in lines
    assert lines[-1] == "passed: 0 errors, 0 warnings, 0 notes"
    assert (table["sensors"][0]["summary"]["family"], table["sensors"][0]["summary"]["second_ratio"]) == ("cepton", None)
    assert table["sensors"][0]["findings"] == []


def test_the_older_generation_is_named_and_not_judged(capture):
    result = check(CaptureFile(capture("cepton_hr80_two_sensors.pcap")))
    assert {sensor.source for sensor in result.sensors} == {"192.168.32.87", "192.168.48.101"}
    assert [finding.rule for finding in weighty(result)] == ["cepton.older", "cepton.older"]
    assert all("older STDT generation" in finding.message for finding in weighty(result))
    assert render_text(result)[1] == "  older     1509 packets (STDT and INFO) of the generation before STDV, counted and not checked"
    assert result.passed


def test_no_more_sensors_than_the_limit_are_checked():
    one = datagrams(stream(0.01))[1]
    result = check(dataclasses.replace(one, source=f"10.0.{number // 200}.{number % 200}") for number in range(130))
    assert len(result.sensors) == 128
    assert [finding.rule for finding in result.findings] == ["stream.many"]
