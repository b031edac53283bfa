"""Inspection of Hesai flows: model, mode, rotation, clock, and packets missing by their numbers."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from hilsim.families.hesai.points import decode_hesai
from hilsim.families.hesai.protocol.models import Model
from hilsim.families.hesai.protocol.points import BY_SIZE, ReturnMode, utc_ns
from hilsim.families.hesai.recognition import HesaiKind
from hilsim.read.analysis.decode import batch_of
from hilsim.read.analysis.inspection.lines import Line, captured_lines, clock_lines, detail, missing_lines
from hilsim.read.analysis.inspection.part import FlowDetails, FlowInspection, InspectionPart
from hilsim.read.analysis.inspection.result import DeviceClock, FlowSummary, Missing
from hilsim.read.analysis.inspection.stamps import MissingLog, StampLog
from hilsim.read.analysis.inspection.times import CaptureTimes, Steps
from hilsim.units import TURN_CDEG

_NUMBERS, _MAX_LEAP = 1 << 32, 20_000
_HOST_DOUBT_NS = 300_000_000


@dataclass(frozen=True, kw_only=True)
class HesaiFlowDetails(FlowDetails):
    """Figures of the points of one Hesai."""

    model: Annotated[str, "Model, by the shape of packets."]
    modes: Annotated[tuple[int, ...], "Return modes."]
    speed_rpm: Annotated[tuple[int, int], "Least and largest speed."]
    steps_cdeg: Annotated[tuple[int, ...], "Steps of the azimuth from firing to firing within packets, 0.01 degrees."]
    missing: Annotated[Missing, "Packets missing by their numbers."]
    clock: Annotated[DeviceClock, "Clock of the stamps."]

    @property
    def title(self) -> str:
        """Model and modes."""
        return f"{self.model}, {' and '.join(ReturnMode(mode).name.lower().replace('_', ' and ') for mode in self.modes)}"

    @property
    def loops_seamlessly(self) -> bool:
        """A head passes each azimuth in every turn."""
        return True

    def lines(self, flow: FlowSummary) -> Iterator[Line]:
        """Yield lines of the report."""
        slow, fast = self.speed_rpm
        steps = " and ".join(f"{step / 100:.2f}" for step in self.steps_cdeg)
        yield detail("rotation", f"{slow if slow == fast else f'{slow} to {fast}'} rpm, steps of {steps} degrees")
        yield from captured_lines(flow)
        yield from missing_lines(self.missing)
        yield from clock_lines(self.clock, flow.packets)


class HesaiFlow(FlowInspection):
    """Points from one address to another."""

    sample_bytes = 400_000  # a tenth of a second or more

    def __init__(self, model: Model, dtype: np.dtype[Any]) -> None:
        """Inspect packets of a model, records of ``dtype``."""
        super().__init__()
        self._model, self._dtype = model, dtype
        self._modes: set[int] = set()
        self._speeds: set[int] = set()
        self._steps: set[int] = set()
        self._last: tuple[int, int] | None = None
        self._missing, self._stamps = MissingLog(), StampLog()

    def look(self, times: CaptureTimes) -> Steps:
        """Evaluate the packets taken since the last call."""
        packets = np.frombuffer(b"".join(self.taken()), self._dtype)
        tails, azimuth = packets["tail"], packets["blocks"]["azimuth"].astype(np.int64)
        self._modes.update(tails["mode"].tolist())
        self._speeds.update(tails["speed_rpm"].tolist())
        returns = ReturnMode(int(tails["mode"][0])).returns
        self._steps.update(np.unique(np.diff(azimuth[:, ::returns], axis=1) % TURN_CDEG).tolist())
        stamp_ns = utc_ns(tails)
        is_counted = "sequence" in (self._dtype["tail"].names or ())
        number = (
            tails["sequence"].astype(np.int64)
            if is_counted
            else np.rint(stamp_ns / (self._model.rounds(returns) * self._model.round_ns)).astype(np.int64)
        )
        before = self._last or (int(number[0]), int(stamp_ns[0]))
        self._last = int(number[-1]), int(stamp_ns[-1])
        step = (np.diff(number, prepend=before[0]) + _NUMBERS // 2) % _NUMBERS - _NUMBERS // 2
        step_ns = np.diff(stamp_ns, prepend=before[1])
        is_late, is_ahead, is_next = step < 0, (step > 0) & (step < _MAX_LEAP), step == 1
        self._missing.look(np.where(is_ahead | is_late, step - 1, 0), times)
        is_by_host = np.abs(times.step_ns() - step_ns) <= _HOST_DOUBT_NS + np.abs(step_ns) // 10
        is_sound = is_late | ((step_ns > 0) & is_by_host)
        self._stamps.look(stamp_ns // 1000, step_ns // 1000, is_sound=is_sound, is_late=is_late, is_point=is_next & is_sound, times=times)
        return Steps(is_next=is_next, is_planned=np.zeros(packets.size, np.bool_))

    def points(self, payloads: list[bytes]) -> npt.NDArray[Any]:
        """Points of packets."""
        return decode_hesai(batch_of(payloads))

    def summary(self) -> HesaiFlowDetails:
        """Figures of the flow, after at least one block."""
        return HesaiFlowDetails(
            model=self._model.name,
            modes=tuple(sorted(self._modes)),
            speed_rpm=(min(self._speeds), max(self._speeds)),
            steps_cdeg=tuple(sorted(self._steps)),
            missing=self._missing.summary(),
            clock=self._stamps.summary(),
        )


PART = InspectionPart(
    kinds=frozenset(HesaiKind),
    flow=lambda kind, payload, _metadata: HesaiFlow(*BY_SIZE[len(payload)]) if kind is HesaiKind.POINTS else None,
    number=lambda _kind, payload, _metadata: len(payload),
)
