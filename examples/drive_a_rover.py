"""Five rovers drive through a yard: take what they send, steer number 5 by its buttons, and draw what they saw from above.

A rover sends its pose to port 9000 + its number and its points to 10000 + its number, in the world's frame with y up, and takes commands at 8000 + its number.
"""

import select
import socket
import struct
import time
from contextlib import ExitStack

import matplotlib as mpl
import numpy as np

import hilsim

mpl.use("Agg")
from matplotlib import pyplot as plt

ROVERS = range(1, 6)
SECONDS = 4.0
FORWARD, LEFT = 1, 4


def listen() -> tuple[dict[int, list[tuple[float, ...]]], dict[int, list[np.ndarray]]]:
    """Poses and points of every rover, for some seconds."""
    poses: dict[int, list[tuple[float, ...]]] = {number: [] for number in ROVERS}
    points: dict[int, list[np.ndarray]] = {number: [] for number in ROVERS}
    with ExitStack() as stack:
        commander = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        receivers = {}
        for base, number in ((base, number) for base in (9000, 10_000) for number in ROVERS):
            receiver = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            receiver.bind(("127.0.0.1", base + number))
            receivers[receiver] = base, number
        noiseless = {f"rover[{number - 1}].noise": {"position_m": 0.0, "rotation_deg": 0.0, "point_m": 0.0} for number in ROVERS}
        stack.enter_context(hilsim.Daemon("rovers", settings=noiseless))
        commander.sendto(bytes([FORWARD | LEFT]), ("127.0.0.1", 8005))
        end_s = time.monotonic() + SECONDS
        while time.monotonic() < end_s:
            for receiver in select.select(list(receivers), [], [], 0.1)[0]:
                (base, number), payload = receivers[receiver], receiver.recv(2048)
                if base == 9000:
                    poses[number].append(struct.unpack("<d3f3f", payload))
                else:
                    points[number].append(np.frombuffer(payload, "<f4", offset=20).reshape(-1, 3))
    return poses, points


if __name__ == "__main__":
    poses, points = listen()
    figure, axes = plt.subplots(figsize=(7, 7))
    for number in ROVERS:
        track, (x, _, z) = np.array(poses[number]), np.concatenate(points[number]).T
        axes.scatter(x, -z, s=0.2, label=f"rover {number}")
        axes.plot(track[:, 1], -track[:, 3], color="black", linewidth=2)
        print(f"rover {number}: {len(track)} poses, {len(x)} points, drove {np.hypot(*np.diff(track[:, [1, 3]], axis=0).T).sum():.1f} m")
    axes.set(aspect="equal", xlabel="east (m)", ylabel="north (m)", title="Five rovers in a yard, from above")
    axes.legend(markerscale=20, loc="upper right")
    figure.savefig("rovers.png", dpi=100)
