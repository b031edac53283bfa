"""Inspection of Cepton STDV flows: points, frames, loss and clock by headers and the points' frame parity."""

import numpy as np
import numpy.typing as npt

from hilsim.analysis.inspection.result import StdvPoints
from hilsim.analysis.inspection.stamps import MissingLog, StampLog
from hilsim.analysis.inspection.times import CaptureTimes, Steps
from hilsim.families.cepton.protocol.stdv import FRAME_PARITY, POINT_FLAGS_OFFSET, StdvHeader, read_stdv_header

_SEQUENCES = 1 << 32
_NO_SEQUENCE = -1
_FARTHEST_LEAP = 1 << 20  # 150 s of the fastest known sensor; a larger step is a restart or another sensor
_MOST_OVERTAKEN = 16
_HOST_DOUBT_US = 300_000


class StdvFlow:
    """STDV packets from one address to another."""

    def __init__(self) -> None:
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
        is_late = (sequence_step < 0) & (sequence_step >= -_MOST_OVERTAKEN)
        is_ahead = (sequence_step > 0) & (sequence_step <= _FARTHEST_LEAP)
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
