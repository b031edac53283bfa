"""Packets of the rover emulator: pose, lidar chunks, telemetry and commands over UDP, little-endian and packed.

Each rover has four ports, each of them a base and the rover's number: its pose goes to 9000, its lidar to 10000, its telemetry to 11000, and it takes commands at 8000.
In each cycle a rover sends its pose, then its scan in chunks of at most 100 points in ascending order, then its telemetry; all of them bear the same time stamp, bit for
bit, for receivers put a scan together by it.

=========  ======  ====  ==================================================================
packet     offset  type  field
=========  ======  ====  ==================================================================
pose       0       f64   time stamp, seconds
           8       f32   position x, y, z
           20      f32   rotation about x, y, z, degrees
chunk      0       f64   time stamp
           8       u32   number of the chunk, from 0
           12      u32   chunks of the scan
           16      u32   points in this chunk: 100, in the last one what is left
           20      f32   x, y, z of each point
telemetry  0       f64   time stamp
           8       u8    buttons: the byte of the last command
command    0       u8    buttons; further bytes are ignored
=========  ======  ====  ==================================================================

A scan without points has no chunk. Points are in the world's frame, y up.
Source: the public emulator and its viewer (github.com/NoaheCampbell/LiDAR-Visualization), read and measured.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, kernel

POSE_PORT, LIDAR_PORT, TELEMETRY_PORT, COMMAND_PORT = 9000, 10_000, 11_000, 8000
"""Ports of rover 0; the ports of other rovers are higher by their number."""
CHUNK_POINTS = constant(100)
POSE_SIZE, TELEMETRY_SIZE, CHUNK_HEADER_SIZE, POINT_SIZE = 32, 9, 20, 12
LARGEST_PACKET = CHUNK_HEADER_SIZE + 100 * POINT_SIZE

POSE_DTYPE = np.dtype([("time_s", "<f8"), ("position", "<f4", (3,)), ("rotation_deg", "<f4", (3,))])
CHUNK_HEADER_DTYPE = np.dtype([("time_s", "<f8"), ("chunk", "<u4"), ("chunks", "<u4"), ("points", "<u4")])
TELEMETRY_DTYPE = np.dtype([("time_s", "<f8"), ("buttons", "u1")])
if (POSE_DTYPE.itemsize, CHUNK_HEADER_DTYPE.itemsize, TELEMETRY_DTYPE.itemsize) != (POSE_SIZE, CHUNK_HEADER_SIZE, TELEMETRY_SIZE):
    raise AssertionError("a rover's packets do not have their sizes")

_WORDS = 153
"""Number of 8-byte words: the largest packet plus four bytes."""


class Draft(NamedTuple):
    """Memory of one packet, as bytes and as the numbers that are written into it.

    Attributes:
        payload: ``uint8[1224]``.
        float64: ``float64[153]``, the same memory.
        float32: ``float32[306]``, the same memory.
        uint32: ``uint32[306]``, the same memory.
    """

    payload: npt.NDArray[np.uint8]
    float64: npt.NDArray[np.float64]
    float32: npt.NDArray[np.float32]
    uint32: npt.NDArray[np.uint32]


def allocate_draft() -> Draft:
    """Allocate a draft of zeros."""
    words = np.zeros(_WORDS, np.float64)
    return Draft(words.view(np.uint8), words, words.view(np.float32), words.view(np.uint32))


@kernel
def chunk_count(points: int) -> int:
    """Chunks of a scan."""
    return (points + CHUNK_POINTS - 1) // CHUNK_POINTS


@kernel
def chunk_points(points: int, chunk: int) -> int:
    """Points in one of them."""
    return min(points - chunk * CHUNK_POINTS, CHUNK_POINTS)
