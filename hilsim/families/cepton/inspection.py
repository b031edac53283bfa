"""Inspection of Cepton STDV flows: points, frames, loss and clock by headers and the points' frame parity."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from hilsim.families.cepton.points import decode_cepton
from hilsim.families.cepton.protocol.stdv import FRAME_PARITY, POINT_FLAGS_OFFSET, StdvHeader, read_stdv_header
from hilsim.families.cepton.recognition import CeptonKind
from hilsim.read.analysis.decode import batch_of
from hilsim.read.analysis.inspection.lines import Line, captured_lines, clock_lines, counted, detail, missing_lines, problem, times
from hilsim.read.analysis.inspection.part import FlowDetails, FlowInspection, InspectionPart
from hilsim.read.analysis.inspection.result import DeviceClock, FlowSummary, Missing
from hilsim.read.analysis.inspection.stamps import MissingLog, StampLog
from hilsim.read.analysis.inspection.times import CaptureTimes, Steps

_SEQUENCES = 1 << 32
_NO_SEQUENCE = -1
_MAX_LEAP = 1 << 20  # 150 s of the fastest known sensor; a larger step is a restart or another sensor
_MAX_OVERTAKEN = 16
_HOST_DOUBT_US = 300_000


@dataclass(frozen=True, kw_only=True)
class StdvPoints(FlowDetails):
    """Figures of the STDV headers."""

    versions: Annotated[tuple[int, ...], "Header versions seen."]
    points: Annotated[int, "Number of points."]
    fewest_points: Annotated[int, "Smallest number of points in a packet."]
    most_points: Annotated[int, "Largest number of points in a packet."]
    frames: Annotated[int, "Number of frames by the frame parity, of which the first and last may be incomplete."]
    sequence_breaks: Annotated[int, "Number of sequence numbers that go back or leap by more than 2**31, as after a restart."]
    missing: Annotated[Missing | None, "Packets missing by the sequence numbers; None without numbers (header version 1)."]
    clock: Annotated[DeviceClock, "Clock of the reference timestamps."]

    @property
    def loops_seamlessly(self) -> bool:
        """Whether two places of the flow may fit each other."""
        return True

    def lines(self, flow: FlowSummary) -> Iterator[Line]:
        """Yield lines of the report."""
        each = f"{self.most_points}" if self.fewest_points == self.most_points else f"{self.fewest_points} to {self.most_points}"
        yield detail("points", f"{self.points:,}, {each} a packet, {counted(self.frames, 'frame')} by the frame parity")
        clock = self.clock
        span = f"{clock.first_us / 1e6:,.3f} to {clock.last_us / 1e6:,.3f} s"
        if self.missing is None:
            span += ", no sequence numbers to find missing packets by"
        elif not self.missing.packets:
            span += ", no packet missing"
        yield detail("stamps", span)
        yield from captured_lines(flow)
        yield from missing_lines(self.missing)
        if self.sequence_breaks:
            yield problem(f"sequence numbers start anew {times(self.sequence_breaks)}")
        yield from clock_lines(clock, flow.packets)


class StdvFlow(FlowInspection):
    """STDV packets from one address to another."""

    sample_bytes = 600_000  # as for a Velodyne

    def __init__(self) -> None:
        super().__init__()
        self._headers: list[StdvHeader] = []
        self._flags: list[bytes] = []
        self._versions: set[int] = set()
        self._points = 0
        self._fewest = 0
        self._most = 0
        self._frames = 0
        self._last_parity: int | None = None
        self._breaks = 0
        self._last_sequence = _NO_SEQUENCE
        self._has_sequences = False
        self._missing = MissingLog()
        self._stamps = StampLog()

    def take(self, payload: bytes) -> None:
        """Store the header and the points' flags of a payload until ``look``.

        Raises:
            ValueError: the payload is not an STDV packet.
        """
        header = read_stdv_header(payload)
        if header is None:
            raise ValueError(f"payload must be an STDV packet, got {len(payload)} bytes beginning {payload[:4].hex(' ')}")
        self._headers.append(header)
        self._flags.append(payload[header.size + POINT_FLAGS_OFFSET : header.size + header.points * header.point_size : header.point_size])

    def look(self, times: CaptureTimes) -> Steps:
        """Evaluate the packets taken since the last call."""
        headers, self._headers = self._headers, []
        self._count_points(headers)
        sequence_step = self._sequence_steps(headers)
        is_late = (sequence_step < 0) & (sequence_step >= -_MAX_OVERTAKEN)
        is_ahead = (sequence_step > 0) & (sequence_step <= _MAX_LEAP)
        self._breaks += int(((sequence_step != 0) & ~is_late & ~is_ahead).sum())
        self._missing.look(np.where(is_ahead | is_late, sequence_step - 1, 0), times)

        stamps_us = np.array([header.stamp_us for header in headers], dtype=np.int64)
        step_us = np.diff(stamps_us, prepend=stamps_us[0] if self._stamps.last_us is None else self._stamps.last_us)
        is_by_host = np.abs(times.step_ns() // 1000 - step_us) <= _HOST_DOUBT_US + 0.1 * np.abs(step_us)
        is_sound = is_late | ((step_us > 0) & is_by_host)
        is_next = (sequence_step == 1) if self._has_sequences else np.full(len(headers), fill_value=True)
        self._stamps.look(stamps_us, step_us, is_sound=is_sound, is_late=is_late, is_point=is_next & is_sound, times=times)
        return Steps(is_next=is_next, is_planned=np.zeros(len(headers), dtype=np.bool_))

    def _count_points(self, headers: list[StdvHeader]) -> None:
        counts = [header.points for header in headers]
        self._fewest = min(counts) if not self._points else min(self._fewest, *counts)
        self._most = max(self._most, *counts)
        self._points += sum(counts)
        self._versions.update(header.version for header in headers)
        parity = np.frombuffer(b"".join(self._flags), dtype=np.uint8) & FRAME_PARITY
        self._flags = []
        if not len(parity):
            return
        before = int(parity[0]) if self._last_parity is None else self._last_parity
        self._frames += int((np.diff(parity, prepend=np.uint8(before)) != 0).sum()) + (self._last_parity is None)
        self._last_parity = int(parity[-1])

    def _sequence_steps(self, headers: list[StdvHeader]) -> npt.NDArray[np.int64]:
        """Steps since the former packet, ``int64[n]``, -2**31 .. 2**31; 0 for the first packet and for packets without numbers."""
        sequence = np.array([_NO_SEQUENCE if header.sequence is None else header.sequence for header in headers], dtype=np.int64)
        before = np.concatenate(([self._last_sequence], sequence[:-1]))
        self._last_sequence = int(sequence[-1])
        self._has_sequences |= bool((sequence != _NO_SEQUENCE).any())
        step = (sequence - before + _SEQUENCES // 2) % _SEQUENCES - _SEQUENCES // 2
        step[(sequence == _NO_SEQUENCE) | (before == _NO_SEQUENCE)] = 0
        return step

    def points(self, payloads: list[bytes]) -> npt.NDArray[Any]:
        """Points of packets."""
        return decode_cepton(batch_of(payloads))

    def summary(self) -> StdvPoints:
        """Figures of the flow, after at least one block."""
        return StdvPoints(
            versions=tuple(sorted(self._versions)),
            points=self._points,
            fewest_points=self._fewest,
            most_points=self._most,
            frames=self._frames,
            sequence_breaks=self._breaks,
            missing=self._missing.summary() if self._has_sequences else None,
            clock=self._stamps.summary(),
        )


_UNKNOWN = frozenset((CeptonKind.STDT, CeptonKind.INFO))


def _format_lines(flows: Sequence[FlowSummary]) -> Iterator[Line]:
    """Yield lines on formats that are not public."""
    kinds = {flow.kind for flow in flows}
    if CeptonKind.INFZ in kinds:
        yield detail("format", "of INFZ is not public but measured: a replay changes only the bytes with the offset of points' times to UTC")
    verbatim = dict.fromkeys(str(flow.kind).split()[1] for flow in flows if flow.kind in _UNKNOWN)
    if verbatim:
        yield detail("format", f"of {' and '.join(verbatim)} is not public: replayed byte for byte, paced by capture times")
    if "STDT" in verbatim and "INFO" not in verbatim:
        yield problem("no INFO packet: Cepton's software passes points over until it has seen one")


PART = InspectionPart(
    kinds=_UNKNOWN | {CeptonKind.STDV, CeptonKind.INFZ},
    flow=lambda kind, _payload, _metadata: StdvFlow() if kind is CeptonKind.STDV else None,
    title="Cepton",
    lines=_format_lines,
)
