"""A tenth of a second of a Livox from its point packets, and its picture: a pattern that does not repeat has no scans."""

from collections.abc import Sequence

from hilsim.errors import CaptureError
from hilsim.families.livox.family import WINDOW_NS
from hilsim.families.livox.points import decode_livox
from hilsim.families.livox.protocol.points import stamp_of
from hilsim.families.livox.recognition import LivoxKind, recognise
from hilsim.read.analysis.decode import batch_of
from hilsim.read.analysis.picture.directions import DirectedScan
from hilsim.read.analysis.picture.part import Gatherer, PicturePart
from hilsim.units import NS_PER_S

_DIFFUSE_BYTE = 150


def window_scan(payloads: Sequence[bytes], window_ns: int = WINDOW_NS) -> DirectedScan:
    """Points of the first ``window_ns`` of point packets.

    Raises:
        CaptureError: they take less time.
    """
    stamps = [stamp_of(payload) for payload in payloads]
    taken = [payload for payload, stamp_ns in zip(payloads, stamps, strict=True) if 0 <= stamp_ns - stamps[0] < window_ns]
    if stamps[-1] - stamps[0] < window_ns:
        raise CaptureError(f"a picture needs {window_ns / NS_PER_S:g} s of points, got {(stamps[-1] - stamps[0]) / NS_PER_S:.3f} s")
    return DirectedScan(points=decode_livox(batch_of(taken)), of=f"{window_ns / NS_PER_S:g} s", diffuse_byte=_DIFFUSE_BYTE)


class WindowGatherer(Gatherer):
    """Point packets of one sensor until they are a window."""

    def __init__(self) -> None:
        self._payloads: list[bytes] = []

    def take(self, payload: bytes) -> None:
        """Add a point packet."""
        self._payloads.append(payload)

    @property
    def is_whole(self) -> bool:
        """Whether the packets take the time of a window."""
        return len(self._payloads) > 1 and stamp_of(self._payloads[-1]) - stamp_of(self._payloads[0]) >= WINDOW_NS

    def scan(self) -> DirectedScan:
        """The first window."""
        return window_scan(self._payloads)


PART = PicturePart(
    packets="Livox point packets",
    is_points=lambda payload: recognise(payload) is LivoxKind.POINTS,
    of_packet=lambda _first, _metadata, _model, _where: WindowGatherer(),
    of_setting=lambda _setting: WindowGatherer(),
)
