"""Pulses of the other sensors of a rig, as a sensor's receiver meets them: when each fires, and where to, in the body frame that they share.

All of it is a function of device time, so the pulse that another sensor fires at some instant is computed, never looked up: no packet depends on another one.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import by_reference, kernel
from hilsim.sensor.head import Head, head_turns, no_head
from hilsim.sensor.mirror import Mirror, image_point, no_mirror
from hilsim.sensor.specs import BeamSpec
from hilsim.world.geometry.frames import Quaternion, Vector
from hilsim.world.geometry.rotations import rotate

MIN_HALF_WIDTH_M = 1e-3
"""Least half width of a spot, where a profile gives a beam no width."""

_HEAD_DTYPE = [(f"head_{name}", "i8" if isinstance(value, int) else "f8") for name, value in zip(Head._fields, no_head(), strict=True)]
_MIRROR_DTYPE = [
    (f"mirror_{name}", "i8" if isinstance(value, int) else "f8")
    for name, value in zip(Mirror._fields, no_mirror(), strict=True)
    if isinstance(value, int | float)
]
SOURCE_DTYPE = np.dtype(
    [
        ("start_ns", "i8"),
        ("oscillator_ppb", "i8"),
        ("sequence_ns", "i8"),
        ("first", "i8"),
        ("stop", "i8"),
        ("is_swept", "i8"),
        *_HEAD_DTYPE,
        *_MIRROR_DTYPE,
        *[(f"mount_{axis}", "f8") for axis in "wxyz"],
        *[(name, "f8") for name in ("half_h_m", "tangent_h", "half_v_m", "tangent_v", "apart_m")],
    ]
)
"""Another sensor: its clock, its channels' rows ``first`` to ``stop`` in the tables of ``Interference``, head or mirror, mount, half spot on its window and
tangent of half its divergence, and the largest distance of its beams' origins from the receiving sensor's."""

Frame = tuple[Vector, Vector, Vector, Vector]
"""A beam: its origin, and unit vectors ahead, across (towards larger azimuths) and upwards; body frame."""
Widths = tuple[float, float, float, float]
"""A beam's half spot on the window and the tangent of half its divergence, horizontally, then vertically."""


@by_reference
class Interference(NamedTuple):
    """Kernel-side pulses of the other sensors.

    Attributes:
        sources: ``SOURCE_DTYPE[n]``, the other sensors; none where their light does not reach this one.
        offset_ns: ``int64[m]``, firing offsets of all their channels, one sensor after the other.
        level: ``float64[m]``, cosines of elevations.
        rise: ``float64[m]``, sines of elevations.
        azimuth_rad: ``float64[m]``, azimuths relative to the head.
        origin_m: ``float64[m, 3]``, origins in the body frame.
        segment: ``float64[m, 6]``, ``Mirror.segment``; zeros for a sensor with a head.
        own: Widths of the receiving sensor's own beam.
    """

    sources: npt.NDArray[np.void]
    offset_ns: npt.NDArray[np.int64]
    level: npt.NDArray[np.float64]
    rise: npt.NDArray[np.float64]
    azimuth_rad: npt.NDArray[np.float64]
    origin_m: npt.NDArray[np.float64]
    segment: npt.NDArray[np.float64]
    own: Widths


def no_interference() -> Interference:
    """No light of other sensors."""
    nothing = np.zeros(0)
    return Interference(
        sources=np.zeros(0, SOURCE_DTYPE),
        offset_ns=np.zeros(0, np.int64),
        level=nothing,
        rise=nothing,
        azimuth_rad=nothing,
        origin_m=np.zeros((0, 3)),
        segment=np.zeros((0, 6)),
        own=spot_widths(BeamSpec()),
    )


def spot_widths(spec: BeamSpec) -> Widths:
    """Half widths of a model's beam."""
    half_h_rad, half_v_rad = spec.divergence_h_mrad / 2000.0, spec.divergence_v_mrad / 2000.0
    return spec.window_h_mm / 2000.0, float(np.tan(half_h_rad)), spec.window_v_mm / 2000.0, float(np.tan(half_v_rad))


def spin_fields(head: Head, mirror: Mirror) -> dict[str, float]:
    """Fields of ``SOURCE_DTYPE`` that a head and a mirror fill."""
    fields = {f"head_{name}": value for name, value in head._asdict().items()}
    return fields | {name: getattr(mirror, name.removeprefix("mirror_")) for name, _ in _MIRROR_DTYPE}


@kernel
def beam_frame(mount: Quaternion, origin_m: Vector, sine: float, cosine: float, level: float, rise: float) -> Frame:
    """A beam in the body frame.

    Args:
        mount: Rotation from the sensor to the body frame.
        origin_m: Origin of the beam in the body frame.
        sine: Sine of its azimuth in the sensor's frame.
        cosine: Cosine of its azimuth.
        level: Cosine of its elevation.
        rise: Sine of its elevation.
    """
    ahead = rotate(mount, (level * sine, level * cosine, rise))
    across = rotate(mount, (cosine, 0.0 - sine, 0.0))
    upwards = rotate(mount, (0.0 - rise * sine, 0.0 - rise * cosine, level))
    return origin_m, ahead, across, upwards


@kernel
def turned_aim(turns: float, azimuth_rad: float) -> tuple[float, float]:
    """Sine and cosine of the azimuth of a beam on a head that has turned so far."""
    azimuth = 2.0 * math.pi * turns + azimuth_rad
    return math.sin(azimuth), math.cos(azimuth)


@kernel
def swept_aim(mirror: Mirror, laser: int, device_ns: int) -> tuple[float, float, float, float]:
    """Sine and cosine of azimuth, cosine and sine of elevation, of a beam behind a mirror."""
    image_x, image_z = image_point(mirror, laser, device_ns)
    ahead, length = math.sqrt(1.0 + image_x * image_x), math.sqrt(1.0 + image_x * image_x + image_z * image_z)
    return image_x / ahead, 1.0 / ahead, ahead / length, image_z / length


@kernel
def _head(interference: Interference, number: int) -> Head:
    source = interference.sources[number]
    return Head(
        source["head_rate_crpm"],
        source["head_phase_turns"],
        source["head_per_turn_ratio"],
        source["head_per_turn_phase_rad"],
        source["head_drift_ratio"],
        source["head_drift_period_ns"],
        source["head_drift_phase_rad"],
        source["head_is_locked"] != 0,
        source["head_clock_ppb"],
        source["head_settle_from_ns"],
        source["head_settle_ns"],
        source["head_settle_turns"],
        source["head_settle_rate_turns"],
    )


@kernel
def _mirror(interference: Interference, number: int) -> Mirror:
    source = interference.sources[number]
    return Mirror(
        source["mirror_x_mhz"],
        source["mirror_x_phase_turns"],
        source["mirror_x_third_ratio"],
        source["mirror_x_third_phase_rad"],
        source["mirror_z_mhz"],
        source["mirror_z_phase_turns"],
        source["mirror_z_third_ratio"],
        source["mirror_z_third_phase_rad"],
        source["mirror_passes_per_scan"],
        interference.segment,
    )


@kernel
def source_frame(interference: Interference, number: int, row: int, device_ns: int) -> Frame:
    """The beam of another sensor's channel at a device time of that sensor.

    Args:
        interference: The other sensors.
        number: Number of the sensor among them.
        row: Row of the channel.
        device_ns: Device time of the firing.
    """
    source = interference.sources[number]
    if source["is_swept"] != 0:
        sine, cosine, level, rise = swept_aim(_mirror(interference, number), row, device_ns)
    else:
        sine, cosine = turned_aim(head_turns(_head(interference, number), device_ns), interference.azimuth_rad[row])
        level, rise = interference.level[row], interference.rise[row]
    mount = (source["mount_w"], source["mount_x"], source["mount_y"], source["mount_z"])
    origin_m = (interference.origin_m[row, 0], interference.origin_m[row, 1], interference.origin_m[row, 2])
    return beam_frame(mount, origin_m, sine, cosine, level, rise)


@kernel
def source_widths(interference: Interference, number: int) -> Widths:
    """Widths of another sensor's beams."""
    source = interference.sources[number]
    return source["half_h_m"], source["tangent_h"], source["half_v_m"], source["tangent_v"]


@kernel
def distance_m(frame: Frame, point_m: Vector) -> float:
    """Distance of a point from a beam's origin."""
    (x, y, z), (px, py, pz) = frame[0], point_m
    return float(math.sqrt((px - x) ** 2 + (py - y) ** 2 + (pz - z) ** 2))


@kernel
def light_at(frame: Frame, widths: Widths, point_m: Vector) -> float:
    """Density of a beam's light at a point, as 1 / (half width * half height) of its spot there in 1/m^2; 0 outside the spot.

    The spot is an ellipse that is lit evenly, whatever the beam's profile.
    """
    (x, y, z), (ax, ay, az), (hx, hy, hz), (vx, vy, vz) = frame
    dx, dy, dz = point_m[0] - x, point_m[1] - y, point_m[2] - z
    along = dx * ax + dy * ay + dz * az
    if along <= 0.0:
        return 0.0
    half_h = max(widths[0] + along * widths[1], MIN_HALF_WIDTH_M)
    half_v = max(widths[2] + along * widths[3], MIN_HALF_WIDTH_M)
    aside, above = (dx * hx + dy * hy + dz * hz) / half_h, (dx * vx + dy * vy + dz * vz) / half_v
    return 1.0 / (half_h * half_v) if aside * aside + above * above <= 1.0 else 0.0
