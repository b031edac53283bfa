"""Replays of a Cepton: its stamps and sequence numbers, its offset to UTC, and its frames, between which recordings can be cut."""

from collections.abc import Callable, Iterator

from hilsim.emulator.replaying import Count, CutPlace, ReplayingPart
from hilsim.emulator.retime import NOTHING, Retiming
from hilsim.families.cepton.protocol.info import SYNC_OFFSET, read_info_packet
from hilsim.families.cepton.protocol.stdv import SEQUENCE_OFFSET, STAMP_OFFSET, frame_parities, read_stdv_header
from hilsim.families.cepton.recognition import CeptonKind

_STDV = Retiming(stamp_at=STAMP_OFFSET, stamps=1, unit_ns=1000)
_INFO = Retiming(utc_offset_at=SYNC_OFFSET)


def _frame_begins() -> Callable[[bytes], Iterator[CutPlace]]:
    """Points within packets at which a frame begins, and its parity."""
    before: int | None = None

    def begins(payload: bytes) -> Iterator[CutPlace]:
        nonlocal before
        header = read_stdv_header(payload)
        for point, parity in enumerate(frame_parities(payload, header) if header else b""):
            if before is not None and parity != before:
                yield CutPlace(point, parity)
            before = parity

    return begins


def _count(payload: bytes) -> Count | None:
    header = read_stdv_header(payload)
    return None if header is None or header.sequence is None else Count(header.sequence)


PART = ReplayingPart(
    retimings={
        CeptonKind.STDV: lambda _payload: _STDV,
        CeptonKind.INFZ: lambda payload: NOTHING if read_info_packet(payload) is None else _INFO,  # the layout that was measured alone
    },
    cut_places=_frame_begins,
    count=_count,
    counted=lambda payload, number: payload[:SEQUENCE_OFFSET] + (number % (1 << 32)).to_bytes(4, "little") + payload[SEQUENCE_OFFSET + 4 :],
)
