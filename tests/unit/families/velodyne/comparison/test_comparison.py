"""Verdicts on Velodyne streams."""

import math
from copy import copy

import numpy as np
import pytest

from hilsim.families.velodyne.comparison.statistics import STATISTICS
from hilsim.families.velodyne.comparison.tolerances import TOLERANCES
from hilsim.families.velodyne.protocol.models import HDL_32E
from hilsim.read.analysis.comparison.comparison import Verdict
from hilsim.read.analysis.comparison.report import render_text
from hilsim.read.analysis.comparison.streams import compare, gather
from hilsim.read.analysis.comparison.tolerance import Tolerance
from tests.unit.families.velodyne.conformance.streams import vlp16


def statistics(stream):
    return gather(stream.datagrams(), name="stream")


@pytest.fixture(scope="module")
def real():
    return statistics(vlp16(700))


@pytest.fixture(scope="module")
def dual():
    return statistics(vlp16(700, dual=True))


def statistics_of_model(stream):
    """The same statistics as of another model."""
    other = copy(stream)
    other.model = HDL_32E
    return other


def verdicts(comparison):
    return {row.statistic.name: row.verdict for row in comparison.rows}


def differing(stream, real):
    return {name for name, verdict in verdicts(compare(real, statistics(stream))).items() if verdict is Verdict.DIFFERS}


def test_a_stream_is_like_itself_in_everything(dual):
    comparison = compare(dual, dual)
    assert {row.distance for row in comparison.rows if not math.isnan(row.distance)} == {0.0}
    assert Verdict.DIFFERS not in verdicts(comparison).values()
    assert comparison.notes() == []


def test_two_units_of_one_model_are_alike(real):
    assert differing(vlp16(700, seed=9), real) == set()


def test_an_exact_ramp_of_azimuth_is_reported(real):
    found = differing(vlp16(700, noise=0.0), real)
    assert {"azimuth.sd", "azimuth.autocorrelation", "azimuth.total_variation"} <= found
    assert {name.split(".")[0] for name in found} == {"azimuth"}


def test_rounded_time_stamps_are_reported(real):
    stream = vlp16(700)
    stream.data["stamp"] = 1_000_000 + 1327 * np.arange(700)
    assert differing(stream, real) == {"stamps.residual_sd"}
    assert compare(real, statistics(stream)).of_unit == ["stamps.cycle", "stamps.total_variation"]


def test_misses_filled_with_zeros_are_reported(real):
    stream = vlp16(700)
    records = stream.data["blocks"]["records"]
    records["reflectivity"][records["distance"] == 0] = 0
    assert differing(stream, real) == {"empty.zero_bytes"}


def test_even_codes_and_near_returns_are_reported(real):
    stream = vlp16(700)
    records = stream.data["blocks"]["records"]
    records["distance"] &= 0xFFFE
    records["distance"][5, 3, 2] = 100
    assert differing(stream, real) == {"ranges.odd", "ranges.below_floor", "grid.odd", "grid.odd_equal_bytes", "grid.parity"}


def test_swapped_blocks_of_dual_mode_are_reported(dual):
    stream = vlp16(700, dual=True)
    records = stream.data["blocks"]["records"]
    records[:, ::2], records[:, 1::2] = records[:, 1::2].copy(), records[:, ::2].copy()
    assert differing(stream, dual) == {"dual.even_farther"}


def test_nothing_is_judged_between_models(real):
    stream = vlp16(700)
    stream.data["product"] = 0x24
    comparison = compare(real, statistics(stream))
    assert set(verdicts(comparison).values()) == {Verdict.OPEN}
    assert comparison.notes() == ["the models differ (VLP-16, Puck Hi-Res): nothing is judged"]


def test_modes_are_compared_but_for_pairs_and_steps_of_stamps(real, dual):
    comparison = compare(real, dual)
    judged = verdicts(comparison)
    assert not any(name.startswith("dual.") for name in judged)
    assert judged["stamps.cycle"] is Verdict.ALIKE
    assert judged["stamps.total_variation"] is Verdict.OPEN
    assert comparison.notes() == ["the return modes differ: pairs are not compared"]


def test_captures_at_different_rates_get_one_sentence_and_no_verdict_on_what_depends_on_the_rate(real):
    comparison = compare(real, statistics(vlp16(700, rpm=300.0)))
    assert differing(vlp16(700, rpm=300.0), real) == set()
    assert comparison.notes() == ["the rotation rates differ (600 rpm, 300 rpm): rotation, azimuth, noise and edges are not judged"]


def rough(stream, sigma_mm):
    """The stream with more noise on its ranges: half of ``sigma_mm`` is a unit's, or a hedge's."""
    distance = stream.data["blocks"]["records"]["distance"]
    noise = np.rint(np.random.default_rng(8).normal(0.0, sigma_mm / 2.0, distance.shape)).astype(np.int64)
    stream.data["blocks"]["records"]["distance"] = np.where(distance > 0, distance + noise, 0)
    return stream


def test_range_noise_is_judged_where_both_look_at_the_same_scene(real):
    assert {name.split(".")[0] for name in differing(rough(vlp16(700), 40.0), real)} == {"noise"}


def test_range_noise_is_the_scenes_where_the_scenes_differ(real):
    stream = rough(vlp16(700), 40.0)
    distance = stream.data["blocks"]["records"]["distance"]
    stream.data["blocks"]["records"]["distance"] = np.where(distance > 0, np.minimum(distance * 3 // 2 | distance & 1, 60_000), 0)
    comparison = compare(real, statistics(stream))
    assert not [name for name in differing(stream, real) if name.startswith("noise")]
    assert {row.verdict for row in comparison.rows if row.statistic.name.startswith("noise")} == {Verdict.OPEN}
    assert any("mm       scene" in line.text for line in render_text(comparison, ("a", "b")))


def test_figures_that_two_units_showed_of_a_vlp_16_are_not_judged_for_a_model_of_which_one_is_known(real):
    hdl = statistics_of_model(real)
    comparison = compare(hdl, hdl)
    rows = {row.statistic.name: row for row in comparison.rows}
    for name in ("grid.odd", "azimuth.autocorrelation", "noise.byte_40_69", "ranges.below_floor"):
        assert (rows[name].tolerance, rows[name].verdict) == (None, Verdict.OPEN)
        assert rows[name].reason == "no two units of a HDL-32E were measured"
    assert {name for name, row in rows.items() if row.tolerance is not None} == {"stamps.residual_sd", "ranges.odd"}
    assert "as near as two real units" not in render_text(comparison, ("a", "b"))[-1].text


def test_every_tolerance_belongs_to_a_statistic_and_has_a_source():
    names = [statistic.name for statistic in STATISTICS]
    assert set(TOLERANCES) <= set(names)
    assert len(names) == len(set(names))
    with pytest.raises(ValueError, match="limit must be 0 or more, got -1; source must name what was measured"):
        Tolerance(limit=-1, source="")
    with pytest.raises(ValueError, match="real must be a smallest and a largest value, got \\(2, 1\\)"):
        Tolerance(limit=1, real=(2, 1), source="one")
