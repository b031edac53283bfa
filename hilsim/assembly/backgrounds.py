"""Captured backgrounds of a rig: which sensor sees which, and whether they belong together."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hilsim.config.rig import Rig
from hilsim.emulator.families.base import LidarFamily
from hilsim.emulator.overlay import Overlay, OverlayRule
from hilsim.errors import AssetError, ConfigError, require
from hilsim.world.geometry.overlay_frames import ground_only_pose
from hilsim.world.geometry.poses import Pose, extrinsics
from hilsim.world.geometry.rotations import conjugate, multiply
from hilsim.world.scene.background import BackgroundMap, ImageGrid
from hilsim.world.scene.background_specs import BackgroundSpec

_RULES = {"nearest": OverlayRule.NEAREST, "background-first": OverlayRule.BACKGROUND_FIRST, "synthetic-only": OverlayRule.SYNTHETIC_ONLY}
_PLACE_TOLERANCE_M = 0.01
_TURN_TOLERANCE_DEG = 0.05


class SensorBackground(NamedTuple):
    """Background that one sensor sees behind the scene.

    Attributes:
        sensor: Its place in the rig.
        place: Location of the background in the rig, for messages.
        background: The map.
        overlay: Kernel-side.
        pose: World from sensor where it was captured; None if unknown.
    """

    sensor: int
    place: str
    background: BackgroundMap
    overlay: Overlay
    pose: Pose | None


def load_backgrounds(rig: Rig) -> tuple[SensorBackground, ...]:
    """Every background of a rig, read and checked against its sensor.

    Raises:
        AssetError: naming every file that cannot be used.
        ConfigError: naming every background that does not belong to its sensor, or whose sensor does not stand still.
    """
    found: list[SensorBackground] = []
    broken: list[str] = []
    faults: list[str] = []
    for number, spec in enumerate(rig.spec.scene.background):
        place = f"{rig.path}: scene.background[{number}]"
        try:
            found.append(_load(rig, spec, place))
        except AssetError as error:
            broken.append(str(error))
        except ConfigError as error:
            faults.append(str(error))
        except ValueError as error:
            faults.extend(f"{place}: {fault}" for fault in str(error).split("; "))
    seen = [loaded.sensor for loaded in found]
    faults.extend(
        f"{rig.path}: a sensor must have one background at most, got {seen.count(number)} for {rig.spec.sensor[number].name}"
        for number in sorted(set(seen))
        if seen.count(number) > 1
    )
    if rig.spec.scene.background and (rig.spec.platform.kind not in {"fixed", "background"} or rig.spec.platform.disturbance is not None):
        faults.append(
            f'{rig.path}: platform must stand still for a background, which shows the world from one place: kind "fixed" or "background" without disturbance,'
            f' got "{rig.spec.platform.kind}"{" with disturbance" if rig.spec.platform.disturbance else ""}'
        )
    if broken:
        raise AssetError("\n".join([*broken, *faults]))
    if faults:
        raise ConfigError("\n".join(faults))
    return tuple(found)


def _load(rig: Rig, spec: BackgroundSpec, place: str) -> SensorBackground:
    number = _sensor_number(rig, spec, place)
    setting = rig.lidars[number]
    from hilsim.read.background.files.archive import read_archive  # noqa: PLC0415 - few rigs have one, and the rest works without what reads

    background = read_archive(rig.directory / spec.file)
    overlay = build_overlay(background, setting.family, rule=_RULES[spec.rule], is_smooth=spec.sampling == "edge-aware")
    return SensorBackground(number, place, background, overlay, _pose(spec, background))


def _sensor_number(rig: Rig, spec: BackgroundSpec, place: str) -> int:
    names = [sensor.name for sensor in rig.spec.sensor]
    if not spec.sensor and len(names) == 1:
        return 0
    if spec.sensor not in names:
        raise ConfigError(f'{place}.sensor must be one of {", ".join(names)}, got "{spec.sensor}"')
    return names.index(spec.sensor)


def _pose(spec: BackgroundSpec, background: BackgroundMap) -> Pose | None:
    """World from sensor: the rig's word, else the file's."""
    if spec.height_m is not None:
        return ground_only_pose(spec.height_m, spec.pitch_deg or 0.0)
    if spec.position_m is not None:
        return extrinsics(spec.position_m, spec.rotation_deg or (0.0, 0.0, 0.0))
    return background.pose


def platform_pose(rig: Rig, backgrounds: Sequence[SensorBackground]) -> Pose:
    """World from body of a platform of kind ``background``: so that its sensor is at the place where the first background was captured.

    Raises:
        ConfigError: no background holds that place.
    """
    for background in backgrounds:
        if background.pose is not None:
            mount = rig.lidars[background.sensor]
            return background.pose @ mount.setup.body_from_sensor.inverse()
    raise ConfigError(
        f'{rig.path}: platform.kind "background" must have a background with the pose of its capture, got none:'
        " give it height_m (and pitch_deg), or position_m and rotation_deg"
    )


def check_places(rig: Rig, backgrounds: Sequence[SensorBackground], body: Pose) -> None:
    """Raise ``ConfigError`` where a sensor on a platform at ``body`` is not at the place where its background was captured."""
    faults = []
    for background in backgrounds:
        if background.pose is None:
            continue
        mount = rig.lidars[background.sensor]
        stands = body @ mount.setup.body_from_sensor
        apart_m = math.dist(stands.position_m, background.pose.position_m)
        turned = multiply(conjugate(stands.orientation), background.pose.orientation)
        turned_deg = math.degrees(2.0 * math.asin(min(1.0, float(np.linalg.norm(turned[1:])))))
        if apart_m > _PLACE_TOLERANCE_M or turned_deg > _TURN_TOLERANCE_DEG:
            faults.append(
                f"{background.place}: sensor {mount.name} must be at the place where its background was captured, got {apart_m:.3f} m and {turned_deg:.2f} deg off"
                ' (platform.kind = "background" puts it there)'
            )
    if faults:
        raise ConfigError("\n".join(faults))


def build_overlay(background: BackgroundMap, family: LidarFamily[Any], *, rule: OverlayRule, is_smooth: bool) -> Overlay:
    """Kernel-side background of a lidar, as one of its family.

    Raises:
        ValueError: the background is not of such a sensor, or has nothing in it; all faults at once.
    """
    grid, used, spec = background.grid, background.used, family.spec
    require(
        (
            not background.model or background.model == spec.model,
            f"a background must be of the sensor's model {spec.model}, got one of a {background.model}",
        ),
        (
            isinstance(grid, family.grid),
            f"a background for a {spec.model} must have cells of {family.grid_axes}, got the other kind",
        ),
        (bool(used.any()), "a background must have a valid cell between 0.1 m and 200 m, got none"),
    )
    x_min, x_max, z_min, z_max = (grid.x_min, grid.x_max, grid.z_min, grid.z_max) if isinstance(grid, ImageGrid) else (0.0, 1.0, 0.0, 1.0)
    return Overlay(
        rule=int(rule),
        is_smooth=is_smooth,
        x_min=x_min,
        x_max=x_max,
        z_min=z_min,
        z_max=z_max,
        row=family.background_rows(grid),
        range_m=np.where(used, background.distance_mm / 1000.0, np.inf).astype(np.float32),
        ratio=family.reflectivity_ratios()[np.minimum(background.intensity, 255)].astype(np.float32),
    )
