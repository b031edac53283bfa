"""Inspector of a stream of datagrams of any length, in bounded memory.

Datagrams are grouped by addresses, ports and kind, and analysed in blocks as arrays.
"""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from hilsim.capture.datagram import CapturedDatagram
from hilsim.limits import INSPECT_FLOWS
from hilsim.protocols.flow_key import FlowKey
from hilsim.protocols.recognise import OtherKind, PacketKind, recognise
from hilsim.read.analysis.ground import Ground, Reason, fit_ground, points_of
from hilsim.read.analysis.inspection.part import FlowInspection, InspectionPart
from hilsim.read.analysis.inspection.result import CaptureSummary, FlowSummary, Place, SensorInspection
from hilsim.read.analysis.inspection.statistics import GapLog, Spread
from hilsim.read.analysis.inspection.times import CaptureTimes, Steps
from hilsim.registry import family_parts

_BLOCK_PACKETS = 512
_MAX_FLOWS = INSPECT_FLOWS.bound
"""Largest number of flows of recognised packets, and of others; the capture of a busy network has any number of flows."""
_FIRST_BYTES = 16
_Key = tuple[FlowKey, PacketKind, Hashable]
"""Addresses, kind, and the number that the family gives, because several sensors may share addresses in a capture that was written anew."""


class _Flow:
    """Running figures of one flow."""

    def __init__(self, kind: PacketKind, first: CapturedDatagram, start_ns: int, known: FlowInspection | None) -> None:
        self._kind = kind
        self._first = first
        self._start_ns = start_ns
        self._frames: list[int] = []
        self._host_ns: list[int] = []
        self._sizes: list[int] = []
        self._known = known
        self._sample: list[bytes] = []
        self._sample_left = 0 if known is None else known.sample_bytes
        self._packets = 0
        self._payload_bytes = 0
        self._smallest = self._largest = len(first.payload)
        self._last_frame, self._last_ns = first.frame, first.host_stamp_ns
        self._latest_ns = first.host_stamp_ns
        self._spread = Spread()
        self._gaps = GapLog()
        self._capture_step_ns = 0
        self._backward = 0

    def add(self, datagram: CapturedDatagram) -> None:
        """Add one datagram."""
        self._frames.append(datagram.frame)
        self._host_ns.append(datagram.host_stamp_ns)
        self._sizes.append(len(datagram.payload))
        if self._known is not None:
            self._known.take(datagram.payload)
            if len(datagram.payload) <= self._sample_left:
                self._sample.append(datagram.payload)
                self._sample_left -= len(datagram.payload)
            else:
                self._sample_left = 0
        if len(self._frames) >= _BLOCK_PACKETS:
            self._look()

    def _look(self) -> None:
        times = CaptureTimes(
            frames=np.array(self._frames, dtype=np.int64),
            host_ns=np.array(self._host_ns, dtype=np.int64),
            before_frame=self._last_frame,
            before_ns=self._last_ns,
            start_ns=self._start_ns,
        )
        sizes = self._sizes
        self._frames, self._host_ns, self._sizes = [], [], []
        steps = Steps.even(len(sizes)) if self._known is None else self._known.look(times)
        interval_ns = times.step_ns()
        is_first = np.zeros(len(sizes), dtype=np.bool_)
        is_first[0] = self._packets == 0
        near = steps.is_next & ~is_first
        self._spread.add(interval_ns[near if near.any() else ~is_first])
        self._gaps.look(times, steps, self._spread.percentile_ns(0.5))
        self._capture_step_ns = int(np.gcd.reduce(np.append(times.host_ns - self._first.host_stamp_ns, self._capture_step_ns)))
        self._backward += int((interval_ns < 0).sum())
        self._packets += len(sizes)
        self._payload_bytes += sum(sizes)
        self._smallest, self._largest = min(self._smallest, *sizes), max(self._largest, *sizes)
        self._last_frame, self._last_ns = int(times.frames[-1]), int(times.host_ns[-1])
        self._latest_ns = max(self._latest_ns, int(times.host_ns.max()))

    @property
    def source(self) -> str:
        """Address of the sender."""
        return self._first.source

    def ground(self) -> Ground | Reason | None:
        """The ground in the first packets; None where they hold no points."""
        if self._known is None or not self._sample:
            return None
        points = self._known.points(self._sample)
        return points if isinstance(points, Reason) else fit_ground(points_of(points))

    def summary(self) -> FlowSummary:
        """Figures of the datagrams so far."""
        if self._frames:
            self._look()
        duration_ns = self._latest_ns - self._first.host_stamp_ns
        return FlowSummary(
            source=self._first.source,
            source_port=self._first.source_port,
            destination=self._first.destination,
            destination_port=self._first.destination_port,
            kind=self._kind,
            packets=self._packets,
            payload_bytes=self._payload_bytes,
            smallest_bytes=self._smallest,
            largest_bytes=self._largest,
            first_bytes=self._first.payload[:_FIRST_BYTES].hex(" "),
            first=Place(frame=self._first.frame, at_s=(self._first.host_stamp_ns - self._start_ns) / 1e9),
            first_ns=self._first.host_stamp_ns,
            last_ns=self._latest_ns,
            duration_s=duration_ns / 1e9,
            rate_hz=(self._packets - 1) / duration_ns * 1e9 if duration_ns > 0 else float("nan"),
            spacing=self._spread.summary(),
            capture_step_ns=self._capture_step_ns,
            backward_capture_times=self._backward,
            gaps=self._gaps.summary(),
            details=None if self._known is None else self._known.summary(),
        )


class Inspector:
    """Inspector of datagrams one by one, which gives a summary at any time."""

    def __init__(self, metadata: Mapping[str, Any] | None = None) -> None:
        """Inspect nothing yet.

        Args:
            metadata: Metadata of sensors, as ``given_metadata`` gives them; None: there are none.
        """
        self._parts: dict[PacketKind, tuple[InspectionPart, Any]] = {
            kind: (module.PART, (metadata or {}).get(family)) for family, module in family_parts("inspection").items() for kind in module.PART.kinds
        }
        self._flows: dict[_Key, _Flow] = {}
        self._recognised = 0
        self._datagrams = 0
        self._payload_bytes = 0
        self._unlisted = 0
        self._start_ns = 0
        self._first_ns = 0
        self._last_ns = 0

    def add(self, datagram: CapturedDatagram) -> None:
        """Add one datagram.

        Raises:
            CaptureError: metadata beside the capture are invalid.
        """
        stamp_ns = datagram.host_stamp_ns
        if not self._datagrams:
            self._start_ns = self._first_ns = self._last_ns = stamp_ns
        elif stamp_ns > self._last_ns:
            self._last_ns = stamp_ns
        elif stamp_ns < self._first_ns:
            self._first_ns = stamp_ns
        self._datagrams += 1
        self._payload_bytes += len(datagram.payload)
        kind = recognise(datagram.payload)
        part, metadata = self._parts.get(kind, (None, None))
        key = datagram.flow, kind, None if part is None else part.number(kind, datagram.payload, metadata)
        flow = self._flows.get(key) or self._open(key, datagram)
        if flow is None:
            self._unlisted += 1
        else:
            flow.add(datagram)

    def _open(self, key: _Key, first: CapturedDatagram) -> _Flow | None:
        kind = key[1]
        is_known = kind is not OtherKind.OTHER
        if (self._recognised if is_known else len(self._flows) - self._recognised) >= _MAX_FLOWS:
            return None
        self._recognised += is_known
        part, metadata = self._parts.get(kind, (None, None))
        known = None if part is None else part.flow(kind, first.payload, metadata)
        flow = self._flows[key] = _Flow(kind, first, self._start_ns, known)
        return flow

    def summary(self) -> CaptureSummary:
        """Summary of the datagrams so far."""
        flows = [flow.summary() for flow in self._flows.values()]
        sources = dict.fromkeys(flow.source for flow in flows if flow.kind is not OtherKind.OTHER)
        return CaptureSummary(
            datagrams=self._datagrams,
            payload_bytes=self._payload_bytes,
            first_ns=self._first_ns,
            last_ns=self._last_ns,
            duration_s=(self._last_ns - self._first_ns) / 1e9,
            sensors=tuple(
                SensorInspection(source=source, flows=tuple(flow for flow in flows if flow.source == source), ground=self._ground(source))
                for source in sources
            ),
            other_flows=tuple(flow for flow in flows if flow.source not in sources),
            unlisted_datagrams=self._unlisted,
        )

    def _ground(self, source: str) -> Ground | Reason | None:
        """The ground under a sensor, by the first of its flows with points."""
        found = (flow.ground() for flow in self._flows.values() if flow.source == source)
        return next((ground for ground in found if ground is not None), None)


def inspect(datagrams: Iterable[CapturedDatagram], metadata: Mapping[str, Any] | None = None) -> CaptureSummary:
    """Summarise a stream of datagrams; ``metadata`` as for ``Inspector``.

    Raises:
        CaptureError: metadata beside the capture are invalid.
    """
    inspector = Inspector(metadata)
    for datagram in datagrams:
        inspector.add(datagram)
    return inspector.summary()
