"""Timed changes of the vehicle of a running rig."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from hilsim.config.rig import Rig
from hilsim.config.script import VehicleChange
from hilsim.daemon.parts import RigClock, RigContext
from hilsim.errors import ConfigError, TransmitError
from hilsim.faults.specs import FaultSpec
from hilsim.parts.vehicle.autopilot.breaking import VEHICLE, vehicle_faults
from hilsim.parts.vehicle.autopilot.change_table import Kind
from hilsim.parts.vehicle.flying import FlyingVehicle
from hilsim.parts.vehicle.platform import loop_changes, require_place
from hilsim.world.scene.world import World

_ANSWER_S = 5.0
_POLL_S = 0.0005
_MAX_CHANGES = 60


@dataclass(kw_only=True, eq=False)
class VehicleActor:
    """Makes timed changes of the vehicle.

    Attributes:
        context: The rig, and its scene.
        find: Function that returns the vehicle; None where it does not fly.
        has_changed: Whether a change was made since the rig was started or reloaded.
    """

    context: RigContext
    find: Callable[[], FlyingVehicle | None]
    has_changed: bool = False

    def see_later(self, from_ns: int, world: World) -> None:
        """Set the world that the vehicle can touch from a rig time on.

        Raises:
            TransmitError: the vehicle makes no step.
        """
        vehicle, until_s = self.find(), time.monotonic() + _ANSWER_S
        if vehicle is None:
            return
        self._await_room(vehicle, until_s)
        vehicle.table.add(Kind.WORLD, from_ns, world)
        self.has_changed = True

    def break_later(self, from_ns: int, faults: tuple[FaultSpec, ...]) -> dict[str, int] | None:
        """Let the vehicle have a rig's faults from a rig time on; returns the rig time of its step where that is later.

        Raises:
            TransmitError: the vehicle makes no step.
        """
        vehicle, until_s = self.find(), time.monotonic() + _ANSWER_S
        if vehicle is None:
            return None
        vehicle.line.set_faults(from_ns, faults)
        if vehicle_faults(faults) == vehicle.faults:
            return None
        self._await_room(vehicle, until_s)
        number = vehicle.break_later(from_ns, vehicle_faults(faults))
        return {VEHICLE: self._await_step(vehicle, number, until_s)}

    @staticmethod
    def _await_room(vehicle: FlyingVehicle, until_s: float) -> None:
        while vehicle.table.waiting >= _MAX_CHANGES:
            if time.monotonic() > until_s or not vehicle.alive:
                raise TransmitError(f"the vehicle must take changes within {_ANSWER_S:.0f} s, got {_MAX_CHANGES} that wait for its next step")
            time.sleep(_POLL_S)

    @staticmethod
    def _await_step(vehicle: FlyingVehicle, number: int, until_s: float) -> int:
        while (begun_ns := vehicle.table.begun_ns(number)) is None:
            if time.monotonic() > until_s or not vehicle.alive:
                raise TransmitError(f"the vehicle must take a change within {_ANSWER_S:.0f} s, got no step (its controller is not in command)")
            time.sleep(_POLL_S)
        return begun_ns

    def return_to_file(self, rig: Rig, clock: RigClock) -> None:
        """Let the wind, the world and the faults of a rig's file return, after a reload; the vehicle stays where it is."""
        vehicle = self.find()
        if vehicle is not None:
            self.break_later(clock.now_ns(), rig.spec.fault)
        if vehicle is not None and self.has_changed:
            now_ns = clock.now_ns()
            self.see_later(now_ns, self.context.scenery(self.context.rig).world)
            vehicle.table.add(Kind.WIND, now_ns, vehicle.loop_setup.context.wind)
            self.has_changed = False

    def check(self, change: VehicleChange) -> None:
        """Find out whether a change can be made.

        Raises:
            ConfigError: the change puts it under the ground.
        """
        vehicle = self.find()
        if vehicle is not None:
            require_place(vehicle.world, change.position_m)

    def make(self, change: VehicleChange, clock: RigClock) -> tuple[int, dict[str, int]]:
        """Make a change.

        Returns:
            Rig time of the change, and the rig time of the step at which it begins.

        Raises:
            ConfigError: the change puts it under the ground, or too many changes wait for the vehicle's next step.
            TransmitError: the vehicle makes no step.
        """
        self.check(change)
        vehicle = self.find()
        if vehicle is None:
            raise TransmitError("the vehicle must fly to be changed, got one that has ended")
        at_ns = clock.now_ns() if change.at_ns is None else change.at_ns
        if vehicle.table.waiting >= _MAX_CHANGES:
            raise ConfigError(f"at most {_MAX_CHANGES} changes may wait for the vehicle's next step, got one more")
        number, self.has_changed = -1, True
        for each in loop_changes(change, at_ns, vehicle.loop_setup.context.multirotor, seed=vehicle.seed):
            number = vehicle.table.add(each.kind, at_ns, each.value)
        begun_ns = self._await_step(vehicle, number, time.monotonic() + _ANSWER_S)
        if change.reset or change.position_m is not None:
            vehicle.autopilot.leapt = True
        return at_ns, {VEHICLE: begun_ns}
