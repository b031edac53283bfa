"""Objects of a scene, as frozen values with their rules: keys of every object, and objects read from files.

Frames: as in ``specs``.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from hilsim.errors import require
from hilsim.limits import COORDINATE_M, SHAPE_TRIANGLES, SIZE_M

Vector = tuple[float, float, float]
Rule = tuple[bool, str]

ZERO: Vector = (0.0, 0.0, 0.0)
MAX_M = COORDINATE_M.bound
LARGEST_LABEL = 255
LONGEST_TRACK_S = 1e8
CLOSED_WITHIN_M = CLOSED_WITHIN_DEG = 1e-6
FINEST_RATIO = 100_000


def finite(name: str, values: Iterable[float]) -> Rule:
    """Rule that coordinates are finite and within bounds."""
    numbers = tuple(values)
    holds = all(math.isfinite(value) and abs(value) <= MAX_M for value in numbers)
    return holds, f"{name} must be finite and at most {MAX_M:.0e}, got {numbers}"


def positive(name: str, value: float) -> Rule:
    """Rule that a number is above 0."""
    return 0.0 < value <= MAX_M, f"{name} must be above 0 and at most {MAX_M:.0e}, got {value}"


def sized(name: str, *values: float) -> Rule:
    """Rule that lengths of a shape are within bounds."""
    numbers = values if len(values) > 1 else values[0]
    holds = all(SIZE_M.holds(value) and value <= MAX_M for value in values)
    return holds, f"{name} must be at least {SIZE_M.text} and at most {MAX_M:.0e}, got {numbers}"


def tessellation(radius_m: float, tolerance_m: float, count: Callable[[float, float], int]) -> Iterator[Rule]:
    """Rules for a round shape with ``count(radius_m, tolerance_m)`` triangles."""
    yield positive("tolerance_m", tolerance_m)
    if tolerance_m > 0.0:
        ratio = radius_m / tolerance_m
        yield (
            ratio <= FINEST_RATIO,
            f"tolerance_m must be at least radius_m / {FINEST_RATIO:.0f} (triangles grow with it), got radius_m / {ratio:.0f}",
        )
        if radius_m > 0.0 and ratio <= FINEST_RATIO:
            yield SHAPE_TRIANGLES.rule(count(radius_m, tolerance_m), "triangles (a larger tolerance_m needs fewer)")


def _named(name: str, value: str) -> Rule:
    return bool(value.strip()), f"{name} must not be empty"


@dataclass(frozen=True, kw_only=True)
class WaypointSpec:
    """Pose of an object at a rig time, in the scene's frame.

    Attributes:
        time_s: Rig time.
        position_m: Position of the object's frame.
        rotation_deg: Roll, pitch and yaw of the object's frame.
    """

    time_s: float
    position_m: Vector
    rotation_deg: Vector = ZERO

    def __post_init__(self) -> None:
        require(
            (0.0 <= self.time_s <= LONGEST_TRACK_S, f"time_s must be 0 to {LONGEST_TRACK_S:.0e}, got {self.time_s}"),
            finite("position_m", self.position_m),
            finite("rotation_deg", self.rotation_deg),
        )


@dataclass(frozen=True, kw_only=True)
class MotionSpec:
    """Motion through the scene; between waypoints an object turns the shorter way.

    Attributes:
        waypoints: At least two waypoints with increasing times.
        loop: Whether to repeat; the last waypoint must then have the first one's pose, so that the motion is continuous.
        interpolation: ``linear``: straight lines at constant speed; ``smooth``: a curve without corners.
    """

    waypoints: tuple[WaypointSpec, ...]
    loop: bool = False
    interpolation: Literal["linear", "smooth"] = "linear"

    def __post_init__(self) -> None:
        times = [waypoint.time_s for waypoint in self.waypoints]
        late = [row for row in range(1, len(times)) if round(times[row] * 1e9) <= round(times[row - 1] * 1e9)]
        require(
            (len(times) >= 2, f"waypoints must be at least 2, got {len(times)}"),
            *((False, f"waypoint {row} must be later than the one before at {times[row - 1]} s, got {times[row]} s") for row in late),
            *(self._loop_rules() if self.loop and len(times) >= 2 else ()),
        )

    def _loop_rules(self) -> Iterator[Rule]:
        first, last = self.waypoints[0], self.waypoints[-1]
        gap_m = math.dist(first.position_m, last.position_m)
        turn_deg = max(abs(math.remainder(b - a, 360.0)) for a, b in zip(first.rotation_deg, last.rotation_deg, strict=True))
        yield gap_m <= CLOSED_WITHIN_M, f"a loop's last waypoint must be at the first one's position_m, got {gap_m:.6g} m away"
        yield turn_deg <= CLOSED_WITHIN_DEG, f"a loop's last waypoint must have the first one's rotation_deg, got {turn_deg:.6g} degrees off"


@dataclass(frozen=True, kw_only=True)
class SdfMotionSpec:
    """Motion of a model of the SDF file, with its shapes, nested models and lidars.

    Attributes:
        model: Name of the model; a nested one is ``outer::inner``.
        motion: Poses of the model's frame in the scene.
        file: Trajectory file (.csv, .tum, .txt) in place of ``motion``, relative to the rig; its first pose is at rig time 0.
        loop: Whether to repeat the file; its first and last pose must be equal.
    """

    model: str
    motion: MotionSpec | None = None
    file: str = ""
    loop: bool = False

    def __post_init__(self) -> None:
        require(
            (bool(self.model.strip()), "model must name a model of the SDF file"),
            (bool(self.file) != (self.motion is not None), "motion or file must be given, and not both"),
            (bool(self.file) or not self.loop, "loop requires file (a motion has a loop key of its own)"),
        )


@dataclass(frozen=True, kw_only=True)
class ObjectSpec:
    """Keys of every object.

    Attributes:
        position_m: Position of the shape's origin in the object's frame.
        rotation_deg: Roll, pitch and yaw of the shape in the object's frame.
        material: Name of a built-in material or of one in ``[scene.materials]``; for a mesh, the material of parts without a known one.
        label: Class in the ground truth, 0 to 255; the rig defines the numbers.
        name: Name in messages; by default the index in the table.
        motion: Motion of the object's frame; by default it is at the scene's origin.
        stand_on_ground: Put the object's lowest point on the ground below ``position_m``; z of ``position_m`` is then the height above the ground.
    """

    position_m: Vector = ZERO
    rotation_deg: Vector = ZERO
    material: str = "concrete"
    label: int = 0
    name: str = ""
    motion: MotionSpec | None = None
    stand_on_ground: bool = False

    def __post_init__(self) -> None:
        require(*self.rules())

    def rules(self) -> Iterator[Rule]:
        """Yield each rule as a condition and its error message."""
        yield finite("position_m", self.position_m)
        yield finite("rotation_deg", self.rotation_deg)
        yield _named("material", self.material)
        yield 0 <= self.label <= LARGEST_LABEL, f"label must be 0 to {LARGEST_LABEL}, got {self.label}"
        yield self.motion is None or not self.stand_on_ground, "stand_on_ground must be of an object without a motion"

    def material_names(self) -> tuple[str, ...]:
        """Names of all materials of the object."""
        return (self.material,)


@dataclass(frozen=True, kw_only=True)
class MeshSpec(ObjectSpec):
    """A mesh file.

    Attributes:
        file: OBJ, PLY, STL, COLLADA (DAE), glTF or GLB file; relative to the rig's directory. ``hilsim:NAME``: an object of hilsim's library.
        scale: Metres per unit of the file; in addition to the unit stored in a COLLADA file.
        up: The file's upward axis; ``auto``: y for glTF and GLB (by their standard), z for the others (the ``up_axis`` of a COLLADA file is ignored, as in Gazebo).
        materials: Mapping of the file's material names to the rig's materials.
        colours: Whether the colours of a PLY, glTF or GLB file (of vertices, faces or an image) vary the reflectivity: a triangle's is its material's times
            its brightness over the mean brightness of that material. Triangles under an image are divided to 0.25 units.
    """

    file: str
    scale: float = 1.0
    up: Literal["auto", "z", "y"] = "auto"
    materials: dict[str, str] = field(default_factory=dict)
    colours: bool = False

    def rules(self) -> Iterator[Rule]:
        """Yield each rule as a condition and its error message."""
        yield from super().rules()
        yield _named("file", self.file)
        yield positive("scale", self.scale)

    def material_names(self) -> tuple[str, ...]:
        """Names of all materials of the object."""
        return (self.material, *self.materials.values())


@dataclass(frozen=True, kw_only=True)
class TerrainSpec(ObjectSpec):
    """Ground from a height map: a 16-bit PNG or a GeoTIFF (16 or 32-bit integers, floating point), north up, in metres on the ground.

    Reading it requires the extra ``terrain``. The map's south-west corner is at ``position_m``; with ``georeferenced`` it is at the position stored in the
    GeoTIFF instead (plus ``position_m``). Terrain does not move.

    Attributes:
        file: PNG or GeoTIFF file, relative to the rig's directory.
        size_m: East-west and north-south extent between the outermost heights. A PNG needs this or ``pixel_m``; by default a GeoTIFF's own pixel size is used.
        pixel_m: Distance between heights, in place of ``size_m``.
        height_min_m: Height of the format's smallest value (integers only); requires ``height_max_m``.
        height_max_m: Height of the format's largest value; requires ``height_min_m``.
        scale_m: Metres per step, in place of the two heights; requires ``offset_m``. Without any of these a GeoTIFF's values are metres.
        offset_m: Height of value 0; requires ``scale_m``.
        georeferenced: Whether to use the file's own origin (tags of a GeoTIFF, or a world file such as ``.tfw`` beside it).
    """

    file: str
    material: str = "grass"
    size_m: tuple[float, float] | None = None
    pixel_m: float | None = None
    height_min_m: float | None = None
    height_max_m: float | None = None
    scale_m: float | None = None
    offset_m: float | None = None
    georeferenced: bool = False

    def rules(self) -> Iterator[Rule]:
        """Yield each rule as a condition and its error message."""
        yield from super().rules()
        yield _named("file", self.file)
        yield self.motion is None, "terrain must not have a motion"
        yield not self.stand_on_ground, "terrain must not have stand_on_ground: it is ground itself"
        yield self.size_m is None or self.pixel_m is None, "terrain must have size_m or pixel_m, got both"
        own_size = self.size_m is None and self.pixel_m is None
        yield not self.georeferenced or own_size, "georeferenced terrain must have the file's own size, got size_m or pixel_m as well"
        if self.size_m is not None:
            yield sized("size_m", *self.size_m)
        if self.pixel_m is not None:
            yield sized("pixel_m", self.pixel_m)
        yield from self._height_rules()

    def _height_rules(self) -> Iterator[Rule]:
        span = (self.height_min_m, self.height_max_m)
        steps = (self.scale_m, self.offset_m)
        yield span.count(None) != 1, "height_min_m and height_max_m must be given together"
        yield span.count(None) == 2 or steps.count(None) == 2, "terrain must have height_min_m and height_max_m or scale_m and offset_m, got both"
        if self.scale_m is None:
            yield self.offset_m is None, "offset_m must come with scale_m"
        else:
            yield positive("scale_m", self.scale_m)
        yield finite("heights", (value for value in (*span, self.offset_m) if value is not None))
        if self.height_min_m is not None and self.height_max_m is not None:
            yield self.height_min_m < self.height_max_m, f"height_max_m must be above height_min_m, got {self.height_max_m} and {self.height_min_m}"
