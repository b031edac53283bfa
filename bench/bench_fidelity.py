"""How far emulated streams are from captures of real sensors: single figures and classifiers, for docs/reports/vlp16-against-real-units.md.

For each setting (rotation rate, return mode) of the real captures, streets and furnished rooms of several seeds are recorded, each with a drawn unit.
Then every figure of ``hilsim compare`` is printed beside the real ones, and ``tools.judge`` judges all. Captures given with ``--held``, on which no
constant of the profile was fitted, are judged once more by themselves.

Usage: .venv/bin/python bench/bench_fidelity.py REAL.pcap... [--held HELD.pcap...] [--scenes 4] [--seconds 4] [--keep FOLDER]
"""

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

import hilsim
from hilsim.capture.pcap import CaptureFile
from hilsim.errors import CaptureError
from tools.judge.capture_sample import sample_capture
from tools.judge.judge import judge
from tools.judge.judge_report import render_judgement

_MATERIALS = (
    "plaster",
    "concrete",
    "wood",
    "brick",
    "paint_white",
    "paint_black",
    "paint_silver",
    "rubber",
    "soil",
    "asphalt_new",
    "fabric",
    "screen",
)
_SHOWN = ("edges", "grid", "bytes", "empty", "dual", "correlation")


def room(seed):
    """TOML of a furnished room of 8 to 12 m: walls with a doorway, ceiling, boxes from the size of a book to that of a cupboard, poles, plants, a desk.

    Some things are about as near as the sensor's least range, as where people set sensors up.
    """
    random = np.random.default_rng(seed)
    width, depth, height = random.uniform(8.0, 12.0), random.uniform(8.0, 12.0), random.uniform(2.6, 3.6)
    lines = ['[scene]\n[[scene.plane]]\nsize_m = [60.0, 60.0]\nmaterial = "wood"\n']

    def add(kind, place, shape, material):
        lines.append(f'[[scene.{kind}]]\nposition_m = [{", ".join(f"{x:.3f}" for x in place)}]\n{shape}\nmaterial = "{material}"\n')

    def add_box(place, size, material, yaw_deg=0.0):
        shape = f"size_m = [{', '.join(f'{x:.3f}' for x in size)}]\nrotation_deg = [0.0, 0.0, {yaw_deg:.1f}]"
        add("box", place, shape, material)

    door = random.uniform(-2.0, 2.0)
    for side in (-1.0, 1.0):
        add_box((side * width / 2.0, 0.0, height / 2.0), (0.1, depth, height), "plaster")
        reach = depth / 2.0
        add_box((side * (width / 4.0 + 0.5) + door / 2.0, reach, height / 2.0), (width / 2.0 - 1.0 - side * door, 0.1, height), "plaster")
        add_box((0.0, -reach, height / 2.0), (width, 0.1, height), "brick")
    add_box((door, depth / 2.0 + 4.0, height / 2.0), (6.0, 0.1, height), "concrete")
    add_box((0.0, 0.0, height + 0.05), (width, depth, 0.1), "plaster")
    for _ in range(28):
        distance_m, angle = random.uniform(1.2, 0.48 * min(width, depth)), random.uniform(0.0, 2.0 * np.pi)
        size = random.uniform(0.08, 0.9, 3)
        place = (distance_m * np.cos(angle), distance_m * np.sin(angle), random.uniform(0.0, 1.6) + size[2] / 2.0)
        add_box(place, size, str(random.choice(_MATERIALS)), random.uniform(0.0, 90.0))
    for _ in range(12):
        distance_m, angle = random.uniform(0.8, 4.5), random.uniform(0.0, 2.0 * np.pi)
        shape = f"radius_m = {random.uniform(0.01, 0.06):.3f}\nheight_m = {random.uniform(0.6, 2.4):.2f}"
        add("cylinder", (distance_m * np.cos(angle), distance_m * np.sin(angle), 0.0), shape, str(random.choice(_MATERIALS)))
    for _ in range(4):
        distance_m, angle = random.uniform(1.5, 4.0), random.uniform(0.0, 2.0 * np.pi)
        shape = f"radius_m = {random.uniform(0.2, 0.5):.2f}"
        add("sphere", (distance_m * np.cos(angle), distance_m * np.sin(angle), random.uniform(0.6, 1.6)), shape, "leaves")
    for _ in range(3):
        distance_m, angle = random.uniform(0.5, 0.7), random.uniform(0.0, 2.0 * np.pi)
        place = (distance_m * np.cos(angle), distance_m * np.sin(angle), random.uniform(0.8, 1.3))
        add_box(
            place,
            (0.05, random.uniform(0.1, 0.4), random.uniform(0.1, 0.6)),
            str(random.choice(_MATERIALS)),
            np.degrees(angle) + random.uniform(-30.0, 30.0),
        )
    add_box((0.0, 0.0, 0.65), (1.2, 0.7, 0.04), "wood", random.uniform(0.0, 90.0))
    return "".join(lines) + "[[sensor]]\nmount_position_m = [0.0, 0.0, 1.0]\n"


def street(seed):
    """TOML of the demo's street of that seed."""
    return (
        f'[scene]\ngenerator = "street"\ngenerator_seed = {seed}\n[platform]\nkind = "street"\n'
        "disturbance = { amplitude_m = 0.004, amplitude_deg = 0.25, keyframe_interval_s = 0.8, frequency_hz = 0.7 }\n"
        "[[sensor]]\nmount_position_m = [0.0, 0.0, 1.9]\n"
    )


def recordings(setting, scenes, seconds, folder):
    """Record each scene at a setting, unless the folder has the file already; yields the files."""
    for kind, scene in (("street", street), ("room", room)):
        for seed in range(1, scenes + 1):
            name = f"{kind}-{seed}-{setting.rate_rpm}-{setting.return_mode}"
            path = folder / f"{name}.pcap"
            if not path.exists():
                rig = folder / f"{name}.toml"
                sensor = f'name = "lidar"\nprofile = "vlp16"\nrotation_rate_rpm = {setting.rate_rpm}\nreturn_mode = "{setting.return_mode}"\n'
                rig.write_text(f'name = "{kind}"\nseed = {seed}\n' + scene(seed) + sensor)
                hilsim.record(rig, path, duration_s=seconds)
            yield path


def sample(path):
    """Sample a capture."""
    return sample_capture(CaptureFile(path), name=path.name)


def print_figures(judgement):
    """Print each figure of the real captures beside those of streets and rooms."""
    for scalar in judgement.scalars:
        if scalar.name.split(".")[0] in _SHOWN and scalar.real and scalar.emulated:
            real, emulated = (" ".join(f"{value:8.3g}" for value in values) for values in (scalar.real, sorted(scalar.emulated)))
            print(f"{scalar.name:24} {real} | {emulated}  {scalar.outside} outside")


def main():
    """Record, compare and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("real", nargs="+", type=Path)
    parser.add_argument("--held", nargs="*", type=Path, default=[])
    parser.add_argument("--scenes", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--keep", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or Path(temporary)
        folder.mkdir(exist_ok=True, parents=True)
        real = {path: sample(path) for path in (*arguments.real, *arguments.held)}
        settings = sorted({capture.setting for capture in real.values()}, key=str)
        emulated = {setting: [sample(path) for path in recordings(setting, arguments.scenes, arguments.seconds, folder)] for setting in settings}
        held = [real[path] for path in arguments.held]
        for title, captures in (("all captures", list(real.values())), ("held captures alone", held)):
            if not captures:
                continue
            print(f"\n===== {title}: {', '.join(capture.name for capture in captures)}")
            of_settings = [each for setting in settings if any(capture.setting == setting for capture in captures) for each in emulated[setting]]
            try:
                judgement = judge(captures, of_settings)
            except CaptureError as error:
                print(error)
                continue
            print_figures(judgement)
            print("\n".join(render_judgement(judgement)))


if __name__ == "__main__":
    sys.exit(main())
