"""What a vehicle touches beyond standing on its legs, as contacts with a beginning and an end; whatever stops or pushes it is reported.

A vehicle that scrapes along a wall touches it and does not, a thousand times a second: one contact goes on until nothing has touched for ``PART_NS``.
"""

from enum import IntEnum, IntFlag
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.atomics import shared_words
from hilsim.compilation.jit import constant, kernel, stage_kernel
from hilsim.vehicle.multirotor import Multirotor, MultirotorState

PART_NS = 500_000_000
HARD_LANDING_MPS = 3.0
"""Twice and more the speed that autopilots land with (PX4's MPC_LAND_SPEED is 0.7 m/s), below what breaks a vehicle, and above a drop from 0.4 m."""


class Touching(IntFlag):
    """What touches."""

    OBSTACLE = 1
    """Something steeper than ground met the sphere that holds the vehicle."""
    HULL = 2
    """A part that is no leg lies on something."""
    HARD_LANDING = 4
    """Legs met the ground faster than ``HARD_LANDING_MPS``."""
    MOVING = 8
    """What it touches moves itself."""


class TouchWord(IntEnum):
    """Columns of ``Touch.word``."""

    COUNT = 0
    """Contacts that have begun so far."""
    KINDS = 1
    """``Touching`` of the contact that goes on, 0 while nothing touches."""
    BEGAN_NS = 2
    """Rig time at which the latest began."""
    LAST_NS = 3
    """Rig time at which something touched last."""


class Touch(NamedTuple):
    """Contacts of a vehicle; written by the flight loop alone.

    Attributes:
        word: ``int64[n]``, columns by ``TouchWord``.
        closing_mps: ``float64[2]``, closing speeds of the latest contact: the fastest, and the one that it began with. The fastest may be above the speed of the vehicle: when one leg has been
            stopped, the vehicle turns about it, and the leg on the other side comes down by up to half as fast again as it fell.
    """

    word: npt.NDArray[np.int64]
    closing_mps: npt.NDArray[np.float64]


_OBSTACLE, _HULL, _HARD, _MOVING = constant(Touching.OBSTACLE), constant(Touching.HULL), constant(Touching.HARD_LANDING), constant(Touching.MOVING)


def allocate_touch() -> Touch:
    """Nothing has touched yet."""
    return Touch(shared_words(TouchWord), np.zeros(2))


@kernel
def _moves(planes: npt.NDArray[np.float64], row: int) -> bool:
    return bool(planes[row, 4] != 0.0 or planes[row, 5] != 0.0 or planes[row, 6] != 0.0)


@stage_kernel
def note_touch(
    multirotor: Multirotor, state: MultirotorState, ground: npt.NDArray[np.float64], obstacles: npt.NDArray[np.float64], touch: Touch, rig_ns: int
) -> None:
    """Look at what the last step touched.

    Args:
        multirotor: The vehicle.
        state: After the step.
        ground: ``float64[p, PLANE_SIZE]``, as the step had it.
        obstacles: ``float64[k, PLANE_SIZE]``.
        touch: Changed.
        rig_ns: Rig time of the step.
    """
    kinds = 0
    points = multirotor.point.shape[0]
    for number in range(state.impulse_ns.shape[0]):
        if state.impulse_ns[number, 0] == 0.0 and state.impulse_ns[number, 1] == 0.0 and state.impulse_ns[number, 2] == 0.0:
            continue
        if number >= points:
            kinds |= _OBSTACLE | (_MOVING if _moves(obstacles, number - points) else 0)
        elif number >= multirotor.legs:
            kinds |= _HULL | (_MOVING if _moves(ground, number) else 0)
    closing_mps = state.closing_mps[1]
    if state.closing_mps[0] > HARD_LANDING_MPS:
        kinds |= _HARD
    if kinds != 0:
        closing_mps = max(closing_mps, state.closing_mps[0])
        if touch.word[TouchWord.KINDS] == 0:
            touch.closing_mps[0] = 0.0
            touch.closing_mps[1] = closing_mps
            touch.word[TouchWord.BEGAN_NS] = rig_ns
            touch.word[TouchWord.COUNT] += 1
        touch.closing_mps[0] = max(touch.closing_mps[0], closing_mps)
        touch.word[TouchWord.KINDS] |= kinds
        touch.word[TouchWord.LAST_NS] = rig_ns
    elif touch.word[TouchWord.KINDS] != 0 and rig_ns - touch.word[TouchWord.LAST_NS] > PART_NS:
        touch.word[TouchWord.KINDS] = 0
