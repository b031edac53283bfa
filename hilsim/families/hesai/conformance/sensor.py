"""Check of one Hesai sensor in blocks of packets, and its figures: form, returns, azimuths, stamps, numbers and arrival."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from hilsim.capture.datagram import CapturedDatagram
from hilsim.families.hesai.protocol.gps import is_gps
from hilsim.families.hesai.protocol.models import Model
from hilsim.families.hesai.protocol.points import BY_SIZE, FIRST_RETURN_AT, LONG_HEADER, RETURNS_AT, ReturnMode, packet_fault, utc_ns
from hilsim.families.hesai.setting import PAIRS
from hilsim.families.hesai.specs import RATES_RPM
from hilsim.read.analysis.conformance.arrival import GAPS, Arrival
from hilsim.read.analysis.conformance.findings import FindingLog, Place, Rule, Severity
from hilsim.read.analysis.conformance.part import SensorCheck
from hilsim.read.analysis.conformance.result import SensorSummary, known
from hilsim.units import TURN_CDEG

FORM = Rule(id="hesai.form", severity=Severity.ERROR)
HEADER = Rule(id="hesai.header", severity=Severity.ERROR)
MODE = Rule(id="hesai.mode", severity=Severity.ERROR)
UNIT = Rule(id="hesai.unit", severity=Severity.ERROR)
PAIR = Rule(id="hesai.pair", severity=Severity.ERROR)
HALF = Rule(id="hesai.half", severity=Severity.ERROR)
TURNS = Rule(id="hesai.order", severity=Severity.ERROR, packets=100)
COPIES = Rule(id="hesai.copies", severity=Severity.WARNING, packets=100)
ZERO = Rule(id="hesai.zero", severity=Severity.ERROR)
NEAR = Rule(id="hesai.near", severity=Severity.ERROR)
EMPTY = Rule(id="hesai.empty", severity=Severity.WARNING, packets=1000)
RANGE = Rule(id="hesai.azimuth", severity=Severity.ERROR)
GRID = Rule(id="hesai.grid", severity=Severity.ERROR)
STATUS = Rule(id="hesai.status", severity=Severity.ERROR)
TAIL = Rule(id="hesai.tail", severity=Severity.ERROR)
SPEED = Rule(id="hesai.speed", severity=Severity.WARNING)
DATE = Rule(id="hesai.date", severity=Severity.ERROR)
CHANGED = Rule(id="hesai.changed", severity=Severity.WARNING, packets=2)
NUMBER = Rule(id="hesai.number", severity=Severity.ERROR, packets=2)
LOST = Rule(id="hesai.lost", severity=Severity.WARNING, packets=2)
STEP = Rule(id="hesai.step", severity=Severity.ERROR, packets=2)
MOTION = Rule(id="hesai.motion", severity=Severity.ERROR, packets=2)
BURST = Rule(id="hesai.burst", severity=Severity.WARNING, packets=100)
TICK = Rule(id="hesai.tick", severity=Severity.WARNING, packets=100)
RATE = Rule(id="hesai.rate", severity=Severity.WARNING, packets=500)

_BLOCK, _NUMBERS, _MAX_LOST = 256, 1 << 32, 100_000
_US, _MINUTE_NS = 1_000_000, 60_000_000_000
_NEAREST, _FAINT, _MAX_HALVES, _MAX_COPIED, _MAX_TURNED = 75, 10, 0.05, 0.5, 0.02
_MIN_UNSEEN, _MAX_STEP_US, _MAX_STEP_RATIO, _JITTER_CDEG, _MAX_SPEED_RATIO = 3, 3.0, 0.002, 3, 0.01
_FIRST_YEAR_NS = 1_420_070_400_000_000_000
"""2015: before any of these sensors."""


@dataclass(frozen=True, kw_only=True)
class HesaiSummary(SensorSummary):
    """Figures of one sensor's stream; NaN for those that are not known."""

    family: Annotated[str, "Family ``hesai``; summaries of a Velodyne have another type."] = "hesai"
    point_packets: Annotated[int, "Number of packets.", "packets"]
    model: Annotated[str, "Model, by the size of packets."]
    modes: Annotated[tuple[int, ...], "Return modes."]
    return_ratio: Annotated[float, "Share of the measurements with a return."]
    lost_packets: Annotated[int, "Number of packets missing.", "lost"]
    period_us: Annotated[float, "Mean time between stamps, us."]
    host_drift_ppm: Annotated[float, "Rate by which the sensor's clock is slower than the host's.", "arrival.drift_ppm"]

    def lines(self) -> list[str]:
        """Figures as lines of text, one for each topic."""
        modes = " and ".join(ReturnMode(mode).name.lower().replace("_", " and ") for mode in self.modes)
        return [
            f"packets   {self.point_packets} points, {self.lost_packets} lost",
            f"sensor    {self.model}, {modes or 'no returns'}",
            f"returns   {known(100 * self.return_ratio, '.1f')} % of the measurements",
            f"arrival   {known(self.period_us, '.3f')} us by stamps, {known(self.host_drift_ppm, '+.1f')} ppm against the host",
        ]


class HesaiCheck(SensorCheck):
    """Packets of one sensor, judged in blocks of one size."""

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self.packets = self.lost = 0
        self.model = ""
        self.arrival = Arrival(0.5)
        self._waiting: list[tuple[bytes, Place, int]] = []
        self._last: tuple[bytes, Place, int] | None = None
        self._modes: set[int] = set()
        self._measured = self._returned = self._pairs = self._apart = self._halves = self._farther = 0
        self._stamped_ns = self._stamps = 0

    def add(self, datagram: CapturedDatagram) -> None:
        """Add one datagram of this sensor."""
        if is_gps(datagram.payload):
            return
        place = Place(self.packets, datagram.frame)
        self.packets += 1
        if fault := packet_fault(datagram.payload):
            self.log.report(FORM, fault, place)
            return
        if self._waiting and len(self._waiting[0][0]) != len(datagram.payload):
            self.flush()
        self._waiting.append((datagram.payload, place, datagram.host_stamp_ns))
        if len(self._waiting) >= _BLOCK:
            self.flush()

    @property
    def waiting(self) -> int:
        """Number of packets that have not been judged yet."""
        return len(self._waiting)

    def flush(self) -> None:
        """Judge the waiting packets."""
        if not self._waiting:
            return
        rows, self._waiting = self._waiting, []
        size = len(rows[0][0])
        model, dtype = BY_SIZE[size]
        packets = np.frombuffer(b"".join(payload for payload, _, _ in rows), dtype)
        self.model = model.name
        self._look_at_bytes(model, packets, [place for _, place, _ in rows])
        if self._last is not None and len(self._last[0]) == size:
            rows = [self._last, *rows]
            packets = np.frombuffer(b"".join(payload for payload, _, _ in rows), dtype)
        if len(rows) > 1:
            self._look_at_steps(model, packets, [place for _, place, _ in rows], np.array([host_ns for _, _, host_ns in rows]))
        self._last = rows[-1]

    def _report(self, rule: Rule, wrong: npt.NDArray[np.bool_], text: str, got: Any, places: list[Place], byte: int | None = None) -> None:
        """Report packets ``bool[n, ...]`` with the value ``got[n, ...]`` of the first wrong part."""
        self.log.report_each(
            rule,
            wrong,
            lambda row, *part: f"{text}, got {np.asarray(got)[(row, *part)]}{f' at {part}' if part else ''}",
            lambda row, at=None: places[row]._replace(byte_offset=at),
            byte,
        )

    def _look_at_bytes(self, model: Model, packets: npt.NDArray[Any], places: list[Place]) -> None:
        tail, header, blocks = packets["tail"], packets["header"], packets["blocks"]
        tail_at = packets.itemsize - tail.itemsize
        allowed = [ReturnMode[name.upper()] for name in model.singles] + [PAIRS[name][0] for name in model.pairs]
        self._report(
            MODE, ~np.isin(tail["mode"], allowed), f"return mode of a {model.name} must be one of it", tail["mode"], places, tail_at + model.tail.mode
        )
        is_dual = tail["mode"] >= ReturnMode.LAST_STRONGEST
        if header.shape[1] == LONG_HEADER:
            first, returns = header[:, FIRST_RETURN_AT], header[:, RETURNS_AT]
            self._report(HEADER, (returns > 1) != is_dual, "returns of a laser must be those of the mode", returns, places, RETURNS_AT)
            self._report(HEADER, (first > 0) != is_dual, "the first block's return must be that of the mode", first, places, FIRST_RETURN_AT)
        spare = header[:, 4:6] if header.shape[1] == LONG_HEADER else header[:, 6:8]
        self._report(HEADER, spare != 0, "reserved bytes of the header must be 0", spare, places)
        units, azimuth = blocks["units"], blocks["azimuth"].astype(np.int64)
        distance, reflectivity = units["distance"].astype(np.int64), units["reflectivity"]
        if model.fill is not None:
            self._report(UNIT, units["confidence"] != model.fill, f"the fourth byte of a channel must be {model.fill}", units["confidence"], places)
        faint = _FAINT if model.fill is None else 0
        self._report(ZERO, (distance == 0) & (reflectivity > faint), "reflectivity without a return must be 0", reflectivity, places)
        if model.is_clocked:
            self._report(NEAR, (distance > 0) & (distance < _NEAREST), f"distances must be at least {_NEAREST} counts", distance, places)
        self._report(RANGE, azimuth >= TURN_CDEG, "azimuths must be below 36000", azimuth, places)
        self._look_at_grid(model, azimuth, tail["speed_rpm"], is_dual, places)
        self._look_at_pairs(model, azimuth[is_dual], distance[is_dual], [place for place, dual in zip(places, is_dual, strict=True) if dual])
        self._look_at_tail(model, packets, places)
        self._modes.update(tail["mode"].tolist())
        self._measured, self._returned = self._measured + distance.size, self._returned + int((distance > 0).sum())

    def _look_at_grid(
        self, model: Model, azimuth: npt.NDArray[Any], speed_rpm: npt.NDArray[Any], is_dual: npt.NDArray[np.bool_], places: list[Place]
    ) -> None:
        rate = _nearest_rate(speed_rpm)
        off = np.abs(speed_rpm / rate - 1.0) > _MAX_SPEED_RATIO
        self._report(SPEED, off, f"speed must be near {', '.join(map(str, RATES_RPM))} rpm", speed_rpm, places)
        step = TURN_CDEG * model.round_ns * rate // _MINUTE_NS
        turned = (azimuth[:, 2:] - azimuth[:, :-2]) % TURN_CDEG
        expected = np.where(is_dual, step, 2 * step)[:, None]
        doubt = _JITTER_CDEG if model.is_clocked else 0
        self._report(GRID, ~off[:, None] & (np.abs(turned - expected) > doubt), "azimuths must rise by a round's step", turned, places)
        if not model.is_clocked:
            self._report(GRID, ~off[:, None] & (np.mod(azimuth, step[:, None]) > 0), "azimuths must be multiples of a round's step", azimuth, places)

    def _look_at_pairs(self, model: Model, azimuth: npt.NDArray[Any], distance: npt.NDArray[Any], places: list[Place]) -> None:
        self._report(PAIR, azimuth[:, ::2] != azimuth[:, 1::2], "blocks of a pair must have one azimuth", azimuth[:, 1::2], places)
        first, second = distance[:, ::2], distance[:, 1::2]
        is_half = (first > 0) != (second > 0)
        if model.is_clocked:
            self._halves += int(is_half.sum())
        else:
            self._report(HALF, is_half, "a firing with a return must have it in both blocks", first, places)
        differs = (first != second) & ~is_half
        self._pairs += int(((first > 0) | (second > 0)).sum())
        self._apart, self._farther = self._apart + int(differs.sum()), self._farther + int((first > second)[differs].sum())

    def _look_at_tail(self, model: Model, packets: npt.NDArray[Any], places: list[Place]) -> None:
        tail = packets["tail"]
        tail_at = packets.itemsize - tail.itemsize
        raw = np.ascontiguousarray(packets).view(np.uint8).reshape(packets.size, -1)[:, tail_at:]
        self._report(TAIL, tail["shutdown"] > 1, "the flag of a shutdown must be 0 or 1", tail["shutdown"], places, tail_at + model.tail.shutdown)
        used = {*range(model.tail.status), model.tail.shutdown, model.tail.mode, model.tail.factory, *range(model.tail.speed, model.tail.speed + 2)}
        used |= {*range(model.tail.utc, model.tail.utc + 6), *range(model.tail.us, model.tail.us + 4)}
        unused = raw[:, [at for at in range(model.tail.sequence) if at not in used]]
        self._report(TAIL, unused > 0, "errors and unused bytes of the tail must be 0", unused, places)
        if model.status_rounds:
            self._report(STATUS, tail["status"][:, 2] >= len(model.status), "identities must be known", tail["status"][:, 2], places, tail_at + 2)
        self._report(DATE, tail["us"] >= _US, "microseconds must be below 1000000", tail["us"], places, tail_at + model.tail.us)
        utc = tail["utc"]
        least, most = np.array([0, 1, 1, 0, 0, 0]), np.array([255, 12, 31, 23, 59, 59])
        wrong = ((utc < least) | (utc > most)) & (utc[:, :1] > 0)
        self._report(DATE, wrong, "date and time must be of a calendar", utc, places, tail_at + model.tail.utc)
        is_early = ~wrong.any(axis=1) & (utc_ns(tail) < _FIRST_YEAR_NS)
        self._report(DATE, is_early, "the date must be after 2015, also of a clock that nothing sets", utc[:, 0], places, tail_at + model.tail.utc)

    def _look_at_steps(self, model: Model, packets: npt.NDArray[Any], places: list[Place], host_ns: npt.NDArray[np.int64]) -> None:
        tail, azimuth, later = packets["tail"], packets["blocks"]["azimuth"][:, 0].astype(np.int64), places[1:]
        for name in ("mode",) if model.status_rounds else ("mode", "status"):
            values = tail[name].reshape(packets.size, -1)
            rule = CHANGED if name == "mode" else STATUS
            self._report(rule, (values[1:] != values[:-1]).any(axis=1), f"{name} must stay", values[1:].tolist(), later)
        if model.status_rounds:
            turn = (tail["status"][1:, 2].astype(int) - tail["status"][:-1, 2]) % len(model.status)
            still = (tail["status"][1:, 3:] != tail["status"][:-1, 3:]).any(axis=1)
        stamp_ns = utc_ns(tail)
        returns = 1 + (tail["mode"] >= ReturnMode.LAST_STRONGEST)
        period_ns = (model.blocks // returns[:-1]) * model.round_ns
        step_ns = np.diff(stamp_ns)
        steps = np.rint(step_ns / period_ns).astype(np.int64)
        is_counted = "sequence" in (tail.dtype.names or ())
        number = np.mod(np.diff(tail["sequence"].astype(np.int64)), _NUMBERS) if is_counted else steps
        is_ahead = (number > 0) & (number < _MAX_LOST)
        self._report(NUMBER, ~is_ahead, "packets must be numbered on", number, later)
        is_lost = is_ahead & (number > 1)
        self._report(LOST, is_lost, "no packet must be missing, by the numbers", number - 1, later)
        self.lost += int((number - 1)[is_lost].sum())
        if model.status_rounds:
            most = -(-(model.blocks // returns[:-1]) // model.status_rounds)
            self._report(STATUS, (number == 1) & (turn > most), "identities must take turns", tail["status"][1:, 2], later)
            self._report(STATUS, still, "reserved bytes of the status must stay", tail["status"][1:, 3].tolist(), later)
        rate = _nearest_rate(tail["speed_rpm"][1:])
        step_cdeg = TURN_CDEG * model.round_ns * rate // _MINUTE_NS
        rounds, elapsed = number * (period_ns // model.round_ns), np.rint(step_ns / model.round_ns).astype(np.int64)
        may_err = 2 * _JITTER_CDEG + _MAX_SPEED_RATIO * elapsed * step_cdeg if model.is_clocked else np.zeros(rate.size)
        # behind the edge of a field of view the next packet is numbered on
        is_ahead_of_edge = is_counted & (number == 1) & (elapsed >= _MIN_UNSEEN * rounds) & (elapsed * model.round_ns < _MINUTE_NS // rate)
        is_ahead_of_edge &= _error(azimuth, elapsed * step_cdeg) <= may_err
        rounds = np.where(is_ahead_of_edge, elapsed, rounds)
        doubt_us = _MAX_STEP_US + _MAX_STEP_RATIO * rounds * model.round_ns / 1000.0
        same = is_ahead & (returns[1:] == returns[:-1])
        is_off = same & (np.abs(step_ns - rounds * model.round_ns) > 1000.0 * doubt_us)
        self._report(STEP, is_off, f"stamps must advance by {period_ns[0] / 1000.0:.2f} us a packet", step_ns // 1000, later)
        is_steady = np.abs(tail["speed_rpm"][1:] / rate - 1.0) <= _MAX_SPEED_RATIO
        self._report(
            MOTION, same & is_steady & (_error(azimuth, rounds * step_cdeg) > may_err), "azimuths must go on as the head turns", azimuth[1:], later
        )
        near = same & (number == 1) & ~is_off & ~is_ahead_of_edge
        self._stamped_ns, self._stamps = self._stamped_ns + int(step_ns[near].sum()), self._stamps + int(near.sum())
        self.arrival.add(host_ns[1:], np.diff(host_ns), step_ns, is_continuous=same & ~is_off, is_near=near)

    @property
    def modes(self) -> tuple[int, ...]:
        """Return modes."""
        return tuple(sorted(self._modes))

    @property
    def return_ratio(self) -> float:
        """Share of the measurements with a return; NaN before any."""
        return self._returned / self._measured if self._measured else float("nan")

    @property
    def period_us(self) -> float:
        """Mean time between the stamps of neighbouring packets; NaN before any."""
        return self._stamped_ns / self._stamps / 1000.0 if self._stamps else float("nan")

    def conclude(self, log: FindingLog, host_waited_ns: int) -> None:
        """Judge the rules about the whole stream so far."""
        if log.applies(EMPTY, self.packets) and not self._returned:
            log.report(EMPTY, f"some of {self._measured} measurements must have a return, got none")
        if self._pairs and log.applies((TURNS, COPIES), self.packets):
            mixed = min(self._farther, self._apart - self._farther)
            if mixed > _MAX_TURNED * self._apart:
                log.report(TURNS, f"the farther return must always be in the same block, got {mixed} of {self._apart} in the other one")
            if self._apart > _MAX_COPIED * self._pairs:
                log.report(COPIES, f"most firings must have one return, sent twice, got {self._apart} of {self._pairs} with two")
            if self._halves > _MAX_HALVES * self._pairs:
                log.report(HALF, f"a firing with a return must have it in both blocks, got {self._halves} of {self._pairs} with one")
        if log.applies((BURST, TICK, RATE), self.arrival.count, of=GAPS) and self.arrival.has_fractions:
            self.arrival.judge(log, BURST, TICK, RATE, doubt_ppm=6.0 * self.arrival.drift_error_ppm, host_waited_ns=host_waited_ns)

    def summary(self) -> HesaiSummary:
        """Figures of the packets judged so far."""
        return HesaiSummary.of(self)


def _error(azimuth: npt.NDArray[np.int64], turned: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Distance of steps of azimuths from what the head has turned."""
    return np.asarray(np.abs((np.diff(azimuth) - turned + TURN_CDEG // 2) % TURN_CDEG - TURN_CDEG // 2))


def _nearest_rate(speed_rpm: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    rates = np.array(RATES_RPM)
    return np.asarray(rates[np.abs(speed_rpm[:, None].astype(np.int64) - rates).argmin(axis=1)])
