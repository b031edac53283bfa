"""Inspection of Velodyne flows: model, mode, rotation, field of view, loss and clock by the data packets; GPS by the position packets.

The data packet has no sequence number: missing packets appear only as a step of several cycles between stamps. The conformance rules describe the stamps
and captures of real units.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from hilsim.families.velodyne.points import decode_velodyne
from hilsim.families.velodyne.protocol.data import RETURNS_BY_MODE_BYTE, ReturnMode
from hilsim.families.velodyne.protocol.models import BY_NAME, BY_PRODUCT, OTHER_PRODUCTS, STEP_TOLERANCE_US, Model, identify_model, is_multiple
from hilsim.families.velodyne.protocol.position import POSITION_PACKET_DTYPE, PPS_WORDS
from hilsim.families.velodyne.protocol.steps import GAP_CDEG
from hilsim.families.velodyne.recognition import VelodyneKind
from hilsim.families.velodyne.stream import (
    CLOCK_DOUBT_RATIO,
    LastPacket,
    SeenTurn,
    UnsettledLoss,
    packet_run,
    stacked_packets,
    stamp_steps_us,
    whole_cycles,
)
from hilsim.protocols.recognise import PacketKind
from hilsim.read.analysis.decode import batch_of
from hilsim.read.analysis.ground import Reason
from hilsim.read.analysis.inspection.lines import Line, captured_lines, clock_lines, counted, detail, missing_lines, problem
from hilsim.read.analysis.inspection.part import FlowDetails, FlowInspection, InspectionPart
from hilsim.read.analysis.inspection.result import DeviceClock, FlowSummary, Missing, Place
from hilsim.read.analysis.inspection.stamps import MissingLog, StampLog
from hilsim.read.analysis.inspection.times import CaptureTimes, Steps
from hilsim.units import TURN_CDEG

_LOWER_BANK_FLAG = 0xDDFF
_SECTOR_CDEG = 10
_MIN_STEPS = 15
_HOST_DOUBT_US = 300_000  # captures made from a robot's messages have one time for a whole scan (up to 0.2 s)
_LONGEST_PAUSE_US = 250_000  # a narrow field of view at 300 rpm, with a margin
_LONGEST_CYCLE_US = 20_000  # far longer than any packet's firings
_MAX_OVERTAKEN = 16
_MAX_MODES = 3  # an HDL-64E has other values in those bytes
_WHOLE_TURN = ((0.0, 360.0),)
_RMC_DATE = re.compile(rb"\$..RMC,(?:[^,]*,){8}(\d\d)(\d\d)(\d\d)")
_TIME = re.compile(rb"\$..(?:RMC|GGA),(\d\d)(\d\d)(\d\d)")


@dataclass(frozen=True, kw_only=True)
class VelodyneData(FlowDetails):
    """Figures of the data packets."""

    model: Annotated[str | None, "Model by the product byte and the time between packets; None if neither is known."]
    is_early_unit: Annotated[bool, "Whether it is a VLP-16 with the HDL-32E's product byte, as in 2014 firmware."]
    products: Annotated[tuple[int, ...], "Product bytes seen, the most frequent first."]
    return_modes: Annotated[tuple[int, ...], "Return mode bytes seen, the most frequent first."]
    cycle_us: Annotated[float, "Time between packets by which steps are judged: the model's for the most frequent mode, else as measured."]
    rotation_rate_rpm: Annotated[float, "Rotation rate by azimuth and stamps."]
    azimuth_sectors_deg: Annotated[
        tuple[tuple[float, float], ...],
        "Recorded parts of the turn, ``(start, end)``; only (0, 360) if nothing is left out or fewer than two turns were recorded.",
    ]
    missing: Annotated[Missing, "Packets missing by the stamps, because the format has no sequence number."]
    clock: Annotated[DeviceClock, "Clock of the stamps."]

    @property
    def title(self) -> str:
        """Model, return modes and rate."""
        model = self.model or f"Velodyne of unknown model (product byte 0x{self.products[0]:02x})"
        if len(self.return_modes) > _MAX_MODES:
            return model
        known = [ReturnMode.find(byte) for byte in self.return_modes]
        modes = " and ".join(mode.words if mode else f"unknown mode 0x{byte:02x}" for mode, byte in zip(known, self.return_modes, strict=True))
        has_several = len(known) > 1 or any(mode is not None and mode.is_dual for mode in known)
        rate = "" if math.isnan(self.rotation_rate_rpm) else f", {self.rotation_rate_rpm:.1f} rpm"
        return f"{model}, {modes} return{'s' if has_several else ''}{rate}"

    @property
    def loops_seamlessly(self) -> bool:
        """Whether two places of the flow may fit each other."""
        return True

    def lines(self, flow: FlowSummary) -> Iterator[Line]:
        """Yield lines of the report."""
        if self.azimuth_sectors_deg != ((0.0, 360.0),):
            yield detail("view", ", ".join(f"{start:.1f} to {end:.1f} deg" for start, end in self.azimuth_sectors_deg) + " of azimuth only")
        clock = self.clock
        past = f"{_past_hour(clock.first_us)} to {_past_hour(clock.last_us)} past the hour"
        yield detail("stamps", past if self.missing.packets else f"{past}, no packet missing")
        yield from captured_lines(flow)
        yield from missing_lines(self.missing)
        yield from clock_lines(clock, flow.packets)
        if self.is_early_unit:
            product = BY_PRODUCT[self.products[0]].name
            yield problem(f"it sends the product byte of an {product} (0x{self.products[0]:02x}), as 2014 firmware does: name the model to decoders")


def _past_hour(stamp_us: int) -> str:
    minutes, us = divmod(stamp_us, 60_000_000)
    return f"{minutes:02d}:{us / 1e6:06.3f}"


@dataclass(frozen=True, kw_only=True)
class VelodynePosition(FlowDetails):
    """Figures of the position packets."""

    rate_hz: Annotated[float, "Packets a second by their stamps."]
    pps_states: Annotated[tuple[int, ...], "States seen, the most frequent first."]
    sentences: Annotated[int, "Number of different consecutive NMEA sentences."]
    first_sentence: Annotated[str | None, "First sentence as text without its line end, or None."]
    last_sentence: Annotated[str | None, "Last sentence as text without its line end, or None."]
    first_sentence_utc: Annotated[
        str | None, "Time of the first sentence, ``2016-01-21T08:18:02Z``, without the date if it has none; None without a time."
    ]
    last_sentence_utc: Annotated[str | None, "Time of the last sentence, in the same form."]

    def lines(self, _flow: FlowSummary) -> Iterator[Line]:
        """Yield lines of the report."""
        states = ", then ".join(PPS_WORDS.get(state, f"0x{state:02x}") for state in self.pps_states)
        if self.first_sentence is None:
            yield detail("GPS", f"PPS {states}, no NMEA sentence")
            return
        kind = self.first_sentence.split(",")[0].lstrip("$")
        first, last = self.first_sentence_utc, self.last_sentence_utc
        span = f"{first}" if first == last else f"{first} to {last}"
        yield detail("GPS", f"PPS {states}, {kind} {'without a time' if first is None else span}, {counted(self.sentences, 'sentence')}")


class VelodyneDataFlow(FlowInspection):
    """Data packets from one address to another."""

    sample_bytes = 600_000  # 500 packets, with 192,000 points at most: the first 0.7 s of a VLP-16

    def __init__(self) -> None:
        super().__init__()
        self._products = np.zeros(256, dtype=np.int64)
        self._modes = np.zeros(256, dtype=np.int64)
        self._seen = SeenTurn()
        self._sectors = np.zeros(TURN_CDEG // _SECTOR_CDEG, dtype=np.bool_)
        self._has_lower_bank = False
        self._product = 0
        self._model: Model | None = None
        self._single_cycle_us = float("nan")
        self._is_settled = False
        self._stamps = StampLog()
        self._missing = MissingLog()
        self._unsettled: list[tuple[UnsettledLoss, Place]] = []
        self._before: LastPacket | None = None
        self._was_dual = False
        self._turned_cdeg = 0
        self._turned_us = 0

    def look(self, times: CaptureTimes) -> Steps:
        """Evaluate the packets taken since the last call."""
        run = packet_run(stacked_packets(self.taken()), self._before)
        former = np.concatenate((run.azimuth[:1, :1] if self._before is None else self._before.azimuth[None, -1:], run.azimuth[:-1, -1:]))[:, 0]
        self._before = run.last()
        self._seen.note(run.azimuth)
        packets, knows, step_us = run.packets, run.knows_step, run.step_us
        is_dual = RETURNS_BY_MODE_BYTE[packets["return_mode"]] == 2
        self._note_bytes(packets, run.azimuth)
        self._settle_cycle(packets["product"], is_dual, step_us[knows])
        was_dual = np.concatenate((np.array([self._was_dual if knows[0] else is_dual[0]]), is_dual[:-1]))
        self._was_dual = bool(is_dual[-1])
        # stamps show the first firing, so a step is the duration of the former packet
        cycle_us = np.where(was_dual, 0.5, 1.0) * (self._single_cycle_us if self._single_cycle_us > 0 else 1.0)

        azimuth = run.azimuth_steps(stamps_last=self._model is not None and self._model.stamps_last_firing)
        leaps = azimuth.is_gap[:, 0]
        cycles, off_us = whole_cycles(step_us, cycle_us)
        is_whole = off_us <= STEP_TOLERANCE_US + np.abs(cycles) * CLOCK_DOUBT_RATIO * cycle_us
        away_us = np.abs(times.step_ns() // 1000 - step_us)
        is_by_host = away_us <= _HOST_DOUBT_US + 0.1 * np.abs(step_us)
        follows = knows & is_whole & ((cycles == 1) | ((cycles > 1) & is_by_host))
        is_late = knows & is_whole & (cycles < 0) & (cycles >= -_MAX_OVERTAKEN)
        pauses = knows & (step_us > cycle_us + STEP_TOLERANCE_US) & (step_us < _LONGEST_PAUSE_US)
        is_unseen = self._seen.is_unseen(former, run.azimuth[:, 0])
        is_planned = pauses & (azimuth.after_gap | (leaps & ~follows) | (is_unseen & self._seen.has_turned))
        is_next = follows & (cycles == 1) & ~azimuth.after_gap

        absent = np.where((follows & ~is_planned) | is_late, cycles - 1, 0)
        is_unsettled = pauses & is_unseen & ~is_planned & (absent > 0)
        for row in np.flatnonzero(is_unsettled).tolist():
            loss = UnsettledLoss(packets=int(absent[row]), from_cdeg=int(former[row]), to_cdeg=int(run.azimuth[row, 0]))
            self._unsettled.append((loss, times.place(row - 1)))
        self._missing.look(np.where(is_unsettled, 0, absent), times)
        is_near = is_next & ~azimuth.has_gap
        self._stamps.look(run.stamp_us, step_us, is_sound=follows | is_planned | is_late, is_late=is_late, is_point=is_near, times=times)
        self._turned_cdeg += int(azimuth.turned_cdeg[is_next & ~leaps].sum())
        self._turned_us += int(step_us[is_next & ~leaps].sum())
        return Steps(is_next=is_near, is_planned=is_planned | azimuth.has_gap)

    def _note_bytes(self, packets: npt.NDArray[Any], azimuth: npt.NDArray[np.int64]) -> None:
        self._products += np.bincount(packets["product"], minlength=256)
        self._modes += np.bincount(packets["return_mode"], minlength=256)
        self._sectors[azimuth.ravel() % TURN_CDEG // _SECTOR_CDEG] = True
        self._has_lower_bank |= bool((packets["blocks"]["flag"] == _LOWER_BANK_FLAG).any())

    def _settle_cycle(self, product: npt.NDArray[np.uint8], is_dual: npt.NDArray[np.bool_], step_us: npt.NDArray[np.int64]) -> None:
        """Set model and cycle, permanently once there are enough steps."""
        if self._is_settled:
            return
        mostly_dual = bool(is_dual.mean() > 0.5)
        self._is_settled = len(step_us) >= _MIN_STEPS
        median_us = float(np.median(step_us)) if self._is_settled else None
        self._product = int(np.bincount(product).argmax())
        self._model = identify_model(self._product, median_us, is_dual=mostly_dual)
        cycle_us = float("nan") if self._model is None else self._model.cycle_us(is_dual=mostly_dual)
        if median_us is not None and 0 < median_us < _LONGEST_CYCLE_US and not is_multiple(median_us, cycle_us if cycle_us > 0 else 1e9):
            typical = step_us[np.abs(step_us - median_us) < 3.0]
            if len(typical) > 0.5 * len(step_us):
                cycle_us = float(typical.mean())
        self._single_cycle_us = cycle_us * (2.0 if mostly_dual else 1.0)

    def points(self, payloads: list[bytes]) -> npt.NDArray[Any] | Reason:
        """Points of packets, if the model is known by now."""
        model = self._model or BY_NAME.get(self._model_name() or "")
        return (
            Reason(reason="the model must be known for its lasers' angles") if model is None else decode_velodyne(batch_of(payloads), model.geometry)
        )

    def summary(self) -> VelodyneData:
        """Figures of the flow, after at least one block."""
        modes = _by_frequency(self._modes)
        rate_rpm = self._turned_cdeg / TURN_CDEG / self._turned_us * 60e6 if self._turned_us else float("nan")
        return VelodyneData(
            model=self._model_name(),
            is_early_unit=self._product in BY_PRODUCT and self._model is not BY_PRODUCT[self._product],
            products=_by_frequency(self._products),
            return_modes=modes,
            cycle_us=self._single_cycle_us / float(RETURNS_BY_MODE_BYTE[modes[0]]),
            rotation_rate_rpm=rate_rpm,
            azimuth_sectors_deg=self._seen_sectors(rate_rpm),
            missing=self._missing.summary([(loss.packets, after) for loss, after in self._unsettled if loss.is_lost(self._seen)]),
            clock=self._stamps.summary(),
        )

    def _model_name(self) -> str | None:
        if self._product in BY_PRODUCT and self._model is not None:
            return self._model.name
        return OTHER_PRODUCTS.get(self._product, "HDL-64E" if self._has_lower_bank else None)

    def _seen_sectors(self, rate_rpm: float) -> tuple[tuple[float, float], ...]:
        """Sectors between stretches of azimuth in which no block starts and which are wider than any step of the head."""
        turns = self._stamps.duration_us * 1e-6 * rate_rpm / 60.0
        seen = np.flatnonzero(self._sectors)
        if not turns >= 2.0:
            return _WHOLE_TURN
        ahead = np.diff(seen, append=seen[0] + len(self._sectors))
        ends = np.flatnonzero(ahead * _SECTOR_CDEG > GAP_CDEG)
        if not len(ends):
            return _WHOLE_TURN
        starts = (np.roll(ends, 1) + 1) % len(seen)
        width_deg = _SECTOR_CDEG / 100.0
        return tuple(sorted((float(seen[start] * width_deg), float((seen[end] + 1) * width_deg)) for start, end in zip(starts, ends, strict=True)))


def _by_frequency(counts: npt.NDArray[np.int64]) -> tuple[int, ...]:
    """Values that occur, the most frequent first."""
    return tuple(value for value in np.argsort(-counts, kind="stable").tolist() if counts[value])


class VelodynePositionFlow(FlowInspection):
    """Position packets from one address to another."""

    def __init__(self) -> None:
        super().__init__()
        self._packets = 0
        self._span_us = 0
        self._last_us: int | None = None
        self._pps = np.zeros(256, dtype=np.int64)
        self._sentences = 0
        self._first_sentence = b""
        self._last_sentence = b""

    def look(self, times: CaptureTimes) -> Steps:
        """Evaluate the packets taken since the last call."""
        packets = np.frombuffer(b"".join(self.taken()), dtype=POSITION_PACKET_DTYPE)
        self._packets += len(packets)
        stamps_us = packets["timestamp"].astype(np.int64)
        self._span_us += int(stamp_steps_us(stamps_us, self._last_us).sum())
        self._last_us = int(stamps_us[-1])
        self._pps += np.bincount(packets["pps"], minlength=256)
        nmea = packets["nmea"]
        is_new = np.concatenate(([True], (nmea[1:] != nmea[:-1]).any(axis=1)))
        for row in np.flatnonzero(is_new & (nmea[:, 0] != 0)).tolist():
            sentence = nmea[row].tobytes().rstrip(b"\0")
            if sentence != self._last_sentence:
                self._sentences += 1
                self._last_sentence = sentence
                self._first_sentence = self._first_sentence or sentence
        return Steps.even(len(times.host_ns))

    def summary(self) -> VelodynePosition:
        """Figures of the flow, after at least one block."""
        return VelodynePosition(
            rate_hz=(self._packets - 1) / self._span_us * 1e6 if self._span_us > 0 else float("nan"),
            pps_states=_by_frequency(self._pps),
            sentences=self._sentences,
            first_sentence=_text(self._first_sentence),
            last_sentence=_text(self._last_sentence),
            first_sentence_utc=_sentence_utc(self._first_sentence),
            last_sentence_utc=_sentence_utc(self._last_sentence),
        )


def _text(sentence: bytes) -> str | None:
    return sentence.decode("ascii", errors="backslashreplace").strip() or None


def _sentence_utc(sentence: bytes) -> str | None:
    """Time in a sentence, with the date of an RMC sentence that has one."""
    found = _TIME.match(sentence)
    if found is None:
        return None
    time = b":".join(found.groups()).decode()
    date = _RMC_DATE.match(sentence)
    if date is None:
        return time
    day, month, year = (group.decode() for group in date.groups())
    return f"20{year}-{month}-{day}T{time}Z"


_FLOWS: dict[PacketKind, type[VelodyneDataFlow | VelodynePositionFlow]] = {
    VelodyneKind.DATA: VelodyneDataFlow,
    VelodyneKind.POSITION: VelodynePositionFlow,
}
PART = InspectionPart(kinds=frozenset(_FLOWS), flow=lambda kind, _payload, _metadata: _FLOWS[kind]())
