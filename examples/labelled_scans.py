"""Labelled scans for training: one file a turn of the head, with the class and the object of every point.

No daemon and no clock: one second of the demo street is rendered as fast as the machine can, always with the same result.
"""

import sys
from pathlib import Path

import numpy as np

import hilsim

CLASSES = {1: "ground", 2: "pavement", 3: "building", 4: "tree", 5: "lamp post", 6: "traffic sign", 7: "car", 8: "person", -1: "nothing solid"}
"""Of the demo street; in a rig of your own, `label` of each object says its class."""


def main() -> None:
    """Write scans to the folder that is named, or here."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "scans")
    folder.mkdir(exist_ok=True)
    emulator = hilsim.Emulator("demo")
    names = emulator.object_names()
    for number, scan in enumerate(emulator.scans(0.0, 0.5)):
        points = scan.points
        np.savez_compressed(folder / f"{number:04}.npz", points=points, start_ns=scan.start_ns)
        labels, counts = np.unique(points["label"], return_counts=True)
        found = ", ".join(f"{count} {CLASSES[label]}" for label, count in zip(labels.tolist(), counts.tolist(), strict=True))
        cars = {names[instance] for instance in np.unique(points["instance"][points["label"] == 7]).tolist()}
        print(f"scan {number} at {scan.start_ns / 1e9:.3f} s: {points.size} points: {found}; cars in sight: {len(cars)}")
    print(f"{number + 1} scans in {folder}/")


if __name__ == "__main__":
    main()
