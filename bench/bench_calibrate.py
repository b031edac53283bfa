"""Whether a learned unit is closer to the real one than a drawn unit, for docs/reports/vlp16-against-real-units.md.

Each capture of a still VLP-16 gives a unit and a map of its place: means over the turns, from which correction by byte and ripple are
taken off, as the emulated unit adds its own. Before that map the learned unit and drawn ones are recorded at the capture's setting, and
``hilsim compare`` says how far each figure is from the capture's.

A learned figure is closer or farther where its distance and the median of the drawn ones differ by more than noise: the root mean square
distance of the capture's quarters, which is twice the standard deviation of the difference of two captures as long as the whole; of a
share at least two samples. Figures that depend on the scene are counted apart, but for the noise of ranges: the map is one scene.

Usage: .venv/bin/python bench/bench_calibrate.py REAL.pcap... [--drawn 5] [--all]
"""

import argparse
import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import combinations, islice, pairwise
from pathlib import Path

import numpy as np

import hilsim
from hilsim.capture.pcap import CaptureFile
from hilsim.config.parse import parse_table, read_toml
from hilsim.config.profiles import profiles_directory
from hilsim.families.velodyne.calibration.byte_noise import without_ripple
from hilsim.families.velodyne.calibration.calibrate import calibrate
from hilsim.families.velodyne.calibration.cells import visits_of
from hilsim.families.velodyne.calibration.figures import Learned
from hilsim.families.velodyne.calibration.recording import Firings, read_recording
from hilsim.families.velodyne.calibration.report import unit_toml
from hilsim.families.velodyne.calibration.signal import learn_range_codes
from hilsim.families.velodyne.specs import VelodyneSpec
from hilsim.read.analysis.comparison.streams import compare, gather
from hilsim.read.background.files.archive import write_archive
from hilsim.world.scene.background import INVALID, VALID, AzimuthGrid, BackgroundMap

_REACH, _AROUND = 4, 15  # cells on either side: of a parabola, and of the variance of what it leaves
_NEAR_M = 0.1


@dataclass(frozen=True, kw_only=True)
class Place:
    """Means over turns, ``float64[lasers, cells]``; NaN without a return."""

    range_m: np.ndarray
    byte: np.ndarray
    count: np.ndarray


def place_of(recording, visits):
    """Mean range and byte of each direction, of the surface that most turns see there."""
    lasers, size = recording.model.channels, recording.model.channels * visits.cells
    middle = np.full(size, np.nan)
    first = np.flatnonzero(np.diff(visits.cell, prepend=-1))
    for start, stop in zip(first, np.append(first[1:], visits.cell.size), strict=True):
        middle[visits.cell[start]] = np.median(visits.range_m[start:stop])
    on = np.abs(visits.range_m - middle[visits.cell]) <= _NEAR_M
    cell, range_m, byte = visits.cell[on], visits.range_m[on], visits.reflectivity[on].astype(float)
    count = np.bincount(cell, minlength=size)
    with np.errstate(invalid="ignore"):
        means = [np.bincount(cell, value, size) / count for value in (range_m, byte)]
        errors = [np.bincount(cell, (value - mean[cell]) ** 2, size) for value, mean in zip((range_m, byte), means, strict=True)]
    shape = (lasers, visits.cells)
    count = count.reshape(shape)
    smooth = [smoothed(mean.reshape(shape), error.reshape(shape), count, means[0].reshape(shape)) for mean, error in zip(means, errors, strict=True)]
    return Place(range_m=smooth[0], byte=smooth[1], count=count)


def smoothed(mean, squares, count, range_m):
    """Take off what noise of few turns leaves of the means: what a parabola through the neighbours on one surface leaves, less its share that is noise."""
    span = np.arange(-_REACH, _REACH + 1)
    weights = np.linalg.pinv(np.vander(span, 3, increasing=True))[0]
    around = [np.roll(mean, -step, axis=1) for step in span]
    ranges = np.stack([np.roll(range_m, -step, axis=1) for step in span])
    fit = sum(weight * value for weight, value in zip(weights, around, strict=True))
    with np.errstate(invalid="ignore"):
        is_one = (np.abs(np.diff(ranges, n=2, axis=0)) < _NEAR_M).all(axis=0) & np.isfinite(fit)
        left = np.where(is_one, mean - fit, 0.0)

        def near(value):
            return sum(np.roll(np.where(is_one, value, 0.0), step, axis=1) for step in range(-_AROUND, _AROUND + 1))

        noise = near(squares) / np.maximum(near(np.maximum(count - 1, 0)), 1) * near(1.0 / np.maximum(count, 1))
        share = np.clip(1.0 - noise / np.maximum(near(left**2), 1e-12), 0.0, 1.0)
    return np.where(is_one, fit + share * left, mean)


def write_place(recording, place, path):
    """Write a place as a map of ``hilsim background``."""
    geometry = recording.model.geometry
    grid = AzimuthGrid(columns=place.range_m.shape[1], elevation_deg=geometry.rows_deg)
    rows = np.argsort(np.array(geometry.elevation_deg))
    is_valid = np.isfinite(place.range_m)[rows] & (place.count[rows] >= 2)
    write_archive(
        BackgroundMap(
            grid=grid,
            distance_mm=np.where(is_valid, np.rint(1000.0 * np.nan_to_num(place.range_m[rows])), 0).astype(np.uint32),
            intensity=np.where(is_valid, np.rint(np.nan_to_num(place.byte[rows])).clip(0, 255), 0).astype(np.uint16),
            flags=np.where(is_valid, VALID, INVALID).astype(np.uint8),
            hit_count=place.count[rows].astype(np.uint32),
            confidence=is_valid.astype(np.float32),
            model=recording.model.name,
        ),
        path,
    )


def emulated(folder, setting, unit, seed, duration_s):
    """Statistics of a unit in front of the map of the folder."""
    rig, path = folder / "rig.toml", folder / f"{unit}-{seed}.pcap"
    rig.write_text(
        f'name = "place"\nseed = {seed}\n[[scene.background]]\nfile = "place.npz"\nheight_m = 0.0\n[platform]\nkind = "background"\n'
        f'[[sensor]]\nname = "lidar"\nprofile = "vlp16"\nunit = "{unit}"\nrotation_rate_rpm = {setting[0]}\nreturn_mode = "{setting[1]}"\n'
    )
    hilsim.record(rig, path, duration_s=duration_s)
    return gather(CaptureFile(path).datagrams(), name=path.name)


def distances(a, b):
    """Distance of each figure of two streams that both have."""
    return {row.statistic.name: row for row in compare(a, b).rows if np.isfinite(row.distance)}


def judge(path, folder, drawn, spec):
    """Rows of one capture: whether of the scene, verdict, name, real, learned, distance, distances of drawn units, noise."""
    recording = read_recording(CaptureFile(path).datagrams(), name=path.name)
    firings, scratch = Firings(recording), Learned(keys={}, lasers=[{} for _ in range(spec.laser_count)])
    visits = without_ripple([visits_of(recording, firings, learn_range_codes([firings], scratch))], scratch)[0]
    write_place(recording, place_of(recording, visits), folder / "place.npz")
    (folder / "learned.toml").write_text(unit_toml(calibrate([recording], spec), "0"))
    rate_rpm = 60 * round(float(np.median(np.diff(recording.azimuth.ravel()) % 36000)) / 36000 / recording.group_us * 1e6)
    setting, duration_s = (rate_rpm, recording.mode.name.lower()), recording.duration_s
    real = gather(CaptureFile(path).datagrams(), name=path.name)
    packets = sum(1 for _ in CaptureFile(path).datagrams())
    bounds = np.linspace(0, packets, 5).astype(int).tolist()
    quarters = [gather(islice(CaptureFile(path).datagrams(), start, stop), name=path.name) for start, stop in pairwise(bounds)]
    squares = defaultdict(list)
    for a, b in combinations(quarters, 2):
        for name, row in distances(a, b).items():
            squares[name].append(row.distance**2)
    noise = {name: float(np.mean(of_name)) ** 0.5 for name, of_name in squares.items()}
    learned = distances(emulated(folder, setting, "learned.toml", 9, duration_s), real)
    others = [distances(emulated(folder, setting, "drawn", seed, duration_s), real) for seed in range(1, drawn + 1)]
    for name, row in learned.items():
        of_drawn = sorted(other[name].distance for other in others if name in other)
        if of_drawn and name in noise:
            gap, of_two = row.distance - float(np.median(of_drawn)), 0.0
            if row.statistic.unit == "%" and row.statistic.samples is not None:
                of_two = 200.0 / max(row.statistic.samples(real), 1)
            verdict = "equal" if abs(gap) <= max(noise[name], of_two) else "farther" if gap > 0.0 else "closer"
            is_scene = row.statistic.depends_on == "scene" and not name.startswith("noise.")
            yield is_scene, verdict, name, row.b, row.a, row.distance, of_drawn, noise[name]


def main():
    """Judge each capture and print the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("real", nargs="+", type=Path)
    parser.add_argument("--drawn", type=int, default=5)
    parser.add_argument("--all", action="store_true", help="print the equal rows too")
    arguments = parser.parse_args()
    spec = parse_table(VelodyneSpec, read_toml(profiles_directory() / "sensors" / "vlp16.toml"), "vlp16")
    for path in arguments.real:
        with tempfile.TemporaryDirectory() as temporary:
            rows = list(judge(path, Path(temporary), arguments.drawn, spec))
        counts = Counter((is_scene, verdict) for is_scene, verdict, *_ in rows)
        told = [", ".join(f"{verdict} {counts[is_scene, verdict]}" for verdict in ("closer", "equal", "farther")) for is_scene in (False, True)]
        print(f"{path.name}: {told[0]}; of the scene: {told[1]}")
        for is_scene, verdict, name, real, learned, distance, of_drawn, noise in rows:
            if arguments.all or verdict != "equal":
                print(
                    f"  {'scene' if is_scene else 'unit ':6}{verdict:8}{name:32} real {real:8.4g} learned {learned:8.4g}  distance {distance:8.4g}  drawn {of_drawn[0]:.3g} to {of_drawn[-1]:.3g}  noise {noise:.3g}"
                )


if __name__ == "__main__":
    main()
