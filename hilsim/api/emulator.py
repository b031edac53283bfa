"""Packets, scans and points of a rig in Python, without a real-time clock."""

import heapq
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from hilsim.api.labelled import labelled_packets
from hilsim.api.packet import Packet
from hilsim.api.points import POINT_DTYPE, Scan
from hilsim.api.rigs import RigSource, as_rig
from hilsim.api.stepping import Objects, Step, Timed, committed, packets_of, step_ns, stepped
from hilsim.assembly.shapes import Shape, shapes_at
from hilsim.config.part_kind import carrier
from hilsim.config.rig import Rig, with_faults
from hilsim.config.script import load_script
from hilsim.emulator.lidar import LidarEmulator
from hilsim.errors import require
from hilsim.offline.epoch import rig_utc_ns
from hilsim.offline.snapshot import Snapshot
from hilsim.offline.spans import OfflineRig, build_offline, spans
from hilsim.offline.stepper import Stepper
from hilsim.read.analysis.decode import own_part
from hilsim.read.analysis.returns_map import place_points
from hilsim.world.geometry.poses import Pose
from hilsim.world.platforms.platform import platform_state

_BATCH_NS = 100_000_000
_FOR_EVER_NS = 10**18
"""End of rig time for a stretch without an end: 31 years."""
_FIRST_NS = 10_000_000_000
"""First stretch over which a part moves the platform if no end is given; it is doubled repeatedly."""
_SCANS_AHEAD = 5  # beyond the end: the number of scan periods within which a scan that begins before it ends


class Emulator:
    """Packets, points and scans of a rig in any stretch of rig time, in any order. No clock is read, and nothing is sent.

    Rig time begins at 0, when the sensors are switched on. The same rig always gives the same bytes.

    Attributes:
        rig: Emulated rig.
        sensors: Names of the rig's emulated lidars.
    """

    def __init__(
        self,
        rig: Rig | RigSource,
        *,
        start_utc: str | datetime | None = None,
        threads: int | None = None,
        script: str | Path | None = None,
        faults: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Create an emulator of a rig; the scene is built when it is first needed.

        Args:
            rig: Result of ``load_rig``, or one of its sources: a path, the name of a shipped rig, a mapping.
            start_utc: UTC of rig time 0, to the second, which the packets' stamps show; an instant without a time zone is UTC.
                None: the rig's ``transmit.epoch_utc``, else 2026-01-01T00:00:00Z.
            threads: Number of rendering threads, each a little ahead of the caller; does not affect the bytes. None: one a core.
            script: File of timed changes (``hilsim record --script``).
            faults: Further tables as ``[[fault]]`` of a rig.

        Raises:
            ConfigError: the rig or the script is invalid.
            ValueError: ``start_utc`` is not an instant, or ``threads`` is below 1.
        """
        require((threads is None or threads >= 1, f"threads must be 1 or more, got {threads}"))
        self._threads = threads or len(os.sched_getaffinity(0))
        self.rig = with_faults(as_rig(rig), faults)
        self.sensors = self.rig.sensors
        self._utc_epoch_ns = rig_utc_ns(self.rig, start_utc)
        self._script = load_script(Path(script)) if script is not None else None
        self._built: OfflineRig | None = None
        self._moved_until_ns = 0
        self._stepper: Stepper | None = None

    @property
    def utc_epoch_ns(self) -> int:
        """UTC of rig time 0 in nanoseconds since 1970."""
        return self._utc_epoch_ns

    def packets(self, start_s: float = 0.0, stop_s: float | None = None) -> Iterator[Packet]:
        """Yield the packets due in ``[start_s, stop_s)`` of rig time, of every sensor, replay and part, in the order of their deadlines.

        Without ``stop_s`` the iterator never ends: take as many as needed (``itertools.islice``).
        They are equal to those of ``hilsim record``, byte for byte; consecutive stretches give each packet once.
        On each call, a replay's capture and a part's file or path begin at their start.

        Args:
            start_s: First instant, in seconds of rig time.
            stop_s: End of the stretch, exclusive; None: no end.

        Raises:
            AssetError: a file of the scene cannot be used.
            CaptureError: a capture that the rig replays cannot be read.
            ConfigError: the rig's vehicle is flown by a controller.
            ValueError: the times are not in order.
        """
        for start_ns, stop_ns in self._stretches(*_stretch(start_s, stop_s)):
            offline = self._offline(stop_ns)
            sources = [source for _, source in offline.sources(self._threads)]
            batches = (start_ns, stop_ns, _BATCH_NS, self._threads)
            for span in spans(offline.lidars, sources, *batches, with_truth=False, network=offline.network()):
                yield from packets_of(span.batch)

    @overload
    def points(self, start_s: float = 0.0, stop_s: None = None, sensor: str | None = None) -> Iterator[npt.NDArray[Any]]: ...

    @overload
    def points(self, start_s: float, stop_s: float, sensor: str | None = None) -> npt.NDArray[Any]: ...

    @overload
    def points(self, start_s: float = 0.0, *, stop_s: float, sensor: str | None = None) -> npt.NDArray[Any]: ...

    def points(self, start_s: float = 0.0, stop_s: float | None = None, sensor: str | None = None) -> npt.NDArray[Any] | Iterator[npt.NDArray[Any]]:
        """Measure the points of the firings in ``[start_s, stop_s)`` of rig time, with the origin of each.

        The coordinates are those of a driver for the sensor's packets, with noise and rounding; ``time``, ``label`` and ``instance`` are true.

        Args:
            start_s: First instant, in seconds of rig time.
            stop_s: End of the stretch, exclusive; None: no end.
            sensor: Name of a lidar of the rig; optional for a single one.

        Returns:
            ``POINT_DTYPE[n]``, of a Livox with ``tag``, in the sensor frame (x right, y forward, z up), in the order of the packets' bytes; a firing without
            a return gives no point. Without ``stop_s``: an iterator that never ends, over such arrays of about 0.1 s each.

        Raises:
            AssetError: a file of the scene cannot be used.
            ConfigError: the rig's vehicle is flown by a controller.
            ValueError: no sensor has this name, or the times are not in order.
        """
        start_ns, stop_ns = _stretch(start_s, stop_s)
        if stop_s is None:
            self._lidar(sensor, start_ns)  # a wrong name is reported now, not at the first point
            return self._points_for_ever(start_ns, sensor)
        return np.concatenate([*self._points(start_ns, stop_ns, sensor)] or [np.empty(0, POINT_DTYPE)])

    def scans(self, start_s: float = 0.0, stop_s: float | None = None, sensor: str | None = None) -> Iterator[Scan]:
        """Yield the whole scans that begin in ``[start_s, stop_s)`` of rig time; the last may end later.

        Without ``stop_s`` the iterator never ends: take as many as needed (``itertools.islice``).

        Args:
            start_s: First instant, in seconds of rig time.
            stop_s: End of the stretch, exclusive; None: no end.
            sensor: Name of a lidar of the rig; None: all of them, in the order in which their scans end.

        Raises:
            AssetError: a file of the scene cannot be used.
            ConfigError: the rig's vehicle is flown by a controller.
            ValueError: no sensor has this name, or the times are not in order.
        """
        start_ns, stop_ns = _stretch(start_s, stop_s)
        names = self.sensors if sensor is None else (sensor,)
        for name in names or (None,):
            self._lidar(name, start_ns if stop_s is None else stop_ns)
        return heapq.merge(*(self._scans(start_ns, stop_ns, name) for name in names), key=lambda scan: scan.stop_ns)

    def step(
        self,
        until_s: float,
        *,
        platform: Timed | None = None,
        objects: Objects = (),
        removed: Iterable[str] = (),
        points: bool = False,
        truth: bool = False,
    ) -> Step:
        """Move the platform and objects, and make the packets of the next stretch of rig time, as fast as the machine can.

        The packets are those whose last firing is after the end of the step before and at or before ``until_s``. Between two poses a body moves on a
        cubic curve with their velocities; velocities that are not given are the mean ones since the pose before. A body without a pose in a step stays
        where it is. The same poses at the same times give the same bytes; steps are independent of ``packets``, ``points`` and ``scans``.

        Args:
            until_s: End of the stretch in seconds of rig time; the first step may end at 0.
            platform: Pose (``Motion`` or ``Pose``, world from body) at ``until_s``, or up to 100 pairs of rig times in seconds and poses. Given in the first
                step it replaces the rig's platform; else the rig's own platform is used in all steps, unless it is ``external``.
            objects: Poses of objects of the rig's scene by their names, as for ``platform``; or ``TrackedObject`` values, each with its pose at
                ``until_s``. A ``TrackedObject`` with a name that the rig does not have is a new object; it needs a size.
            removed: Names of objects that are not seen any more from ``until_s`` on, until their next poses.
            points: Whether to give the points of the packets.
            truth: Whether to give what each return hit.

        Raises:
            AssetError: a file of the scene cannot be used.
            ConfigError: the rig has a vehicle, an object is unknown, or there are too many.
            ValueError: times are not in order, a pose is out of bounds, an object is faster than 100 m/s, or the emulator has a script.
        """
        until_ns = step_ns(until_s)
        if self._stepper is None:
            require((self._script is None, "an emulator that is stepped must have no script"))
            self._stepper = Stepper(self.rig, utc_epoch_ns=self._utc_epoch_ns, is_carried=platform is not None)
        committed(self._stepper, until_ns, platform, objects, removed)
        return stepped(self._stepper, until_ns, points=points, truth=truth)

    def follow(self, snapshots: Iterable[Snapshot], *, points: bool = False, truth: bool = False) -> Iterator[Step]:
        """Step through the snapshots of another program, each the end of a step; the first one is at rig time 0.

        Objects that are missing in a snapshot are not seen from its time on.

        Args:
            snapshots: Snapshots with increasing times.
            points: As for ``step``.
            truth: As for ``step``.

        Raises:
            HilsimError: as for ``step``.
            ValueError: as for ``step``.
        """
        first_ns: int | None = None
        present: set[str] = set()
        for snapshot in snapshots:
            first_ns = snapshot.time_ns if first_ns is None else first_ns
            names = {thing.name for thing in snapshot.objects}
            until_s = (snapshot.time_ns - first_ns) / 1e9
            yield self.step(
                until_s, platform=snapshot.platform, objects=snapshot.objects, removed=sorted(present - names), points=points, truth=truth
            )
            present = names

    def object_names(self) -> tuple[str, ...]:
        """Names of the objects in the rig's scene, and of those that steps have added; a point's ``instance`` is an index into them.

        Raises:
            AssetError: a file of the scene cannot be used.
            ConfigError: the rig's vehicle is flown by a controller.
        """
        if self._stepper is not None:
            return self._stepper.object_names
        scenery = self._offline(0).scenery
        return scenery.object_names if scenery else ()

    def object_labels(self) -> tuple[int, ...]:
        """Labels of the objects in the rig's scene, in the order of ``object_names``; those of objects that steps have added are left out.

        Raises:
            AssetError: a file of the scene cannot be used.
            ConfigError: the rig's vehicle is flown by a controller.
        """
        scenery = self._offline(0).scenery
        return tuple(thing.label for thing in scenery.objects) if scenery else ()

    def shapes(self, time_s: float = 0.0) -> tuple[Shape, ...]:
        """Compute the shapes of the scene's objects at an instant of rig time: name, label, mesh, pose in the world.

        Args:
            time_s: Seconds of rig time.

        Returns:
            One for each object, in the order of ``object_names``; objects that another simulator moves are left out.

        Raises:
            AssetError: a file of the scene cannot be used.
            ConfigError: the rig's vehicle is flown by a controller.
            ValueError: the time is before 0.
        """
        time_ns, _ = _stretch(time_s, time_s)
        scenery = self._offline(0).scenery
        return shapes_at(scenery.objects, time_ns) if scenery else ()

    def sensor_pose(self, time_s: float, sensor: str | None = None) -> Pose:
        """Compute the pose of a lidar in the world at an instant of rig time.

        Args:
            time_s: Seconds of rig time.
            sensor: Name of a lidar of the rig; optional for a single one.

        Returns:
            ``position_m`` and ``orientation`` (unit quaternion ``(w, x, y, z)``, world from sensor); its ``transform`` converts a point to the world's frame.

        Raises:
            AssetError: a file of the scene cannot be used.
            ConfigError: the rig's vehicle is flown by a controller.
            ValueError: no sensor has this name, or the time is before 0.
        """
        time_ns, _ = _stretch(time_s, time_s)
        lidar = self._lidar(sensor, time_ns)
        position_m, orientation = platform_state(lidar.platform, time_ns)
        return Pose(position_m=position_m, orientation=orientation) @ lidar.setting.setup.body_from_sensor

    def world_points(self, points: npt.NDArray[Any], sensor: str | None = None) -> npt.NDArray[np.float64]:
        """Compute the positions of points in the world, each from the sensor's pose when its firing left.

        Args:
            points: ``POINT_DTYPE[n]`` of this emulator.
            sensor: Name of the lidar that measured them; optional for a single one.

        Returns:
            ``float64[n, 3]`` in metres.

        Raises:
            AssetError: a file of the scene cannot be used.
            ConfigError: the rig's vehicle is flown by a controller.
            ValueError: no sensor has this name.
        """
        lidar = self._lidar(sensor, int(points["time"].max(initial=0)))
        mount = lidar.setting.setup.body_from_sensor
        positions_m = np.stack([points["x"], points["y"], points["z"]], axis=1).astype(np.float64)
        place_points(lidar.platform, np.array(mount.position_m), np.array(mount.orientation), np.ascontiguousarray(points["time"]), positions_m)
        return positions_m

    def _stretches(self, start_ns: int, stop_ns: int) -> Iterator[tuple[int, int]]:
        """Divide a stretch of rig time without an end into parts, each as long as all before it, if a part must move the platform over it."""
        if stop_ns < _FOR_EVER_NS or carrier(self.rig.spec) is None:
            yield start_ns, stop_ns
            return
        end_ns = start_ns + _FIRST_NS
        while True:
            yield start_ns, end_ns
            start_ns, end_ns = end_ns, 2 * end_ns

    def _points(self, start_ns: int, stop_ns: int, sensor: str | None) -> Iterator[npt.NDArray[Any]]:
        """Yield points of the firings in a stretch, batch by batch."""
        lidar = self._lidar(sensor, stop_ns)
        packet_ns = round(1e9 / lidar.setting.packet_rate_hz)
        last = lidar.first_data_packet(stop_ns + int(lidar.plan.data_latency_ns) + packet_ns)
        for _, _, points in _batches(lidar, lidar.first_data_packet(start_ns), last + 1, self._threads):
            yield _fired_within(points, start_ns, stop_ns)

    def _points_for_ever(self, start_ns: int, sensor: str | None) -> Iterator[npt.NDArray[Any]]:
        """Yield points of the firings from an instant on, batch by batch."""
        for first_ns, last_ns in self._stretches(start_ns, _FOR_EVER_NS):
            yield from self._points(first_ns, last_ns, sensor)

    def _scans(self, start_ns: int, stop_ns: int, sensor: str) -> Iterator[Scan]:
        """Yield whole scans of a lidar that begin in a stretch."""
        for first_ns, last_ns in self._stretches(start_ns, stop_ns):
            yield from _scans(self._lidar(sensor, last_ns), first_ns, last_ns, self._threads)

    def _lidar(self, sensor: str | None, stop_ns: int) -> LidarEmulator:
        """A lidar by its name, its platform moved far enough for the scans that begin until ``stop_ns``."""
        names = self.sensors
        require((bool(names), f"rig must have a lidar to be asked for, got none in {self.rig.name}"))
        require(
            (sensor is not None or len(names) == 1, f"sensor must be named in a rig of several ({', '.join(names)}), got None"),
            (sensor is None or sensor in names, f'sensor must be one of the rig\'s ({", ".join(names)}), got "{sensor}"'),
        )
        number = 0 if sensor is None else names.index(sensor)
        ahead_ns = _SCANS_AHEAD * max(lidar.family.scan_ns for lidar in self.rig.lidars)
        return self._offline(stop_ns + ahead_ns).lidars[number]

    def _offline(self, until_ns: int) -> OfflineRig:
        """The rig, its platform moved so far at least."""
        if self._built is None or (carrier(self.rig.spec) is not None and until_ns > self._moved_until_ns):
            self._moved_until_ns = max(until_ns, 2 * self._moved_until_ns)  # who goes on step by step has it moved anew a few times only
            self._built = build_offline(self.rig, utc_epoch_ns=self._utc_epoch_ns, until_ns=self._moved_until_ns, script=self._script)
        return self._built


def _stretch(start_s: float, stop_s: float | None) -> tuple[int, int]:
    """Nanoseconds of a stretch of rig time; None: without an end."""
    if stop_s is None:
        stop_s = _FOR_EVER_NS / 1e9
    require(
        (0.0 <= start_s < math.inf, f"start_s must be 0 or more, got {start_s}"),
        (start_s <= stop_s < math.inf, f"stop_s must not be before start_s, got {stop_s} after {start_s}"),
    )
    return round(start_s * 1e9), round(stop_s * 1e9)


def _scans(lidar: LidarEmulator, start_ns: int, stop_ns: int, threads: int) -> Iterator[Scan]:
    """Yield whole scans of a lidar that begin in a stretch."""
    first = max(lidar.first_data_packet(start_ns) - 1, 0)
    end = lidar.first_data_packet(stop_ns + _SCANS_AHEAD * lidar.setting.family.scan_ns)
    starts, begun_ns = own_part(lidar.setting, "scans").PART.starts(lidar), -1
    held = np.empty(0, POINT_DTYPE)
    for packet, payloads, points in _batches(lidar, first, end + 1, threads):
        held = np.concatenate([held, points]) if held.size else points
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
