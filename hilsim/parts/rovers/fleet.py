"""The rovers of a sending loop: their rows, counts, commands and errors, as arrays shared by the loop and the rest of the daemon."""

import math
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.atomics import load_acquire, store_release
from hilsim.compilation.jit import by_reference, kernel
from hilsim.parts.rovers.specs import RoverSpec
from hilsim.rng import normal_pair

_COMMAND_SLOTS = 1024
NO_CHANGE = -1
"""Value of an empty command: it consumes one cycle without effect."""


class RoverPurpose(IntEnum):
    """Purposes of rovers' random numbers, of those that ``rng.Purpose`` leaves to parts."""

    POSE = 70
    POINT = 71
    DRIFT = 72


class FleetWord(IntEnum):
    """Words that the loop shares with the rest of the daemon."""

    STOP = 0


class RoverCount(IntEnum):
    """Columns of each rover's counts and state."""

    CYCLE = 0
    """Number of the next or current cycle."""
    STAGE = 1
    """Next packet: 0 is the pose; then each chunk; then the telemetry."""
    BUTTONS = 2
    CYCLES = 3
    """Number of cycles whose packets were all put into the rings."""
    LATE = 4
    """Number of cycles skipped because they could not begin in time."""
    EMPTY = 5
    """Number of cycles skipped because there was no scan."""
    OBEYED = 6
    """Number of commands applied to the telemetry."""


class Row(IntEnum):
    """Columns of ``Fleet.row``."""

    POSE = 0
    LIDAR = 1
    TELEMETRY = 2


class CommandWord(IntEnum):
    """Columns of a rover's row of commands; the commands follow them."""

    TAKEN = 0
    PUT = 8
    FIRST = 16


class Drift(IntEnum):
    """Columns of ``Fleet.drift``: standard deviations, and the remaining ratio of an error after a cycle."""

    POSITION_M = 0
    HEIGHT_M = 1
    HEADING_RAD = 2
    KEPT = 3


class Error(IntEnum):
    """Columns of ``Fleet.error``: error of a rover's position estimate in the transmitted frame, and its cycle."""

    EAST_M = 0
    UP_M = 1
    SOUTH_M = 2
    HEADING_RAD = 3
    CYCLE = 4


@by_reference
class Fleet(NamedTuple):
    """Arrays of R rovers.

    Attributes:
        row: ``int64[R, 3]``, rows of their flows in the rings, columns by ``Row``.
        number: ``int64[R]``, numbers of the rovers.
        period_ns: ``int64[R]``, periods of their cycles.
        noise: ``float64[R, 3]``, noise of position, rotation and points.
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
    """Allocate rovers without rows or numbers; their first cycle is one period after rig time 0, so that no time stamp is 0."""
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
    """Assign a rover to a row."""
    fleet.number[row], fleet.period_ns[row] = rover.number, rover.period_ns
    noise = rover.added_noise
    fleet.noise[row] = noise.position_m, noise.rotation_deg, noise.point_m
    if rover.drift is not None:
        kept = math.exp(-rover.period_ns / (rover.drift.time_s * 1e9))
        fleet.drift[row] = rover.drift.position_m, rover.drift.height_m, math.radians(rover.drift.heading_deg), kept


@kernel
def put_command(fleet: Fleet, rover: int, buttons: int) -> bool:
    """Queue a command (0 to 255, or ``NO_CHANGE``); False when the queue is full."""
    put = fleet.command[rover, CommandWord.PUT]
    slots = fleet.command.shape[1] - CommandWord.FIRST
    if put - load_acquire(fleet.command, (rover, CommandWord.TAKEN)) >= slots:
        return False
    fleet.command[rover, CommandWord.FIRST + put % slots] = buttons
    store_release(fleet.command, (rover, CommandWord.PUT), put + 1)
    return True


@kernel
def take_command(fleet: Fleet, rover: int) -> None:
    """Apply the oldest queued command; one per cycle."""
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
    """Whether a rover's position estimate has an error."""
    drift = fleet.drift[rover]
    return bool(drift[Drift.POSITION_M] > 0.0 or drift[Drift.HEIGHT_M] > 0.0 or drift[Drift.HEADING_RAD] > 0.0)


@kernel
def drift_on(fleet: Fleet, rover: int, seed: np.uint64) -> None:
    """Advance a rover's error to its cycle: a first-order Gauss-Markov process, independent of skipped cycles."""
    drift, error, number = fleet.drift[rover], fleet.error[rover], fleet.number[rover]
    kept = drift[Drift.KEPT]
    while error[Error.CYCLE] < fleet.counters[rover, RoverCount.CYCLE]:
        error[Error.CYCLE] += 1.0
        cycle = int(error[Error.CYCLE])
        old, new = (kept, math.sqrt(1.0 - kept * kept)) if cycle > 1 else (0.0, 1.0)
        east, south = normal_pair(seed, number, 2 * cycle, RoverPurpose.DRIFT)
        up, heading = normal_pair(seed, number, 2 * cycle + 1, RoverPurpose.DRIFT)
        error[Error.EAST_M] = old * error[Error.EAST_M] + new * drift[Drift.POSITION_M] * east
        error[Error.SOUTH_M] = old * error[Error.SOUTH_M] + new * drift[Drift.POSITION_M] * south
        error[Error.UP_M] = old * error[Error.UP_M] + new * drift[Drift.HEIGHT_M] * up
        error[Error.HEADING_RAD] = old * error[Error.HEADING_RAD] + new * drift[Drift.HEADING_RAD] * heading
