"""Contents of a world as flat lists: every shape, lidar and actor with its pose in the world."""

import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from hilsim.world.geometry.poses import Pose

Vector = tuple[float, float, float]
FileStamp = tuple[str, int, int]
"""Stamp of a file: name, time of change in ns, and size."""
ShapeKind = Literal["box", "sphere", "cylinder", "capsule", "ellipsoid", "cone", "plane", "polyline", "mesh", "heightmap"]


@dataclass(frozen=True, kw_only=True)
class SdfShape:
    """A collision or visual shape.

    Attributes:
        name: Scoped name, ``model::link::collision``.
        kind: Kind of the shape.
        pose: Pose in the world.
        size_m: Size of a box, a plane (its last number is 0) or a heightmap.
        radii_m: Radii of an ellipsoid; for other round shapes, the radius three times.
        length_m: Length of a cylinder, a capsule (without its caps) or a cone; height of a polyline.
        rings_m: Corners of the polylines, each without its first corner at the end.
        normal: Unit normal of a plane.
        uri: URI of a mesh or a heightmap.
        file: File of the URI; None if there is none.
        missing: Reason that the file is missing, with ``file:line``; a fault only if the shape is used.
        scale: Scale of a mesh.
        submesh: Name of the part of the mesh to use; empty: all.
        is_centred: Whether that part is centred at the shape's origin.
        actor: Name of the actor that it belongs to; empty for none.
        position_m: Position of a visual heightmap, in addition to its pose.
        sampling: Sampling of a heightmap: number of heights per pixel of its image.
        where: Location of its element, ``file:line``.
    """

    name: str
    kind: ShapeKind
    pose: Pose
    size_m: Vector = (0.0, 0.0, 0.0)
    radii_m: Vector = (0.0, 0.0, 0.0)
    length_m: float = 0.0
    rings_m: tuple[tuple[tuple[float, float], ...], ...] = ()
    normal: Vector = (0.0, 0.0, 1.0)
    uri: str = ""
    file: Path | None = None
    missing: str = ""
    scale: Vector = (1.0, 1.0, 1.0)
    submesh: str = ""
    is_centred: bool = False
    actor: str = ""
    position_m: Vector = (0.0, 0.0, 0.0)
    sampling: int = 1
    where: str = ""


@dataclass(frozen=True, kw_only=True)
class SdfScan:
    """Rays of a lidar along one axis, from the first angle to the last, both included.

    Attributes:
        samples: Number of rays.
        min_rad: First angle.
        max_rad: Last angle.
    """

    samples: int
    min_rad: float = 0.0
    max_rad: float = 0.0


@dataclass(frozen=True, kw_only=True)
class SdfNoise:
    """Gaussian noise of ranges.

    Attributes:
        mean_m: Mean of the noise.
        stddev_m: Standard deviation of the noise.
        bias_mean_m: Mean of the constant bias, which is drawn once.
        bias_stddev_m: Standard deviation of the constant bias.
        precision_m: Ranges are rounded to multiples of it; 0: they are not rounded.
    """

    mean_m: float = 0.0
    stddev_m: float = 0.0
    bias_mean_m: float = 0.0
    bias_stddev_m: float = 0.0
    precision_m: float = 0.0


@dataclass(frozen=True, kw_only=True)
class SdfLidar:
    """A lidar.

    Attributes:
        name: Scoped name, ``model::link::sensor``.
        world: Name of the world; empty in a model's file.
        pose: Pose in the world: x forward, y left, z up.
        kind: Type of the sensor in the file.
        horizontal: Rays of a row.
        vertical: Rows.
        range_min_m: Minimum range, where rays start.
        range_max_m: Maximum range; may be infinite.
        noise: Noise of ranges; None without noise.
        update_rate_hz: Rate of scans; 0: each step.
        topic: Topic in the file; empty: Gazebo's default.
        frame: Frame of messages; empty: the sensor's scoped name.
        actor: Name of the actor that it belongs to; empty for none.
        where: Location of its element, ``file:line``.
    """

    name: str
    world: str = ""
    pose: Pose
    kind: str
    horizontal: SdfScan
    vertical: SdfScan
    range_min_m: float
    range_max_m: float
    noise: SdfNoise | None = None
    update_rate_hz: float = 0.0
    topic: str = ""
    frame: str = ""
    actor: str = ""
    where: str = ""

    @property
    def rays(self) -> int:
        """Number of rays of a scan."""
        return self.horizontal.samples * self.vertical.samples

    @property
    def scoped_topic(self) -> str:
        """Topic of the scans, changed to a valid one as in gz-transport; the topic of the points has ``/points`` appended."""
        return re.sub("@|~|//|:=", "", self._topic.replace(" ", "_"))

    @property
    def _topic(self) -> str:
        if self.topic:
            return self.topic
        *models, link, sensor = self.name.split("::")
        parts = [f"/world/{self.world}" if self.world else "", *(f"/model/{model}" for model in models), f"/link/{link}", f"/sensor/{sensor}/lidar"]
        return "".join(parts)

    @property
    def period_ms(self) -> int:
        """Interval between two scans, as in Gazebo: whole milliseconds, truncated."""
        return math.floor(1000.0 / self.update_rate_hz) if self.update_rate_hz > 0.0 else 0


@dataclass(frozen=True, kw_only=True)
class SdfWaypoint:
    """Pose of an actor at a time.

    Attributes:
        time_ms: Time in its trajectory.
        pose: Pose in the actor's frame.
    """

    time_ms: int
    pose: Pose


@dataclass(frozen=True, kw_only=True)
class SdfTrajectory:
    """A curve through waypoints.

    Attributes:
        waypoints: Waypoints with increasing times; the curve starts at the first one, whatever its time.
        tension: 0: a Catmull-Rom spline; 1: it stops at each waypoint.
    """

    waypoints: tuple[SdfWaypoint, ...] = ()
    tension: float = 0.0


@dataclass(frozen=True, kw_only=True)
class SdfActor:
    """A person who moves by a script; its skin and its links' visuals are visuals of the scene.

    Attributes:
        name: Name of the actor.
        trajectories: Trajectories in sequence; without a waypoint the actor stays at ``pose``.
        is_looped: Whether the sequence is repeated.
        delay_s: Delay before the start.
        pose: Pose in the world, which waypoints are relative to.
        where: Location of its element, ``file:line``.
    """

    name: str
    trajectories: tuple[SdfTrajectory, ...] = ()
    is_looped: bool = True
    delay_s: float = 0.0
    pose: Pose
    where: str = ""


def skin_name(actor: str) -> str:
    """Name of an actor's skin among the visuals."""
    return f"{actor}::skin"


@dataclass(frozen=True, kw_only=True)
class SdfModel:
    """A model.

    Attributes:
        name: Scoped name with those of the models that contain it: ``outer::inner``.
        pose: Pose in the world.
    """

    name: str
    pose: Pose


@dataclass(frozen=True, kw_only=True)
class SdfScene:
    """Contents of an SDF file.

    Attributes:
        path: Path of the file.
        name: Name of the world, or of the model.
        collisions: Shapes that rays of Gazebo's CPU lidar hit.
        visuals: Shapes that cameras and GPU lidars see.
        lidars: Lidars in the order of the file.
        actors: Actors in the order of the file.
        models: Models in the order of the file.
        unsupported: Unsupported parts, one sentence each with file and line.
        stamps: Stamps of all files that were searched for, found or not, at the time of the search.
    """

    path: Path
    name: str
    collisions: tuple[SdfShape, ...] = ()
    visuals: tuple[SdfShape, ...] = ()
    lidars: tuple[SdfLidar, ...] = ()
    actors: tuple[SdfActor, ...] = ()
    models: tuple[SdfModel, ...] = ()
    unsupported: tuple[str, ...] = field(default=())
    stamps: tuple[FileStamp, ...] = ()
