"""Contacts of a vehicle other than resting on its legs, each with a start and an end; anything that stops or pushes the vehicle is reported.

A vehicle that scrapes along a wall touches and separates a thousand times a second: one contact lasts until there was no touch for ``PART_NS``.
"""

from enum import IntEnum, IntFlag
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.atomics import shared_words
from hilsim.compilation.jit import constant, kernel, stage_kernel
from hilsim.parts.vehicle.physics.multirotor import Multirotor, MultirotorState, broken_rotors

PART_NS = 500_000_000
HARD_LANDING_MPS = 3.0
"""Closing speed of a hard landing: more than twice the landing speed of autopilots (PX4's MPC_LAND_SPEED is 0.7 m/s), below a crash, and above a drop from 0.4 m."""


class Touching(IntFlag):
    """Kinds of contact."""

    OBSTACLE = 1
    """A surface steeper than ground touched the vehicle's collision sphere."""
    HULL = 2
    """A part other than a leg rests on a surface."""
    HARD_LANDING = 4
    """Legs touched the ground faster than ``HARD_LANDING_MPS``."""
    MOVING = 8
    """The touched surface is moving."""
    BLADES = 16
    """Blades of a vehicle without propeller guards struck the surface and broke."""


class TouchWord(IntEnum):
    """Columns of ``Touch.word``."""

    COUNT = 0
    """Number of contacts so far."""
    KINDS = 1
    """``Touching`` of the current contact, 0 without contact."""
    BEGAN_NS = 2
    """Rig time of the latest contact's start."""
    LAST_NS = 3
    """Rig time of the latest touch."""
    BROKEN = 4
    """Number of rotors whose blades are broken."""


class Touch(NamedTuple):
    """Contacts of a vehicle; written by the flight loop alone.

    Attributes:
        word: ``int64[n]``, columns by ``TouchWord``.
        closing_mps: ``float64[2]``, closing speeds of the latest contact: the largest, and the first. The largest may exceed the speed of the vehicle: when one leg has been
            stopped, the vehicle rotates about it, and the leg on the opposite side descends up to half as fast again as the vehicle fell.
    """

    word: npt.NDArray[np.int64]
    closing_mps: npt.NDArray[np.float64]


_OBSTACLE, _HULL, _HARD, _MOVING = constant(Touching.OBSTACLE), constant(Touching.HULL), constant(Touching.HARD_LANDING), constant(Touching.MOVING)
_BLADES = constant(Touching.BLADES)


def allocate_touch() -> Touch:
    """Allocate contacts, none yet."""
    return Touch(shared_words(TouchWord), np.zeros(2))


@kernel
def _moves(planes: npt.NDArray[np.float64], row: int) -> bool:
    return bool(planes[row, 4] != 0.0 or planes[row, 5] != 0.0 or planes[row, 6] != 0.0)


@stage_kernel
def note_touch(
    multirotor: Multirotor, state: MultirotorState, ground: npt.NDArray[np.float64], obstacles: npt.NDArray[np.float64], touch: Touch, rig_ns: int
) -> None:
    """Record the contacts of the last step.

    Args:
        multirotor: The vehicle.
        state: State after the step.
        ground: ``float64[p, PLANE_SIZE]``, planes of the ground in the step.
        obstacles: ``float64[k, PLANE_SIZE]``, planes of the obstacles in the step.
        touch: Contacts, updated.
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
    broken = broken_rotors(state)
    if broken > touch.word[TouchWord.BROKEN]:
        kinds |= _BLADES
    touch.word[TouchWord.BROKEN] = broken
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
