"""Interface of a device on a serial port: a range sensor, a GPS receiver, an IMU."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from hilsim.assembly.build import Scenery
from hilsim.faults.specs import FaultSpec
from hilsim.transmit.links.line import SerialSpec
from hilsim.transmit.links.timed_bytes import TimedBytes
from hilsim.world.scene.world import World


class SerialDevice(Protocol):
    """A device on a serial port. It uses no clock and no port itself: rig times are arguments.

    All methods but ``see`` and ``see_later`` are called by one thread.
    """

    def see(self, scenery: Scenery) -> None:
        """Set the scene and platform of the device; any thread may call it."""
        ...

    def see_later(self, from_ns: int, world: World) -> None:
        """Set the world that the device sees from a rig time on, after a timed change; any thread may call it."""
        ...

    def warm(self) -> None:
        """Load or compile every kernel that frames need."""
        ...

    def begin(self, utc_epoch_ns: int) -> None:
        """Set the UTC of rig time 0, at the start."""
        ...

    def receive(self, data: bytes, time_ns: int) -> list[bytes]:
        """Process received bytes; returns the answers, one whole frame each, due at once."""
        ...

    def next_ns(self, from_ns: int) -> int:
        """Time of the next frame at or after a time, as if the device were sending."""
        ...

    def frames(self, from_ns: int, until_ns: int) -> list[TimedBytes]:
        """Make the frames due in ``[from_ns, until_ns)``, in order. Calls follow the order of time, and alternate with ``receive``."""
        ...

    def skip(self, from_ns: int, until_ns: int) -> int:
        """Skip the frames due in a stretch of time; returns their number."""
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class ConfiguredDevice:
    """A device with its settings in the rig.

    Attributes:
        name: Name for logs and metrics, unique in a rig.
        serial: Settings of the port.
        identity: Table of the device in the rig; a reload does not change a device of the same name and identity.
        device: Emulated device.
        break_later: Gives the device the rig's faults from a rig time on; None: only its line can break.
    """

    name: str
    serial: SerialSpec
    identity: object
    device: SerialDevice
    break_later: Callable[[int, tuple[FaultSpec, ...]], None] | None = None
