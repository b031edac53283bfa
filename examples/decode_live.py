"""Decode a live stream: a daemon sends in real time, and this program is the driver that receives it.

`hilsim.Daemon` is `hilsim run` in a separate process, for the duration of the block. In your bench the daemon runs elsewhere: bind port 2368, and leave it out.
"""

import socket

import numpy as np

import hilsim

SCANS = 5


def azimuth(payload: bytes) -> int:
    """Of the first block of a data packet, in 0.01 degrees."""
    return int.from_bytes(payload[2:4], "little")


def main() -> None:
    """Print a line a turn of the head."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as driver:
        driver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        driver.bind(("127.0.0.1", 0))
        driver.settimeout(10.0)
        with hilsim.Daemon("demo", to=f"127.0.0.1:{driver.getsockname()[1]}"):
            turn: list[bytes] = []
            for _ in range(SCANS):
                while len(turn) < 2 or azimuth(turn[-1]) > azimuth(turn[-2]):
                    turn.append(driver.recv(2000))
                points = hilsim.decode(turn[:-1])
                range_m = np.sqrt(points["x"] ** 2 + points["y"] ** 2 + points["z"] ** 2)
                print(f"{len(turn) - 1} packets, {points.size} points, nearest {range_m.min():.2f} m, farthest {range_m.max():.1f} m")
                turn = turn[-1:]


if __name__ == "__main__":
    main()
