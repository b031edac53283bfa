"""Where a recording can be cut so that its end runs on into its beginning: nothing is blended or invented, only the cut is chosen."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.packets.cepton_stdv import frame_parities, read_stdv_header
from hilsim.packets.recognise import PacketKind

_TURN_CDEG = 36_000
CLOSE_CDEG = 12
"""Some 0.3 of a VLP-16's step between blocks at 600 rpm; reading noise alone is 2."""
_FARTHEST_CDEG = 1_000
"""What a packet sweeps at 1200 rpm: ends farther apart are of a recording shorter than a turn."""
_MOST_CANDIDATES = 3000


class CutPacket(NamedTuple):
    """A point packet at which a recording may be cut.

    Attributes:
        frame: Its number in the file.
        phase: Where the sensor is in its cycle: azimuth in 0.01 deg, or for Cepton the point within the packet at which a frame begins.
        group: Only packets of one group fit each other: the frame parity for Cepton, 0 for Velodyne.
        stamp_ns: What its stamp shows.
    """

    frame: int
    phase: int
    group: int
    stamp_ns: int


class Cut(NamedTuple):
    """A loop: it plays the frames from ``start_frame`` up to, and without, ``stop_frame``.

    Attributes:
        start_frame: First frame of every pass but the first.
        stop_frame: The frame that the next pass's first stands for.
        mismatch: How far their phases differ: 0.01 deg, or points.
    """

    start_frame: int
    stop_frame: int
    mismatch: int


class CutCandidates:
    """Gathers packets at which the recording of one sensor may be cut."""

    def __init__(self, kind: PacketKind) -> None:
        self.packets: list[CutPacket] = []
        self._kind = kind
        self._parity: int | None = None

    def look(self, frame: int, payload: bytes) -> None:
        """Take notice of the sensor's next point packet."""
        if self._kind is PacketKind.VELODYNE_DATA:
            azimuth = int.from_bytes(payload[2:4], "little")
            self.packets.append(CutPacket(frame, azimuth, 0, 1000 * int.from_bytes(payload[1200:1204], "little")))
            return
        header = read_stdv_header(payload)
        if header is None:
            return
        for point, parity in enumerate(frame_parities(payload, header)):
            if self._parity is not None and parity != self._parity:
                self.packets.append(CutPacket(frame, point, parity, 1000 * header.stamp_us))
            self._parity = parity


def find_cut(first: list[CutPacket], last: list[CutPacket]) -> Cut | None:
    """The longest loop whose ends fit, else the one whose ends fit best.

    Args:
        first: Packets of the recording's beginning.
        last: Packets of its end; may overlap ``first`` in a short recording. A loop must be longer than half of the span from the first to the last.

    Returns:
        None where no two packets can be each other's stand-in.
    """
    first, last = first[:_MOST_CANDIDATES], last[-_MOST_CANDIDATES:]
    if not first or not last:
        return None
    start, stop = _columns(first), _columns(last)
    mismatch = np.abs((stop[None, :, 1] - start[:, None, 1] + _TURN_CDEG // 2) % _TURN_CDEG - _TURN_CDEG // 2)
    length = stop[None, :, 0] - start[:, None, 0]
    fits = (stop[None, :, 2] == start[:, None, 2]) & (2 * length > stop[-1, 0] - start[0, 0])
    if not fits.any():
        return None
    closest = int(mismatch[fits].min())
    if closest > _FARTHEST_CDEG:
        return None
    is_close = fits & (mismatch <= max(closest, CLOSE_CDEG))
    row, column = np.unravel_index(int(np.argmax(np.where(is_close, length, -1))), length.shape)
    return Cut(first[row].frame, last[column].frame, int(mismatch[row, column]))


def _columns(packets: list[CutPacket]) -> npt.NDArray[np.int64]:
    return np.array([(packet.frame, packet.phase, packet.group) for packet in packets], dtype=np.int64)
