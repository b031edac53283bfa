"""Scripts of a controller: generators that wait for a condition and then command."""

import math
from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from hilsim_flight_controller.flying.commander import Commander
from hilsim_flight_controller.report import Report

Clock: TypeAlias = Callable[[], int]
"""The controller's time (us)."""
Steps: TypeAlias = Iterator[None]
"""Steps of a script, one after each reading of the IMU."""


def _wait(seconds: float, clock: Clock) -> Steps:
    end_us = clock() + round(seconds * 1e6)
    while clock() < end_us:
        yield


def _until(condition: Callable[[], bool]) -> Steps:
    while not condition():
        yield


def _hover(commander: Commander, clock: Clock, report: Report, seconds: float) -> Steps:
    """Hold the position, and record the distance of the estimate from it."""
    end_us = clock() + round(seconds * 1e6)
    level, height = 0.0, 0.0
    while clock() < end_us:
        away = commander.estimate.p - commander.target
        level, height = max(level, math.hypot(away[0], away[1])), max(height, abs(float(away[2])))
        yield
    report.figures["hover_level_m"] = round(level, 3)
    report.figures["hover_height_m"] = round(height, 3)


def _up(commander: Commander, clock: Clock, height_m: float) -> Steps:
    yield from _until(lambda: commander.estimate.ready)
    yield from _wait(1.0, clock)
    commander.set_mode(clock(), 4, 3)
    commander.arm(clock())
    yield from _wait(1.8, clock)
    commander.take_off(clock(), height_m)
    yield from _until(lambda: commander.airborne and commander.mode == "hold")
    yield from _wait(2.0, clock)


def _down(commander: Commander, clock: Clock) -> Steps:
    commander.land(clock())
    yield from _until(lambda: not commander.armed)


def idle(_commander: Commander, _clock: Clock, _report: Report) -> Steps:
    """No actions: a ground station commands."""
    return iter(())


def hover(commander: Commander, clock: Clock, report: Report) -> Steps:
    """Climb to 5 m, hover for ten seconds, land."""
    yield from _up(commander, clock, 5.0)
    yield from _hover(commander, clock, report, 10.0)
    yield from _down(commander, clock)
    report.note(clock(), "done")


def hop(commander: Commander, clock: Clock, report: Report) -> Steps:
    """Climb to 2 m, hover for two seconds, land: the shortest whole flight."""
    yield from _up(commander, clock, 2.0)
    yield from _hover(commander, clock, report, 2.0)
    yield from _down(commander, clock)
    report.note(clock(), "done")


def tour(commander: Commander, clock: Clock, report: Report) -> Steps:
    """Climb to 5 m, fly 5 m to the north-east and back with half a turn on the way: enough motion to check every unit."""
    yield from _up(commander, clock, 5.0)
    begin, yaw = commander.target.copy(), commander.yaw
    commander.go(begin + np.array([4.0, 3.0, 0.0]), yaw + math.pi / 2)
    yield from _wait(8.0, clock)
    commander.go(begin, yaw + math.pi)
    yield from _wait(8.0, clock)
    yield from _hover(commander, clock, report, 10.0)
    yield from _down(commander, clock)
    report.note(clock(), "done")


SCRIPTS: dict[str, Callable[[Commander, Clock, Report], Steps]] = {"idle": idle, "hop": hop, "hover": hover, "tour": tour}
