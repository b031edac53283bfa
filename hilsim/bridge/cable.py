"""Reading from and writing to a controller's link without waiting: what cannot go now is kept if it must go, and replaced if something newer comes."""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim._jit import constant, kernel
from hilsim.bridge.frames import LARGEST_FRAME, ByteStream, allocate_stream
from hilsim.transmit.libc import write_bytes

_GONE = constant(-1)


class CableCount(IntEnum):
    """Columns of ``Cable.counts``."""

    SENT_FRAMES = 0
    SENT_BYTES = 1
    RECEIVED_FRAMES = 2
    RECEIVED_BYTES = 3
    REPLACED_SENSORS = 4
    """Sensor frames that were never sent, because a newer one came while the line was full."""
    SKIPPED_SENSORS = 5
    """Sensor frames never made, because the machine stood still."""
    STALLS = 6
    """Times that the loop stood still for longer than it makes up."""
    UNFORWARDED_FRAMES = 7
    """Frames of the controller that ground stations missed, because their tape was full."""
    FORWARDED_TO_CONTROLLER = 8
    LINK_LOSSES = 9
    SENSOR_FRAMES = 10
    GPS_FRAMES = 11
    ACTUATOR_FRAMES = 12
    LOOKS = 13
    LOCKSTEP_TIMEOUTS = 14


_SENT_FRAMES, _SENT_BYTES = constant(CableCount.SENT_FRAMES), constant(CableCount.SENT_BYTES)


class Outbox(NamedTuple):
    """A frame that is on its way.

    Attributes:
        data: ``uint8[LARGEST_FRAME]``.
        place: ``int64[8]``: column 0 the first byte not yet gone, column 1 one past the last.
    """

    data: npt.NDArray[np.uint8]
    place: npt.NDArray[np.int64]


class Cable(NamedTuple):
    """One end of a link; the loop's own.

    Attributes:
        stream: What came.
        out: What is half gone.
        counts: ``int64[32]``, columns ``CableCount``.
        heard: ``uint8[4096]``, working array.
    """

    stream: ByteStream
    out: Outbox
    counts: npt.NDArray[np.int64]
    heard: npt.NDArray[np.uint8]


def allocate_cable() -> Cable:
    """Nothing came, nothing went."""
    return Cable(
        allocate_stream(), Outbox(np.zeros(LARGEST_FRAME, np.uint8), np.zeros(8, np.int64)), np.zeros(32, np.int64), np.zeros(4096, np.uint8)
    )


@kernel
def flush(cable: Cable, descriptor: int) -> int:
    """Send on what is half gone; returns 1 when nothing is left, 0 when the line is full, -1 when the link is gone."""
    out = cable.out
    while out.place[0] < out.place[1]:
        wrote = write_bytes(descriptor, out.data, out.place[0], out.place[1] - out.place[0])
        if wrote == 0:
            return 0
        if wrote < 0:
            return _GONE
        out.place[0] += wrote
        cable.counts[_SENT_BYTES] += wrote
    return 1


@kernel
def send(cable: Cable, descriptor: int, frame: npt.NDArray[np.uint8], size: int) -> int:
    """Begin to send a frame; returns 1 when it is under way, 0 when the line is full (nothing of it was sent), -1 when the link is gone."""
    is_free = flush(cable, descriptor)
    if is_free != 1:
        return is_free
    for at in range(size):
        cable.out.data[at] = frame[at]
    cable.out.place[0] = 0
    cable.out.place[1] = size
    cable.counts[_SENT_FRAMES] += 1
    return 1 if flush(cable, descriptor) >= 0 else _GONE
