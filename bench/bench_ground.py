"""How well the ground is found in recorded rooms of random size, tilt and height, with and without a floor: for docs/how-to/capture-a-background.md.

Usage: .venv/bin/python bench/bench_ground.py [--rooms 40]
"""

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from hilsim.read.analysis.ground import Ground, fit_ground
from tests.grounds import FLOOR, capture_points, record_ground

_PROFILES = ("vlp16", "hr80w-like", "hdl32e")
_HEIGHT_M, _ANGLE_DEG = 0.01, 0.1


def room(walls_m, *, has_floor):
    """A scene of four high walls, as far away as is given to each side."""
    right, left, ahead, behind = walls_m
    places = [
        ((right + 0.5, 0.0), (1.0, 200.0)),
        ((-left - 0.5, 0.0), (1.0, 200.0)),
        ((0.0, ahead + 0.5), (200.0, 1.0)),
        ((0.0, -behind - 0.5), (200.0, 1.0)),
    ]
    boxes = [f"[[scene.box]]\nposition_m = [{x}, {y}, 0.0]\nsize_m = [{width}, {depth}, 60.0]\n" for (x, y), (width, depth) in places]
    return "".join(boxes) + (FLOOR if has_floor else "")


def main():
    """Record the rooms, print each ground and the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rooms", type=int, default=40)
    rooms = parser.parse_args().rooms
    random = np.random.default_rng(5)
    results = Counter()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "room.pcap"
        for number in range(rooms):
            profile = _PROFILES[number % len(_PROFILES)]
            walls_m = random.uniform(1.2, 20.0, 4)
            height_m, roll_deg, pitch_deg = random.uniform(0.3, 3.0), *random.uniform(-8.0, 8.0, 2)
            pitch_deg = abs(pitch_deg) + 2.0 if profile == "hr80w-like" else pitch_deg
            for has_floor in (False, True):
                record_ground(path, profile, height_m, roll_deg, pitch_deg, scene=room(walls_m.tolist(), has_floor=has_floor), seconds=0.3)
                found = fit_ground(capture_points(path))
                what = "not found"
                if isinstance(found, Ground):
                    angles_deg = abs(found.roll_deg - roll_deg), abs(found.pitch_deg - pitch_deg)
                    is_right = has_floor and abs(found.height_m - height_m) < _HEIGHT_M and max(angles_deg) < _ANGLE_DEG
                    what = "right" if is_right else "WRONG"
                results[profile, "floor" if has_floor else "no floor", what] += 1
                print(
                    f"{profile:11} {'floor   ' if has_floor else 'no floor'} {height_m:.2f} m, roll {roll_deg:4.1f}, pitch {pitch_deg:4.1f}: {found}"
                )
    for key, count in sorted(results.items()):
        print(f"{count:4} {' '.join(key)}")


if __name__ == "__main__":
    main()
