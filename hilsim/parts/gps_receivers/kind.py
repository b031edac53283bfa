"""What a rig's ``[[gps_receiver]]`` is for the rest of hilsim; a rig without one imports nothing of this folder."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from hilsim.config.part_kind import PartKind
from hilsim.config.rig import Rig
from hilsim.faults.catalogue import Place
from hilsim.parts.gps_receivers.specs import GpsReceiverSpec, receiver_names

if TYPE_CHECKING:
    from hilsim.assembly.build import Scenery
    from hilsim.daemon.serial_devices.device import ConfiguredDevice


class GpsReceiverKind(PartKind[GpsReceiverSpec]):
    """GPS receivers on serial ports of their own."""

    table: ClassVar[str] = "gps_receiver"
    spec: ClassVar[type[GpsReceiverSpec]] = GpsReceiverSpec
    can_join: ClassVar[bool] = True
    can_reload: ClassVar[bool] = True

    def befallen(self, specs: Sequence[GpsReceiverSpec]) -> Iterator[tuple[Place, str]]:
        """Their lines, by their names."""
        return ((Place.LINE, name) for name in receiver_names(specs))

    def kernels(self, rig: Rig) -> Iterator[tuple[str, int]]:
        """Kernels that write sentences."""
        yield "receivers", 0

    def devices(self, rig: Rig, scenery: "Callable[[], Scenery]") -> "tuple[ConfiguredDevice, ...]":
        """Receivers on their ports."""
        from hilsim.parts.gps_receivers.device import configured_receivers  # noqa: PLC0415 - loads kernels

        return configured_receivers(rig, scenery)


KIND = GpsReceiverKind()
