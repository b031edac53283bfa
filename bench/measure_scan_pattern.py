"""Fits a mirror lidar's scan pattern to a real capture, and prints it as the keys of a sensor profile.

python bench/measure_scan_pattern.py CAPTURE [PICTURES]    (PICTURES: a folder for one picture a sensor, capture beside formula)

Each laser segment's image x and z (x / y and z / y of a point) are taken as ``centre + scale * amplitude * (sin p + third_ratio * sin(3 p + third_phase))`` with
``p = 2 pi hz t + phase``. The time of a measurement is its number times 8 us (the captures' packet interval is 128 times that within 1e-5). Frequencies are found by
least squares over all segments with five harmonics free, so that the second one, which the formula lacks, does not bend the others. Points without a return count
as well: the vendor's library gives them their place in the image.
"""

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import minimize_scalar

DECODER = Path(__file__).parent / "cepton_image_points.py"
SEGMENTS = 8
FIRING_S = 8e-6
HARMONICS = (1, 2, 3, 4, 5)
COARSE_HZ = np.arange(1.0, 400.0, 0.25)


def image_points(path):
    """``{address: (x, z)}``, each ``float64[n, 8]``, of a capture."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "points.npz"
        subprocess.run([sys.executable, str(DECODER), str(path), str(out)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with np.load(out) as arrays:
            found = {address: arrays[address] for address in arrays.files}
    sweeps = {}
    for address, points in found.items():
        if points.size % SEGMENTS or not np.array_equal(points["segment"], np.arange(points.size) % SEGMENTS):
            raise SystemExit(f"{address}: segments must take turns")
        # The library's image is upside down and left to right: x = -image_x * y, z = -image_z * y (cepton_sdk_util.hpp).
        sweeps[address] = tuple(-points[axis].astype(np.float64).reshape(-1, SEGMENTS) for axis in ("image_x", "image_z"))
    return sweeps


def harmonics_of(hz, times_s, values):
    """Least-squares constant, and complex amplitudes ``a`` of ``imag(a * exp(i h w t))``, of one series; and what is left."""
    turns = 2.0 * np.pi * hz * times_s
    columns = np.stack([np.ones_like(turns), *(wave(h * turns) for h in HARMONICS for wave in (np.sin, np.cos))], axis=1)
    solved, *_ = np.linalg.lstsq(columns, values, rcond=None)
    return solved[0], solved[1::2] + 1j * solved[2::2], values - columns @ solved


def frequency_of(times_s, values):
    """Hz that leaves least of all segments' series."""

    def left(hz):
        return sum(float(np.sum(harmonics_of(hz, times_s[:, number], values[:, number])[2] ** 2)) for number in range(SEGMENTS))

    first = values[:, 0] - values[:, 0].mean()
    power = [abs(np.exp(-2j * np.pi * hz * times_s[:, 0]) @ first) for hz in COARSE_HZ]
    near = COARSE_HZ[int(np.argmax(power))]
    fine = np.arange(near - 0.4, near + 0.4, 0.02)
    near = fine[int(np.argmin([left(hz) for hz in fine]))]
    return minimize_scalar(left, bounds=(near - 0.02, near + 0.02), method="bounded", options={"xatol": 1e-6}).x


@dataclass(frozen=True, kw_only=True)
class Axis:
    """One axis of a fitted pattern; arrays are by segment."""

    hz: float
    amplitude: float
    third_ratio: float
    third_phase_deg: float
    second_ratio: float
    phase_deg: float
    centre: np.ndarray
    scale: np.ndarray
    phases_deg: np.ndarray

    def at(self, times_s):
        """``float64[n, 8]``, where the segments look."""
        angle = 2.0 * np.pi * self.hz * times_s + np.radians(self.phase_deg + self.phases_deg)
        wave = np.sin(angle) + self.third_ratio * np.sin(3.0 * angle + np.radians(self.third_phase_deg))
        return self.centre + self.scale * self.amplitude * wave


def fit(times_s, values, *, keep_third):
    """The axis that fits all segments: one third harmonic for all of them, amplitudes and phases relative to the first segment's."""
    hz = frequency_of(times_s, values)
    fitted = [harmonics_of(hz, times_s[:, number], values[:, number]) for number in range(SEGMENTS)]
    centre = np.array([constant for constant, *_ in fitted])
    waves = np.array([amplitudes for _, amplitudes, _ in fitted])
    first = waves[:, 0]
    third = np.sum(waves[:, 2] * np.exp(-3j * np.angle(first))) / np.sum(abs(first))
    return Axis(
        hz=round(hz, 3),
        amplitude=float(abs(first).mean()),
        third_ratio=abs(third) if keep_third else 0.0,
        third_phase_deg=float(np.degrees(np.angle(third))) if keep_third else 0.0,
        second_ratio=float((abs(waves[:, 1]) / abs(first)).mean()),
        phase_deg=float(np.degrees(np.angle(first[0]))),
        centre=centre,
        scale=abs(first) / abs(first).mean(),
        phases_deg=np.degrees(np.angle(first / first[0])),
    )


def show(address, axes, measured, times_s):
    """Print one sensor as TOML, with what the formula leaves."""
    print(f"# {address}, {times_s.size} measurements")
    print("segments = [")
    x, z = axes
    for n in range(SEGMENTS):
        print(
            f"    {{ image_x = {x.centre[n]:.4f}, image_z = {z.centre[n]:.4f}, phase_x_deg = {x.phases_deg[n]:.1f}, phase_z_deg = {z.phases_deg[n]:.1f}, "
            f"scale_x = {x.scale[n]:.3f}, scale_z = {z.scale[n]:.3f} }},"
        )
    print("]\n[mirror]")
    for name, axis, values in zip("xz", axes, measured, strict=True):
        left = values - axis.at(times_s)
        print(f"{name}_hz = {axis.hz:.3f}")
        print(f"{name}_amplitude = {axis.amplitude:.4f}")
        print(f"{name}_third_ratio = {axis.third_ratio:.4f}\n{name}_third_phase_deg = {axis.third_phase_deg:.1f}")
        print(f"{name}_phase_deg = {axis.phase_deg:.1f}  # at the capture's first measurement")
        by_segment = " ".join(f"{value:.4f}" for value in left.std(axis=0))
        print(f"# left: {left.std():.4f} rms, {abs(left).max():.4f} at most; by segment {by_segment}; second harmonic {axis.second_ratio:.3f}")
        span = np.degrees(np.arctan([values.min(), values.max()]))
        print(f"# {name} spans {span[0]:.2f} to {span[1]:.2f} degrees")


def draw(path, title, measured, axes, times_s, scan_s):
    """One scan in image coordinates, capture and formula."""
    import matplotlib as mpl  # noqa: PLC0415 - only where pictures are asked for

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    x, _ = axes
    begin_s = (90.0 - x.phase_deg) % 180.0 / 360.0 / x.hz  # a turning point of the sweep across
    chosen = (times_s[:, 0] >= begin_s) & (times_s[:, 0] < begin_s + scan_s)
    is_wide = np.ptp(measured[0]) > 2.0 * np.ptp(measured[1])
    rows, columns, size = (2, 1, (12, 10.5)) if is_wide else (1, 2, (12, 6.6))
    figure, (left, right) = plt.subplots(rows, columns, figsize=size, sharex=True, sharey=True, layout="constrained")
    for plot, name, values in ((left, "capture", measured), (right, "formula", [axis.at(times_s) for axis in axes])):
        for number in range(SEGMENTS):
            plot.plot(values[0][chosen, number], values[1][chosen, number], ".", markersize=1.0, color=f"C{number}")
        plot.set_title(f"{name}: {chosen.sum() * SEGMENTS} points in {1000 * scan_s:.1f} ms")
        plot.set_xlabel("image x (x / y)")
        plot.set_ylabel("image z (z / y)")
        plot.set_aspect("equal")
    figure.suptitle(title)
    figure.savefig(path, dpi=80)
    plt.close(figure)


def main():
    """Fit every sensor of the capture."""
    capture, *pictures = map(Path, sys.argv[1:])
    for address, measured in image_points(capture).items():
        times_s = np.arange(measured[0].size).reshape(-1, SEGMENTS) * FIRING_S
        axes = (fit(times_s, measured[0], keep_third=True), fit(times_s, measured[1], keep_third=False))
        show(address, axes, measured, times_s)
        half_s = 0.5 / axes[0].hz
        scan_s = half_s * np.ceil(7000 * FIRING_S / half_s)  # as many passes as SDK 2 needs to make a frame of them
        for folder in pictures:
            draw(folder / f"{address}.png", f"{address}: one scan, a colour each segment", measured, axes, times_s, scan_s)


if __name__ == "__main__":
    main()
