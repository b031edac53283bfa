"""A scene made in Python: no file, just the tables of a rig as a mapping.

Posts form a half circle, each one an object of its own. The ground truth says how many points each of them gets, and how far it really is.
"""

import math

import numpy as np

import hilsim

RANGES_M = (5.0, 10.0, 20.0, 40.0, 60.0)
POST, GROUND = 1, 2


def post(number: int, range_m: float) -> dict[str, object]:
    """A post of 20 cm at a distance of its own, 30 degrees from the next one."""
    azimuth = math.radians(30.0 * number - 60.0)
    position_m = [range_m * math.cos(azimuth), range_m * math.sin(azimuth), 0.0]
    return {"name": f"post at {range_m:g} m", "position_m": position_m, "radius_m": 0.1, "height_m": 3.0, "material": "metal", "label": POST}


RIG = {
    "name": "posts",
    "seed": 1,
    "platform": {"kind": "fixed", "position_m": [0.0, 0.0, 1.5]},
    "scene": {
        "plane": [{"name": "ground", "size_m": [200.0, 200.0], "material": "asphalt", "label": GROUND}],
        "cylinder": [post(number, range_m) for number, range_m in enumerate(RANGES_M)],
    },
    "sensor": [{"name": "front", "profile": "vlp16", "sub_rays": 7}],
}


def main() -> None:
    """Print how many points of a turn are on each post."""
    emulator = hilsim.Emulator(RIG)
    (scan,) = emulator.scans(0.1, 0.2)
    names = emulator.object_names()
    for instance in np.unique(scan.points["instance"][scan.points["label"] == POST]):
        points = scan.points[scan.points["instance"] == instance]
        measured_m = float(np.hypot(points["x"], points["y"]).mean())
        print(f"{names[instance]}: {points.size} points, measured at {measured_m:.2f} m")


if __name__ == "__main__":
    main()
