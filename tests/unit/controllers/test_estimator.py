"""The scripted controller's estimator believes what fits together and refuses what does not, so that a bridge that would fail under EKF2 fails here."""

import copyreg
import dataclasses
import struct
from copy import deepcopy

import numpy as np
import pytest

from hilsim.world.geometry.rotations import from_roll_pitch_yaw
from tests.compiled import compiled_only
from tests.unit.controllers.test_flight import Bench

pytestmark = [pytest.mark.extended, compiled_only]
_FROM_S, _UNTIL_S = 20.0, 32.0
copyreg.pickle(struct.Struct, lambda layout: (struct.Struct, (layout.format,)))  # which pymavlink's parsers have, and Python cannot copy


def spoilt(bench, spoil):
    """From now on each reading is passed through ``change``."""
    read = bench.aircraft.reading
    bench.aircraft.reading = lambda: spoil(read())


@pytest.fixture(scope="module")
def stood():
    """A vehicle that has stood for a while; only to be copied."""
    bench = Bench("iris", script="idle")
    bench.go_on(0.0, _FROM_S)
    return bench


@pytest.fixture
def standing(stood):
    """Has the vehicle stand on, with instruments that are changed from now on; its estimator at the end, and before."""

    def stand(spoil=None):
        bench = deepcopy(stood)
        before = {"ready": bench.controller.estimate.ready}
        if spoil is not None:
            spoil(bench)
        bench.fly(_UNTIL_S, begin_s=_FROM_S)
        return bench.controller.estimate, before

    return stand


def with_field(scale):
    return lambda bench: spoilt(bench, lambda reading: dataclasses.replace(reading, field=reading.field * np.array(scale)))


def with_gps(**added):
    def spoil(reading):
        return dataclasses.replace(reading, fix=reading.fix | {name: reading.fix[name] + value for name, value in added.items()})

    return lambda bench: spoilt(bench, spoil)


def thrown(bench):
    """What a vehicle felt that was lifted by its pose alone: tilted by 36 degrees from one step to the next, no rate to show for it, and no speed."""
    bench.aircraft.state.motion[6:10] = from_roll_pitch_yaw(36.4, 0.0, 0.0)
    bench.aircraft.state.motion[2] = 0.108

    def held(now_us, controls, advance=bench.aircraft.advance):
        advance(now_us, controls)
        bench.aircraft.state.motion[6:10] = from_roll_pitch_yaw(36.4, 0.0, 0.0)
        bench.aircraft.state.motion[10:13] = 0.0
        bench.aircraft.state.motion[2] = 0.108
        bench.aircraft.state.motion[3:6] = 0.0
        level = bench.aircraft.felt
        level[:] = (0.0, 9.80665 * np.sin(np.radians(36.4)), 9.80665 * np.cos(np.radians(36.4)), 0.0, 0.0, 0.0)

    bench.aircraft.advance = held


def test_a_vehicle_at_rest_is_ready_and_nothing_is_near_its_gate(standing):
    estimate, before = standing()
    assert before["ready"]
    assert estimate.ready
    assert max(estimate.ratios.values()) < 0.5
    assert estimate.faults == set()


@pytest.mark.parametrize(
    ("spoil", "kind"),
    [
        (with_field((-1.0, -1.0, 1.0)), "mag"),
        (with_field((1.0, -1.0, 1.0)), "mag"),
        (with_gps(vn=300), "vel"),
        (with_gps(ve=-250, vel=250), "vel"),
        (with_gps(vd=200), "vel"),
        (with_gps(lat=900), "pos_h"),
        (thrown, "vel"),
    ],
    ids=["mag turned", "mag mirrored", "GPS says north", "GPS says west", "GPS says down", "GPS jumps", "thrown by its pose"],
)
def test_readings_that_do_not_fit_are_refused_and_the_estimator_is_not_ready(standing, spoil, kind):
    estimate, before = standing(spoil)
    assert before["ready"]
    assert kind in estimate.faults
    assert not estimate.ready
