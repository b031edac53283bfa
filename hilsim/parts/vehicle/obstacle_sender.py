"""Thread that sends a flight controller what its vehicle's lidars see: OBSTACLE_DISTANCE and DISTANCE_SENSOR, each at its rate.

It reads the obstacle maps that render threads publish (``streaming.obstacle_map``), and puts whole frames into the flight loop's queue. A map is sent once
only: when a lidar stops, its messages stop, and the controller notices.
"""

import threading
import time
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hilsim.emulator.setting import LidarSetting
from hilsim.parts.vehicle.autopilot.loop_context import FlightCount
from hilsim.parts.vehicle.obstacle_messages import (
    MAV_COMP_ID_OBSTACLE_AVOIDANCE,
    distance_frame,
    distance_of_beam,
    map_for_messages,
    obstacle_frame,
    obstacles_of_sectors,
)
from hilsim.parts.vehicle.scan_messages import DistanceSensorSpec, ScanMessageSpec
from hilsim.parts.vehicle.specs import VehicleRigSpec
from hilsim.protocols.mavlink.messages import Origin, build_origin
from hilsim.streaming.obstacle_map import ObstacleMap, Sight, sight
from hilsim.transmit.packet_queue import PacketQueue, put
from hilsim.transmit.scheduling import ThreadSettings, enter

_PLAIN = ThreadSettings(scheduling="plain")


@dataclass(kw_only=True, eq=False)
class _Due:
    """Schedule of one message.

    Attributes:
        spec: Table of the message in the rig.
        cone: Index of the message's cone among the cones of its lidar.
        next_ns: CLOCK_MONOTONIC time of the next message.
        number: Number of the ``Sight`` sent last.
    """

    spec: ScanMessageSpec
    cone: int
    next_ns: int = 0
    number: int = 0

    @property
    def period_ns(self) -> int:
        return round(1e9 / self.spec.rate_hz)


@dataclass(kw_only=True, eq=False)
class ScanMessages:
    """Sender of messages made from scans.

    Attributes:
        spec: Table of the vehicle in the rig.
        observations: Queue for the frames.
        counts: ``int64[n]``, counts of the flight loop, columns by ``FlightCount``; one of them is written here.
    """

    spec: VehicleRigSpec
    observations: PacketQueue
    counts: npt.NDArray[np.int64]
    _obstacle_maps: dict[str, ObstacleMap] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def obstacle_map(self, setting: LidarSetting) -> ObstacleMap | None:
        """Make an obstacle map for a lidar that is about to stream, None if no message needs it; the lidar's former map is not read any more."""
        obstacle = self.spec.obstacle
        requested = obstacle if obstacle is not None and obstacle.sensor == setting.name else None
        new_map = map_for_messages(requested, self._beams(setting.name), turn_ns=setting.family.scan_ns)
        if not new_map.is_on:
            return None
        self._obstacle_maps[setting.name] = new_map
        return new_map

    def warm(self) -> None:
        """Load or compile the kernels that read obstacle maps and write frames."""
        for due in self._messages():
            obstacle_map = self._obstacle_maps[due.spec.sensor]
            width = obstacle_map.shown.shape[1] - obstacle_map.cones.shape[0]
            self._frame(due, Sight(1, 0, np.full(width, np.inf), np.full(obstacle_map.cones.shape[0], np.inf)), build_origin(1, 1))
            sight(obstacle_map)

    def start(self) -> None:
        """Start sending."""
        if self._messages():
            self._thread = threading.Thread(target=self._run, name="observe", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    @property
    def has_ended(self) -> bool:
        """Whether the thread has run and ended."""
        return self._thread is not None and not self._thread.is_alive()

    def _beams(self, name: str) -> tuple[DistanceSensorSpec, ...]:
        return tuple(spec for spec in self.spec.distance if spec.sensor == name)

    def _messages(self) -> list[_Due]:
        found = [_Due(spec=self.spec.obstacle, cone=-1)] if self.spec.obstacle else []
        return found + [_Due(spec=spec, cone=self._beams(spec.sensor).index(spec)) for spec in self.spec.distance]

    def _run(self) -> None:
        enter(_PLAIN)
        sender = build_origin(self.spec.controller.system_id, MAV_COMP_ID_OBSTACLE_AVOIDANCE)
        messages = self._messages()
        now_ns = time.monotonic_ns()
        for place, due in enumerate(messages):
            due.next_ns = now_ns + place * due.period_ns // len(messages)  # staggered, because the messages share a line
        while not self._stop.wait(max(min(due.next_ns for due in messages) - time.monotonic_ns(), 0) / 1e9):
            now_ns = time.monotonic_ns()
            for due in messages:
                if now_ns >= due.next_ns:
                    due.next_ns += max((now_ns - due.next_ns) // due.period_ns + 1, 1) * due.period_ns  # missed messages are not sent later
                    self._tell(due, sender)

    def _tell(self, due: _Due, sender: Origin) -> None:
        seen = sight(self._obstacle_maps[due.spec.sensor])
        if seen is None or seen.number == due.number:
            return
        due.number = seen.number
        frame = self._frame(due, seen, sender)
        if frame is not None and not put(self.observations, 0, seen.time_ns, seen.time_ns, frame, frame.size):
            self.counts[FlightCount.UNTAKEN_OBSTACLES] += 1

    def _frame(self, due: _Due, seen: Sight, sender: Origin) -> npt.NDArray[np.uint8] | None:
        if isinstance(due.spec, DistanceSensorSpec):
            distance = distance_of_beam(due.spec, float(seen.cones[due.cone]))
            return distance_frame(distance, seen.time_ns, sender) if distance else None
        if self.spec.obstacle is None:
            raise AssertionError("a message contains a distance or obstacles")
        return obstacle_frame(obstacles_of_sectors(self.spec.obstacle, seen.sectors), seen.time_ns, sender)
