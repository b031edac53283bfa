"""Bytes that each laser reports and their noise, recorded and learned again."""

import tomllib
from itertools import pairwise

import numpy as np
import pytest

from hilsim.capture.pcap import CaptureFile
from hilsim.config.parse import parse_table
from hilsim.families.velodyne.calibration.calibrate import calibrate
from hilsim.families.velodyne.calibration.laser_bytes import find_edges, find_edges_by_range
from hilsim.families.velodyne.calibration.recording import read_recording
from hilsim.families.velodyne.calibration.report import unit_toml
from hilsim.sensor.signal.own_bytes import reported_sd
from hilsim.sensor.signal.signal import bytes_in_steps, reported_columns
from hilsim.sensor.signal.spec import SignalSpec
from hilsim.sensor.unit.spec import LaserUnitSpec, UnitSpec
from tests.compiled import compiled_only
from tests.unit.families.velodyne.calibration.emulated import SPEC, datagrams, emulated

pytestmark = pytest.mark.extended

PACKETS = 1500
WALLS = [60, 5, 14, 85, 30]
ORDER = np.array([3, 9, 0, 12, 6, 15, 1, 7, 11, 4, 14, 2, 8, 13, 5, 10])
STEPS = np.linspace(1.0, 3.3, 16)[ORDER].round(3)
LEVELS, RATIOS = np.linspace(0.7, 0.3, 16), np.linspace(0.025, 0.05, 16)


def bytes_of(step):
    """Bytes of a laser whose steps grow up to a largest one."""
    return np.flatnonzero(bytes_in_steps(SignalSpec(byte_step=float(step), byte_step_from=20.0, byte_step_growth=0.06))).tolist()


def edges_of(step):
    """Edges half-way between the bytes of a laser, one for each byte."""
    code = columns(step) // 2
    return [(byte, float(np.searchsorted(code, byte, side="right")) / 2.0) for byte in range(256)]


def columns(step):
    return reported_columns(np.isin(np.arange(256), bytes_of(step))[None])[:, 0]


def missing_of(step):
    return sorted({*range(256)} - {*bytes_of(step)})


def widths_of(edges):
    """Widths of the bytes whose parts are known."""
    edges = [(-1, 0.0), *edges]
    return {byte: edge - last for (before, last), (byte, edge) in pairwise(edges) if byte == before + 1}


def hardly(keys):
    """Bytes that a learned laser hardly reports."""
    return [byte for byte, width in widths_of(keys.get("byte_edges", ())).items() if width < 0.25]


def difference(widths, others):
    """Root mean square of the differences of bytes of which both widths are known; one more byte is as wide in both."""
    return np.sqrt(np.mean([0.0, *((widths[byte] - others[byte]) ** 2 for byte in {*widths} & {*others})]))


def known_sd(laser, byte):
    return reported_sd(byte, LEVELS[laser] + RATIOS[laser] * byte, columns(STEPS[laser]))


def learned_from(unit, seed, packets=PACKETS):
    return calibrate([read_recording(datagrams(emulated(unit, bytes_=WALLS, seed=seed), packets), name="emulated")], SPEC)


def known_unit():
    curves = [tuple((byte, known_sd(laser, byte)) for byte in (2.0, 5.0, 10.0, 20.0, 40.0, 60.0, 90.0)) for laser in range(16)]
    lasers = tuple(LaserUnitSpec(byte_edges=tuple(edges_of(step)), byte_noise=curve) for step, curve in zip(STEPS, curves, strict=True))
    return UnitSpec(laser=lasers)


@pytest.fixture(scope="module")
def found():
    return learned_from(known_unit(), seed=11)


@compiled_only
def test_a_recording_gives_the_bytes_of_each_laser_back(found):
    bright = 0
    for keys, step in zip(found.learned.lasers, STEPS, strict=True):
        assert {*hardly(keys)} <= {*missing_of(step)}
        bright += len({byte for byte in range(50, 80) if byte in missing_of(step)} & {*hardly(keys)})
        assert difference(widths_of(keys.get("byte_edges", ())), widths_of(edges_of(step))) < 0.25
    assert bright > 0.8 * sum(50 <= byte < 80 for step in STEPS for byte in missing_of(step))


@compiled_only
def test_a_recording_gives_the_byte_noise_of_each_laser_back_on_dark_surfaces_too(found):
    rows = [(laser, byte, sd) for laser, keys in enumerate(found.learned.lasers) for byte, sd in keys["byte_noise"]]
    assert len(rows) >= 80
    assert sum(byte < 6 for _, byte, _ in rows) >= 10
    np.testing.assert_allclose([sd for *_, sd in rows], [known_sd(laser, byte) for laser, byte, _ in rows], rtol=0.15)


def known_in_both(found, again):
    """Lasers whose bytes were learned from both recordings."""
    return [both for both in zip(found.learned.lasers, again, strict=True) if all("byte_edges" in keys for keys in both)]


@compiled_only
def test_a_recording_of_the_learned_unit_gives_the_same_bytes_and_noise():
    found = learned_from(known_unit(), seed=11, packets=2 * PACKETS)
    unit = parse_table(UnitSpec, tomllib.loads(unit_toml(found, "0")), "unit.toml")
    again = learned_from(unit, seed=99, packets=2 * PACKETS).learned.lasers
    assert (
        sum(
            len({byte for byte, _ in first["byte_edges"]} & {byte for byte, _ in second["byte_edges"]})
            for first, second in known_in_both(found, again)
        )
        > 300
    )
    for first, second in zip(found.learned.lasers, again, strict=True):
        assert difference(*(widths_of(keys.get("byte_edges", ())) for keys in (first, second))) < 0.3
        byte, sd = np.array(first["byte_noise"]).T
        pairs = [(value, sd[np.argmin(np.abs(byte - place))]) for place, value in second["byte_noise"] if np.abs(byte - place).min() < 0.5]
        assert pairs
        np.testing.assert_allclose(*zip(*pairs, strict=True), rtol=0.15)


NOISE = np.full(256, 1.5)
WIDE = np.tile([1.8, 0.3, 1.2, 0.7], 64)


def counts_of(widths, returns):
    """Returns by byte of a smooth histogram of reflectivities, where bytes have parts of some widths."""
    edge = np.cumsum(widths).clip(0.0, 256.0)
    below = np.interp(edge, np.arange(257.0), np.append(0.0, np.cumsum(1.0 + 0.5 * np.sin(np.arange(256.0) / 15.0))))
    return np.rint(returns * np.diff(below, prepend=0.0)).astype(np.int64)


def test_bytes_have_the_widths_that_their_returns_show():
    edges = find_edges(counts_of(WIDE, 1000), NOISE)
    byte, edge = np.array(edges).T
    middle = (byte[1:] >= 20) & (byte[1:] < 80)
    np.testing.assert_allclose(np.diff(edge)[middle], WIDE[byte[1:].astype(int)][middle], atol=0.15)


def test_a_byte_without_returns_between_others_has_no_width():
    counts = counts_of(np.ones(256), 1000)
    counts[[50, 61]] = 0
    edges = dict(find_edges(counts, NOISE))
    assert [edges[byte] - edges[byte - 1] for byte in (50, 61)] == [0.0, 0.0]


def test_steps_that_lie_elsewhere_at_another_range_are_those_of_the_range_with_the_most_returns():
    there = np.roll(WIDE, 1)
    counts = np.array([counts_of(WIDE, 1000), np.zeros(256, np.int64), counts_of(there, 300), counts_of(there, 300)])
    byte, edge = np.array(find_edges_by_range(counts, NOISE)).T
    middle = (byte[1:] >= 20) & (byte[1:] < 80)
    np.testing.assert_allclose(np.diff(edge)[middle], WIDE[byte[1:].astype(int)][middle], atol=0.15)


@pytest.mark.parametrize(("returns", "noise"), [(15, 1.5), (1000, 0.6), (100, 1.5)])
def test_few_returns_and_little_noise_say_nothing_of_bytes(returns, noise):
    counts = np.zeros(256, np.int64)
    counts[20:30] = returns
    assert find_edges(counts, np.full(256, noise)) == []


def learned_of(capture, name):
    return calibrate([read_recording(CaptureFile(capture(name)), name=name)], SPEC)


def test_a_real_unit_reports_fewer_bytes_the_brighter_the_surface(capture):
    found = learned_of(capture, "vlp16_strongest_1200rpm.pcap")
    assert min(len(keys["byte_noise"]) for keys in found.learned.lasers) >= 8
    share = [np.mean([np.isin(range(low, low + 20), hardly(keys)).mean() for keys in found.learned.lasers]) for low in (10, 30, 60)]
    assert share[0] < 0.02
    assert 0.03 < share[1] < 0.2
    assert 0.4 < share[2] < 0.7


def test_short_captures_of_real_units_have_noise_where_there_are_pairs(capture):
    for name, lasers in (("vlp16_strongest_gps.pcap", 16), ("vlp16_dual.pcap", 5)):
        found = learned_of(capture, name)
        assert sum("byte_noise" in keys for keys in found.learned.lasers) == lasers
