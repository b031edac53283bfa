"""Areas under the curve, pairs of captures, and the result."""

import json
from dataclasses import replace

import numpy as np
import pytest

from hilsim.capture.pcap import PcapWriter
from hilsim.errors import CaptureError
from tests.unit.families.velodyne.conformance.streams import vlp16
from tools.judge import classifier
from tools.judge.__main__ import main
from tools.judge.capture_sample import sample_capture
from tools.judge.classifier import MIN_ROWS, area_under_curve, matched_rows, trained_area
from tools.judge.feature_table import FeatureTable
from tools.judge.groups import GROUPS
from tools.judge.judge import judge
from tools.judge.judge_report import judgement_json, render_judgement

pytest.importorskip("sklearn")


def write(path, datagrams):
    with PcapWriter(path) as writer:
        for entry in datagrams:
            writer.write(entry.host_stamp_ns, entry.link + entry.payload)
    return path


def capture(seed, name="", **settings):
    return sample_capture(vlp16(192, seed=seed, **settings).datagrams(), name=name or f"{seed}.pcap")


@pytest.fixture(scope="module")
def units():
    return [capture(seed) for seed in (1, 2)]


@pytest.fixture(scope="module")
def few_groups(monkeypatch_module):
    monkeypatch_module.setattr("tools.judge.judge.GROUPS", tuple(replace(group, topics=()) for group in GROUPS[:2]))


@pytest.fixture(scope="module")
def monkeypatch_module():
    with pytest.MonkeyPatch.context() as patch:
        yield patch


def test_the_area_is_the_share_of_pairs_in_order():
    generator = np.random.default_rng(1)
    first, second = generator.integers(0, 9, 40).astype(float), generator.integers(2, 12, 30).astype(float)
    pairs = [1.0 if b > a else 0.5 if a == b else 0.0 for a in first for b in second]
    assert area_under_curve(first, second) == pytest.approx(np.mean(pairs))
    assert area_under_curve(first, first) == 0.5
    assert np.isnan(area_under_curve(first, np.zeros(0)))


def test_matched_rows_have_equally_many_of_each_cell():
    generator = np.random.default_rng(2)
    cells = generator.integers(0, 5, 300), generator.integers(2, 9, 900)
    chosen = matched_rows(*cells)
    counts = [np.bincount(part[rows], minlength=9) for part, rows in zip(cells, chosen, strict=True)]
    np.testing.assert_array_equal(counts[0], counts[1])
    np.testing.assert_array_equal(counts[0][2:5], np.minimum(*(np.bincount(part, minlength=9)[2:5] for part in cells)))
    assert all(len(set(rows.tolist())) == len(rows) for rows in chosen)
    assert len(matched_rows(np.zeros(9000, dtype=np.int64), np.zeros(9000, dtype=np.int64))[0]) == classifier.MAX_ROWS


def table(generator, count, shift):
    return FeatureTable(
        columns={"a.x": generator.normal(shift, 1.0, count), "b.y": generator.normal(0.0, 1.0, count)}, cell=np.zeros(count, dtype=np.int64)
    )


@pytest.mark.parametrize(("shift", "area"), [(0.0, 0.5), (2.0, 0.92)])  # of two normal distributions 2 sd apart: 0.921
def test_a_trained_area_is_near_the_best_possible_one(shift, area):
    generator = np.random.default_rng(3)
    tables = [table(generator, 600, shift * (k % 2)) for k in range(4)]
    found = trained_area((tables[0], tables[1]), (tables[2], tables[3]), "", is_matched=False)
    assert found == pytest.approx(area, abs=0.05)
    assert trained_area((tables[0], tables[1]), (tables[2], tables[3]), "b", is_matched=True) == pytest.approx(0.5, abs=0.06)


def test_too_few_rows_are_no_area():
    generator = np.random.default_rng(4)
    tables = [table(generator, count, 1.0) for count in (100, 100, MIN_ROWS - 1, 100)]
    assert np.isnan(trained_area((tables[0], tables[1]), (tables[2], tables[3]), "", is_matched=False))


@pytest.mark.extended
@pytest.mark.usefixtures("few_groups")
def test_captures_of_one_kind_of_unit_are_not_distinguished_and_a_second_run_gives_the_same(units):
    judgement = judge(units, [capture(seed) for seed in (4, 5)])
    assert judgement.telling == []
    assert judgement.passed
    clock, signal = judgement.results
    assert (len(clock.real.values), len(clock.near.values), len(clock.far.values)) == (1, 4, 4)
    assert clock.far.mean == pytest.approx(0.5, abs=0.1)
    assert signal.real.mean == pytest.approx(0.5, abs=0.1)
    again = judge(units, [capture(seed) for seed in (4, 5)])
    assert json.dumps(judgement_json(again)) == json.dumps(judgement_json(judgement))


@pytest.mark.usefixtures("few_groups")
def test_a_capture_beside_itself_has_an_area_of_about_a_half(units):
    judgement = judge(units, units)
    for result in judgement.results:
        if result.is_known:
            assert result.far.mean < 0.56, result.group.name
    assert judgement.passed


def smooth(seed):
    """A unit without noise of the angle and with bytes that change slowly."""
    stream = vlp16(192, seed=seed, noise=0.0)
    reflectivity = stream.data["blocks"]["records"]["reflectivity"]
    is_return = stream.data["blocks"]["records"]["distance"] > 0
    stream.data["blocks"]["records"]["reflectivity"] = np.where(is_return, 35, reflectivity)
    return sample_capture(stream.datagrams(), name=f"{seed}.pcap")


@pytest.mark.usefixtures("few_groups")
def test_what_no_unit_does_is_found_and_named_in_the_last_line(units):
    judgement = judge(units, [smooth(seed) for seed in (4, 5)])
    assert "clock" in judgement.telling
    assert not judgement.passed
    lines = render_judgement(judgement)
    assert lines[-1].startswith("distinguished by: clock")
    assert max(map(len, lines)) <= 120
    outside = {scalar.name for scalar in judgement.scalars if scalar.outside}
    assert "azimuth.autocorrelation" in outside


def test_captures_that_cannot_be_compared_are_refused_with_the_reason(units):
    with pytest.raises(CaptureError, match="2 real captures are needed at least, got 1"):
        judge(units[:1], units)
    with pytest.raises(CaptureError, match="2 emulated captures are needed at least, got 0"):
        judge(units, [])
    fast = [capture(7, rpm=1200.0), capture(8, rpm=1200.0)]
    with pytest.raises(CaptureError, match=r"must be the same, got 600 rpm strongest and 1200 rpm strongest: a classifier would find the setting"):
        judge(units, fast)
    with pytest.raises(CaptureError, match=r"two real captures of one rotation rate are needed as the yardstick, got 1\.pcap: 600 rpm strongest"):
        judge([units[0], fast[0]], [units[1], fast[1]])
    other = vlp16(192)
    other.data["product"] = 0x24
    with pytest.raises(CaptureError, match=r"the captures must be of one model, got Puck Hi-Res, VLP-16"):
        judge(units, [units[0], sample_capture(other.datagrams(), name="x")])


def test_real_pairs_of_two_modes_are_noted(units, monkeypatch):
    monkeypatch.setattr("tools.judge.judge.GROUPS", (replace(GROUPS[0], topics=GROUPS[0].topics[-1:]),))
    dual = [capture(seed, dual=True) for seed in (7, 8)]
    judgement = judge([units[0], dual[0]], [units[1], dual[1]])
    assert judgement.notes == ("no two real captures have one rate and one return mode: real pairs are of one rate only",)
    assert judgement.results[1].real.values == ()


@pytest.mark.usefixtures("few_groups")
def test_the_program_prints_the_report_and_its_exit_code_is_the_result(tmp_path, capsys):
    paths = [str(write(tmp_path / f"{seed}.pcap", vlp16(192, seed=seed).datagrams())) for seed in (1, 2, 4, 5)]
    assert main([*paths[:2], "--", *paths[2:]]) == 0
    assert capsys.readouterr().out.endswith("no group of 2 tells emulated from real better than real units are distinguished\n")
    assert main(["--json", *paths[:1], "--", *paths[2:]]) == 1
    assert capsys.readouterr().err == "error: 2 real captures are needed at least, got 1: each is judged by what the others show\n"


@pytest.mark.parametrize("arguments", [["1.pcap"], ["1.pcap", "--"], ["--", "1.pcap"]], ids=" ".join)
def test_the_program_needs_real_and_emulated_captures(arguments):
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
