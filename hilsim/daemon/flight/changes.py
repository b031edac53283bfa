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

_ANSWER_S = 5.0
_POLL_S = 0.0005
_MOST_CHANGES = 60


@dataclass(kw_only=True, eq=False)
class VehicleActor:
    """Makes timed changes of the vehicle.

    Attributes:
        context: Context of the rig.
        find: Function that returns the vehicle; None without one.
    """

    context: RigContext
    find: "Callable[[], FlyingVehicle | None]"

    @property
    def is_running(self) -> bool:
        """Whether the vehicle flies, if the rig has one."""
        vehicle = self.find()
        return vehicle.alive if vehicle is not None else self.context.rig.spec.vehicle is None

    def check(self, change: VehicleChange) -> None:
        """Find out whether a change can be made.

        Raises:
            ConfigError: the rig has no vehicle.
        """
        check_unseen(self.context.rig, change)

    def make(self, change: VehicleChange, now_ns: int) -> tuple[int, dict[str, int]]:
        """Make a change; ``now_ns`` is the rig time now.

        Returns:
            Rig time of the change, and the rig time of the step at which it begins.

        Raises:
            ConfigError: the rig has no vehicle, or too many changes wait for the vehicle's next step.
            TransmitError: the vehicle makes no step.
        """
        from hilsim.assembly.vehicle_changes import VEHICLE, loop_changes  # noqa: PLC0415 - most rigs have no vehicle

        self.check(change)
        vehicle = self.find()
        if vehicle is None:
            raise TransmitError("the vehicle must fly to be changed, got one that has ended")
        at_ns = now_ns if change.at_ns is None else change.at_ns
        if vehicle.table.waiting >= _MOST_CHANGES:
            raise ConfigError(f"at most {_MOST_CHANGES} changes may wait for the vehicle's next step, got one more")
        number = -1
        for each in loop_changes(change, at_ns, vehicle.loop_setup.context.multirotor, seed=vehicle.seed):
            number = vehicle.table.add(each.kind, at_ns, wind=each.wind, motion=each.motion)
        until_s = time.monotonic() + _ANSWER_S
        while (begun_ns := vehicle.table.begun_ns(number)) is None:
            if time.monotonic() > until_s or not vehicle.alive:
                raise TransmitError(f"the vehicle must take a change within {_ANSWER_S:.0f} s, got no step (its controller is not in command)")
            time.sleep(_POLL_S)
        return at_ns, {VEHICLE: begun_ns}
