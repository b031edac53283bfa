"""A vehicle's range sensors: messages made of its lidars' scans, and sensors on serial ports of their own; started and stopped as one."""

from dataclasses import dataclass, field

from hilsim.autopilot.obstacle_map import Lookout
from hilsim.autopilot.specs import VehicleRigSpec
from hilsim.daemon.flight.obstacle_sender import ScanMessages
from hilsim.daemon.flight.vehicle import Aircraft
from hilsim.daemon.serial_devices.port import RangerPort
from hilsim.emulator.setting import LidarSetting
from hilsim.rangefinders.registry import ranger_names
from hilsim.scene.world import World
from hilsim.telemetry.faults import Fault
from hilsim.telemetry.readings import RangerReading
from hilsim.transmit.packet_queue import Tape
from hilsim.vehicle.live import LivePose


@dataclass(kw_only=True, eq=False)
class Rangefinders:
    """Range sensors of a vehicle.

    Attributes:
        spec: What the rig says of the vehicle.
        seed: Of the rig.
        world: What they see.
        live: Where the vehicle is.
        observations: Where frames for the controller go.
    """

    spec: VehicleRigSpec
    seed: int
    world: World
    live: LivePose
    observations: Tape
    _messages: ScanMessages = field(init=False)
    _ports: tuple[RangerPort, ...] = field(init=False)

    def __post_init__(self) -> None:
        self._messages = ScanMessages(spec=self.spec, observations=self.observations)
        self._ports = tuple(
            RangerPort(name=name, spec=spec, seed=self.seed, stream=number, world=self.world, live=self.live)
            for number, (name, spec) in enumerate(zip(ranger_names(self.spec.ranger), self.spec.ranger, strict=True))
        )

    def lookout(self, setting: LidarSetting) -> Lookout:
        """What a lidar that is about to stream is to be told of; of no effect where nothing is wanted of it."""
        return self._messages.lookout(setting)

    def warm(self) -> None:
        """Load or compile every kernel, when all lidars have their lookouts."""
        self._messages.warm()
        for port in self._ports:
            port.warm()

    def start(self, *, epoch_ns: int) -> None:
        """Begin; rig time 0 is CLOCK_MONOTONIC ``epoch_ns``."""
        self._messages.start()
        for port in self._ports:
            port.start(epoch_ns=epoch_ns)

    def stop(self) -> None:
        """End every thread and close every port."""
        self._messages.stop()
        for port in self._ports:
            port.stop()

    def readings(self) -> tuple[RangerReading, ...]:
        """What a scrape shows."""
        return tuple(port.reading() for port in self._ports)

    def faults(self) -> tuple[Fault, ...]:
        """Threads that should run and do not."""
        ended = [Fault(key="ranger_ended", subject=port.name, text="the range sensor's thread has ended") for port in self._ports if not port.alive]
        if self._messages.has_ended:
            ended.append(Fault(key="observer_ended", text="the thread that tells the controller of obstacles has ended"))
        return tuple(ended)


def build_rangefinders(aircraft: Aircraft | None) -> Rangefinders | None:
    """Range sensors of what flies."""
    if aircraft is None:
        return None
    return Rangefinders(
        spec=aircraft.spec, seed=aircraft.seed, world=aircraft.world, live=aircraft.live, observations=aircraft.outfit.watch.observations
    )
