"""Events that outputs take: packets, scans and poses of a source, in the order of time."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from hilsim.api.packet import Packet
from hilsim.assembly.shapes import Shape
from hilsim.config.tables.classes import ClassSpec
from hilsim.errors import HilsimError
from hilsim.world.geometry.frames import Vector
from hilsim.world.geometry.poses import Pose

OUTPUT_DTYPE = np.dtype(
    [
        ("x", "<f4"),
        ("y", "<f4"),
        ("z", "<f4"),
        ("intensity", "u1"),
        ("return_type", "u1"),
        ("ring", "<u2"),
        ("range", "<f4"),
        ("offset_ns", "<i8"),
        ("label", "<i2"),
        ("instance", "<i4"),
    ]
)
"""A point of an ``OutputScan``, in the sensor's frame as ROS has it: x forward, y left, z up.

Attributes:
    x: Metres, forward.
    y: Metres, to the left.
    z: Metres, up.
    intensity: Byte of the packet.
    return_type: ``ReturnCode``.
    ring: Laser, counted from the lowest elevation (a Cepton-style sensor: the packet's channel).
    range: Metres from the sensor's origin.
    offset_ns: Time of the firing from the scan's stamp.
    label: Label of the object in the ground truth; -1 without an object, or where no truth is known.
    instance: Number of the object; -1 likewise.
"""

HOUR_NS = 3_600_000_000_000
"""Nanoseconds of an hour."""
UNKNOWN, LAST, FIRST, STRONGEST, SECOND = 0, 1, 2, 3, 7
"""Values of ``return_type``, as Autoware's ``ReturnType`` has them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OutputScan:
    """One turn, or one scan of an image, of one sensor.

    Attributes:
        sensor: Name of the sensor.
        number: Number of the scan, from 0 for each sensor.
        stamp_ns: UTC of the first firing.
        is_sensor_time: Whether that is by the sensor's clock, and not by the host's.
        points: ``OUTPUT_DTYPE[n]`` in the order of their firings in the packets.
        further: Fields of the points that only the sensor's family has, ``[n]``; None without any.
        is_labelled: Whether labels and instances are known.
        pose: Pose of the sensor (x forward, y left) in the world at the stamp; None where it is not known.
        world_m: ``float64[n, 3]``, each point in the world by the sensor's pose when it fired; None where that is not known.
        host_stamp_ns: UTC by the host's clock at which the scan's first packet was sent; None where that is the clock of ``stamp_ns``.
    """

    sensor: str
    number: int
    stamp_ns: int
    is_sensor_time: bool
    points: npt.NDArray[Any]
    further: npt.NDArray[Any] | None = None
    is_labelled: bool = False
    pose: Pose | None = None
    world_m: npt.NDArray[np.float64] | None = None
    host_stamp_ns: int | None = None

    def on_host_clock(self) -> "OutputScan":
        """The scan stamped by the clock of the packets."""
        return self if self.host_stamp_ns is None else replace(self, stamp_ns=self.host_stamp_ns, is_sensor_time=False)

    @property
    def xyz_m(self) -> npt.NDArray[np.float32]:
        """``float32[n, 3]``, positions in the sensor's frame."""
        return np.stack([self.points[axis] for axis in "xyz"], axis=1)


@dataclass(frozen=True, kw_only=True, slots=True)
class BodyPose:
    """Pose of what carries the sensors.

    Attributes:
        stamp_ns: UTC.
        pose: World from body; x east, y north, z up, and x forward, y left, z up.
        velocity_mps: Velocity in the world.
        rates_radps: Angular velocity in the body frame; None where it is not known.
        force_mps2: Specific force in the body frame, as an accelerometer measures it; None where it is not known.
    """

    stamp_ns: int
    pose: Pose
    velocity_mps: Vector = (0.0, 0.0, 0.0)
    rates_radps: Vector | None = None
    force_mps2: Vector | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Fix:
    """Position by a sensor's GPS input.

    Attributes:
        sensor: The sensor.
        stamp_ns: UTC.
        latitude_deg: Latitude, WGS 84.
        longitude_deg: Longitude.
    """

    sensor: str
    stamp_ns: int
    latitude_deg: float
    longitude_deg: float


@dataclass(frozen=True, kw_only=True, slots=True)
class SceneShapes:
    """Objects of the scene: all at first, afterwards those that are new or have changed.

    Attributes:
        stamp_ns: UTC.
        shapes: The objects.
        removed: Names of the objects that are there no more.
    """

    stamp_ns: int
    shapes: tuple[Shape, ...]
    removed: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class StateReport:
    """State of a daemon: its sensors, their timing, its health.

    Attributes:
        stamp_ns: UTC.
        state: As ``hilsim control ADDRESS state`` gives it, with ``health``.
    """

    stamp_ns: int
    state: Mapping[str, object]


Event = Packet | OutputScan | BodyPose | Fix | SceneShapes | StateReport


@dataclass(kw_only=True)
class SourceInfo:
    """Description of a source before its first event; sensors of a capture are added as they come.

    Attributes:
        name: Name of the source for people.
        mounts: Pose of each sensor (x forward, y left) in the body; the identity where it is not known.
        models: Model of each sensor, as far as it is known.
        objects: Names of the objects of the ground truth, by instance; empty without.
        labels: Label of each object.
        classes: Classes of labels; a label without one is a number of the data set's own.
        is_simulated: Whether there is a ground truth, and time is rig time.
        has_body: Whether the pose of what carries the sensors is among the events; else scans have the sensors' own, as far as they are known.
        remarks: Sentences on what is not as in a source that knows everything.
    """

    name: str
    mounts: dict[str, Pose] = field(default_factory=dict)
    models: dict[str, str] = field(default_factory=dict)
    objects: tuple[str, ...] = ()
    labels: tuple[int, ...] = ()
    classes: Mapping[int, ClassSpec] = field(default_factory=dict)
    is_simulated: bool = False
    has_body: bool = True
    remarks: list[str] = field(default_factory=list)


class Output(Protocol):
    """Something that is written event by event."""

    def write(self, event: Event) -> None:
        """Take the next event; what it does not need is ignored.

        Raises:
            HilsimError: it cannot be written.
            OSError: the same.
        """
        ...

    def close(self) -> None:
        """Complete the output."""
        ...


@contextmanager
def completed(output: Output, path: Path) -> Iterator[Output]:
    """Close an output at the end; after an error remove its file, so that nothing half done is left."""
    try:
        yield output
    except BaseException:
        with suppress(HilsimError, OSError):
            output.close()
        if path.is_file():
            path.unlink()
        raise
    output.close()


def first_time_ns(points: npt.NDArray[Any], *, cycle_ns: int) -> int:
    """Time of the first firing of a scan's points; 0 without points.

    Args:
        points: Points of ``hilsim.read.scans.points``.
        cycle_ns: Time after which their times begin again at 0, which may be within the scan; 0: they do not.
    """
    times = points["time"]
    if not times.size:
        return 0
    first_ns = int(times.min())
    if cycle_ns and int(times.max()) - first_ns > cycle_ns // 2:
        first_ns = int(times[times > first_ns + HOUR_NS // 2].min())
    return first_ns


def output_points(points: npt.NDArray[Any], stamp_ns: int, return_type: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
    """Points of ``hilsim.read.scans.points`` (x right, y forward) as ``OUTPUT_DTYPE``; ``stamp_ns`` is the zero of ``offset_ns``, in the points' own time."""
    made = np.zeros(points.size, OUTPUT_DTYPE)
    made["x"], made["y"], made["z"] = points["y"], -points["x"], points["z"]
    made["intensity"], made["ring"], made["return_type"] = points["intensity"], points["ring"], return_type
    if "range" in (points.dtype.names or ()):
        made["range"] = points["range"]
    else:
        x, y, z = (points[axis].astype(np.float64) for axis in "xyz")
        made["range"] = np.sqrt(x * x + y * y + z * z)
    offset_ns = points["time"] - stamp_ns
    made["offset_ns"] = offset_ns + np.where(offset_ns < -HOUR_NS // 2, HOUR_NS, 0)
    has_truth = "label" in (points.dtype.names or ())
    made["label"] = points["label"] if has_truth else -1
    made["instance"] = points["instance"] if has_truth else -1
    return made
