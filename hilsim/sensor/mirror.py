"""The mirror of an image-scanning lidar: direction of each laser at any device time, in image coordinates.

Image coordinates are those of a pinhole camera of focal length 1: ``x / y`` to the right and ``z / y`` upwards of a point (x right, y forward, z up). Each laser draws a
Lissajous figure: see ``MirrorSpec``. Angles are exact for any length of run, because turns are counted in integers.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import kernel
from hilsim.errors import require, within

_TURN = 1_000_000_000_000
"""Duration of a turn in ns * mHz."""
_MIDDLE_X, _MIDDLE_Z, _PHASE_X, _PHASE_Z, _SCALE_X, _SCALE_Z = range(6)


@dataclass(frozen=True, kw_only=True)
class SegmentSpec:
    """One laser of a mirror lidar, and the part of the image that it sweeps.

    Attributes:
        image_x: Centre of its sweep along image x: ``x / y`` of a point (right over forward).
        image_z: Centre of its sweep along image z: ``z / y`` of a point (up over forward).
        phase_x_deg: Phase of its sweep along x relative to the mirror's.
        phase_z_deg: Phase of its sweep along z relative to the mirror's.
        scale_x: Amplitude of its sweep along x relative to the mirror's.
        scale_z: Amplitude of its sweep along z relative to the mirror's.
    """

    image_x: float
    image_z: float
    phase_x_deg: float = 0.0
    phase_z_deg: float = 0.0
    scale_x: float = 1.0
    scale_z: float = 1.0

    def __post_init__(self) -> None:
        require(
            *within(self, image_x=(-20, 20), image_z=(-20, 20), phase_x_deg=(-360, 360), phase_z_deg=(-360, 360)),
            *(
                (0.0 < abs(value) <= 10.0, f"{name} must be -10 to 10 and not 0, got {value}")
                for name, value in (("scale_x", self.scale_x), ("scale_z", self.scale_z))
            ),
        )


@dataclass(frozen=True, kw_only=True)
class MirrorSpec:
    """Motion of the mirror: on each axis ``amplitude * (sin p + third_ratio * sin(3 p + third_phase))`` around a laser's centre, ``p = 2 pi hz t + phase``.

    Different frequencies on the two axes make each laser draw a Lissajous figure (US patent 11,835,656). A third harmonic of -1/9 makes a sine nearly a triangle.

    Attributes:
        x_hz: Frequency along x (one period is there and back), in steps of 0.001 Hz.
        x_amplitude: Amplitude along x, in image coordinates.
        x_third_ratio: Amplitude of the third harmonic along x, relative to the fundamental.
        x_third_phase_deg: Phase of the third harmonic along x.
        x_phase_deg: Phase along x at device time 0.
        z_hz: Frequency along z, in steps of 0.001 Hz.
        z_amplitude: Amplitude along z, in image coordinates.
        z_third_ratio: Amplitude of the third harmonic along z, relative to the fundamental.
        z_third_phase_deg: Phase of the third harmonic along z.
        z_phase_deg: Phase along z at device time 0.
        passes_per_scan: Number of one-way sweeps along x in a scan; the frame parity changes at the end of each scan.
    """

    x_hz: float
    x_amplitude: float
    x_third_ratio: float = 0.0
    x_third_phase_deg: float = 0.0
    x_phase_deg: float = 0.0
    z_hz: float
    z_amplitude: float
    z_third_ratio: float = 0.0
    z_third_phase_deg: float = 0.0
    z_phase_deg: float = 0.0
    passes_per_scan: int = 1

    def __post_init__(self) -> None:
        amplitudes = (("x_amplitude", self.x_amplitude), ("z_amplitude", self.z_amplitude))
        require(
            *within(self, x_hz=(0.01, 5000), x_third_ratio=(-0.5, 0.5), x_third_phase_deg=(-360, 360), x_phase_deg=(-360, 360)),
            *within(self, z_hz=(0.01, 5000), z_third_ratio=(-0.5, 0.5), z_third_phase_deg=(-360, 360), z_phase_deg=(-360, 360)),
            *within(self, passes_per_scan=(1, 100)),
            *((0.0 < size <= 10.0, f"{name} must be above 0 and at most 10, got {size}") for name, size in amplitudes),
        )


class Mirror(NamedTuple):
    """Kernel-side mirror.

    Attributes:
        x_mhz: Frequency along x, an integer so that long runs lose no precision.
        x_phase_turns: Phase along x at device time 0.
        x_third_ratio: Relative amplitude of the third harmonic along x.
        x_third_phase_rad: Phase of the third harmonic along x.
        z_mhz: Frequency along z, an integer.
        z_phase_turns: Phase along z at device time 0.
        z_third_ratio: Relative amplitude of the third harmonic along z.
        z_third_phase_rad: Phase of the third harmonic along z.
        passes_per_scan: Number of one-way sweeps along x in a scan.
        segment: ``float64[c, 6]`` per laser: centre x and z, phase x and z in turns, amplitude x and z.
    """

    x_mhz: int
    x_phase_turns: float
    x_third_ratio: float
    x_third_phase_rad: float
    z_mhz: int
    z_phase_turns: float
    z_third_ratio: float
    z_third_phase_rad: float
    passes_per_scan: int
    segment: npt.NDArray[np.float64]


def build_mirror(spec: MirrorSpec, segments: Sequence[SegmentSpec], *, phase_deg: float) -> Mirror:
    """Build the kernel-side mirror of a model's lasers; ``phase_deg`` is added to the phase along x at device time 0."""
    middles = [(laser.image_x, laser.image_z, laser.phase_x_deg / 360.0, laser.phase_z_deg / 360.0) for laser in segments]
    amplitudes = [(laser.scale_x * spec.x_amplitude, laser.scale_z * spec.z_amplitude) for laser in segments]
    return Mirror(
        x_mhz=round(1000 * spec.x_hz),
        x_phase_turns=(spec.x_phase_deg + phase_deg) / 360.0 % 1.0,
        x_third_ratio=spec.x_third_ratio,
        x_third_phase_rad=math.radians(spec.x_third_phase_deg),
        z_mhz=round(1000 * spec.z_hz),
        z_phase_turns=spec.z_phase_deg / 360.0 % 1.0,
        z_third_ratio=spec.z_third_ratio,
        z_third_phase_rad=math.radians(spec.z_third_phase_deg),
        passes_per_scan=spec.passes_per_scan,
        segment=np.hstack((np.reshape(middles, (-1, 4)), np.reshape(amplitudes, (-1, 2))), dtype=np.float64),
    )


def no_mirror() -> Mirror:
    """Placeholder mirror of a sensor without one."""
    return build_mirror(MirrorSpec(x_hz=1.0, x_amplitude=1.0, z_hz=1.0, z_amplitude=1.0), [], phase_deg=0.0)


@kernel
def _sweep(mhz: int, turns: float, third_ratio: float, third_phase_rad: float, device_ns: int) -> float:
    """Deflection of one axis at a device time, between about -1 and 1."""
    angle = 2.0 * math.pi * (turns + (device_ns % _TURN * mhz % _TURN) / _TURN)
    if third_ratio == 0.0:
        return math.sin(angle)
    return math.sin(angle) + third_ratio * math.sin(3.0 * angle + third_phase_rad)


@kernel
def image_point(mirror: Mirror, laser: int, device_ns: int) -> tuple[float, float]:
    """Image x and z of a laser's beam at a device time."""
    middle = mirror.segment[laser]
    x = _sweep(mirror.x_mhz, mirror.x_phase_turns + middle[_PHASE_X], mirror.x_third_ratio, mirror.x_third_phase_rad, device_ns)
    z = _sweep(mirror.z_mhz, mirror.z_phase_turns + middle[_PHASE_Z], mirror.z_third_ratio, mirror.z_third_phase_rad, device_ns)
    return middle[_MIDDLE_X] + middle[_SCALE_X] * x, middle[_MIDDLE_Z] + middle[_SCALE_Z] * z


@kernel
def scan_number(mirror: Mirror, device_ns: int) -> int:
    """Number of the scan at a device time. A scan ends where the fundamental along x turns back after the last of its passes."""
    whole = device_ns // _TURN * mirror.x_mhz
    fine = device_ns % _TURN * mirror.x_mhz
    whole += fine // _TURN
    turns = mirror.x_phase_turns + (fine % _TURN) / _TURN
    return (2 * whole + math.floor(2.0 * turns + 0.5)) // mirror.passes_per_scan
