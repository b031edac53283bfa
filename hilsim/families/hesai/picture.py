"""A turn of a Hesai from its point packets, and its picture."""

from hilsim.errors import CaptureError
from hilsim.families.hesai.points import decode_hesai
from hilsim.families.hesai.protocol.points import read_packet
from hilsim.families.hesai.recognition import HesaiKind, recognise
from hilsim.read.analysis.decode import batch_of
from hilsim.read.analysis.picture.directions import DirectedScan
from hilsim.read.analysis.picture.part import Gatherer, PicturePart


class TurnGatherer(Gatherer):
    """Point packets of one sensor from the begin of a turn until its end."""

    def __init__(self) -> None:
        self._payloads: list[bytes] = []
        self._last_cdeg, self._turns = -1, 0

    def take(self, payload: bytes) -> None:
        """Add a point packet."""
        azimuth_cdeg = int(read_packet(payload)["blocks"]["azimuth"][-1])
        self._turns += azimuth_cdeg < self._last_cdeg
        self._last_cdeg = azimuth_cdeg
        if self._turns == 1:
            self._payloads.append(payload)

    @property
    def is_whole(self) -> bool:
        """Whether there is a turn."""
        return self._turns > 1

    def scan(self) -> DirectedScan:
        """The turn."""
        if not self.is_whole:
            raise CaptureError("a picture needs a whole turn of a Hesai from azimuth 0 on")
        return DirectedScan(points=decode_hesai(batch_of(self._payloads)), of=f"a turn of {len(self._payloads)} packets")


PART = PicturePart(
    packets="Hesai point packets",
    is_points=lambda payload: recognise(payload) is HesaiKind.POINTS,
    of_packet=lambda _first, _metadata, _model, _where: TurnGatherer(),
    of_setting=lambda _setting: TurnGatherer(),
)
