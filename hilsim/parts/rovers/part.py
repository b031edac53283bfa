"""The rovers of a rig as a part: their scans, their flows and their command ports."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import asyncio_dgram
import structlog

from hilsim.assembly.build import asset_signature
from hilsim.config.rig import Rig
from hilsim.daemon.flows import Flows
from hilsim.daemon.parts import Change, Changes, Needs, Part, RigClock, RigContext, Viewer
from hilsim.daemon.streaming.plain_flow import PlainFlow
from hilsim.errors import ConfigError
from hilsim.parts.rovers.flows import FLOW_PORTS, rover_flow
from hilsim.parts.rovers.lidars import rover_sources
from hilsim.parts.rovers.protocol import COMMAND_PORT, LARGEST_PACKET, LIDAR_PORT, POSE_PORT, TELEMETRY_PORT, chunk_count
from hilsim.parts.rovers.reading import RoverReading
from hilsim.parts.rovers.scan_file import Tally
from hilsim.parts.rovers.sender import DrivenRover, RoverSender, RoverSource, ScanSource
from hilsim.parts.rovers.specs import RoverSpec
from hilsim.protocols.ethernet import HEADER_SIZE
from hilsim.telemetry.faults import Fault
from hilsim.telemetry.guarded import guarded
from hilsim.telemetry.readings import Reading
from hilsim.transmit.brake import brake_reason
from hilsim.transmit.links.sockets import open_udp
from hilsim.transmit.ring import Rings, allocate_rings
from hilsim.transmit.scheduling import ThreadSettings
from hilsim.world.scene.world import World

if TYPE_CHECKING:
    from asyncio_dgram.aio import DatagramServer


log = structlog.get_logger("hilsim")

_PRIORITY_BELOW = 10
_SLICE_US = 1000.0
Obey = Callable[[bytes], object]
"""Function that executes the command in a datagram."""


class Rovers(Part):
    """The rovers of a rig."""

    def __init__(self, context: RigContext) -> None:
        super().__init__(context)
        self._rovers: tuple[RoverSpec, ...] = context.rig.spec.part("rover")
        self._drives = any(rover.drive for rover in self._rovers)
        self._sources: tuple[RoverSource, ...] = ()
        self._points: tuple[int, ...] = ()
        self._sender: RoverSender | None = None
        self._flows: list[PlainFlow] = []
        self._ports: dict[str, socket.socket] = {}
        self._signature = asset_signature(context.rig)
        self._refused = [0] * len(self._rovers)
        self._told: set[str] = set()

    def prepare(self) -> None:
        """Open the files of scans, and build the scene if a rover drives through it.

        Raises:
            AssetError: files without a scan, or a file of the scene cannot be used; the message names each.
        """
        rig = self.context.rig
        world = self.context.scenery(rig).world if self._drives else None
        self._sources = rover_sources(rig, world, can_change=self.context.can_change)
        self._points = tuple(source.points for source in self._sources)

    @property
    def viewer(self) -> Viewer | None:
        """``see_later``, if a rover drives."""
        return self.see_later if self._drives else None

    def see_later(self, from_ns: int, world: World) -> dict[str, int]:
        """Set the world that driving rovers see from a rig time on; returns the rig time from which each sees it."""
        return {
            rover.name: source.see_later(from_ns, world, rover.period_ns)
            for rover, source in zip(self._rovers, self._sources, strict=True)
            if isinstance(source, DrivenRover)
        }

    def return_to_file(self, clock: RigClock) -> None:
        """Let the rovers see the scene of the rig's file again, after a reload."""
        self.see_later(clock.now_ns(), self.context.scenery(self.context.rig).world)

    def needs(self) -> Needs:
        """Requirements of the rovers: three flows each, at the rates of their files' first scans."""
        rate_hz = sum(rover.rate_hz * (2 + chunk_count(points)) for rover, points in zip(self._rovers, self._points, strict=True))
        return Needs(flows=len(FLOW_PORTS) * len(self._rovers), capacity_bytes=HEADER_SIZE + LARGEST_PACKET, packet_rate_hz=rate_hz)

    def open(self, flows: Flows) -> None:
        """Open the command ports and the flows.

        Raises:
            LinkError: a command port cannot be opened.
            TransmitError: a flow cannot be opened.
        """
        for rover in self._rovers:
            self._ports[rover.name] = open_udp(rover.network.source, COMMAND_PORT + rover.number)
        self._sender = self._made(flows.transmitter.rings)
        for place, rover in enumerate(self._rovers):
            opened = [self._opened(flows, rover, place, label) for label in FLOW_PORTS]
            self._sender.route(place, [flow.row for flow in opened])
            self._flows += opened

    def _made(self, rings: Rings) -> RoverSender:
        transmit = self.context.rig.spec.transmit
        settings = ThreadSettings(scheduling=transmit.scheduling, priority=max(transmit.priority - _PRIORITY_BELOW, 1), slice_us=_SLICE_US)
        return RoverSender(rovers=self._rovers, sources=self._sources, rings=rings, seed=self.context.rig.spec.seed, settings=settings)

    def _opened(self, flows: Flows, rover: RoverSpec, place: int, label: str) -> PlainFlow:
        name, key, _ = rover_flow(rover, label)
        return PlainFlow(flows, name, key, rover.rate_hz * (chunk_count(self._points[place]) if label == "lidar" else 1))

    def warm(self) -> None:
        """Load the kernels of the sending loop."""
        if self._sender is not None:
            self._sender.warm()

    def rehearse(self) -> None:
        """Load or compile every kernel that rovers need."""
        self._made(allocate_rings(1, 2, LARGEST_PACKET)).warm()

    def prime(self, clock: RigClock, until_ns: int) -> bool:
        """Read one scan of each rover."""
        del clock
        return self._sender is None or self._sender.read_ahead(until_ns)

    def start(self, clock: RigClock) -> None:
        """Start sending; the first cycle is due one period after rig time 0."""
        if self._sender is None:
            return
        for flow in self._flows:
            flow.release()
        self._sender.start(clock.epoch_ns)

    def change(self, rig: Rig) -> Change:
        """Refuse a change of the rovers, or of the scene through which they drive.

        Raises:
            ConfigError: the rovers or their scene change.
        """
        former, now = self.context.rig, self.context.rig.spec
        if (rig.spec.part("rover"), rig.settings.get("rover"), rig.spec.seed) != (self._rovers, former.settings["rover"], now.seed):
            raise ConfigError(
                f"{rig.path}: [[rover]], the rovers' lidars and their [weather], and seed cannot change while rovers send; restart the service for that"
            )
        if self._drives and (rig.spec.scene != now.scene or asset_signature(rig) != self._signature):
            raise ConfigError(f"{rig.path}: [scene] cannot change while rovers drive through it; restart the service for that")
        return Change(self.return_to_file) if self._drives else Change()

    def stop(self) -> None:
        """End the threads and close the ports; the transmitter closes its sockets."""
        if self._sender is not None:
            self._sender.stop()
            self._sender = None
        for port in self._ports.values():
            port.close()
        self._ports = {}
        self._flows = []

    def serve(self, changes: Changes) -> AbstractAsyncContextManager[object]:
        """Receive commands at the command ports."""
        del changes
        return served_commands(
            {rover.name: (self._ports.pop(rover.name), partial(self._obey, place)) for place, rover in enumerate(self._rovers)} if self._ports else {}
        )

    def _obey(self, place: int, datagram: bytes) -> None:
        if self._sender is not None and not self._sender.command(place, datagram):
            self._refused[place] += 1

    def pace(self, now_ns: int) -> None:
        """Log the contents of each file once, when it has been read to its end."""
        del now_ns
        for rover, source in zip(self._rovers, self._sources, strict=False):
            if source.tally is not None and rover.name not in self._told:
                self._told.add(rover.name)
                report = log.warning if source.tally.damaged else log.info
                report("rover.scans_read", rover=rover.name, good=source.tally.scans, damaged=source.tally.damaged, faults=source.tally.faults)

    @property
    def has_begun(self) -> bool:
        """Whether each rover has begun a cycle."""
        return self._sender is None or self._sender.has_begun

    @property
    def summary(self) -> str:
        """Text with the number of rovers."""
        return f"{len(self._rovers)} rover(s)"

    def lines(self) -> Iterator[tuple[str, str]]:
        """Destinations of each rover's packets, and its command port."""
        for rover in self._rovers:
            to, number = rover.network.destination, rover.number
            sent = ", ".join(
                f"{name} {to}:{base + number}" for name, base in (("pose", POSE_PORT), ("scan", LIDAR_PORT), ("telemetry", TELEMETRY_PORT))
            )
            yield rover.name, f"{sent}; commands at {rover.network.source}:{COMMAND_PORT + number}"

    def check_notes(self) -> Iterator[str]:
        """Number of scans in each rover's file, and the lines that are skipped."""
        for source in self._sources:
            if isinstance(source, ScanSource):
                tally = Tally()
                for _ in source.file.scans(tally):
                    pass
                left_out = f", {tally.damaged} lines left out: {'; '.join(tally.faults)}" if tally.damaged else ""
                yield f"{source.file.path}: {tally.scans} good scans{left_out}"

    def add_reading(self, reading: Reading, now_ns: int) -> Reading:
        """Add the values of every rover."""
        del now_ns
        sender = self._sender
        if sender is None:
            return reading
        return replace(
            reading,
            parts={**reading.parts, "rover": tuple(self._reading(sender, place, rover) for place, rover in enumerate(self._rovers))},
            scheduling={**reading.scheduling, "rovers": sender.scheduling_mode},
        )

    def _reading(self, sender: RoverSender, place: int, rover: RoverSpec) -> RoverReading:
        source = self._sources[place]
        return RoverReading(
            **sender.state(place)._asdict(),
            name=rover.name,
            refused_commands=self._refused[place],
            passes=source.passes,
            damaged_lines=source.tally.damaged if source.tally else 0,
        )

    def faults(self, now_ns: int) -> tuple[Fault, ...]:
        """Faults of threads that have ended, and of files that cannot be read any more."""
        del now_ns
        sender = self._sender
        if sender is None:
            return ()
        found: list[Fault] = [] if sender.alive else [Fault(key="rovers_ended", text="a thread of the rovers has ended")]
        if reason := brake_reason(sender.brake):
            found.append(Fault(key="real_time_left", subject="rovers", text=f"{reason}; the rovers' thread has left real-time scheduling"))
        for rover, source in zip(self._rovers, self._sources, strict=False):
            if source.fault:
                found.append(Fault(key="scans_ended", subject=rover.name, text=source.fault))
        return tuple(found)


@asynccontextmanager
async def served_commands(ports: dict[str, tuple[socket.socket, Obey]]) -> AsyncIterator[None]:
    """Receive commands while the block runs.

    Args:
        ports: Bound socket of each rover, which is closed at the end, and the function that takes its datagrams, by the rover's name.
    """
    streams, tasks = [], []
    try:
        for name, (port, obey) in ports.items():
            stream = await asyncio_dgram.from_socket(port)
            streams.append(stream)
            tasks.append(asyncio.create_task(guarded(name, _taking(stream, obey)), name=name))
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for stream in streams:
            stream.close()
        await asyncio.sleep(0)  # the transports close their sockets at the loop's next turn


def _taking(stream: "DatagramServer", obey: Obey) -> Callable[[], Coroutine[None, None, None]]:
    async def take() -> None:
        while True:
            datagram, _ = await stream.recv()
            obey(datagram)

    return take
