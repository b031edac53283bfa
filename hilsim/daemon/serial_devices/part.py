"""The serial devices of a rig as a part, started, changed and stopped together."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from hilsim.assembly.build import Scenery
from hilsim.config.part_kind import parts_of
from hilsim.config.rig import Rig
from hilsim.daemon.parts import Breaker, Change, Part, RigClock, RigContext, Viewer
from hilsim.daemon.serial_devices.device import ConfiguredDevice
from hilsim.daemon.serial_devices.port import SerialDevicePort
from hilsim.faults.specs import FaultSpec
from hilsim.telemetry.faults import Fault
from hilsim.telemetry.readings import Reading
from hilsim.world.scene.world import World


class SerialDevices(Part):
    """The serial devices of a rig."""

    def __init__(self, context: RigContext) -> None:
        super().__init__(context)
        self.ports: dict[str, SerialDevicePort] = {}

    def prepare(self) -> None:
        """Make the devices, without opening their ports."""
        self.ports = {configured.name: _port(configured, self.context.rig) for configured in self._configured(self.context.rig)}

    @property
    def viewer(self) -> Viewer | None:
        """Function that shows all devices another world."""
        return self._see_later if self.ports else None

    @property
    def breaker(self) -> Breaker | None:
        """Function that gives all devices other faults."""
        return self._break_later if self.ports else None

    def _see_later(self, from_ns: int, world: World) -> None:
        for port in dict(self.ports).values():
            port.configured.device.see_later(from_ns, world)

    def _break_later(self, from_ns: int, faults: tuple[FaultSpec, ...]) -> None:
        for port in dict(self.ports).values():
            port.break_later(from_ns, faults)

    def _configured(self, rig: Rig) -> tuple[ConfiguredDevice, ...]:
        return tuple(configured for kind, _ in parts_of(rig.spec) for configured in kind.devices(rig, lambda: self.context.scenery(rig)))

    def warm(self) -> None:
        """Load or compile the kernels that make frames."""
        for port in self.ports.values():
            port.configured.device.warm()
            if self.context.can_change or self.context.rig.spec.fault:
                port.line.warm()

    def rehearse(self) -> None:
        """Load or compile the kernels that make frames."""
        self.warm()

    def start(self, clock: RigClock) -> None:
        """Start; each device waits for its own port."""
        for port in self.ports.values():
            port.start(epoch_ns=clock.epoch_ns, utc_epoch_ns=clock.utc_epoch_ns)

    def change(self, rig: Rig) -> "SerialChange":
        """Prepare another rig's devices. A device that does not change keeps its port and its driver's settings, also in another scene."""
        requested = {configured.name: configured for configured in self._configured(rig)}
        kept = frozenset(name for name, port in self.ports.items() if name in requested and requested[name].identity == port.configured.identity)
        for name, configured in requested.items():
            if name not in kept:
                configured.device.warm()
        scenery = self.context.scenery(rig) if kept else None
        return SerialChange(devices=self, rig=rig, requested=requested, kept=kept, scenery=scenery)

    def become(self, change: "SerialChange", clock: RigClock) -> tuple[str, ...]:
        """Close the ports that are not kept, then open the new ones, because a new device may use a former one's port."""
        done = [f"{name}: unchanged" for name in self.ports if name in change.kept]
        for name in [name for name in self.ports if name not in change.kept]:
            self.ports.pop(name).stop()
            done += [] if name in change.requested else [f"{name}: removed"]
        for port in self.ports.values():
            if change.scenery is not None:
                port.configured.device.see(change.scenery)
        self._break_later(clock.now_ns(), change.rig.spec.fault)
        begun = {name: _port(configured, change.rig) for name, configured in change.requested.items() if name not in change.kept}
        for port in begun.values():
            port.start(epoch_ns=clock.epoch_ns, utc_epoch_ns=clock.utc_epoch_ns)
        self.ports = {name: {**self.ports, **begun}[name] for name in change.requested}
        return (*done, *(f"{name}: started" for name in begun))

    def stop(self) -> None:
        """End every thread and close every port."""
        for port in self.ports.values():
            port.stop()
        self.ports = {}

    @property
    def summary(self) -> str:
        """Text with the number of devices, empty for none."""
        return f"{len(self.ports)} serial device(s)" if self.ports else ""

    def lines(self) -> Iterator[tuple[str, str]]:
        """Port and baud rate of each device."""
        for device in self.ports.values():
            yield device.name, f"{device.configured.serial.port} at {device.configured.serial.baud} baud"

    def add_reading(self, reading: Reading, now_ns: int) -> Reading:
        """Add the values of every device."""
        del now_ns
        return replace(reading, serial_devices=tuple(port.reading() for port in dict(self.ports).values()))

    def faults(self, now_ns: int) -> tuple[Fault, ...]:
        """Faults of threads that have ended."""
        del now_ns
        ended = [port for port in dict(self.ports).values() if not port.alive]
        return tuple(Fault(key="serial_device_ended", subject=port.name, text="the device's thread has ended") for port in ended)


def _port(configured: ConfiguredDevice, rig: Rig) -> SerialDevicePort:
    port = SerialDevicePort(configured=configured, seed=rig.spec.seed)
    port.break_later(0, rig.spec.fault)
    return port


@dataclass(frozen=True, kw_only=True, eq=False)
class SerialChange(Change):
    """Prepared change to the serial devices of another rig.

    Attributes:
        devices: Serial devices that change.
        rig: The new rig.
        requested: All devices of the new rig, by name.
        kept: Names of the devices that continue.
        scenery: New scene of the devices that continue.
    """

    devices: SerialDevices
    rig: Rig
    requested: dict[str, ConfiguredDevice]
    kept: frozenset[str]
    scenery: Scenery | None

    def make(self, clock: RigClock) -> tuple[str, ...]:
        """Stop some devices and start others."""
        return self.devices.become(self, clock)
