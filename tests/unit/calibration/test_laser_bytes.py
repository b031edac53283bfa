"""Step between the bytes of each laser and their noise, recorded and learned again."""

import re
import tomllib

import numpy as np
import pytest

from hilsim.analysis.calibration.calibrate import calibrate
from hilsim.analysis.calibration.laser_bytes import find_step
from hilsim.analysis.calibration.recording import read_recording
from hilsim.analysis.calibration.report import unit_toml
from hilsim.capture.pcap import CaptureFile
from hilsim.config.parse import parse_table
from hilsim.sensor.signal.own_bytes import reported_sd
from hilsim.sensor.unit.spec import LaserUnitSpec, UnitSpec
from tests.compiled import compiled_only
from tests.unit.calibration.emulated import SPEC, datagrams, emulated, errors

PACKETS = 1500
WALLS = [60, 5, 14, 85, 30]
ORDER = np.array([3, 9, 0, 12, 6, 15, 1, 7, 11, 4, 14, 2, 8, 13, 5, 10])
STEPS = np.linspace(1.0, 3.3, 16)[ORDER].round(3)
LEVELS, RATIOS = np.linspace(0.7, 0.3, 16), np.linspace(0.025, 0.05, 16)


def known_sd(laser, byte):
    return reported_sd(byte, LEVELS[laser] + RATIOS[laser] * byte, float(STEPS[laser]))


def learned_from(unit, seed):
    return calibrate([read_recording(datagrams(emulated(unit, bytes_=WALLS, seed=seed), PACKETS), name="emulated")], SPEC)


@pytest.fixture(scope="module")
def found():
    curves = [tuple((byte, known_sd(laser, byte)) for byte in (2.0, 5.0, 10.0, 20.0, 40.0, 60.0, 90.0)) for laser in range(16)]
    lasers = tuple(LaserUnitSpec(byte_step=float(step), byte_noise=curve) for step, curve in zip(STEPS, curves, strict=True))
    return learned_from(UnitSpec(laser=lasers), seed=11)


@compiled_only
def test_a_recording_gives_the_step_of_each_laser_back(found):
    np.testing.assert_allclose(errors(found.learned.lasers, "byte_step"), STEPS, atol=0.1)


@compiled_only
def test_a_recording_gives_the_byte_noise_of_each_laser_back_on_dark_surfaces_too(found):
    rows = [(laser, byte, sd) for laser, keys in enumerate(found.learned.lasers) for byte, sd in keys["byte_noise"]]
    assert len(rows) >= 80
    assert sum(byte < 6 for _, byte, _ in rows) >= 10
    np.testing.assert_allclose([sd for *_, sd in rows], [known_sd(laser, byte) for laser, byte, _ in rows], rtol=0.15)


@compiled_only
def test_a_recording_of_the_learned_unit_gives_the_same_steps_and_noise(found):
    unit = parse_table(UnitSpec, tomllib.loads(unit_toml(found, "0")), "unit.toml")
    again = learned_from(unit, seed=99).learned.lasers
    np.testing.assert_allclose(errors(again, "byte_step"), errors(found.learned.lasers, "byte_step"), atol=0.05)
    for first, second in zip(found.learned.lasers, again, strict=True):
        byte, sd = np.array(first["byte_noise"]).T
        pairs = [(value, sd[np.argmin(np.abs(byte - place))]) for place, value in second["byte_noise"] if np.abs(byte - place).min() < 0.5]
        assert pairs
        np.testing.assert_allclose(*zip(*pairs, strict=True), rtol=0.15)


def histogram(levels, returns=100):
    """A laser's returns by byte where only some bytes occur."""
    counts = np.zeros(256, np.int64)
    counts[np.asarray(levels, np.int64)] = returns
    return counts


def in_steps(step, last):
    return np.floor(np.arange(last / step) * step + 0.5)


@pytest.mark.parametrize(("step", "last"), [(1.0, 95), (1.3, 95), (2.2, 60), (3.3, 95)])
def test_a_step_is_found_from_bytes_that_never_occur(step, last):
    found, doubt, reason = find_step(histogram(in_steps(step, last)))
    assert not reason
    assert found == pytest.approx(step, abs=0.05)
    assert abs(found - step) <= 2.0 * doubt + 0.001


@pytest.mark.parametrize(
    ("counts", "reason"),
    [
        (histogram(in_steps(2.2, 95), returns=19), "12 bytes with 20 returns on both sides are needed, got 0"),
        (histogram(in_steps(2.2, 12)), "12 bytes with 20 returns on both sides are needed, got 10"),
        (histogram(in_steps(3.1, 18)), r"steps of 2\.88 to 3\.12 explain its bytes"),
        (
            histogram([*range(40), *range(40, 60, 2), *range(60, 95, 3)]),
            r"its bytes do not lie in equal steps: \d\d of \d\d bytes do not fit the best one",
        ),
    ],
)
def test_a_step_that_bytes_do_not_show_has_a_reason(counts, reason):
    assert re.match(reason, find_step(counts)[2])


def learned_of(capture, name):
    return calibrate([read_recording(CaptureFile(capture(name)), name=name)], SPEC)


def test_a_real_unit_has_noise_for_each_laser_and_steps_that_are_not_equal(capture):
    found = learned_of(capture, "vlp16_strongest_1200rpm.pcap")
    assert min(len(keys["byte_noise"]) for keys in found.learned.lasers) >= 9
    assert not any("byte_step" in keys for keys in found.learned.lasers)
    (reason,) = (figure.reason for figure in found.figures if figure.name == "laser.byte_step")
    assert reason.count("its bytes do not lie in equal steps") == 14
    assert reason.count("its byte is that of the turn before in") == 2


def test_short_captures_of_real_units_have_noise_where_there_are_pairs_and_no_steps(capture):
    for name, lasers in (("vlp16_strongest_gps.pcap", 16), ("vlp16_dual.pcap", 5)):
        found = learned_of(capture, name)
        assert sum("byte_noise" in keys for keys in found.learned.lasers) == lasers
        assert not any("byte_step" in keys for keys in found.learned.lasers)
