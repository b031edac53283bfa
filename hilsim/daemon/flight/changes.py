"""Timed changes of the vehicle of a running rig."""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hilsim.assembly.changed import check_unseen
from hilsim.config.script import VehicleChange
from hilsim.daemon.parts import RigContext
from hilsim.errors import ConfigError, TransmitError

if TYPE_CHECKING:
    from collections.abc import Callable

    from hilsim.daemon.flight.vehicle import FlyingVehicle
    from hilsim.world.scene.world import World

_ANSWER_S = 5.0
_POLL_S = 0.0005
_MAX_CHANGES = 60


@dataclass(kw_only=True, eq=False)
class VehicleActor:
    """Makes timed changes of the vehicle.

    Attributes:
        context: Context of the rig.
        find: Function that returns the vehicle; None without one.
        has_changed: Whether a change was made since the rig was started or reloaded.
    """

    context: RigContext
    find: "Callable[[], FlyingVehicle | None]"
    has_changed: bool = False

    @property
    def is_running(self) -> bool:
        """Whether the vehicle flies, if the rig has one."""
        vehicle = self.find()
        return vehicle.alive if vehicle is not None else self.context.rig.spec.vehicle is None

    def see_later(self, from_ns: int, world: "World") -> None:
        """Set the world that the vehicle can touch from a rig time on.

        Raises:
            TransmitError: the vehicle makes no step.
        """
        from hilsim.fly.autopilot.changes.table import Kind  # noqa: PLC0415 - most rigs have no vehicle

        vehicle, until_s = self.find(), time.monotonic() + _ANSWER_S
        if vehicle is None:
            return
        while vehicle.table.waiting >= _MAX_CHANGES:
            if time.monotonic() > until_s or not vehicle.alive:
                raise TransmitError(f"the vehicle must take changes within {_ANSWER_S:.0f} s, got {_MAX_CHANGES} that wait for its next step")
            time.sleep(_POLL_S)
        vehicle.table.add(Kind.WORLD, from_ns, world)
        self.has_changed = True

    def return_to_file(self) -> None:
        """Let the wind and the world of the rig's file return, after a reload; the vehicle stays where it is."""
        from hilsim.fly.autopilot.changes.table import Kind  # noqa: PLC0415 - most rigs have no vehicle

        vehicle = self.find()
        if vehicle is not None and self.has_changed:
            now_ns = time.monotonic_ns() - self.context.clock.epoch_ns
            self.see_later(now_ns, self.context.scenery(self.context.rig).world)
            vehicle.table.add(Kind.WIND, now_ns, vehicle.loop_setup.context.wind)
            self.has_changed = False

    def check(self, change: VehicleChange) -> None:
        """Find out whether a change can be made.

        Raises:
            ConfigError: the rig has no vehicle, or the change puts it under the ground.
        """
        from hilsim.assembly.vehicle_changes import require_place  # noqa: PLC0415 - most rigs have no vehicle

        check_unseen(self.context.rig, change)
        vehicle = self.find()
        if vehicle is not None:
            require_place(vehicle.world, change.position_m)

    def make(self, change: VehicleChange, now_ns: int) -> tuple[int, dict[str, int]]:
        """Make a change; ``now_ns`` is the rig time now.

        Returns:
            Rig time of the change, and the rig time of the step at which it begins.

        Raises:
            ConfigError: the rig has no vehicle, the change puts it under the ground, or too many changes wait for the vehicle's next step.
            TransmitError: the vehicle makes no step.
        """
        from hilsim.assembly.vehicle_changes import VEHICLE, loop_changes  # noqa: PLC0415 - most rigs have no vehicle

        self.check(change)
        vehicle = self.find()
        if vehicle is None:
            raise TransmitError("the vehicle must fly to be changed, got one that has ended")
        at_ns = now_ns if change.at_ns is None else change.at_ns
        if vehicle.table.waiting >= _MAX_CHANGES:
            raise ConfigError(f"at most {_MAX_CHANGES} changes may wait for the vehicle's next step, got one more")
        number, self.has_changed = -1, True
        for each in loop_changes(change, at_ns, vehicle.loop_setup.context.multirotor, seed=vehicle.seed):
            number = vehicle.table.add(each.kind, at_ns, each.value)
        until_s = time.monotonic() + _ANSWER_S
        while (begun_ns := vehicle.table.begun_ns(number)) is None:
            if time.monotonic() > until_s or not vehicle.alive:
                raise TransmitError(f"the vehicle must take a change within {_ANSWER_S:.0f} s, got no step (its controller is not in command)")
            time.sleep(_POLL_S)
        if change.reset or change.position_m is not None:
            vehicle.autopilot.leapt = True
        return at_ns, {VEHICLE: begun_ns}
