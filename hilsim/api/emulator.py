"""A rig in Python, without a clock: its packets, its scans, its points."""

import heapq
import math
import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.api.labelled import labelled_packets
from hilsim.api.packet import Packet
from hilsim.api.points import POINT_DTYPE, Scan
from hilsim.api.rigs import RigSource, as_rig
from hilsim.api.scan_starts import scan_starts
from hilsim.config.rig import Rig
from hilsim.emulator.lidar import LidarEmulator
from hilsim.errors import require
from hilsim.geometry.poses import Pose
from hilsim.offline.epoch import START_UTC, utc_ns
from hilsim.offline.spans import Merged, OfflineRig, build_offline, spans
from hilsim.protocols.ethernet import HEADER_SIZE
from hilsim.vehicle.platform import platform_state

_BATCH_NS = 100_000_000
_SCANS_AHEAD = 5  # beyond the end, within which a scan that begins before it must have ended


class Emulator:
    """What a rig would send and see, in any stretch of rig time and in any order, always the same; nothing looks at a clock or sends anything.

    Rig time begins at 0, when the sensors are switched on. The same rig always gives the same bytes.

    Attributes:
        rig: The rig.
        sensors: Names of its emulated lidars.
    """

    def __init__(self, rig: Rig | RigSource, *, start_utc: str | datetime = START_UTC, threads: int | None = None) -> None:
        """Take a rig; its scene is built when it is first asked for.

        Args:
            rig: Of ``load_rig``, or what that takes: a path, the name of a shipped rig, a mapping.
            start_utc: UTC of rig time 0, to the second; without a time zone it is UTC. Packets' stamps show it.
            threads: That render, each a little ahead of what is asked for; they change no byte. None: one a core.

        Raises:
            ConfigError: the rig is not sound.
            ValueError: ``start_utc`` is no instant, or ``threads`` below 1.
        """
        require((threads is None or threads >= 1, f"threads must be 1 or more, got {threads}"))
        self._threads = threads or len(os.sched_getaffinity(0))
        self.rig = as_rig(rig)
        self.sensors = self.rig.sensors
        self._utc_epoch_ns = utc_ns(start_utc)
        self._built: OfflineRig | None = None
        self._flown_ns = 0

    def packets(self, start_s: float, stop_s: float) -> Iterator[Packet]:
        """Yield the packets due in ``[start_s, stop_s)`` of rig time, of every sensor, replay and rover, in the order of their deadlines.

        They are those of ``hilsim record``, byte for byte; stretches that follow each other give each packet once. A replay's capture and a rover's way
        begin anew on each call.

        Raises:
            AssetError: a file of the scene cannot be used.
            CaptureError: a capture that the rig replays cannot be read.
            ConfigError: the rig's vehicle is flown by a controller.
            ValueError: the times are not in order.
        """
        start_ns, stop_ns = _stretch(start_s, stop_s)
        offline = self._offline(stop_ns)
        for span in spans(offline.lidars, [source for _, source in offline.sources()], start_ns, stop_ns, _BATCH_NS, self._threads, with_truth=False):
            yield from _packets(span.batch)

    def points(self, start_s: float, stop_s: float, sensor: str | None = None) -> npt.NDArray[Any]:
        """Points of the firings in ``[start_s, stop_s)`` of rig time, with what each came from.

        The coordinates are what a driver makes of the sensor's packets, with its noise and rounding; ``time``, ``label`` and ``instance`` are true.

        Args:
            start_s: First instant, in seconds of rig time.
            stop_s: The instant after the last.
            sensor: Which of the rig's lidars; may be left out where there is one.

        Returns:
            ``POINT_DTYPE[n]`` in the sensor frame (x right, y forward, z up), in the order of the packets' bytes; firings without a return make none.

        Raises:
            AssetError: a file of the scene cannot be used.
            ConfigError: the rig's vehicle is flown by a controller.
            ValueError: there is no such sensor, or the times are not in order.
        """
        start_ns, stop_ns = _stretch(start_s, stop_s)
        lidar = self._lidar(sensor, stop_ns)
        packet_ns = round(1e9 / lidar.setting.packet_rate_hz)
        last = lidar.first_data_packet(stop_ns + int(lidar.plan.data_latency_ns) + packet_ns)
        parts = [np.empty(0, POINT_DTYPE)]
        for _, _, points in _batches(lidar, lidar.first_data_packet(start_ns), last + 1, self._threads):
            parts.append(_fired_within(points, start_ns, stop_ns))
        return np.concatenate(parts)

    def scans(self, start_s: float, stop_s: float, sensor: str | None = None) -> Iterator[Scan]:
        """Yield the whole scans that begin in ``[start_s, stop_s)`` of rig time; the last may end later.

        Args:
            start_s: First instant, in seconds of rig time.
            stop_s: The instant after the last.
            sensor: Which of the rig's lidars; None: all of them, in the order in which their scans end.

        Raises:
            AssetError: a file of the scene cannot be used.
            ConfigError: the rig's vehicle is flown by a controller.
            ValueError: there is no such sensor, or the times are not in order.
        """
        start_ns, stop_ns = _stretch(start_s, stop_s)
        names = self.sensors if sensor is None else (sensor,)
        lidars = [self._lidar(name, stop_ns) for name in names or (None,)]
        return heapq.merge(*(_scans(lidar, start_ns, stop_ns, self._threads) for lidar in lidars), key=lambda scan: scan.stop_ns)

    def object_names(self) -> tuple[str, ...]:
        """Names of the objects that the rig's scene is made of; a point's ``instance`` is a place in it.

        Raises:
            AssetError: a file of the scene cannot be used.
            ConfigError: the rig's vehicle is flown by a controller.
        """
        scenery = self._offline(0).scenery
        return scenery.object_names if scenery else ()

    def sensor_pose(self, time_s: float, sensor: str | None = None) -> Pose:
        """Where a lidar is in the world at an instant of rig time.

        Args:
            time_s: Seconds of rig time.
            sensor: Which of the rig's lidars; may be left out where there is one.

        Returns:
            ``position_m`` and ``orientation`` (unit quaternion ``(w, x, y, z)``, world from sensor); its ``transform`` takes a point to the world's frame.

        Raises:
            AssetError: a file of the scene cannot be used.
            ConfigError: the rig's vehicle is flown by a controller.
            ValueError: there is no such sensor, or the time is before 0.
        """
        time_ns, _ = _stretch(time_s, time_s)
        lidar = self._lidar(sensor, time_ns)
        position_m, orientation = platform_state(lidar.platform, time_ns)
        return Pose(position_m=position_m, orientation=orientation) @ lidar.setting.setup.body_from_sensor

    def _lidar(self, sensor: str | None, stop_ns: int) -> LidarEmulator:
        """A lidar by its name, its vehicle flown far enough for the scans that begin until ``stop_ns``."""
        names = self.sensors
        require((bool(names), f"rig must have a lidar to be asked for, got none in {self.rig.name}"))
        require(
            (sensor is not None or len(names) == 1, f"sensor must be named in a rig of several ({', '.join(names)}), got None"),
            (sensor is None or sensor in names, f'sensor must be one of the rig\'s ({", ".join(names)}), got "{sensor}"'),
        )
        number = 0 if sensor is None else names.index(sensor)
        ahead_ns = _SCANS_AHEAD * max(lidar.family.scan_ns for lidar in self.rig.lidars)
        return self._offline(stop_ns + ahead_ns).lidars[number]

    def _offline(self, flight_ns: int) -> OfflineRig:
        """The rig, its vehicle flown so far at least."""
        if self._built is None or (self.rig.vehicle is not None and flight_ns > self._flown_ns):
            self._flown_ns = max(flight_ns, 2 * self._flown_ns)  # who goes on step by step has it flown anew a few times only
            self._built = build_offline(self.rig, utc_epoch_ns=self._utc_epoch_ns, flight_ns=self._flown_ns)
        return self._built


def _stretch(start_s: float, stop_s: float) -> tuple[int, int]:
    """Nanoseconds of a stretch of rig time."""
    require(
        (0.0 <= start_s < math.inf, f"start_s must be 0 or more, got {start_s}"),
        (start_s <= stop_s < math.inf, f"stop_s must not be before start_s, got {stop_s} after {start_s}"),
    )
    return round(start_s * 1e9), round(stop_s * 1e9)


def _packets(batch: Merged) -> Iterator[Packet]:
    """Datagrams of whole frames one by one."""
    named = []
    for flow in batch.flows:
        sensor, _, stream = flow.name.partition("/")
        named.append((sensor, stream, (flow.source, flow.source_port), (flow.destination, flow.destination_port)))
    for time_ns, number, size, row in zip(batch.deadline_ns.tolist(), batch.flow.tolist(), batch.size.tolist(), batch.payload, strict=True):
        sensor, stream, source, destination = named[number]
        frame = row[:size].tobytes()
        yield Packet(
            time_ns=time_ns,
            sensor=sensor,
            stream=stream,
            source=source,
            destination=destination,
            payload=frame[HEADER_SIZE:],
            headers=frame[:HEADER_SIZE],
        )


def _scans(lidar: LidarEmulator, start_ns: int, stop_ns: int, threads: int) -> Iterator[Scan]:
    """Whole scans of a lidar that begin in a stretch."""
    first = max(lidar.first_data_packet(start_ns) - 1, 0)
    end = lidar.first_data_packet(stop_ns + _SCANS_AHEAD * lidar.setting.family.scan_ns)
    starts, begun_ns = scan_starts(lidar), -1
    held = np.empty(0, POINT_DTYPE)
    for packet, payloads, points in _batches(lidar, first, end + 1, threads):
        held = np.concatenate([held, points])
        for begin_ns in starts.find(packet, payloads):
            if begun_ns >= 0:
                yield Scan(sensor=lidar.setting.name, start_ns=begun_ns, stop_ns=begin_ns, points=_fired_within(held, begun_ns, begin_ns))
            if begin_ns >= stop_ns:
                return
            begun_ns = begin_ns if begin_ns >= start_ns else -1
        held = held[held["time"] >= begun_ns] if begun_ns >= 0 else points


def _fired_within(points: npt.NDArray[Any], start_ns: int, stop_ns: int) -> npt.NDArray[Any]:
    return points[(points["time"] >= start_ns) & (points["time"] < stop_ns)]


def _batches(lidar: LidarEmulator, first: int, stop: int, threads: int) -> Iterator[tuple[int, npt.NDArray[np.uint8], npt.NDArray[Any]]]:
    """Data packets ``first`` to ``stop - 1`` in batches: the index of the first, the payloads, the points; rendered by so many threads, a batch each ahead."""
    step = math.ceil(lidar.setting.packet_rate_hz * _BATCH_NS / 1e9)
    with ThreadPoolExecutor(threads, thread_name_prefix="points") as pool:
        begins = iter(range(first, stop, step))

        def submitted(count: int) -> list[tuple[int, Future[tuple[npt.NDArray[np.uint8], npt.NDArray[Any]]]]]:
            return [(begin, pool.submit(labelled_packets, lidar, begin, min(step, stop - begin))) for begin in islice(begins, count)]

        waiting = submitted(threads)
        while waiting:
            begin, rendered = waiting.pop(0)
            payloads, points = rendered.result()
            waiting += submitted(1)
            yield begin, payloads, points
