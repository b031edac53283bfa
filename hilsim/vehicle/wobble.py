"""A disturbance that makes pose estimation hard: the sensor rig oscillates, twists and turns about its carrier.

Position runs along a Catmull-Rom spline through keyframes of three normal numbers; orientation is a rotation by ``amplitude * cos(2 pi f t)`` about an axis that is slerped between
keyframes picked evenly on the sphere. An axis almost opposite to the one before is negated, or the slerp between them would be undefined.

Whether an axis is negated depends on all axes before it. So that the pose stays a function of time alone, the keyframes are drawn once, ``KEYFRAMES`` of them, and repeat; the last one is drawn until
the table closes without a near-opposite pair.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim._jit import kernel
from hilsim.draws import Purpose, normal, uniform_pair
from hilsim.errors import require
from hilsim.geometry.frames import Quaternion, Vector
from hilsim.geometry.rotations import about_axis

KEYFRAMES = 1024
_NEARLY_OPPOSITE = -math.cos(math.radians(10.0))


@dataclass(frozen=True, kw_only=True)
class WobbleSpec:
    """The disturbance.

    Attributes:
        amplitude_m: Standard deviation of the position keyframes along each axis.
        amplitude_deg: Largest angle of the rotation.
        keyframe_interval_s: Time between keyframes; the pattern repeats after 1024 of them.
        frequency_hz: Of the rotation's swing.
    """

    amplitude_m: float = 0.0
    amplitude_deg: float = 0.0
    keyframe_interval_s: float = 1.0
    frequency_hz: float = 1.0

    def __post_init__(self) -> None:
        require(
            (0.0 <= self.amplitude_m <= 10.0, f"amplitude_m must be 0 to 10, got {self.amplitude_m}"),
            (0.0 <= self.amplitude_deg <= 180.0, f"amplitude_deg must be 0 to 180, got {self.amplitude_deg}"),
            (0.01 <= self.keyframe_interval_s <= 1000.0, f"keyframe_interval_s must be 0.01 to 1000, got {self.keyframe_interval_s}"),
            (0.0 <= self.frequency_hz <= 100.0, f"frequency_hz must be 0 to 100, got {self.frequency_hz}"),
        )


class Wobble(NamedTuple):
    """Kernel-side disturbance.

    Attributes:
        position_m: ``float64[k, 3]``, position keyframes.
        axis: ``float64[k, 3]``, rotation axis keyframes, unit, neighbours never nearly opposite.
        interval_ns: Time between keyframes; 0 switches the disturbance off.
        amplitude_rad: Largest angle.
        frequency_hz: Of the swing.
    """

    position_m: npt.NDArray[np.float64]
    axis: npt.NDArray[np.float64]
    interval_ns: int
    amplitude_rad: float
    frequency_hz: float


def make_wobble(spec: WobbleSpec | None, *, seed: int) -> Wobble:
    """Kernel-side disturbance; None is none at all."""
    if spec is None or (spec.amplitude_m == 0.0 and spec.amplitude_deg == 0.0):
        return Wobble(position_m=np.zeros((1, 3)), axis=np.array([[0.0, 0.0, 1.0]]), interval_ns=0, amplitude_rad=0.0, frequency_hz=0.0)
    position = [
        [spec.amplitude_m * normal(np.uint64(seed), axis, key, int(Purpose.WOBBLE_POSITION)) for axis in range(3)] for key in range(KEYFRAMES)
    ]
    return Wobble(
        position_m=np.array(position),
        axis=_axes(seed),
        interval_ns=round(spec.keyframe_interval_s * 1e9),
        amplitude_rad=math.radians(spec.amplitude_deg),
        frequency_hz=spec.frequency_hz,
    )


def _axes(seed: int) -> npt.NDArray[np.float64]:
    axes = np.zeros((KEYFRAMES, 3))
    axes[0] = _pick_on_sphere(seed, 0)
    for key in range(1, KEYFRAMES):
        axes[key] = _pick_on_sphere(seed, key)
        if axes[key] @ axes[key - 1] < _NEARLY_OPPOSITE:
            axes[key] *= -1.0
    attempt = KEYFRAMES
    while axes[-1] @ axes[0] < _NEARLY_OPPOSITE or axes[-1] @ axes[-2] < _NEARLY_OPPOSITE:
        axes[-1] = _pick_on_sphere(seed, attempt)
        attempt += 1
    return axes


def _pick_on_sphere(seed: int, key: int) -> npt.NDArray[np.float64]:
    """A direction evenly distributed on the sphere (height and longitude uniform: Archimedes)."""
    height, turn = uniform_pair(np.uint64(seed), 0, key, int(Purpose.WOBBLE_AXIS))
    z = 2.0 * height - 1.0
    level = math.sqrt(max(1.0 - z * z, 0.0))
    return np.array([level * math.cos(2.0 * math.pi * turn), level * math.sin(2.0 * math.pi * turn), z])


@kernel
def wobble_state(wobble: Wobble, time_ns: int) -> tuple[Vector, Quaternion]:
    """Displacement (m) and rotation of the sensor rig in the carrier's body frame at a rig time."""
    if wobble.interval_ns == 0:
        return (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0)
    keys = wobble.position_m.shape[0]
    step = time_ns // wobble.interval_ns
    s = (time_ns - step * wobble.interval_ns) / wobble.interval_ns
    before, first, second, after = (step - 1) % keys, step % keys, (step + 1) % keys, (step + 2) % keys
    # Catmull and Rom 1974, uniform, tension 1/2: the curve passes through the keyframes with continuous velocity.
    w0 = 0.5 * s * (s * (2.0 - s) - 1.0)
    w1 = 0.5 * (s * s * (3.0 * s - 5.0) + 2.0)
    w2 = 0.5 * s * (s * (4.0 - 3.0 * s) + 1.0)
    w3 = 0.5 * s * s * (s - 1.0)
    p = wobble.position_m
    x = w0 * p[before, 0] + w1 * p[first, 0] + w2 * p[second, 0] + w3 * p[after, 0]
    y = w0 * p[before, 1] + w1 * p[first, 1] + w2 * p[second, 1] + w3 * p[after, 1]
    z = w0 * p[before, 2] + w1 * p[first, 2] + w2 * p[second, 2] + w3 * p[after, 2]
    angle_rad = wobble.amplitude_rad * math.cos(2.0 * math.pi * wobble.frequency_hz * (time_ns * 1e-9))
    return (x, y, z), about_axis(_slerped_axis(wobble.axis, first, second, s), angle_rad)


@kernel
def _slerped_axis(axis: npt.NDArray[np.float64], first: int, second: int, s: float) -> Vector:
    cosine = axis[first, 0] * axis[second, 0] + axis[first, 1] * axis[second, 1] + axis[first, 2] * axis[second, 2]
    from_first, from_second = 1.0 - s, s
    if cosine < 1.0 - 1e-9:
        angle = math.acos(max(cosine, -1.0))
        from_first = math.sin((1.0 - s) * angle)
        from_second = math.sin(s * angle)
    x = from_first * axis[first, 0] + from_second * axis[second, 0]
    y = from_first * axis[first, 1] + from_second * axis[second, 1]
    z = from_first * axis[first, 2] + from_second * axis[second, 2]
    scale = 1.0 / math.sqrt(x * x + y * y + z * z)
    return x * scale, y * scale, z * scale
