"""Detection of datagrams that are in a capture twice because they were captured on two interfaces (a bridge and its port, ``tcpdump -i any``)."""

from typing import TYPE_CHECKING

from hilsim.capture.datagram import CapturedDatagram
from hilsim.capture.notes import CaptureNotes

if TYPE_CHECKING:
    from hilsim.protocols.flow_key import FlowKey

_LONGEST_APART_NS = 1_000_000
_MAX_FLOWS = 4096


class CopyWatch:
    """Counts, in a capture of several interfaces, datagrams that repeat the previous one of their flow on another interface within 1 ms."""

    def __init__(self, notes: CaptureNotes) -> None:
        self._counts = notes.counts
        self._latest: dict[FlowKey, tuple[int, int | None, int, int]] = {}
        self._sentence = ""

    def look(self, datagram: CapturedDatagram, *, knows_interface: bool = True) -> None:
        """Compare a datagram with the previous one of its flow.

        Args:
            datagram: Next datagram.
            knows_interface: False for a capture of all interfaces that does not record the interface (Linux cooked, version 1): then any
                repeated datagram counts as seen on two interfaces.
        """
        flow = datagram.flow
        interface = datagram.interface if knows_interface else None
        digest = hash(datagram.payload)
        before = self._latest.get(flow)
        if len(self._latest) >= _MAX_FLOWS:
            self._latest.clear()
        self._latest[flow] = datagram.host_stamp_ns, interface, digest, datagram.frame
        if before is None or before[2] != digest or abs(datagram.host_stamp_ns - before[0]) > _LONGEST_APART_NS:
            return
        if interface is None or interface != before[1]:
            self._count(before, interface, datagram.frame)

    def _count(self, before: tuple[int, int | None, int, int], interface: int | None, frame: int) -> None:
        if not self._sentence:
            where = "" if interface is None else f" on interfaces {before[1]} and {interface}"
            self._sentence = f"repeats of the previous datagram on another interface, both kept: first frames {before[3]} and {frame}{where}"
        self._counts[self._sentence] += 1
