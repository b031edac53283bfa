"""The lidars of a rig's SDF file as a part: each measures in a thread of its own, and publishes the subscribed topics.

What measures and publishes is imported where there is such a file: most rigs have none, and start sooner.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from hilsim.config.rig import Rig
from hilsim.daemon.parts import Change, Part, RigContext
from hilsim.errors import ConfigError
from hilsim.telemetry.faults import Fault
from hilsim.telemetry.readings import GazeboReading, Reading

if TYPE_CHECKING:
    from hilsim.gazebo.lidar import GazeboLidar
    from hilsim.gazebo.publishing import LidarPublisher
    from hilsim.gazebo.transport import Transport


class Gazebo(Part):
    """The lidars of a rig's SDF file.

    Attributes:
        lidars: In the order of the file.
    """

    def __init__(self, context: RigContext) -> None:
        super().__init__(context)
        self.lidars: tuple[GazeboLidar, ...] = ()
        self._transport: Transport | None = None
        self._publishers: tuple[LidarPublisher, ...] = ()

    def prepare(self) -> None:
        """Read the file, and build what its lidars see.

        Raises:
            AssetError: a file cannot be used.
            ConfigError: it has no lidar, or two of one topic.
        """
        rig = self.context.rig
        if rig.spec.gazebo is None:
            return
        from hilsim.assembly.gazebo_lidars import gazebo_lidars  # noqa: PLC0415

        self.lidars = gazebo_lidars(rig, self.context.scenery(rig))

    def open(self) -> None:
        """Advertise the topics.

        Raises:
            TransmitError: the address is none of this host's.
        """
        spec = self.context.rig.spec.gazebo
        if spec is None:
            return
        from hilsim.gazebo.publishing import LidarPublisher, topics_of  # noqa: PLC0415
        from hilsim.gazebo.transport import Transport  # noqa: PLC0415

        self._transport = Transport(spec, [topic for lidar in self.lidars for topic in topics_of(lidar.spec)])
        self._transport.open()
        self._publishers = tuple(LidarPublisher(lidar, self._transport) for lidar in self.lidars)

    def warm(self) -> None:
        """Load the kernel that measures."""
        self.rehearse()

    def rehearse(self) -> None:
        """Load or compile the kernel that measures."""
        for lidar in self.lidars:
            lidar.true_ranges_m(0)

    def start(self) -> None:
        """Begin to measure; the first measurement is at rig time 0."""
        for publisher in self._publishers:
            publisher.start(self.context.clock.epoch_ns)

    def change(self, rig: Rig) -> Change:
        """Refuse another SDF file, or another table.

        Raises:
            ConfigError: the rig has one.
        """
        now = self.context.rig
        if rig.spec.gazebo != now.spec.gazebo or (now.spec.gazebo is not None and not self.context.shows(rig)):
            raise ConfigError(f"{rig.path}: [gazebo] and its [scene] cannot change while lidars are published; restart the service for that")
        return Change()

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
        """How many there are."""
        return f"{len(self.lidars)} lidar(s) for Gazebo" if self.lidars else ""

    def add_reading(self, reading: Reading, now_ns: int) -> Reading:
        """Every lidar."""
        del now_ns
        return replace(
            reading,
            gazebo=tuple(
                GazeboReading(lidar=each.lidar.spec.name, scans=each.scans, messages=each.messages, skipped_scans=each.skipped)
                for each in self._publishers
            ),
        )

    def faults(self, now_ns: int) -> tuple[Fault, ...]:
        """Threads that should run and do not."""
        del now_ns
        ended = [each.lidar.spec.name for each in self._publishers if each.has_started and not each.alive]
        found = [Fault(key="gazebo_ended", subject=name, text="the thread of the lidar has ended") for name in ended]
        if self._transport is not None and not self._transport.alive:
            found.append(Fault(key="gazebo_ended", text="topics are not advertised any more: the thread has ended"))
        return tuple(found)
