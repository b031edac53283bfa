"""What the judge says of a velocity that is not what the position changes by, whoever stood still meanwhile."""

from types import SimpleNamespace

import pytest

from hilsim_flight_controller.rules.gps import GpsRules
from hilsim_flight_controller.rules.situation import Situation
from hilsim_flight_controller.rules.timing import Timing

pytestmark = pytest.mark.extended

PERIOD_US = 200_000
CLIMB_MPS = 2.0
UTC_US = 1_767_225_600_000_000


class Report:
    def __init__(self):
        self.verdicts = []

    def judge(self, rule, holds, *_):
        if rule == "gps_velocity":
            self.verdicts.append(bool(holds))
        return holds


def judged(said_mps, frozen_us=0, frozen_every=7, *, situation=None, lose=False):
    """Verdicts on a minute's climb whose fixes say ``said_mps``, and which stands still for ``frozen_us`` now and then."""
    report = Report()
    situation = situation or Situation(serial=False)
    rules = GpsRules(report, situation)
    now_us, height_m = 0, 0.0
    for number in range(300):
        now_us += PERIOD_US + (frozen_us if number % frozen_every == 0 else 0)
        height_m += CLIMB_MPS * PERIOD_US * 1e-6
        fix = {
            "fix_type": 3,
            "lat": 473_977_000,
            "lon": 85_456_000,
            "alt": round(488_000 + 1000 * height_m),
            "vn": 0,
            "ve": 0,
            "vd": round(-100 * said_mps),
        }
        fix |= {"vel": 0, "cog": 65_535, "eph": 70, "epv": 90, "satellites_visible": 10, "time_usec": UTC_US + now_us}
        situation.time_lost |= lose and number % 4 == 0
        rules.gps(now_us, SimpleNamespace(**fix))
    return report.verdicts


def test_a_window_in_which_frames_were_never_made_is_left_out():
    situation = Situation(serial=False)
    timing = Timing(SimpleNamespace(judge=lambda *_, **__: True), situation)
    for stamp_us, lost in ((4_000, False), (8_000, False), (30_000, True)):
        timing._stamp(stamp_us, stamp_us)
        assert situation.time_lost == lost
    verdicts = judged(0.5, situation=situation, lose=True)
    assert verdicts == []
