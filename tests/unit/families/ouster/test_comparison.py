"""Comparison of two streams of Ouster sensors: rows of made-up streams, verdicts, refusals and real captures."""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from hilsim.capture.metadata import given_metadata
from hilsim.capture.pcap import CaptureFile
from hilsim.cli.compare import compare
from hilsim.errors import CaptureError
from hilsim.families.ouster.comparison.statistics import STATISTICS
from hilsim.families.ouster.comparison.tolerances import OF_OLDER
from hilsim.families.ouster.metadata_files import OusterMetadata
from hilsim.families.ouster.protocol.lidar import lidar_layout
from hilsim.read.analysis.comparison.comparison import Verdict
from hilsim.read.analysis.comparison.streams import compare as compare_streams
from hilsim.read.analysis.comparison.streams import gather
from tests.ouster_sensors import sensor
from tests.ouster_streams import stream, write_capture
from tests.unit.families.velodyne.conformance.streams import vlp16

SENSOR = sensor(channels=16, version="2.3.0")
DUAL = sensor("RNG19_RFL8_SIG16_NIR16_DUAL", 16, version="2.3.0", mode="512x10")
NAMES = ("a.pcap", "b.pcap")
CAPTURES = ("OS-2-128-U1_v2.3.0_1024x10", "OS-0-32-U1_v2.2.0_1024x10")


def statistics(datagrams, metadata):
    return gather(datagrams, {"ouster": OusterMetadata([metadata])}, name="stream")


@pytest.fixture(scope="module")
def datagrams():
    return stream(SENSOR, 2)


@pytest.fixture(scope="module")
def made_up(datagrams):
    return statistics(datagrams, SENSOR)


@pytest.fixture(scope="module")
def dual():
    return statistics(stream(DUAL, 2), DUAL)


def rows(a, b):
    return {row.statistic.name: row for row in compare_streams(a, b, names=NAMES).rows}


def test_names_are_unique_and_every_tolerance_has_a_statistic():
    names = [statistic.name for statistic in STATISTICS]
    assert len(names) == len(set(names))
    assert set(OF_OLDER) <= set(names)


def test_a_stream_has_the_figures_it_was_made_with(made_up):
    found = rows(made_up, made_up)
    assert found["columns.mean"].a == pytest.approx(97.656, abs=0.01)
    assert found["columns.sd"].a == pytest.approx(1.6, abs=0.1)
    assert found["columns.autocorrelation"].a == pytest.approx(-0.5, abs=0.05)
    assert found["columns.on_10_ns"].a == 100.0
    assert found["columns.missing"].a == 0.0
    assert found["frames.mean"].a == pytest.approx(100_000.0, abs=1.0)
    assert found["imu.rate"].a == pytest.approx(100.0)
    assert found["empty.share"].a == pytest.approx(34.0, abs=1.0)
    assert found["ranges.odd"].a == 0.0
    assert found["ranges.multiples_of_3"].a == pytest.approx(100.0 / 3.0, abs=1.0)
    assert found["signal.empty_p50"].a in {3.0, 4.0}
    assert found["near_ir.zero"].a == 0.0
    assert found["spacing.mean"].a == pytest.approx(1562.5, abs=1.0)
    assert "dual.both" not in found


def test_a_stream_is_like_itself(made_up, dual):
    for one in (made_up, dual):
        assert {row.distance for row in rows(one, one).values() if not np.isnan(row.distance)} == {0.0}


def test_pairs_of_returns_are_counted(dual):
    found = rows(dual, dual)
    assert found["dual.both"].a == pytest.approx(10.0, abs=1.0)
    assert found["dual.only_second"].a == 0.0
    assert found["dual.second_farther"].a == 100.0
    assert found["dual.separation_min"].a == pytest.approx(0.16)


def test_steps_without_noise_are_reported(made_up, monkeypatch):
    monkeypatch.setattr("tests.ouster_streams.SPREAD_NS", 0.0)
    found = rows(made_up, statistics(stream(SENSOR, 1), SENSOR))
    assert {name for name, row in found.items() if row.verdict is Verdict.DIFFERS} == {"columns.sd", "columns.smallest", "columns.largest"}


def test_lost_packets_are_missing_columns_and_no_steps(datagrams, made_up):
    lost = statistics([each for number, each in enumerate(datagrams) if number % 10 != 5], SENSOR)
    found = rows(made_up, lost)
    assert found["columns.missing"].b == pytest.approx(9.9, abs=1.0)
    assert found["columns.largest"].b == found["columns.largest"].a
    assert found["spacing.wasserstein"].distance < 5.0


def test_the_columns_are_not_judged_in_a_mode_that_was_not_measured(dual):
    comparison = compare_streams(dual, dual, names=NAMES)
    assert ("columns.sd", "no real unit in a mode other than 1024x10 was measured") in comparison.not_looked_at


def test_a_profile_without_photons_has_no_row_of_them():
    low_rate = sensor("RNG15_RFL8_NIR8", 16, mode="512x10")
    one = statistics(stream(low_rate, 2), low_rate)
    found = rows(one, one)
    assert np.isnan(found["signal.empty_p50"].a)
    assert found["ranges.odd"].reason == "the profile's ranges have steps of 8 mm"


def test_other_product_lines_profiles_and_modes_are_refused_all_at_once(made_up):
    other = statistics(stream(replace(DUAL, prod_line="OS-2-16"), 2), replace(DUAL, prod_line="OS-2-16"))
    with pytest.raises(CaptureError) as refusal:
        compare_streams(made_up, other, names=NAMES)
    assert str(refusal.value).splitlines() == [
        "product line must be the same, got OS-1-16 in a.pcap and OS-2-16 in b.pcap",
        "lidar profile must be the same, got RNG19_RFL8_SIG16_NIR16 in a.pcap and RNG19_RFL8_SIG16_NIR16_DUAL in b.pcap",
        "lidar mode must be the same, got 1024x10 in a.pcap and 512x10 in b.pcap",
    ]


def test_sensors_of_two_families_are_refused(made_up):
    velodyne = gather(vlp16(100).datagrams(), name="b.pcap")
    with pytest.raises(CaptureError, match=r"both sensors must be of one family, got OS-1-16 in a\.pcap and VLP-16 in b\.pcap"):
        compare_streams(made_up, velodyne, names=NAMES)


def test_missing_metadata_and_too_few_packets_are_refused(datagrams):
    with pytest.raises(CaptureError, match="give the sensor's metadata"):
        gather(datagrams, name="a.pcap")
    with pytest.raises(CaptureError, match=r"a\.pcap: must hold at least 50 Ouster lidar packets of one sensor, got \d"):
        gather(datagrams[:20], {"ouster": OusterMetadata([SENSOR])}, name="a.pcap")


def test_the_command_prints_json_draws_and_judges_limits(datagrams, tmp_path):
    paths = [str(write_capture(tmp_path / f"{name}.pcap", datagrams[:140], SENSOR)) for name in "ab"]
    result = CliRunner().invoke(compare, [*paths, "--json", "-o", str(tmp_path / "both.png"), "--max", "columns.sd=0.01"])
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["a"]["model"] == "OS-1-16"
    assert {row["name"] for row in document["statistics"] if row["verdict"] == "differs"} == set(document["differ"])
    assert document["limits"] == [{"name": "columns.sd", "limit": 0.01, "distance": 0.0, "is_kept": True}]
    assert (tmp_path / "both.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", CAPTURES)
def test_a_real_capture_is_like_itself_and_unlike_a_changed_copy(capture, name):
    path = capture(f"ouster/{name}.pcap")
    metadata = given_metadata([], path)
    real = gather(CaptureFile(path), metadata, name=name)
    comparison = compare_streams(real, real, names=NAMES)
    assert comparison.differing == []
    assert comparison.alike >= 10
    sensor_of = real.metadata
    layout = lidar_layout(sensor_of.profile, sensor_of.beams.channels, sensor_of.footer)
    field = next(field for field in sensor_of.profile.fields if field.kind.name == "RANGE")
    changed = []
    for datagram in CaptureFile(path):
        if len(datagram.payload) != layout.size:
            changed.append(datagram)
            continue
        payload = np.frombuffer(datagram.payload, np.uint8).copy()
        columns = payload[layout.first_column :][: 16 * layout.column_size].reshape(16, layout.column_size)
        pixels = columns[:, layout.first_pixel : layout.first_pixel + layout.channels * layout.pixel_size]
        pixels.reshape(16, layout.channels, layout.pixel_size)[:, :, field.bit_offset // 8] &= 0xFE
        changed.append(replace(datagram, payload=payload.tobytes()))
    found = compare_streams(real, gather(changed, metadata, name=name), names=NAMES)
    assert "ranges.odd" in found.differing
    assert {name.split(".")[0] for name in found.differing} == {"ranges"}


def test_real_captures_of_two_models_are_refused(capture):
    one, other = (
        gather(CaptureFile(path), given_metadata([], path), name=path.stem) for path in (capture(f"ouster/{name}.pcap") for name in CAPTURES)
    )
    with pytest.raises(CaptureError, match="product line must be the same, got OS-2-128 in"):
        compare_streams(one, other, names=NAMES)
