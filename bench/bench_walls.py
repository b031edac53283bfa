"""What becomes of a vehicle that is flown into a wall or a pole: contacts, forces, and how it lands, beside the closed formulas.

    python bench/bench_walls.py [--waiting] [--bare]

The scripted controller hovers at 4 m, flies at an obstacle with its place to be 10 m behind it, presses for 10 s and is commanded to land (tests/wall_flights.py; no clock, so the table is the same
everywhere). ``--waiting`` replaces its path by one that waits for the vehicle, as PX4's does (FlightTaskAutoLineSmoothVel, PX4 1.11 to 1.12: the time of the trajectory passes slower the farther
the vehicle lags behind it on the level, and stands still at 2 m), with and without friction: later commands, a descent too, follow the time that is stopped.
The Iris has propeller guards; ``--bare`` takes them off.
"""

import argparse
import dataclasses
import math

import numpy as np

from hilsim.parts.vehicle.physics.contact import MAX_PUSH_MPS2
from tests.unit.vehicle.vehicles import G
from tests.wall_flights import OBSTACLES, RUN_UP_M, fly_into

SPEEDS_MPS = tuple(RUN_UP_M)
DESCENT_MPS = 0.7
KNOWING_S = 3.0
"""The scripted controller's own, from standing to disarmed."""
LAG_M = 2.0
ACCELERATION_MPS2 = 3.0
HEAD = "| obstacle | flown at | met at (m/s) | impact (ms) | v / a (ms) | pressed (N) | friction used | contact (s) | ends at (m) | down after (s) | formula (s) | velocity error (m/s) |"


class WaitingPath:
    """A place to be whose time passes slower the farther the vehicle lags behind it; takes the place of the pilot's rule from place to velocity."""

    def __init__(self, flight):
        self.flight, self.last_ns = flight, flight.now_ns
        self.place, self.velocity = flight.estimate.p.copy(), np.zeros(3)

    def wanted(self, estimate, _place, climb):
        """Velocity (m/s, NED) that the pilot is to fly."""
        commander = self.flight.commander
        step_s, self.last_ns = (self.flight.now_ns - self.last_ns) * 1e-9, self.flight.now_ns
        goal = commander.target if climb is None else commander.place
        away = goal[:2] - self.place[:2]
        distance = float(np.linalg.norm(away))
        speed_mps = min(commander.cruise_mps, math.sqrt(ACCELERATION_MPS2 * distance), 0.8 * distance)
        aim = np.array([*(away / max(distance, 1e-6) * speed_mps), goal[2] - self.place[2] if climb is None else climb])
        behind = self.place[:2] - estimate.p[:2]
        share = 1.0 if behind @ self.velocity[:2] < 0.0 else 1.0 - min(float(np.linalg.norm(behind)) / LAG_M, 1.0)
        change, most = aim - self.velocity, ACCELERATION_MPS2 * step_s * share
        size = float(np.linalg.norm(change))
        self.place = self.place + share * step_s * self.velocity
        self.velocity = self.velocity + change * (min(1.0, most / size) if size > 0.0 else 0.0)
        return 0.95 * (self.place - estimate.p) + self.velocity


def waits(friction):
    """A change of a flight: the path waits, and friction is as given."""

    def change(flight):
        made = flight.made
        flight.made = dataclasses.replace(made, context=made.context._replace(multirotor=made.context.multirotor._replace(friction_ratio=friction)))
        flight.commander.pilot._velocity = WaitingPath(flight).wanted  # noqa: SLF001 - what a bench may replace

    return change


def formula_s(row):
    """How long the way down takes: the commanded descent and the controller's own pauses, or a free fall."""
    if row.crashed or row.broken_rotors:
        return math.sqrt(2.0 * row.told_height_m / G)
    return row.told_height_m / DESCENT_MPS + KNOWING_S


def line_of(obstacle, speed_mps, row):
    """A row of the table."""
    landed = "never (60 s)" if row.landed_s is None else f"{row.landed_s:.1f}"
    damage = f"{row.broken_rotors} rotors broken" if row.broken_rotors else "broken"
    pressed = (damage, "") if row.crashed or row.broken_rotors else (f"{row.pressed_n:.1f}", f"{100.0 * row.friction_share:.0f} %")
    parts = [
        obstacle,
        f"{speed_mps:.0f}",
        f"{row.closing_mps:.2f}",
        f"{1e3 * row.impact_s:.0f}",
        f"{1e3 * row.closing_mps / MAX_PUSH_MPS2:.0f}",
        *pressed,
    ]
    parts += [
        f"{row.contact_s:.1f}",
        ", ".join(f"{part:.1f}" for part in row.end_m),
        landed,
        f"{formula_s(row):.1f}",
        f"{row.velocity_error_mps:.2f}",
    ]
    return f"| {' | '.join(parts)} |"


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--waiting", action="store_true", help="a path that waits for the vehicle, as PX4's")
    parser.add_argument("--bare", action="store_true", help="a vehicle without propeller guards")
    options = parser.parse_args()
    print(f"{HEAD}\n{'|---' * HEAD.count(' | ')}|---|")
    if options.waiting:
        for friction in (1.0, 0.3, 0.0):
            _, row = fly_into("wall at 45 deg", 3.0, guards=not options.bare, change=waits(friction))
            print(line_of(f"wall at 45 deg, friction {friction}", 3.0, row), flush=True)
        return
    for obstacle in OBSTACLES:
        for speed_mps in SPEEDS_MPS:
            _, row = fly_into(obstacle, speed_mps, guards=not options.bare)
            print(line_of(obstacle, speed_mps, row), flush=True)


if __name__ == "__main__":
    main()
