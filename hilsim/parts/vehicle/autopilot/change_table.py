"""Timed changes of a vehicle: its wind, its pose, its return to the start, the world that it can touch and its faults, which the flight loop takes from a table at the step of their time."""

from collections import deque
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.atomics import load_acquire, publish, shared_words, store_release
from hilsim.compilation.jit import by_reference, constant, kernel
from hilsim.compilation.pins import Pin, tuple_at
from hilsim.faults.table import FaultTable
from hilsim.parts.vehicle.physics.aerodynamics import MOTION_SIZE
from hilsim.parts.vehicle.physics.hold import HoldState
from hilsim.parts.vehicle.physics.multirotor import MultirotorState
from hilsim.world.geometry.frames import Vector
from hilsim.world.platforms.wind import Wind, WindState, begin_gusts, wind_at
from hilsim.world.scene.world import World

CAPACITY = 64
"""Changes that have been added and have not begun, at most; a power of two."""
_MASK, _ONE = constant(CAPACITY - 1), constant(1)


class Kind(IntEnum):
    """Kinds of changes."""

    WIND = 0
    PLACE = 1
    """Another pose, at rest."""
    RESET = 2
    """The state of the start: its pose at rest, with rotors that stand still, undamaged."""
    WORLD = 3
    """Another world of surfaces that it can touch."""
    FAULTS = 4
    """Other faults of its sensors and motors."""


class Effect(IntEnum):
    """Consequence of changes for the flight loop; a larger value includes the smaller ones."""

    NONE = 0
    LOOK = 1
    """Search again for what the vehicle can touch."""
    LEAP = 2
    """Let the published pose leap."""


_PLACE, _RESET, _WORLD_KIND, _FAULTS_KIND = constant(Kind.PLACE), constant(Kind.RESET), constant(Kind.WORLD), constant(Kind.FAULTS)
_NONE, _LOOK, _LEAP = constant(Effect.NONE), constant(Effect.LOOK), constant(Effect.LEAP)


class ChangeWord(IntEnum):
    """Elements of ``VehicleChanges.words``."""

    ADDED = 0
    """Number of added changes; written by Python."""
    BEGUN = 8
    """Number of changes that have begun; written by the loop."""
    WIND = 9
    """Address of the present ``Wind``; 0: the rig's. Written by the loop."""
    WORLD = 10
    """Address of the present ``World``; 0: the rig's. Written by the loop."""
    FAULTS = 11
    """Address of the present ``FaultTable``; 0: there are no faults. Written by the loop."""


WORLD, FAULTS = constant(ChangeWord.WORLD), constant(ChangeWord.FAULTS)
_BEGUN, _WIND = constant(ChangeWord.BEGUN), constant(ChangeWord.WIND)


@by_reference
class VehicleChanges(NamedTuple):
    """Changes of a vehicle; change ``k`` is in row ``k % CAPACITY``.

    Attributes:
        words: ``int64[n]``, columns by ``ChangeWord``.
        at_ns: ``int64[CAPACITY]``, rig time for which the change was requested.
        kind: ``int64[CAPACITY]``, a ``Kind``.
        address: ``int64[CAPACITY]``, address of a ``Wind``, a ``World`` or a ``FaultTable``.
        motion: ``float64[CAPACITY, 13]``, motion of another pose.
        begun_ns: ``int64[CAPACITY]``, output: rig time of the step at which it begins.
    """

    words: npt.NDArray[np.int64]
    at_ns: npt.NDArray[np.int64]
    kind: npt.NDArray[np.int64]
    address: npt.NDArray[np.int64]
    motion: npt.NDArray[np.float64]
    begun_ns: npt.NDArray[np.int64]


def allocate_changes() -> VehicleChanges:
    """Allocate an empty table."""
    at_ns, kind, address, begun_ns = (np.zeros(CAPACITY, np.int64) for _ in range(4))
    return VehicleChanges(shared_words(ChangeWord), at_ns, kind, address, np.zeros((CAPACITY, MOTION_SIZE)), begun_ns)


@kernel
def wind_now(changes: VehicleChanges, first: Wind, state: WindState, time_ns: int) -> Vector:
    """Velocity of the air in the world; ``first`` is the rig's wind."""
    address = changes.words[_WIND]
    if address == 0:
        return wind_at(first, state, time_ns)
    return wind_at(tuple_at(address, first), state, time_ns)


@kernel
def restore(state: MultirotorState, start: npt.NDArray[np.float64], command: npt.NDArray[np.float64]) -> None:
    """Put a vehicle into the state of its start, at rest."""
    state.motion[:] = start
    state.rotor_radps[:] = 0.0
    state.impulse_ns[:] = 0.0
    state.crashed[0] = 0
    state.broken[:] = 0
    command[:] = 0.0


@kernel
def begin_changes(
    changes: VehicleChanges,
    first: Wind,
    state: MultirotorState,
    start: npt.NDArray[np.float64],
    wind_state: WindState,
    hold_state: HoldState,
    command: npt.NDArray[np.float64],
    rig_ns: int,
) -> int:
    """Make the changes whose time has come with the step of ``rig_ns``; returns their ``Effect``.

    Args:
        changes: Table.
        first: Wind of the rig.
        state: State of the vehicle.
        start: ``float64[13]``, motion at the start.
        wind_state: State of the gusts.
        hold_state: State of the position hold.
        command: ``float64[n]``, rotor commands.
        rig_ns: Rig time of the step.
    """
    words, effect = changes.words, _NONE
    added = load_acquire(words, (0,))
    while words[_BEGUN] < added:
        row = words[_BEGUN] & _MASK
        if changes.at_ns[row] > rig_ns:
            break
        if changes.kind[row] == _RESET:
            restore(state, start, command)
            hold_state.learned_mps2[:] = 0.0
            effect = _LEAP
        elif changes.kind[row] == _PLACE:
            state.motion[:] = changes.motion[row]
            state.impulse_ns[:] = 0.0
            effect = _LEAP
        elif changes.kind[row] == _WORLD_KIND:
            words[WORLD] = changes.address[row]
            effect = max(effect, _LOOK)
        elif changes.kind[row] == _FAULTS_KIND:
            words[FAULTS] = changes.address[row]
        else:
            words[_WIND] = changes.address[row]
            begin_gusts(tuple_at(changes.address[row], first), wind_state, state.time_ns[0])
        changes.begun_ns[row] = rig_ns
        store_release(words, (_BEGUN,), words[_BEGUN] + _ONE)
    return int(effect)


class ChangeTable:
    """Changes of a vehicle, as Python adds them.

    Attributes:
        changes: For kernels.
    """

    def __init__(self, changes: VehicleChanges) -> None:
        """Add to ``changes``, which no other object may do."""
        self.changes = changes
        self._pins: dict[Kind, deque[tuple[int, Pin]]] = {Kind.WIND: deque(), Kind.WORLD: deque(), Kind.FAULTS: deque()}

    def add(self, kind: Kind, at_ns: int, value: Wind | World | FaultTable | npt.NDArray[np.float64] | None = None) -> int:
        """Let a change begin at a rig time, behind all others; returns its number.

        Args:
            kind: Kind of the change.
            at_ns: Rig time.
            value: The wind; the motion ``float64[13]`` of another pose; the world; the faults; None for a reset.

        Raises:
            ValueError: too many changes wait.
        """
        changes, number = self.changes, int(self.changes.words[ChangeWord.ADDED])
        if self.waiting >= CAPACITY:
            raise ValueError(f"at most {CAPACITY} changes of a vehicle may wait, got one more")
        row = number % CAPACITY
        if kind in self._pins:
            pin = Pin(value)
            self._pins[kind].append((number, pin))
            changes.address[row] = pin.address
        elif kind is Kind.PLACE:
            changes.motion[row] = value
        changes.at_ns[row], changes.kind[row] = at_ns, kind
        publish(changes.words, int(ChangeWord.ADDED), number + 1)
        self._release_passed()
        return number

    @property
    def waiting(self) -> int:
        """Number of changes that have been added and have not begun."""
        return int(self.changes.words[ChangeWord.ADDED] - self.changes.words[ChangeWord.BEGUN])

    def begun_ns(self, number: int) -> int | None:
        """Rig time at which a change has begun; None until then."""
        return int(self.changes.begun_ns[number % CAPACITY]) if self.changes.words[ChangeWord.BEGUN] > number else None

    def _release_passed(self) -> None:
        """Release the winds, worlds and faults before the present ones."""
        for pins in self._pins.values():
            while len(pins) > 1 and pins[1][0] < self.changes.words[ChangeWord.BEGUN]:
                pins.popleft()[1].release()
