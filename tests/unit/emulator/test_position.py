"""The sentence of a sensor's GPS receiver: where it is, how fast and whither."""

import numpy as np
import pytest

from hilsim.emulator.plan import Gps, no_sentences
from hilsim.emulator.position import write_sentence
from hilsim.protocols.nmea import GPRMC_CAPACITY
from hilsim.sensor.clock import build_device_clock
from hilsim.sensor.specs import ClockSetting
from hilsim.world.geometry.tracks import linear_track
from hilsim.world.platforms.disturbance import NO_DISTURBANCE
from hilsim.world.platforms.platform import build_platform

SECOND_NS = 10**9
CLOCK = build_device_clock(ClockSetting(), follows_pulse=True, start_ns=0, utc_epoch_ns=1_767_225_600 * SECOND_NS)
GPS = Gps(
    pps_state=2,
    heard=no_sentences(),
    present=True,
    valid=True,
    latitude_deg=36.8,
    longitude_deg=-2.4,
    origin_east_m=0.0,
    origin_north_m=0.0,
    sentence_delay_ns=70_000_000,
)
KNOT_MPS = 1852.0 / 3600.0


def fields_of(velocity_mps, rig_ns):
    """Fields of the sentence of a platform that moves evenly."""
    keys = np.outer((0.0, 10.0), velocity_mps)
    track = linear_track(np.array([0, 10 * SECOND_NS]), keys, np.tile((1.0, 0.0, 0.0, 0.0), (2, 1)))
    sentence = np.zeros(GPRMC_CAPACITY, np.uint8)
    size = write_sentence(CLOCK, GPS, build_platform(track, NO_DISTURBANCE), rig_ns, sentence)
    return sentence[:size].tobytes().decode("ascii").split(",")


@pytest.mark.parametrize(
    ("velocity_mps", "course_deg"),
    [((5.0, 0.0, 0.0), 90.0), ((0.0, 5.0, 1.0), 0.0), ((-3.0, 0.0, 0.0), 270.0), ((0.0, -4.0, 0.0), 180.0), ((3.0, 4.0, 0.0), 36.87)],
)
def test_speed_and_course_are_those_of_the_platform_over_ground(velocity_mps, course_deg):
    fields = fields_of(velocity_mps, 5 * SECOND_NS + 100_000_000)
    assert float(fields[7]) == pytest.approx(np.hypot(*velocity_mps[:2]) / KNOT_MPS, abs=0.06)
    assert float(fields[8]) == pytest.approx(course_deg, abs=0.06)


def test_a_platform_at_rest_has_no_speed_and_course_0():
    fields = fields_of((0.0, 0.0, 0.0), 5 * SECOND_NS + 100_000_000)
    assert (float(fields[7]), float(fields[8])) == (0.0, 0.0)
