"""What a family gives for objects in recordings: module ``insertion`` of its folder, with a ``PART``."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.emulator.insertion.unit import RecordedUnit
from hilsim.sensor.optics.beam import Beam
from hilsim.sensor.response import Response
from hilsim.world.geometry.poses import Pose


class RecordedRanges(NamedTuple):
    """First returns of a recording's firings, in their order.

    Attributes:
        range_m: ``float64[firing, laser]``, ``nan`` where there is no return.
        byte: ``int64[firing, laser]``, reflectivity byte.
        unit_m: Unit of the ranges.
    """

    range_m: npt.NDArray[np.float64]
    byte: npt.NDArray[np.int64]
    unit_m: float


class RecordedSensor(NamedTuple):
    """The sensor that made a recording.

    Attributes:
        ranges: Ranges of its first packets, by which its noise is measured.
        unit: Function of the response and the beam of a profile, the mount and the noise, as of ``build_recorded_unit``: the sensor for kernels.
        profile: Profile that is the most like it; empty: its packets do not show its model.
    """

    ranges: RecordedRanges
    unit: Callable[[Response, Beam, Pose, npt.NDArray[np.float64]], RecordedUnit]
    profile: str = ""


@dataclass(frozen=True, kw_only=True)
class InsertionPart:
    """Objects in recordings of one family.

    Attributes:
        packets: Name of the points, for messages.
        recorded: Function of the first packets of points of a sensor, at least one. Raises CaptureError for a model whose lasers are not known.
    """

    packets: str
    recorded: Callable[[Sequence[bytes]], RecordedSensor]
