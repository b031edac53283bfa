"""Setup of one lidar of a rig: the keys of ``[[sensor]]`` that affect its measurements, declared and documented only here."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, make_dataclass
from typing import Any, Literal

from hilsim.errors import within
from hilsim.registry import family_parts
from hilsim.sensor.optics.false_alarms import FalseAlarmSpec, SpuriousSpec
from hilsim.sensor.optics.window import WindowSpec
from hilsim.sensor.specs import SUB_RAY_COUNTS, ClockSetting, DecimationSpec
from hilsim.sensor.time_input import GpsSetting
from hilsim.sensor.unit.warm_up import WarmUpSpec
from hilsim.world.geometry.frames import Vector
from hilsim.world.geometry.poses import Pose, extrinsics

DEFAULT_RATE_RPM = 600
DRAWN, IDEAL = "drawn", "ideal"
"""Units that are no file."""
WHOLE_TURN_DEG = (0, 359)
"""Field of view that leaves nothing out."""
ReturnModeName = Literal["strongest", "last", "dual"]


def _of_families(name: str, *, live_only: bool) -> Any:
    """Dataclass with a key for each family that has settings of its own: ``SETTING`` of the module ``setting`` of its folder.

    Args:
        name: Name of the class.
        live_only: Whether settings are left out that no change of a running sensor can change (``CHANGES_LIVE``).
    """
    settings = {family: module.SETTING for family, module in family_parts("setting").items() if module.CHANGES_LIVE or not live_only}
    texts = [f"    {family}: {kind.__doc__.partition('.')[0]}; None: not given." for family, kind in settings.items()]
    text = "\n".join(["Settings that one family's sensors have.", "", "Attributes:", *texts, ""])
    keys = [(family, kind | None, None) for family, kind in settings.items()]
    return make_dataclass(name, keys, frozen=True, kw_only=True, namespace={"__doc__": text, "__module__": __name__})


FamilySettings = _of_families("FamilySettings", live_only=False)
"""Keys of ``[[sensor]]`` that one family's sensors have."""
ChangeableSettings = _of_families("ChangeableSettings", live_only=True)
"""Those that a change of a running sensor may have."""


def width_deg(field_of_view_deg: tuple[int, int]) -> int:
    """Number of degrees from a first to a last one, both included, clockwise."""
    start, end = field_of_view_deg
    return (end - start) % 360 + 1


@dataclass(frozen=True, kw_only=True)
class SensorSetup(FamilySettings):  # type: ignore[misc, valid-type] # some of its keys are the families'
    """Mounting of one lidar, and settings of its head, receiver and clock.

    ``LidarSetting`` checks these rules together with the model's, so that all faults of a sensor are reported at once.

    Attributes:
        mount_position_m: Position in the platform's body frame (x forward, y left, z up).
        mount_rotation_deg: Roll, pitch, yaw in the body frame.
        rotation_rate_rpm: Mean rotation rate, 600 by default; not for a sensor without a turning head.
        field_of_view_deg: First and last azimuth that are produced, clockwise, whole degrees of 0 to 359; only for a sensor with a turning head. Outside no
            blocks are produced, and packets go on with the next block that is.
        phase_deg: True azimuth of the head, or phase of the mirror's sweep across, at the sensor's first firing; None: the unit's, 0 for an ideal one.
        phase_lock_deg: Azimuth that the head passes at each pulse of a clock that is synchronised; None: its phase is not locked. Only for a sensor with a
            turning head.
        start_delay_us: Rig time of the sensor's first firing; sensors of a rig are in step where this is equal.
        return_mode: Returns that are reported.
        sub_rays: Rays that sample a beam's footprint: 1 (a pencil beam; never split over two surfaces), 7 or 19; None: as many as the profile's ``[beam]`` says.
        window: Dirt on the sensor's window, and blocked sectors.
        false_alarms: Rate of false alarms.
        spurious: Rate of spurious returns.
        interference: Whether the pulses of the rig's other sensors reach the receiver. Other sensors' rotation rate, phase lock, clock and lasers cannot be
            changed while the rig runs then.
        decimation: Share of firings that is reported.
        warm_up: Range error of the sensor while it warms up; none of an ideal unit.
        clock: The sensor's own clock.
        gps: The receiver on the sensor's GPS input; without it position packets contain no sentence.
        unit: Unit of the model. ``drawn``: one drawn from the rig's seed and the sensor's number, by the profile's ``[units]``; ``ideal``: one
            without errors of its own; otherwise the path, relative to the rig, of a file that ``hilsim calibrate`` has written: what it leaves out is drawn.
    """

    mount_position_m: Vector = (0.0, 0.0, 0.0)
    mount_rotation_deg: Vector = (0.0, 0.0, 0.0)
    rotation_rate_rpm: int | None = None
    field_of_view_deg: tuple[int, int] = WHOLE_TURN_DEG
    phase_deg: float | None = None
    phase_lock_deg: float | None = None
    start_delay_us: float = 0.0
    return_mode: ReturnModeName = "strongest"
    sub_rays: int | None = None
    window: WindowSpec = field(default_factory=WindowSpec)
    false_alarms: FalseAlarmSpec = field(default_factory=FalseAlarmSpec)
    spurious: SpuriousSpec = field(default_factory=SpuriousSpec)
    interference: bool = False
    decimation: DecimationSpec = field(default_factory=DecimationSpec)
    warm_up: WarmUpSpec = field(default_factory=WarmUpSpec)
    clock: ClockSetting = field(default_factory=ClockSetting)
    gps: GpsSetting | None = None
    unit: str = DRAWN

    @property
    def produced_ratio(self) -> float:
        """Share of a turn that the field of view covers."""
        return width_deg(self.field_of_view_deg) / 360

    @property
    def body_from_sensor(self) -> Pose:
        """Pose of the sensor in the body frame."""
        return extrinsics(self.mount_position_m, self.mount_rotation_deg)

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Yield the rules that hold for a sensor of any model."""
        yield all(map(math.isfinite, self.mount_position_m)), f"mount_position_m must be finite, got {self.mount_position_m}"
        yield all(map(math.isfinite, self.mount_rotation_deg)), f"mount_rotation_deg must be finite, got {self.mount_rotation_deg}"
        phase = self.phase_deg
        yield phase is None or 0.0 <= phase < 360.0, f"phase_deg must be 0 to less than 360, got {self.phase_deg}"
        lock = self.phase_lock_deg
        yield lock is None or 0.0 <= lock < 360.0, f"phase_lock_deg must be 0 to less than 360, got {lock}"
        is_within = all(0 <= edge <= 359 for edge in self.field_of_view_deg)
        yield is_within, f"field_of_view_deg must be a first and a last azimuth of 0 to 359, got {list(self.field_of_view_deg)}"
        yield from within(self, start_delay_us=(0, 1_000_000_000))
        rays = self.sub_rays
        yield rays is None or rays in SUB_RAY_COUNTS, f"sub_rays must be one of {', '.join(map(str, SUB_RAY_COUNTS))}, got {rays}"
        is_unit = self.unit in {DRAWN, IDEAL} or self.unit.endswith(".toml")
        yield is_unit, f'unit must be "{DRAWN}", "{IDEAL}" or a path ending in .toml, got "{self.unit[:80]}"'
