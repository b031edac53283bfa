"""Inspection of Livox flows: points and inertial packets by their headers, push messages and commands counted."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from hilsim.families.livox.points import decode_livox
from hilsim.families.livox.protocol.imu import read_imu
from hilsim.families.livox.protocol.points import IMU_DATA, DataHeader, has_valid_crc, read_header
from hilsim.families.livox.recognition import LivoxKind
from hilsim.read.analysis.decode import batch_of
from hilsim.read.analysis.inspection.lines import Line, captured_lines, clock_lines, counted, detail, missing_lines, problem
from hilsim.read.analysis.inspection.part import FlowDetails, FlowInspection, InspectionPart
from hilsim.read.analysis.inspection.result import DeviceClock, FlowSummary, Missing
from hilsim.read.analysis.inspection.stamps import MissingLog, StampLog
from hilsim.read.analysis.inspection.times import CaptureTimes, Steps

_NUMBERS, _MAX_LEAP = 1 << 16, 20_000
_HOST_DOUBT_NS = 300_000_000
_SOURCES = ("none: since power-up", "PTP", "GPS")


@dataclass(frozen=True, kw_only=True)
class LivoxFlowDetails(FlowDetails):
    """Figures of the points or the inertial packets of one Livox."""

    data_types: Annotated[tuple[int, ...], "Data types: 0 inertial, 1 mm, 2 cm, 3 distance and angles."]
    time_types: Annotated[tuple[int, ...], "Sources of time: 0 none, 1 PTP, 2 GPS."]
    points: Annotated[int, "Points, or measurements, in all."]
    interval_us: Annotated[float, "Time from a packet's first point to its last one, of the last packet."]
    wrong_crcs: Annotated[int, "Number of packets whose CRC is not that of their bytes."]
    acceleration_g: Annotated[float, "Mean norm of the acceleration; NaN of points."]
    missing: Annotated[Missing, "Packets missing by their numbers."]
    clock: Annotated[DeviceClock | None, "Clock of the stamps; None of inertial packets, whose even period says nothing of capture times."]

    @property
    def loops_seamlessly(self) -> bool:
        """Whether two places of the flow may fit each other: a pattern that does not repeat has none."""
        return False

    def lines(self, flow: FlowSummary) -> Iterator[Line]:
        """Yield lines of the report."""
        types = " and ".join(map(str, self.data_types))
        if self.data_types == (IMU_DATA,):
            yield detail("IMU", f"{counted(self.points, 'measurement')}, mean acceleration {self.acceleration_g:.3f} g")
        else:
            yield detail("points", f"{self.points:,} of type {types}, {self.interval_us:.1f} us from a packet's first to its last")
        source = " and ".join(_SOURCES[each] for each in self.time_types)
        yield detail("time", f"source {source}{'' if self.missing.packets else ', no packet missing'}")
        if self.wrong_crcs:
            yield problem(f"{counted(self.wrong_crcs, 'packet')} with a wrong CRC")
        yield from captured_lines(flow)
        yield from missing_lines(self.missing)
        if self.clock is not None:
            yield from clock_lines(self.clock, flow.packets)


class LivoxFlow(FlowInspection):
    """Points, or inertial packets, from one address to another."""

    sample_bytes = 600_000  # a fifth of a second

    def __init__(self) -> None:
        super().__init__()
        self._types: set[int] = set()
        self._sources: set[int] = set()
        self._points = self._wrong = 0
        self._last: DataHeader | None = None
        self._norms_g: list[float] = []
        self._missing, self._stamps = MissingLog(), StampLog()

    def look(self, times: CaptureTimes) -> Steps:
        """Evaluate the packets taken since the last call."""
        payloads = self.taken()
        headers = [read_header(payload) for payload in payloads]
        self._wrong += sum(not has_valid_crc(payload) for payload in payloads)
        self._types.update(header.data_type for header in headers)
        self._sources.update(header.time_type for header in headers)
        self._points += sum(header.count for header in headers)
        inertial = [read_imu(payload)[1] for payload, header in zip(payloads, headers, strict=True) if header.data_type == IMU_DATA]
        self._norms_g += [float(np.linalg.norm(each[0, 3:])) for each in inertial]
        before = self._last or headers[0]
        self._last = headers[-1]
        numbers, stamps_ns = (np.array([getattr(header, name) for header in (before, *headers)], np.int64) for name in ("number", "stamp_ns"))
        number = (np.diff(numbers) + _NUMBERS // 2) % _NUMBERS - _NUMBERS // 2
        step_ns = np.diff(stamps_ns)
        is_late, is_ahead = number < 0, (number > 0) & (number < _MAX_LEAP)
        self._missing.look(np.where(is_ahead | is_late, number - 1, 0), times)
        is_by_host = np.abs(times.step_ns() - step_ns) <= _HOST_DOUBT_NS + np.abs(step_ns) // 10
        is_sound, is_next = is_late | ((step_ns > 0) & is_by_host), number == 1
        step_us = stamps_ns[1:] // 1000 - (stamps_ns[1:] - step_ns) // 1000
        self._stamps.look(stamps_ns[1:] // 1000, step_us, is_sound=is_sound, is_late=is_late, is_point=is_next & is_sound, times=times)
        return Steps(is_next=is_next, is_planned=np.zeros(len(headers), np.bool_))

    def points(self, payloads: list[bytes]) -> npt.NDArray[Any]:
        """Points of packets."""
        return decode_livox(batch_of(payloads))

    def summary(self) -> LivoxFlowDetails:
        """Figures of the flow, after at least one block."""
        return LivoxFlowDetails(
            data_types=tuple(sorted(self._types)),
            time_types=tuple(sorted(self._sources)),
            points=self._points,
            interval_us=self._last.interval / 10.0 if self._last else float("nan"),
            wrong_crcs=self._wrong,
            acceleration_g=float(np.mean(self._norms_g)) if self._norms_g else float("nan"),
            missing=self._missing.summary(),
            clock=None if self._types == {IMU_DATA} else self._stamps.summary(),
        )


class LivoxImuFlow(LivoxFlow):
    """Inertial packets, in which no ground is sought."""

    sample_bytes = 0


_FLOWS = {LivoxKind.POINTS: LivoxFlow, LivoxKind.IMU: LivoxImuFlow}
PART = InspectionPart(
    kinds=frozenset(LivoxKind),
    flow=lambda kind, _payload, _metadata: _FLOWS[kind]() if kind in _FLOWS else None,
    title="Livox",
)
