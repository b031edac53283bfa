"""The scripted controller flies hilsim's vehicle by its sensors alone, and bears what happens to cables. All in virtual time."""

from itertools import pairwise

import numpy as np
import pytest

from hilsim.world.platforms.wind import WindSpec
from hilsim_flight_controller.controller import Px4
from tests.compiled import compiled_only
from tests.controllers.bench import Bench
from tests.controllers.station import Station

pytestmark = [pytest.mark.extended, compiled_only]
_LIGHT = WindSpec(speed_mps=2.0, from_deg=30.0, turbulence_ratio=0.2)


def _order(report):
    return [text for _, text in report.events]


_WHOLE = ["speaking", "hold", "armed", "takeoff", "airborne", "hold", "land", "touchdown", "manual", "disarmed", "done"]


@pytest.mark.parametrize("name", ["iris", "airsim-quad"])
def test_the_controller_takes_off_hovers_and_lands_in_light_wind(name):
    bench = Bench(name, wind=_LIGHT, script="hover")
    report = bench.fly()
    assert [str(fault) for fault in report.faults] == []
    assert _order(report) == _WHOLE
    assert 4.7 < bench.top_m < 5.5
    assert report.figures["hover_level_m"] < 0.5
    assert report.figures["hover_height_m"] < 0.3
    begin_us, end_us = (round(report.time_of(text) * 1e6) for text in ("airborne", "land"))
    hover = np.array([row[1:] for row in bench.aircraft.track if begin_us + 6_000_000 <= row[0] < end_us])
    assert (np.ptp(hover, axis=0) < (1.2, 1.2, 0.6)).all()
    assert abs(bench.aircraft.height_m) < 0.01
    assert not bench.aircraft.crashed


def test_a_tour_judges_every_unit_of_what_the_vehicle_feels():
    bench = Bench("iris", script="tour")
    report = bench.fly()
    assert [str(fault) for fault in report.faults] == []
    assert all(report.judged[rule] > 0 for rule in ("gyroscope", "gps_velocity", "gps_course", "gps_speed", "specific_force", "field", "pressure"))


@pytest.mark.parametrize("spec", [{"serial": False, "lockstep": True}, {"period_us": 10_000, "newer": True}], ids=["lockstep", "100 Hz"])
def test_the_controller_flies_over_other_links(spec):
    report = Bench("iris", script="hop", **spec).fly()
    assert [str(fault) for fault in report.faults] == []
    assert _order(report) == _WHOLE


def test_a_ground_station_flies_through_the_bridge_and_gets_every_byte():
    station = Station("fly")
    bench = Bench("iris", station=station)
    report = bench.fly()
    assert [text for _, text in station.events] == ["ready", *(f"command {command}: 0" for command in (176, 400, 22)), "up", "command 21: 0", "down"]
    assert [str(fault) for fault in report.faults] == []
    assert 2.0 < station.heard.highest_m < 3.0
    assert [raw for raw in station.came if raw[7:10] != b"\x5d\0\0"] == bench.controller.sent[: len(station.came)]


def test_a_cable_that_is_out_for_two_seconds_in_hover_is_tolerated_where_physics_stand_still():
    bench = Bench(at={18.0: Px4.unplug, 20.0: Px4.plug}, script="hover")
    report = bench.fly()
    assert [str(fault) for fault in report.faults] == []
    assert _order(report)[-1] == "done"
    times_us = [row[0] for row in bench.aircraft.track]
    assert max(late - early for early, late in pairwise(times_us)) <= 20_000
    assert not bench.aircraft.crashed


def test_a_controller_that_reboots_flies_all_the_same():
    report = Bench(at={3.3: Px4.reboot}, script="hop").fly()
    assert [str(fault) for fault in report.faults] == []
    assert _order(report) == ["speaking", "reboot", *_WHOLE]
