"""Verdicts, limits and reports."""

import json
import math

import pytest

from hilsim.errors import CaptureError
from hilsim.families.velodyne.comparison.tolerances import TOLERANCES
from hilsim.read.analysis.comparison.comparison import Verdict
from hilsim.read.analysis.comparison.draw import draw_comparison
from hilsim.read.analysis.comparison.report import render_text, to_json
from hilsim.read.analysis.comparison.streams import compare, gather
from hilsim.read.analysis.comparison.tolerance import Tolerance
from tests.unit.families.velodyne.conformance.streams import stamps_us, vlp16


def statistics(stream):
    return gather(stream.datagrams(), name="stream")


@pytest.fixture(scope="module")
def real():
    return statistics(vlp16(700))


@pytest.fixture(scope="module")
def dual():
    return statistics(vlp16(700, dual=True))


def test_a_short_stream_gets_no_verdict_and_does_not_read_as_a_pass(real):
    comparison = compare(real, statistics(vlp16(60)))
    judged = {row.statistic.name: row.verdict for row in comparison.rows}
    assert judged["azimuth.total_variation"] is Verdict.FEW
    assert judged["stamps.cycle"] is Verdict.FEW
    assert ("azimuth.mod_5_rarest", "too few samples (719 of 3,000)") in comparison.not_looked_at
    lines = [line.text for line in render_text(comparison, ("a", "b"))]
    assert any(line.startswith("not looked at, because too few samples: ") for line in lines)
    assert (
        lines[-1]
        == f"no difference found, but {len(comparison.not_looked_at)} of {len(comparison.not_looked_at) + comparison.alike} judged rows were not looked at"
    )


def test_nothing_judged_is_no_result(real):
    stream = vlp16(700)
    stream.data["product"] = 0x24
    assert render_text(compare(real, statistics(stream)), ("a", "b"))[-1].text == "no result: nothing was judged"


def test_values_within_the_range_of_real_units_are_alike_however_far_apart():
    tolerance = Tolerance(limit=1.0, real=(10.0, 40.0), source="two units")
    assert tolerance.allows(10.0, 40.0, 30.0)
    assert tolerance.allows(55.0, 55.9, 0.9)
    assert not tolerance.allows(39.0, 41.0, 2.0)
    assert not tolerance.allows(55.0, 60.0, 5.0)
    assert not tolerance.allows(20.0, math.nan, math.nan)
    assert (tolerance.text, Tolerance(limit=0.5, source="two units").text) == ("10 to 40", "0.5")


def test_limits_are_met_broken_or_unknown(real, dual):
    other = statistics(vlp16(700, noise=0.0))
    kept = compare(real, other, {"stamps.cycle": 1.0})
    assert kept.passed
    assert not compare(real, other, {"stamps.cycle": 1.0, "azimuth.total_variation": 0.03}).passed
    untold = compare(real, dual, {"dual.identical": 100.0})
    assert not untold.passed
    assert "unknown for either stream" in render_text(untold, ("a", "b"))[-1].text


def test_the_table_fits_110_columns_and_names_what_differs(dual):
    shifted = vlp16(700, dual=True, start_us=5)
    shifted.data["stamp"] = stamps_us(700, 663_552 * 1.00005, 7)
    comparison = compare(dual, statistics(shifted))
    lines = [line.text for line in render_text(comparison, ("a.pcap", "b.pcap"))]
    assert max(map(len, lines)) <= 112
    assert "another unit, by stamps.cycle, stamps.total_variation" in lines
    assert [line.split()[0] for line in lines if line and not line.startswith(" ")][:4] == ["A", "B", "stream", "azimuth"]
    assert any(line.split()[:1] == ["separation_min"] for line in lines)


def test_json_is_plain_and_holds_the_distributions(real, dual):
    told = json.loads(json.dumps(to_json(compare(dual, real), ("a.pcap", "b.pcap")), allow_nan=False))
    assert [told[letter]["return_mode"] for letter in "ab"] == [0x39, 0x37]
    increments = told["b"]["histograms"]["azimuth_increments_cdeg"]
    assert sum(increments["counts"]) == 700 * 12 - 1
    assert sum(told["b"]["histograms"]["stamp_steps_us"]["counts"]) == 699
    assert "dual_separations_m" in told["a"]["histograms"]
    assert len(told["a"]["lasers"]) == 16
    by_name = {entry["name"]: entry for entry in told["statistics"]}
    assert by_name["azimuth.total_variation"]["tolerance"] == TOLERANCES["azimuth.total_variation"].limit
    assert by_name["azimuth.total_variation"]["verdict"] == "alike"


@pytest.mark.extended
def test_the_picture_is_written_for_streams_of_one_and_of_two_modes(real, dual, tmp_path):
    for number, other in enumerate((real, dual)):
        path = tmp_path / f"{number}.png"
        draw_comparison(compare(dual, other), ("a.pcap", "b.pcap"), path)
        assert path.read_bytes().startswith(b"\x89PNG")
    with pytest.raises(CaptureError, match="the picture cannot be written"):
        draw_comparison(compare(dual, dual), ("a.pcap", "b.pcap"), tmp_path / "absent" / "x.png")
