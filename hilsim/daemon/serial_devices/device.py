"""What a device on a serial port of its own is, whatever it measures: a range sensor, a GPS receiver, an IMU."""

from dataclasses import dataclass
from typing import Protocol

from hilsim.assembly.build import Scenery
from hilsim.links.line import SerialSpec
from hilsim.links.timed_bytes import TimedBytes


class SerialDevice(Protocol):
    """A device behind a serial port. It knows no clock and no port: times are rig times, and they are arguments.

    One thread calls all of it but ``see``.
    """

    def see(self, scenery: Scenery) -> None:
        """From now on be in this scene, on its platform; any thread may call it."""
        ...

    def warm(self) -> None:
        """Load or compile every kernel that frames need."""
        ...

    def begin(self, utc_epoch_ns: int) -> None:
        """Rig time begins: its 0 is this instant of UTC."""
        ...

    def receive(self, data: bytes, time_ns: int) -> list[bytes]:
        """Take bytes that arrived; returns the answers, one whole frame each, due at once."""
        ...

    def next_ns(self, from_ns: int) -> int:
        """When the next frame at or after a time is due, if the device were to send."""
        ...

    def frames(self, from_ns: int, until_ns: int) -> list[TimedBytes]:
        """Every frame due from ``from_ns`` up to but not including ``until_ns``, in order. Stretches are asked for in order, between what is received."""
        ...

    def skip(self, from_ns: int, until_ns: int) -> int:
        """Leave out what is due in a stretch, as ``frames`` without the work; returns how many frames."""
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class ConfiguredDevice:
    """A device as the rig has it.

    Attributes:
        name: For logs and metrics; no two of a rig are the same.
        serial: Its port.
        identity: Its table in the rig: a reload does not touch a device of the same name and identity.
        device: The device.
    """

    name: str
    serial: SerialSpec
    identity: object
    device: SerialDevice
