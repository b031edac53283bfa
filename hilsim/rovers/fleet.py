"""The rovers that a loop sends for: their rows, counts, commands and errors, as arrays that both the loop and the rest of the daemon see."""

import math
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.atomics import load_acquire, store_release
from hilsim.compilation.jit import by_reference, kernel
from hilsim.rng import Purpose, normal_pair
from hilsim.rovers.specs import RoverSpec

_COMMAND_SLOTS = 1024
NO_CHANGE = -1
"""Of a command without a byte: it takes a cycle, and changes nothing."""


class FleetWord(IntEnum):
    """Elements of the words that the loop shares with the rest of the daemon."""

    STOP = 0


class RoverCount(IntEnum):
    """Columns of the loop's counts and state, of each rover."""

    CYCLE = 0
    """The next one, or the one under way."""
    STAGE = 1
    """0: the pose is next; then each chunk; then the telemetry."""
    BUTTONS = 2
    CYCLES = 3
    """Cycles whose packets were all put into the rings."""
    LATE = 4
    """Cycles left out because they could not be begun in time."""
    EMPTY = 5
    """Cycles left out because there was no scan."""
    OBEYED = 6
    """Commands that came to the telemetry."""


class Row(IntEnum):
    """Columns of ``Fleet.row``."""

    POSE = 0
    LIDAR = 1
    TELEMETRY = 2


class CommandWord(IntEnum):
    """Columns of a rover's row of commands; behind them the commands."""

    TAKEN = 0
    PUT = 8
    FIRST = 16


class Drift(IntEnum):
    """Columns of ``Fleet.drift``: standard deviations, and what of an error is left after a cycle."""

    POSITION_M = 0
    HEIGHT_M = 1
    HEADING_RAD = 2
    KEPT = 3


class Error(IntEnum):
    """Columns of ``Fleet.error``: how far a rover believes to be from where it is, in the frame that is sent, and of which cycle that is."""

    EAST_M = 0
    UP_M = 1
    SOUTH_M = 2
    HEADING_RAD = 3
    CYCLE = 4


@by_reference
class Fleet(NamedTuple):
    """R rovers.

    Attributes:
        row: ``int64[R, 3]``, their flows' rows of the rings, columns by ``Row``.
        number: ``int64[R]``.
        period_ns: ``int64[R]``.
        noise: ``float64[R, 3]``: of position, rotation, points.
        drift: ``float64[R, 4]``, columns by ``Drift``.
        error: ``float64[R, 5]``, columns by ``Error``; written by the loop.
        counters: ``int64[R, 8]``, columns by ``RoverCount``; written by the loop.
        command: ``int64[R, 16 + 1024]``, columns by ``CommandWord``.
    """

    row: npt.NDArray[np.int64]
    number: npt.NDArray[np.int64]
    period_ns: npt.NDArray[np.int64]
    noise: npt.NDArray[np.float64]
    drift: npt.NDArray[np.float64]
    error: npt.NDArray[np.float64]
    counters: npt.NDArray[np.int64]
    command: npt.NDArray[np.int64]


def allocate_fleet(rovers: int) -> Fleet:
    """Of rovers that have neither rows nor numbers yet; their first cycle is the one that begins a period after rig time 0, so that no time stamp is 0."""
    counters = np.zeros((rovers, 8), np.int64)
    counters[:, RoverCount.CYCLE] = 1
    return Fleet(
        row=np.zeros((rovers, len(Row)), np.int64),
        number=np.zeros(rovers, np.int64),
        period_ns=np.zeros(rovers, np.int64),
        noise=np.zeros((rovers, 3)),
        drift=np.zeros((rovers, len(Drift))),
        error=np.zeros((rovers, len(Error))),
        counters=counters,
        command=np.zeros((rovers, CommandWord.FIRST + _COMMAND_SLOTS), np.int64),
    )


def set_up(fleet: Fleet, row: int, rover: RoverSpec) -> None:
    """Make a row a rover's."""
    fleet.number[row], fleet.period_ns[row] = rover.number, rover.period_ns
    noise = rover.added_noise
    fleet.noise[row] = noise.position_m, noise.rotation_deg, noise.point_m
    if rover.drift is not None:
        kept = math.exp(-rover.period_ns / (rover.drift.time_s * 1e9))
        fleet.drift[row] = rover.drift.position_m, rover.drift.height_m, math.radians(rover.drift.heading_deg), kept


@kernel
def put_command(fleet: Fleet, rover: int, buttons: int) -> bool:
    """Put a command (0 to 255, or ``NO_CHANGE``) behind those that wait; False when too many do."""
    put = fleet.command[rover, CommandWord.PUT]
    slots = fleet.command.shape[1] - CommandWord.FIRST
    if put - load_acquire(fleet.command, (rover, CommandWord.TAKEN)) >= slots:
        return False
    fleet.command[rover, CommandWord.FIRST + put % slots] = buttons
    store_release(fleet.command, (rover, CommandWord.PUT), put + 1)
    return True


@kernel
def take_command(fleet: Fleet, rover: int) -> None:
    """Obey the oldest command that waits: one a cycle."""
    taken = fleet.command[rover, CommandWord.TAKEN]
    if load_acquire(fleet.command, (rover, CommandWord.PUT)) == taken:
        return
    slots = fleet.command.shape[1] - CommandWord.FIRST
    buttons = fleet.command[rover, CommandWord.FIRST + taken % slots]
    if buttons >= 0:
        store_release(fleet.counters, (rover, RoverCount.BUTTONS), buttons)
    fleet.counters[rover, RoverCount.OBEYED] += 1
    store_release(fleet.command, (rover, CommandWord.TAKEN), taken + 1)


@kernel
def drifts(fleet: Fleet, rover: int) -> bool:
    """Whether a rover is ever elsewhere than it believes."""
    drift = fleet.drift[rover]
    return bool(drift[Drift.POSITION_M] > 0.0 or drift[Drift.HEIGHT_M] > 0.0 or drift[Drift.HEADING_RAD] > 0.0)


@kernel
def drift_on(fleet: Fleet, rover: int, seed: np.uint64) -> None:
    """Bring a rover's error to its cycle: a first-order Gauss-Markov process, the same however many cycles are passed over."""
    drift, error, number = fleet.drift[rover], fleet.error[rover], fleet.number[rover]
    kept = drift[Drift.KEPT]
    while error[Error.CYCLE] < fleet.counters[rover, RoverCount.CYCLE]:
        error[Error.CYCLE] += 1.0
        cycle = int(error[Error.CYCLE])
        old, new = (kept, math.sqrt(1.0 - kept * kept)) if cycle > 1 else (0.0, 1.0)
        east, south = normal_pair(seed, number, 2 * cycle, Purpose.ROVER_DRIFT)
        up, heading = normal_pair(seed, number, 2 * cycle + 1, Purpose.ROVER_DRIFT)
        error[Error.EAST_M] = old * error[Error.EAST_M] + new * drift[Drift.POSITION_M] * east
        error[Error.SOUTH_M] = old * error[Error.SOUTH_M] + new * drift[Drift.POSITION_M] * south
        error[Error.UP_M] = old * error[Error.UP_M] + new * drift[Drift.HEIGHT_M] * up
        error[Error.HEADING_RAD] = old * error[Error.HEADING_RAD] + new * drift[Drift.HEADING_RAD] * heading
