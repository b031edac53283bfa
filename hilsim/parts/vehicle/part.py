"""The vehicle of a rig as a part: the flight loop, its link, and the messages made from its lidars' scans."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace

from hilsim.assembly.build import asset_signature
from hilsim.config.rig import Rig
from hilsim.daemon.parts import Actor, Breaker, Change, Changes, Part, RigClock, RigContext, Viewer
from hilsim.emulator.setting import LidarSetting
from hilsim.errors import ConfigError
from hilsim.faults.catalogue import Place
from hilsim.parts.vehicle.actor import VehicleActor
from hilsim.parts.vehicle.flying import FlyingVehicle, build_vehicle
from hilsim.parts.vehicle.link import serve_link
from hilsim.parts.vehicle.obstacle_sender import ScanMessages
from hilsim.parts.vehicle.platform import spec_of
from hilsim.parts.vehicle.screen_text import vehicle_summary
from hilsim.streaming.obstacle_map import ObstacleMap
from hilsim.telemetry.faults import Fault
from hilsim.telemetry.readings import Reading


class VehiclePart(Part):
    """The vehicle of a rig.

    Attributes:
        vehicle: Flying vehicle; None before ``prepare`` and after ``stop``.
    """

    def __init__(self, context: RigContext) -> None:
        super().__init__(context)
        self.vehicle: FlyingVehicle | None = None
        self._messages: ScanMessages | None = None
        self._signature = asset_signature(context.rig)
        self._actor = VehicleActor(context=context, find=lambda: self.vehicle)

    def prepare(self) -> None:
        """Build the vehicle and its scene."""
        rig = self.context.rig
        self._signature = asset_signature(rig)
        self.vehicle = build_vehicle(rig, self.context.scenery(rig))
        shared = self.vehicle.loop_setup.shared
        self._messages = ScanMessages(spec=self.vehicle.spec, observations=shared.observations, counts=shared.counts)

    @property
    def viewer(self) -> Viewer:
        """Function that shows the vehicle another world."""
        return self._actor.see_later

    @property
    def breaker(self) -> Breaker:
        """Function that gives the vehicle, and its line, other faults."""
        return self._actor.break_later

    @property
    def actors(self) -> Mapping[str, Actor]:
        """Maker of timed changes of the vehicle."""
        return {"vehicle": self._actor}

    def obstacle_map(self, setting: LidarSetting) -> ObstacleMap | None:
        """Make an obstacle map for a lidar that the controller's messages need."""
        return self._messages.obstacle_map(setting) if self._messages is not None else None

    def warm(self) -> None:
        """Load the kernels of the flight loop and of messages, and open the loop's ports.

        Raises:
            CaptureError: the file for the vehicle's truth cannot be created.
            LinkError: ArduPilot's port cannot be opened.
        """
        if self.vehicle is not None and self._messages is not None:
            self.vehicle.warm()
            self._messages.warm()
            if self.context.can_change or self.context.rig.spec.fault:
                self.vehicle.line.warm()

    def rehearse(self) -> None:
        """Load or compile the flight loop's kernels, and those that read obstacle maps."""
        for lidar in self.context.rig.lidars:
            self.obstacle_map(lidar)
        self.warm()
        self.stop()

    def start(self, clock: RigClock) -> None:
        """Start flying."""
        if self.vehicle is not None and self._messages is not None:
            self.vehicle.start(epoch_ns=clock.epoch_ns, utc_epoch_ns=clock.utc_epoch_ns)
            self._messages.start()

    def change(self, rig: Rig) -> Change:
        """Refuse a change of the vehicle, or of the scene it flies in.

        Raises:
            ConfigError: the vehicle or its scene changes.
        """
        new, now = rig.spec, self.context.rig.spec
        same_spec = (new.part("vehicle"), new.scene, new.platform, new.seed) == (now.part("vehicle"), now.scene, now.platform, now.seed)
        if not (same_spec and rig.settings.get("vehicle") == self.context.rig.settings["vehicle"] and asset_signature(rig) == self._signature):
            raise ConfigError(
                f"{rig.path}: [vehicle], [scene], [platform] and seed cannot change while a vehicle flies; restart the service for that"
            )
        return Change(lambda clock: self._actor.return_to_file(rig, clock))

    def stop(self) -> None:
        """End the threads and close the ports."""
        if self._messages is not None:
            self._messages.stop()
        if self.vehicle is not None:
            self.vehicle.stop()
        self.vehicle = None

    def serve(self, changes: Changes) -> AbstractAsyncContextManager[object]:
        """Serve the link to the controller, and the ports for ground stations."""
        ranges = [name for place, name in self.context.rig.spec.befallen if place == Place.RANGE]
        return nullcontext() if self.vehicle is None else serve_link(self.vehicle, changes.make, ranges)

    @property
    def summary(self) -> str:
        """Text that names the vehicle."""
        return "a vehicle"

    def lines(self) -> Iterator[tuple[str, str]]:
        """Profile, controller and ground stations of the vehicle."""
        yield "vehicle", vehicle_summary(spec_of(self.context.rig))

    def add_reading(self, reading: Reading, now_ns: int) -> Reading:
        """Add the values of the vehicle, and the scheduling of its thread."""
        del now_ns
        vehicle = self.vehicle
        if vehicle is None:
            return reading
        return replace(
            reading, parts={**reading.parts, "vehicle": (vehicle.reading(),)}, scheduling={**reading.scheduling, "fly": vehicle.scheduling_mode}
        )

    def faults(self, now_ns: int) -> tuple[Fault, ...]:
        """Faults of threads that have ended."""
        del now_ns
        found = []
        if self.vehicle is not None and not self.vehicle.alive:
            found.append(Fault(key="flight_ended", text="the thread that flies the vehicle has ended"))
        if self._messages is not None and self._messages.has_ended:
            found.append(Fault(key="observer_ended", text="the thread that sends obstacle data to the controller has ended"))
        return tuple(found)
