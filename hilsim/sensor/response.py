"""From ranges to what the sensor reports: limits, range noise, drop-outs, the no-return baseline.

One return a firing (strongest); a pencil beam. Reflectivity is calibrated: the packet's byte is the material's, whatever the range.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim._jit import constant, kernel
from hilsim.draws import Purpose, normal, uniform
from hilsim.sensor.specs import LidarSpec

_RANGE_NOISE = constant(Purpose.RANGE_NOISE)
_DROP_OUT = constant(Purpose.DROP_OUT)
_CHANNELS_PER_STREAM = 256


class Response(NamedTuple):
    """Kernel-side response; see ``LidarSpec`` for the meaning of each."""

    unit_m: float
    range_min_m: float
    range_max_m: float
    noise_m: float
    drop_out_ratio: float
    baseline: npt.NDArray[np.uint8]
    seed: np.uint64
    stream: int


def response(spec: LidarSpec, *, seed: int, stream: int) -> Response:
    """Kernel-side response of a model; ``stream`` is the sensor's number within the rig."""
    return Response(
        unit_m=spec.range_unit_mm / 1000.0,
        range_min_m=spec.range_min_m,
        range_max_m=spec.range_max_m,
        noise_m=spec.range_noise_m,
        drop_out_ratio=spec.drop_out_ratio,
        baseline=np.array([channel.no_return_reflectivity for channel in spec.channels], dtype=np.uint8),
        seed=np.uint64(seed),
        stream=stream,
    )


@kernel
def distance_code(response: Response, range_m: float, channel: int, sequence: int) -> int:
    """The packet's distance for a true range: 0 when nothing is reported.

    Args:
        response: The sensor's response.
        range_m: True range, ``inf`` for a miss.
        channel: In firing order.
        sequence: Index of the firing sequence; with the channel it is the counter of noise and drop-out.
    """
    if not np.isfinite(range_m):
        return 0
    stream = response.stream * _CHANNELS_PER_STREAM + channel
    if response.drop_out_ratio > 0.0 and uniform(response.seed, stream, sequence, _DROP_OUT) < response.drop_out_ratio:
        return 0
    measured = float(range_m)
    if response.noise_m > 0.0:
        measured += response.noise_m * normal(response.seed, stream, sequence, _RANGE_NOISE)
    code = int(np.floor(measured / response.unit_m + 0.5))
    reported_m = code * response.unit_m
    if reported_m < response.range_min_m or reported_m > response.range_max_m or code > 65535:
        return 0
    return code
