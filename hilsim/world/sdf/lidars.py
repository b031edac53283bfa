"""``<sensor>`` elements that are lidars, with Gazebo's defaults."""

import math

from hilsim.limits import SDF_RAYS
from hilsim.world.geometry.poses import Pose
from hilsim.world.sdf.elements import Element
from hilsim.world.sdf.specs import SdfLidar, SdfNoise, SdfScan

_GPU_TYPES = frozenset({"gpu_lidar", "gpu_ray"})
LIDAR_TYPES = frozenset({"lidar", "gpu_lidar", "ray", "gpu_ray"})


def read_lidar(sensor: Element, name: str, world: str, pose: Pose) -> SdfLidar | None:
    """Read a lidar; None, with a fault, if Gazebo would reject it or it would never return a range.

    Args:
        sensor: Element ``<sensor>``.
        name: Scoped name of the sensor.
        world: Name of the world.
        pose: Pose in the world.
    """
    lidar = sensor.child("lidar", "ray")
    if lidar is None:
        sensor.fault(f'a <sensor> of type "{sensor.attributes.get("type", "")}" must have a <lidar> or <ray>')
        return None
    scan, span = lidar.child("scan"), lidar.child("range")
    horizontal = scan.child("horizontal") if scan is not None else None
    for tag, found in (("scan", scan), ("range", span)):
        if found is None:
            lidar.fault(f"<{lidar.tag}> must have a <{tag}>")
    if scan is not None and horizontal is None:
        scan.fault("<scan> must have a <horizontal>")
    if scan is None or span is None or horizontal is None:
        return None
    vertical, kind = scan.child("vertical"), sensor.attributes.get("type", "")
    rows = _scan(vertical, 1, kind, fewest=1) if vertical is not None else SdfScan(samples=1)
    made = SdfLidar(
        name=name,
        world=world,
        pose=pose,
        kind=kind,
        horizontal=_scan(horizontal, 640, kind),
        vertical=rows,
        range_min_m=span.number("min", 0.0),
        range_max_m=span.number("max", 0.0, may_be_infinite=True),
        noise=_noise(lidar),
        update_rate_hz=sensor.number("update_rate", 0.0),
        topic=sensor.string("topic"),
        frame=sensor.string("frame_id") or sensor.string("gz_frame_id") or sensor.string("ignition_frame_id"),
        where=sensor.where,
    )
    return made if _is_sound(made, sensor, span) else None


def _scan(axis: Element, default: int, kind: str, fewest: int = 0) -> SdfScan:
    """Rays along an axis; ``<resolution>`` multiplies those of a GPU lidar (gz-sensors, ``Lidar.cc``), a CPU lidar ignores it."""
    samples = axis.count("samples", default)
    if kind in _GPU_TYPES:
        samples = max(math.trunc(min(samples * max(axis.number("resolution", 1.0), 0.0), 2.0**53)), fewest if samples else 0)
    return SdfScan(
        samples=samples,
        min_rad=axis.number("min_angle", 0.0),
        max_rad=axis.number("max_angle", 0.0),
    )


def _is_sound(lidar: SdfLidar, sensor: Element, span: Element) -> bool:
    rules = (
        (sensor, lidar.rays > 0, f"samples must be at least 1, got {lidar.horizontal.samples} and {lidar.vertical.samples}"),
        (sensor, SDF_RAYS.holds(lidar.rays), SDF_RAYS.rule(lidar.rays)[1]),
        (sensor, lidar.horizontal.max_rad >= lidar.horizontal.min_rad, "<max_angle> must not be below <min_angle>"),
        (sensor, lidar.vertical.max_rad >= lidar.vertical.min_rad, "<max_angle> must not be below <min_angle>"),
        (span, 0.0 <= lidar.range_min_m < lidar.range_max_m, f"<min> must be 0 to below <max>, got {lidar.range_min_m:g} and {lidar.range_max_m:g}"),
        (sensor, 0.0 <= lidar.update_rate_hz <= 1000.0, f"<update_rate> must be 0 to 1000, got {lidar.update_rate_hz:g}"),
    )
    for element, holds, text in rules:
        if not holds:
            element.fault(text)
    return all(holds for _, holds, _ in rules)


def _noise(lidar: Element) -> SdfNoise | None:
    """Noise of ranges; None if Gazebo generates none: another type, or all parameters 0."""
    noise = lidar.child("noise")
    if noise is None:
        return None
    kind = noise.string("type") or noise.attributes.get("type", "") or "gaussian"
    if kind != "gaussian":
        if kind != "none":
            noise.unsupported(f'noise of type "{kind}" is not supported, as in Gazebo: ranges have no noise')
        return None
    made = SdfNoise(
        mean_m=noise.number("mean", 0.0),
        stddev_m=noise.number("stddev", 0.0),
        bias_mean_m=noise.number("bias_mean", 0.0),
        bias_stddev_m=noise.number("bias_stddev", 0.0),
        precision_m=noise.number("precision", 0.0),
    )
    return made if any(abs(value) > _NOTHING for value in (made.mean_m, made.stddev_m, made.bias_mean_m, *_dynamic(noise))) else None


_NOTHING = 1e-6
"""Gazebo's tolerance."""


def _dynamic(noise: Element) -> tuple[float, float]:
    """Parameters of the drifting bias: it has no effect on Gazebo's lidars, but its presence enables noise."""
    return noise.number("dynamic_bias_stddev", 0.0), noise.number("dynamic_bias_correlation_time", 0.0)
