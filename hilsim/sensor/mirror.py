"""The mirror of an image-scanning lidar: direction of each laser at any device time, in image coordinates.

Image coordinates are those of a pinhole camera of focal length 1: ``x / y`` to the right and ``z / y`` upwards of a point (x right, y forward, z up). Each laser draws a
Lissajous figure: see ``MirrorSpec``. Angles are exact for any length of run, because turns are counted in integers.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import kernel
from hilsim.errors import require

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
            *(
                (abs(value) <= 20.0, f"{name} must be -20 to 20, got {value}")
                for name, value in (("image_x", self.image_x), ("image_z", self.image_z))
            ),
            *(
                (abs(value) <= 360.0, f"{name} must be -360 to 360, got {value}")
                for name, value in (("phase_x_deg", self.phase_x_deg), ("phase_z_deg", self.phase_z_deg))
            ),
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
        require(
            *(rule for axis in ("x", "z") for rule in self._axis_rules(axis)),
            (1 <= self.passes_per_scan <= 100, f"passes_per_scan must be 1 to 100, got {self.passes_per_scan}"),
        )

    def _axis_rules(self, axis: str) -> Iterator[tuple[bool, str]]:
        hz, amplitude, ratio = (getattr(self, f"{axis}_{name}") for name in ("hz", "amplitude", "third_ratio"))
        yield 0.01 <= hz <= 5000.0, f"{axis}_hz must be 0.01 to 5000, got {hz}"
        yield 0.0 < amplitude <= 10.0, f"{axis}_amplitude must be above 0 and at most 10, got {amplitude}"
        yield abs(ratio) <= 0.5, f"{axis}_third_ratio must be -0.5 to 0.5, got {ratio}"
        for name in ("third_phase_deg", "phase_deg"):
            phase_deg = getattr(self, f"{axis}_{name}")
            yield abs(phase_deg) <= 360.0, f"{axis}_{name} must be -360 to 360, got {phase_deg}"


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
    return _mirror(
        spec,
        phase_deg,
        [
            (
                segment.image_x,
                segment.image_z,
                segment.phase_x_deg / 360.0,
                segment.phase_z_deg / 360.0,
                segment.scale_x * spec.x_amplitude,
                segment.scale_z * spec.z_amplitude,
            )
            for segment in segments
        ],
    )


def no_mirror() -> Mirror:
    """Placeholder mirror of a sensor without one."""
    return _mirror(MirrorSpec(x_hz=1.0, x_amplitude=1.0, z_hz=1.0, z_amplitude=1.0), 0.0, [])


def _mirror(spec: MirrorSpec, phase_deg: float, segments: list[tuple[float, ...]]) -> Mirror:
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
        segment=np.array(segments, dtype=np.float64).reshape(-1, 6),
    )


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
