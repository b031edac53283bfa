"""Range errors of a sensor that has just been switched on: they decay as its inside warms up.

No source gives a figure for the sensors here. The form, one error for all lasers that decays exponentially, is chosen; sizes and times are the rig's.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

from hilsim.compilation.jit import kernel
from hilsim.errors import require, within
from hilsim.units import NS_PER_S


@dataclass(frozen=True, kw_only=True)
class WarmUpSpec:
    """Range error of a cold sensor, which decays.

    Attributes:
        range_m: Standard deviation over units of the range error at the first firing, the same for all lasers of a unit. No source gives one [R]: unproven;
            a data sheet's accuracy over all temperatures is 0.03.
        time_s: Time in which the error falls to 1/e. No source gives one [R]: unproven.
    """

    range_m: float = 0.0
    time_s: float = 300.0

    def __post_init__(self) -> None:
        require(*within(self, range_m=(0, 1), time_s=(1, 86_400)))


class WarmUp(NamedTuple):
    """Kernel-side warm-up.

    Attributes:
        range_m: Range error of the unit at the first firing.
        time_ns: Device time in which it falls to 1/e.
    """

    range_m: float
    time_ns: float


def build_warm_up(spec: WarmUpSpec, draw: float) -> WarmUp:
    """Build the kernel-side warm-up of a unit.

    Args:
        spec: Its setting.
        draw: The unit's standard normal number.
    """
    return WarmUp(spec.range_m * draw, spec.time_s * NS_PER_S)


@kernel
def warm_up_m(warm_up: WarmUp, device_ns: int) -> float:
    """Range error at a device time in metres; before the first firing as at it."""
    if warm_up.range_m == 0.0:
        return 0.0
    return warm_up.range_m * math.exp(-max(device_ns, 0) / warm_up.time_ns)
