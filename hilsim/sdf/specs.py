"""What a world holds, flattened: every shape, lidar and actor with its pose in the world."""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from hilsim.geometry.poses import Pose

Vector = tuple[float, float, float]
FileStamp = tuple[str, int, int]
"""Name, time of change in ns and size of a file."""
ShapeKind = Literal["box", "sphere", "cylinder", "capsule", "ellipsoid", "cone", "plane", "mesh", "heightmap"]


@dataclass(frozen=True, kw_only=True)
class SdfShape:
    """A collision or visual shape.

    Attributes:
        name: ``model::link::collision``.
        kind: Which shape.
        pose: In the world.
        size_m: Of a box, a plane (its last number is 0) or a heightmap.
        radii_m: Of an ellipsoid; of what is round, its radius thrice.
        length_m: Of a cylinder, a capsule (without its caps) or a cone.
        normal: Of a plane; of length 1.
        uri: Of a mesh or a heightmap.
        file: What the URI names; None where there is none.
        missing: Why there is no such file, with ``file:line``; a fault only where the shape is asked for.
        scale: Of a mesh.
        submesh: The one part of the mesh that counts; empty: all.
        is_centred: That part is put at the shape's own zero.
        actor: Name of the actor that carries it; empty: none does.
        position_m: Of a heightmap that is seen, beside its pose.
        sampling: Of a heightmap: heights in place of one of its image.
        where: ``file:line`` of its element.
    """

    name: str
    kind: ShapeKind
    pose: Pose
    size_m: Vector = (0.0, 0.0, 0.0)
    radii_m: Vector = (0.0, 0.0, 0.0)
    length_m: float = 0.0
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
        samples: How many.
        resolution: Of the element; Gazebo's CPU lidar ignores it.
        min_rad: First angle.
        max_rad: Last angle.
    """

    samples: int
    resolution: float = 1.0
    min_rad: float = 0.0
    max_rad: float = 0.0

    @property
    def step_rad(self) -> float:
        """Between two rays; 0 for one."""
        return (self.max_rad - self.min_rad) / (self.samples - 1) if self.samples > 1 else 0.0


@dataclass(frozen=True, kw_only=True)
class SdfNoise:
    """Gaussian noise of ranges.

    Attributes:
        mean_m: Of each range.
        stddev_m: Of each range.
        bias_mean_m: Of the bias that is drawn once.
        bias_stddev_m: Of the same.
        precision_m: Ranges are multiples of it; 0: they are not rounded.
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
        name: ``model::link::sensor``.
        world: Name of the world; empty in a model's file.
        pose: In the world: x forward, y left, z up.
        kind: The sensor's type as the file has it.
        horizontal: Rays of a row.
        vertical: Rows.
        range_min_m: Where rays begin.
        range_max_m: Where they end; may be infinite.
        range_resolution_m: Of the element; Gazebo's CPU lidar ignores it.
        noise: None without.
        update_rate_hz: 0: each step.
        is_always_on: Measures without subscribers.
        topic: As the file has it; empty: Gazebo's own.
        frame: Of messages; empty: the sensor's scoped name.
        actor: Name of the actor that carries it; empty: none does.
        where: ``file:line`` of its element.
    """

    name: str
    world: str = ""
    pose: Pose
    kind: str
    horizontal: SdfScan
    vertical: SdfScan
    range_min_m: float
    range_max_m: float
    range_resolution_m: float = 0.0
    noise: SdfNoise | None = None
    update_rate_hz: float = 0.0
    is_always_on: bool = False
    topic: str = ""
    frame: str = ""
    actor: str = ""
    where: str = ""

    @property
    def rays(self) -> int:
        """Of a scan."""
        return self.horizontal.samples * self.vertical.samples

    @property
    def scoped_topic(self) -> str:
        """Where scans are published; the points at ``/points`` behind it."""
        if self.topic:
            return self.topic
        *models, link, sensor = self.name.split("::")
        parts = [f"/world/{self.world}" if self.world else "", *(f"/model/{model}" for model in models), f"/link/{link}", f"/sensor/{sensor}/lidar"]
        return "".join(parts)

    @property
    def period_ms(self) -> int:
        """Between two scans, as Gazebo has it: whole milliseconds, cut off."""
        return math.floor(1000.0 / self.update_rate_hz) if self.update_rate_hz > 0.0 else 0


@dataclass(frozen=True, kw_only=True)
class SdfWaypoint:
    """Where an actor is at a time.

    Attributes:
        time_ms: Of its trajectory.
        pose: In the actor's frame.
    """

    time_ms: int
    pose: Pose


@dataclass(frozen=True, kw_only=True)
class SdfTrajectory:
    """A curve through waypoints.

    Attributes:
        waypoints: Times rising; the first one is where it begins, whatever its time.
        tension: 0: a Catmull-Rom spline; 1: it stops at each waypoint.
    """

    waypoints: tuple[SdfWaypoint, ...] = ()
    tension: float = 0.0


@dataclass(frozen=True, kw_only=True)
class SdfActor:
    """A person who moves by a script; its skin and its links' visuals are among the scene's visuals.

    Attributes:
        name: Of the actor.
        trajectories: One after another; without a waypoint it stays at ``pose``.
        is_looped: It begins again.
        delay_s: Before it begins.
        pose: In the world: where waypoints count from.
        where: ``file:line`` of its element.
    """

    name: str
    trajectories: tuple[SdfTrajectory, ...] = ()
    is_looped: bool = True
    delay_s: float = 0.0
    pose: Pose
    where: str = ""


def skin_name(actor: str) -> str:
    """Of an actor's skin among the visuals."""
    return f"{actor}::skin"


@dataclass(frozen=True, kw_only=True)
class SdfModel:
    """A model.

    Attributes:
        name: With those of the models that contain it: ``outer::inner``.
        pose: In the world.
    """

    name: str
    pose: Pose


@dataclass(frozen=True, kw_only=True)
class SdfScene:
    """What was read.

    Attributes:
        path: The file.
        name: Of the world, or of the model.
        is_world: It is a world.
        collisions: Shapes that rays of Gazebo's CPU lidar hit.
        visuals: Shapes that are seen.
        lidars: In the order of the file.
        actors: In the order of the file.
        models: In the order of the file.
        unsupported: What was left out, a sentence each with file and line.
        stamps: Of every file that was looked for, found or not, when it was.
    """

    path: Path
    name: str
    is_world: bool
    collisions: tuple[SdfShape, ...] = ()
    visuals: tuple[SdfShape, ...] = ()
    lidars: tuple[SdfLidar, ...] = ()
    actors: tuple[SdfActor, ...] = ()
    models: tuple[SdfModel, ...] = ()
    unsupported: tuple[str, ...] = field(default=())
    stamps: tuple[FileStamp, ...] = ()
