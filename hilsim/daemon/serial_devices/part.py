"""Devices on serial ports of their own as a part: started and stopped as one."""

from dataclasses import replace

from hilsim.daemon.parts import Part, RigContext
from hilsim.daemon.serial_devices.port import RangerPort
from hilsim.rangefinders.registry import ranger_names
from hilsim.telemetry.faults import Fault
from hilsim.telemetry.readings import Reading


class SerialDevices(Part):
    """Every device of a rig that has a serial port of its own."""

    def __init__(self, context: RigContext) -> None:
        super().__init__(context)
        self._ports: tuple[RangerPort, ...] = ()

    def prepare(self) -> None:
        """Make the devices; none has its port yet."""
        rig = self.context.rig
        if rig.spec.vehicle is None or not rig.spec.vehicle.ranger:
            return
        scenery, specs = self.context.scenery(rig), rig.spec.vehicle.ranger
        if scenery.live is None:
            raise AssertionError("a vehicle that is flown has poses")
        self._ports = tuple(
            RangerPort(name=name, spec=spec, seed=rig.spec.seed, stream=number, world=scenery.world, live=scenery.live)
            for number, (name, spec) in enumerate(zip(ranger_names(specs), specs, strict=True))
        )

    def warm(self) -> None:
        """Load or compile what casts their rays."""
        for port in self._ports:
            port.warm()

    def rehearse(self, *, stages: bool) -> None:
        """The same, without a port."""
        if not stages:
            self.warm()

    def start(self) -> None:
        """Begin; each device waits for its port by itself."""
        for port in self._ports:
            port.start(epoch_ns=self.context.clock.epoch_ns)

    def stop(self) -> None:
        """End every thread and close every port."""
        for port in self._ports:
            port.stop()
        self._ports = ()

    def add_reading(self, reading: Reading, now_ns: int) -> Reading:
        """Every device."""
        del now_ns
        return replace(reading, rangers=tuple(port.reading() for port in self._ports))

    def faults(self, now_ns: int) -> tuple[Fault, ...]:
        """Threads that should run and do not."""
        del now_ns
        return tuple(
            Fault(key="ranger_ended", subject=port.name, text="the range sensor's thread has ended") for port in self._ports if not port.alive
        )
