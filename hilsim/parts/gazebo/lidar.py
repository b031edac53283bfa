"""A lidar of an SDF world: its measurements and their times.

Rays start at the minimum range and end at the maximum, both measured from the sensor. A hit between them is a range; a miss is infinity, and so is
a target nearer than the minimum, because the ray starts behind it. Noise is Gaussian, with a constant bias drawn once, and never moves a range out of the sensor's span.
Source: gz-sensors, ``CpuLidarSensor.cc`` and ``GaussianNoiseModel.cc``.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.protocols.gazebo import RayFan, laser_scan, point_cloud
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.rotations import matrix_from_quaternion
from hilsim.world.render.cpu import cast_many
from hilsim.world.scene.successive import SuccessiveWorlds
from hilsim.world.scene.world import World
from hilsim.world.sdf.carriages import Carriages
from hilsim.world.sdf.solids import containing, reach_m
from hilsim.world.sdf.specs import SdfLidar, SdfNoise, SdfShape

Ranges = npt.NDArray[np.float64]

STEP_MS = 1
"""Period of a lidar without a rate, in a world that sets no other step."""
_PAST_M = 1e-4
"""Distance behind a solid's wall at which a ray that started inside continues."""
_MAX_SOLIDS = 64
_STREAM = 0x6761_7A65
"""Random stream, different from those of all other parts of a rig."""


class Noise:
    """Noise of a lidar's ranges, seeded."""

    def __init__(self, spec: SdfNoise, *, seed: int, number: int) -> None:
        self._spec = spec
        self._draws = np.random.default_rng((seed, _STREAM, number))
        bias_m = float(self._draws.normal(spec.bias_mean_m, spec.bias_stddev_m))
        self.bias_m = -bias_m if self._draws.random() < 0.5 else bias_m

    def on(self, ranges_m: Ranges, least_m: float, most_m: float) -> Ranges:
        """Add noise to ranges; infinite ones stay unchanged."""
        spec, is_range = self._spec, np.isfinite(ranges_m)
        found = ranges_m + self.bias_m + self._draws.normal(spec.mean_m, spec.stddev_m, ranges_m.shape)
        if spec.precision_m > 1e-6:
            found = np.round(found / spec.precision_m) * spec.precision_m
        return np.where(is_range, np.clip(found, least_m, most_m), ranges_m)


class _View(NamedTuple):
    """Rays of a scan: origins, directions, and rays that ignore each object."""

    origin_m: npt.NDArray[np.float64]
    direction: npt.NDArray[np.float32]
    left_out: dict[int, npt.NDArray[np.bool_]]


class GazeboLidar:
    """A lidar in a world.

    Args:
        spec: Specification of the lidar.
        world: World that it sees.
        object_names: Names of the world's objects, by number.
        solids: Collisions of the same file; a ray that starts inside one ignores it.
        stand: Pose of the file's origin in the world.
        carriages: Motions of the file; None for none.
        seed: Random seed of the rig.
        number: Number of the lidar in its file.
    """

    def __init__(
        self,
        spec: SdfLidar,
        world: World,
        *,
        object_names: Sequence[str] = (),
        solids: Sequence[SdfShape] = (),
        stand: Pose | None = None,
        carriages: Carriages | None = None,
        seed: int = 0,
        number: int = 0,
    ) -> None:
        self.spec = spec
        self.fan = fan_of(spec)
        self.frame = spec.frame or spec.name
        self._worlds = SuccessiveWorlds(world)
        self._unit = self.fan.directions()
        self._noise = Noise(spec.noise, seed=seed, number=number) if spec.noise is not None else None
        self._stand = stand or Pose()
        self._carriages = carriages or Carriages()
        self._numbers = {name: number for number, name in enumerate(object_names)}
        known = [shape for shape in solids if shape.name in self._numbers]
        self._carried = [shape for shape in known if self._carriages.of(shape) is not None]
        self._standing = [(shape, self._where(shape, 0)) for shape in known if self._carriages.of(shape) is None]
        self._centres_m = np.array([pose.position_m for _, pose in self._standing]).reshape(-1, 3)
        self._reaches_m = np.array([reach_m(shape) for shape, _ in self._standing])
        moves = bool(self._carried) or self._carriages.of(spec) is not None
        self._still = None if moves else self._view(0)

    def see_later(self, from_ns: int, world: World) -> None:
        """Set the world that it sees from a rig time on; the objects that there were keep their numbers."""
        self._worlds.add(from_ns, world)

    def pose_at(self, time_ns: int) -> Pose:
        """Pose in the world at a rig time."""
        return self._where(self.spec, time_ns)

    def _where(self, thing: SdfShape | SdfLidar, time_ns: int) -> Pose:
        carriage, pose = self._carriages.of(thing), self._stand @ thing.pose
        return pose if carriage is None else carriage.pose_at(pose, time_ns)

    def _view(self, time_ns: int) -> "_View":
        """Rays at a rig time."""
        pose = self.pose_at(time_ns)
        direction = self._unit @ matrix_from_quaternion(pose.orientation).T
        origin_m = np.array(pose.position_m) + direction * self.spec.range_min_m
        is_near = np.linalg.norm(self._centres_m - np.array(pose.position_m), axis=1) <= self._reaches_m + self.spec.range_min_m
        placed = [self._standing[row] for row in np.flatnonzero(is_near)] + [(shape, self._where(shape, time_ns)) for shape in self._carried]
        around = containing(placed, origin_m)
        return _View(origin_m, direction.astype(np.float32), {self._numbers[name]: mask for name, mask in around.items()})

    @property
    def period_ns(self) -> int:
        """Interval between two measurements."""
        return (self.spec.period_ms or STEP_MS) * 1_000_000

    def times_ns(self, start_ns: int, stop_ns: int) -> Iterator[int]:
        """Times of measurements, from ``start_ns`` to before ``stop_ns``."""
        return iter(range(-(-start_ns // self.period_ns) * self.period_ns, stop_ns, self.period_ns))

    def true_ranges_m(self, time_ns: int) -> Ranges:
        """True ranges of its rays at a rig time, ``float64[V * H]``, without noise."""
        rays, reach_m = self.spec.rays, self.spec.range_max_m - self.spec.range_min_m
        view = self._still or self._view(time_ns)
        gone_m = np.zeros(rays)
        met_m = np.full(rays, np.inf)
        left = np.arange(rays)
        for _ in range(_MAX_SOLIDS):
            origin_m = view.origin_m[left] + view.direction[left] * gone_m[left, np.newaxis]
            range_m, thing = self._cast(origin_m, view.direction[left], time_ns, reach_m)
            met_m[left] = gone_m[left] + range_m
            again = np.zeros(len(left), bool)
            for number, mask in view.left_out.items():
                again |= (thing == number) & mask[left]
            left = left[again]
            if len(left) == 0:
                break
            gone_m[left] = met_m[left] + _PAST_M
        found = self.spec.range_min_m + met_m
        return np.where(found <= self.spec.range_max_m, found, np.inf)

    def _cast(
        self, origin_m: npt.NDArray[np.float64], direction: npt.NDArray[np.float32], time_ns: int, reach_m: float
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int32]]:
        """Ranges of rays, and the numbers of the objects that they hit; -1 for a miss."""
        count = len(origin_m)
        range_m, instance, triangle = np.empty(count, np.float32), np.empty(count, np.int32), np.empty(count, np.int32)
        times = np.full(count, time_ns, np.int64)
        world = self._worlds.at(time_ns)
        cast_many(world, origin_m, np.ascontiguousarray(direction), times, min(reach_m, 1e6), range_m, instance, triangle)
        in_tile = (instance >= 0) & (instance < world.tile_count)
        thing = np.full(count, -1, np.int32)
        thing[in_tile] = world.owner[triangle[in_tile]]
        moves = instance >= world.tile_count
        thing[moves] = world.instance_object[instance[moves]]
        return range_m, thing

    @property
    def angles_rad(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Azimuths of a row, counter-clockwise from forward, and elevations of the rows."""
        fan = self.fan
        around = fan.horizontal_min_rad + fan.horizontal_step_rad * np.arange(fan.horizontal_samples, dtype=np.float64)
        return around, fan.vertical_min_rad + fan.vertical_step_rad * np.arange(fan.vertical_samples, dtype=np.float64)

    def ranges_m(self, time_ns: int) -> Ranges:
        """Measured ranges ``float64[V * H]``, the lowest row first; each call draws new noise."""
        true_m = self.true_ranges_m(time_ns)
        return true_m if self._noise is None else self._noise.on(true_m, self.spec.range_min_m, self.spec.range_max_m)

    def laser_scan(self, ranges_m: Ranges, *, time_ns: int, sequence: int) -> bytes:
        """Encode a measurement as a ``LaserScan``."""
        return laser_scan(
            self.fan, ranges_m, time_ns=time_ns, sequence=sequence, frame=self.frame, pose=self._stand.inverse() @ self.pose_at(time_ns)
        )

    def point_cloud(self, ranges_m: Ranges, *, time_ns: int, sequence: int) -> bytes:
        """Encode a measurement as a ``PointCloudPacked``."""
        return point_cloud(self.fan, ranges_m, time_ns=time_ns, sequence=sequence, frame=self.frame)


def fan_of(spec: SdfLidar) -> RayFan:
    """Rays of a lidar."""
    return RayFan(
        horizontal_samples=spec.horizontal.samples,
        horizontal_min_rad=spec.horizontal.min_rad,
        horizontal_max_rad=spec.horizontal.max_rad,
        vertical_samples=spec.vertical.samples,
        vertical_min_rad=spec.vertical.min_rad,
        vertical_max_rad=spec.vertical.max_rad,
        range_min_m=spec.range_min_m,
        range_max_m=spec.range_max_m,
    )
