"""Where a firing's beam goes, as its sensor knows it: without the errors of the encoder's marks."""

import math

from hilsim.compilation.jit import kernel
from hilsim.emulator.plan import LidarPlan
from hilsim.sensor.mirror import Mirror, image_point
from hilsim.units import CDEG_PER_RAD

_DEG_PER_RAD = 180.0 / math.pi
_CDEG_PER_NS_PER_CRPM = 6e-9


@kernel
def looks_at(mirror: Mirror | None, plan: LidarPlan, reading_cdeg: int, channel: int, index: int) -> tuple[float, float]:
    """Azimuth in hundredths of a degree and elevation in degrees of a firing's beam."""
    if mirror is None:
        azimuth_cdeg = reading_cdeg + _CDEG_PER_NS_PER_CRPM * plan.head.rate_crpm * plan.firing_offset_ns[channel]
        azimuth_cdeg += CDEG_PER_RAD * plan.azimuth_offset_rad[channel]
        return azimuth_cdeg, plan.elevation_deg[channel]
    image_x, image_z = image_point(mirror, channel, index * plan.sequence_ns + plan.firing_offset_ns[channel])
    return CDEG_PER_RAD * math.atan(image_x), _DEG_PER_RAD * math.atan(image_z / math.sqrt(1.0 + image_x * image_x))
