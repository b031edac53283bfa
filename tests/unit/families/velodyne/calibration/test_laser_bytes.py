"""Bytes that each laser reports and their noise, recorded and learned again."""

import tomllib

import numpy as np
import pytest

from hilsim.capture.pcap import CaptureFile
from hilsim.config.parse import parse_table
from hilsim.families.velodyne.calibration.calibrate import calibrate
from hilsim.families.velodyne.calibration.laser_bytes import find_bytes
from hilsim.families.velodyne.calibration.recording import read_recording
from hilsim.families.velodyne.calibration.report import unit_toml
from hilsim.sensor.signal.own_bytes import columns_of, reported_sd
from hilsim.sensor.signal.signal import bytes_in_steps
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


def missing_of(step):
    return sorted({*range(256)} - {*bytes_of(step)})


def known_sd(laser, byte):
    return reported_sd(byte, LEVELS[laser] + RATIOS[laser] * byte, columns_of((), missing_of(STEPS[laser])))


def learned_from(unit, seed):
    return calibrate([read_recording(datagrams(emulated(unit, bytes_=WALLS, seed=seed), PACKETS), name="emulated")], SPEC)


@pytest.fixture(scope="module")
def found():
    curves = [tuple((byte, known_sd(laser, byte)) for byte in (2.0, 5.0, 10.0, 20.0, 40.0, 60.0, 90.0)) for laser in range(16)]
    lasers = tuple(
        LaserUnitSpec(reported_bytes=tuple(bytes_of(step)), missing_bytes=tuple(missing_of(step)), byte_noise=curve)
        for step, curve in zip(STEPS, curves, strict=True)
    )
    return learned_from(UnitSpec(laser=lasers), seed=11)


@compiled_only
def test_a_recording_gives_the_bytes_of_each_laser_back(found):
    bright = 0
    for keys, step in zip(found.learned.lasers, STEPS, strict=True):
        reported, missing = {*keys["reported_bytes"]}, {*keys["missing_bytes"]}
        assert reported <= {*bytes_of(step)}
        assert missing <= {*missing_of(step)}
        bright += len({byte for byte in range(50, 80) if byte in missing_of(step)} & missing)
    assert bright > 0.8 * sum(50 <= byte < 80 for step in STEPS for byte in missing_of(step))


@compiled_only
def test_a_recording_gives_the_byte_noise_of_each_laser_back_on_dark_surfaces_too(found):
    rows = [(laser, byte, sd) for laser, keys in enumerate(found.learned.lasers) for byte, sd in keys["byte_noise"]]
    assert len(rows) >= 80
    assert sum(byte < 6 for _, byte, _ in rows) >= 10
    np.testing.assert_allclose([sd for *_, sd in rows], [known_sd(laser, byte) for laser, byte, _ in rows], rtol=0.15)


@compiled_only
def test_a_recording_of_the_learned_unit_gives_the_same_bytes_and_noise(found):
    unit = parse_table(UnitSpec, tomllib.loads(unit_toml(found, "0")), "unit.toml")
    again = learned_from(unit, seed=99).learned.lasers
    for first, second in zip(found.learned.lasers, again, strict=True):
        assert [byte for byte in first["missing_bytes"] if 54 <= byte < 78] == [byte for byte in second["missing_bytes"] if 54 <= byte < 78]
        byte, sd = np.array(first["byte_noise"]).T
        pairs = [(value, sd[np.argmin(np.abs(byte - place))]) for place, value in second["byte_noise"] if np.abs(byte - place).min() < 0.5]
        assert pairs
        np.testing.assert_allclose(*zip(*pairs, strict=True), rtol=0.15)


def histogram(levels, returns=100):
    """A laser's returns by byte where only some bytes occur."""
    counts = np.zeros(256, np.int64)
    counts[list(levels)] = returns
    return counts


@pytest.mark.parametrize("step", [1.0, 1.3, 2.2, 3.3])
def test_bytes_that_hardly_occur_between_others_are_not_reported(step):
    counts = histogram(bytes_of(step))
    counts[missing_of(step)] = 9
    reported, missing, reason = find_bytes(counts)
    assert not reason
    assert missing == [byte for byte in missing_of(step) if byte < 98]
    assert reported == [byte for byte in bytes_of(step) if byte < 98]


def test_two_dark_surfaces_leave_no_gap():
    counts = histogram([*range(4, 7), *range(9, 13), *range(15, 80)])
    assert find_bytes(counts)[1] == []


@pytest.mark.parametrize(("counts", "judged"), [(histogram(range(90), returns=19), 0), (histogram(range(12)), 10)])
def test_few_returns_say_nothing_of_bytes(counts, judged):
    assert find_bytes(counts) == ([], [], f"12 bytes with 20 returns on both sides are needed, got {judged}")


def learned_of(capture, name):
    return calibrate([read_recording(CaptureFile(capture(name)), name=name)], SPEC)


def test_a_real_unit_reports_fewer_bytes_the_brighter_the_surface(capture):
    found = learned_of(capture, "vlp16_strongest_1200rpm.pcap")
    assert min(len(keys["byte_noise"]) for keys in found.learned.lasers) >= 8
    share = [np.mean([np.isin(range(low, low + 20), keys["missing_bytes"]).mean() for keys in found.learned.lasers]) for low in (10, 30, 60)]
    assert share[0] < 0.02
    assert 0.03 < share[1] < 0.2
    assert 0.4 < share[2] < 0.7


def test_short_captures_of_real_units_have_noise_where_there_are_pairs(capture):
    for name, lasers in (("vlp16_strongest_gps.pcap", 16), ("vlp16_dual.pcap", 5)):
        found = learned_of(capture, name)
        assert sum("byte_noise" in keys for keys in found.learned.lasers) == lasers
