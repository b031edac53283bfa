"""The lidars of a rig's SDF file as a part: each measures in its own thread and publishes the subscribed topics."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from hilsim.config.rig import Rig
from hilsim.daemon.flows import Flows
from hilsim.daemon.parts import Change, Part, RigClock, RigContext, Viewer
from hilsim.errors import ConfigError
from hilsim.parts.gazebo.lidars import gazebo_lidars
from hilsim.parts.gazebo.publishing import LidarPublisher, topics_of
from hilsim.parts.gazebo.reading import GazeboReading
from hilsim.parts.gazebo.transport import Transport
from hilsim.telemetry.faults import Fault
from hilsim.telemetry.readings import Reading
from hilsim.world.scene.world import World

if TYPE_CHECKING:
    from hilsim.parts.gazebo.lidar import GazeboLidar


class Gazebo(Part):
    """The lidars of a rig's SDF file.

    Attributes:
        lidars: Lidars in the order of the file.
    """

    def __init__(self, context: RigContext) -> None:
        super().__init__(context)
        self.lidars: tuple[GazeboLidar, ...] = ()
        self._transport: Transport | None = None
        self._publishers: tuple[LidarPublisher, ...] = ()

    def prepare(self) -> None:
        """Read the file, and build the scene of its lidars.

        Raises:
            AssetError: a file cannot be used.
            ConfigError: the file has no lidar, or two lidars with one topic.
        """
        rig = self.context.rig
        self.lidars = gazebo_lidars(rig, self.context.scenery(rig))

    @property
    def viewer(self) -> Viewer:
        """Function that shows all lidars another world."""
        return self._see_later

    def _see_later(self, from_ns: int, world: World) -> None:
        for lidar in self.lidars:
            lidar.see_later(from_ns, world)

    def open(self, flows: Flows) -> None:
        """Advertise the topics.

        Raises:
            TransmitError: the address does not belong to this host.
        """
        del flows  # it sends by a transport of its own
        [spec] = self.context.rig.spec.part("gazebo")
        self._transport = Transport(spec, [topic for lidar in self.lidars for topic in topics_of(lidar.spec)])
        self._transport.open()
        self._publishers = tuple(LidarPublisher(lidar, self._transport) for lidar in self.lidars)

    def warm(self) -> None:
        """Load the measuring kernel."""
        self.rehearse()

    def rehearse(self) -> None:
        """Load or compile the measuring kernel."""
        for lidar in self.lidars:
            lidar.true_ranges_m(0)

    def start(self, clock: RigClock) -> None:
        """Start measuring; the first measurement is at rig time 0."""
        for publisher in self._publishers:
            publisher.start(clock.epoch_ns)

    def change(self, rig: Rig) -> Change:
        """Refuse a change of the SDF file or of its table.

        Raises:
            ConfigError: the file or the table changes.
        """
        if rig.spec.part("gazebo") != self.context.rig.spec.part("gazebo") or not self.context.shows(rig):
            raise ConfigError(f"{rig.path}: [gazebo] and its [scene] cannot change while lidars are published; restart the service for that")
        return Change(self.return_to_file)

    def return_to_file(self, clock: RigClock) -> None:
        """Let the lidars see the scene of the rig's file again, after a reload."""
        self._see_later(clock.now_ns(), self.context.scenery(self.context.rig).world)

    def stop(self) -> None:
        """End the threads, and announce the end to subscribers."""
        for publisher in self._publishers:
            publisher.stop()
        self._publishers = ()
        if self._transport is not None:
            self._transport.close()
            self._transport = None

    @property
    def summary(self) -> str:
        """Text with the number of lidars."""
        return f"{len(self.lidars)} lidar(s) for Gazebo"

    def lines(self) -> Iterator[tuple[str, str]]:
        """Rays, rate and topic of each lidar."""
        for lidar in self.lidars:
            rays = lidar.spec.horizontal.samples, lidar.spec.vertical.samples
            yield lidar.spec.name, f"{rays[0]} x {rays[1]} rays, {1e9 / lidar.period_ns:.4g} Hz, at topic {lidar.spec.scoped_topic}"

    def check_notes(self) -> Iterator[str]:
        """Ranges, rate and topic of each lidar."""
        for lidar in self.lidars:
            spec = lidar.spec
            rays = f"{spec.horizontal.samples} x {spec.vertical.samples} rays, {spec.range_min_m:g} to {spec.range_max_m:g} m"
            yield f"{spec.where}: {spec.name}: {rays}, {1e9 / lidar.period_ns:.4g} Hz at {spec.scoped_topic}"

    def add_reading(self, reading: Reading, now_ns: int) -> Reading:
        """Add the values of every lidar."""
        del now_ns
        found = tuple(
            GazeboReading(name=each.lidar.spec.name, scans=each.scans, messages=each.messages, skipped_scans=each.skipped)
            for each in self._publishers
        )
        return replace(reading, parts={**reading.parts, "gazebo": found})

    def faults(self, now_ns: int) -> tuple[Fault, ...]:
        """Faults of threads that have ended."""
        del now_ns
        ended = [each.lidar.spec.name for each in self._publishers if each.has_started and not each.alive]
        found = [Fault(key="gazebo_ended", subject=name, text="the thread of the lidar has ended") for name in ended]
        if self._transport is not None and not self._transport.alive:
            found.append(Fault(key="gazebo_ended", text="topics are not advertised any more: the thread has ended"))
        return tuple(found)
