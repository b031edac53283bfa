"""The mirror of an image-scanning lidar: direction of each laser at any device time, in image coordinates.

Image coordinates are those of a pinhole camera of focal length 1: ``x / y`` to the right and ``z / y`` upwards of a point (x right, y forward, z up). Each laser draws a
Lissajous figure: see ``MirrorSpec``. Angles are exact for any length of run, because turns are counted in integers.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import kernel
from hilsim.families.cepton.specs import CeptonSpec, MirrorSpec

_TURN = 1_000_000_000_000
"""Duration of a turn in ns * mHz."""
_EXTENT_STEPS = 7200
_MIDDLE_X, _MIDDLE_Z, _PHASE_X, _PHASE_Z, _SCALE_X, _SCALE_Z = range(6)


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


def build_mirror(spec: CeptonSpec, *, phase_deg: float) -> Mirror:
    """Build the kernel-side mirror of a model; ``phase_deg`` is added to the phase along x at device time 0."""
    return _mirror(
        spec.mirror,
        phase_deg,
        [
            (
                segment.image_x,
                segment.image_z,
                segment.phase_x_deg / 360.0,
                segment.phase_z_deg / 360.0,
                segment.scale_x * spec.mirror.x_amplitude,
                segment.scale_z * spec.mirror.z_amplitude,
            )
            for segment in spec.segments
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


def image_extent(spec: CeptonSpec) -> tuple[float, float, float, float]:
    """Bounds of all lasers' beams: smallest and largest image x, smallest and largest image z. They exceed the true extremes by at most 6e-7 of the amplitude."""
    of_axis = []
    for axis in ("x", "z"):
        ratio, phase_rad = getattr(spec.mirror, f"{axis}_third_ratio"), math.radians(getattr(spec.mirror, f"{axis}_third_phase_deg"))
        angle = np.linspace(0.0, 2.0 * np.pi, _EXTENT_STEPS + 1)
        between = (1.0 + 9.0 * abs(ratio)) * (np.pi / _EXTENT_STEPS) ** 2 / 2.0  # a peak between two samples exceeds them by at most this
        amplitude = getattr(spec.mirror, f"{axis}_amplitude")
        wave = np.sin(angle) + ratio * np.sin(3.0 * angle + phase_rad)
        ends = [
            getattr(segment, f"image_{axis}") + getattr(segment, f"scale_{axis}") * end
            for segment in spec.segments
            for end in (amplitude * (wave.min() - between), amplitude * (wave.max() + between))
        ]
        of_axis += [float(min(ends)), float(max(ends))]
    return of_axis[0], of_axis[1], of_axis[2], of_axis[3]
