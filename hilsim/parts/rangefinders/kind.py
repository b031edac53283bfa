"""What a rig's ``[[rangefinder]]`` is for the rest of hilsim; a rig without one imports nothing of this folder."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hilsim.config.part_kind import PartKind
from hilsim.config.rig import Rig, RigSpec
from hilsim.faults.catalogue import Place
from hilsim.parts.rangefinders.registry import AnyRangefinderSpec, rangefinder_names
from hilsim.parts.rangefinders.specs import RangefinderSpec

if TYPE_CHECKING:
    from hilsim.assembly.build import Scenery
    from hilsim.daemon.serial_devices.device import ConfiguredDevice


class RangefinderKind(PartKind[RangefinderSpec]):
    """Range sensors on serial ports of their own."""

    table: ClassVar[str] = "rangefinder"
    spec: ClassVar[Any] = AnyRangefinderSpec
    viewer: ClassVar[str] = "[[rangefinder]]"
    can_reload: ClassVar[bool] = True

    def rules(self, rig: RigSpec) -> Iterator[tuple[bool, str]]:
        """Check that a vehicle carries them, if there is one."""
        yield (
            not rig.part("vehicle") or rig.platform.kind == "vehicle",
            f'platform.kind must be "vehicle" where a vehicle carries the sensors, got "{rig.platform.kind}"',
        )

    def befallen(self, specs: Sequence[RangefinderSpec]) -> Iterator[tuple[Place, str]]:
        """Their ranges and their lines, by their names."""
        for name in rangefinder_names(specs):
            yield from ((Place.RANGE, name), (Place.LINE, name))

    def sees(self, spec: RangefinderSpec) -> bool:
        """Range sensors look at the scene."""
        return True

    def kernels(self, rig: Rig) -> Iterator[tuple[str, int]]:
        """Kernels that cast rays."""
        yield "rangefinders", 0

    def devices(self, rig: Rig, scenery: "Callable[[], Scenery]") -> "tuple[ConfiguredDevice, ...]":
        """Range sensors on their ports."""
        from hilsim.parts.rangefinders.device import configured_rangefinders  # noqa: PLC0415 - loads kernels

        return configured_rangefinders(rig, scenery)


KIND = RangefinderKind()
