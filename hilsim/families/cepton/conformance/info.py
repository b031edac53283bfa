"""Rules for INFZ sensor information: its fields and its cadence."""

import numpy as np

from hilsim.capture.datagram import CapturedDatagram
from hilsim.families.cepton.conformance.stamps import UTC_FROM_US
from hilsim.families.cepton.protocol.info import INFO_PACKET_DTYPE, INFO_PACKET_SIZE, INFO_VERSION, SYNC_OFFSET, InfoPacket, read_info_packet
from hilsim.read.analysis.conformance.findings import FindingLog, Place, Rule, Severity

NONE = Rule(id="info.none", severity=Severity.NOTE, packets=1000)
SIZE = Rule(id="info.size", severity=Severity.ERROR)
VERSION = Rule(id="info.version", severity=Severity.ERROR)
BLOCKS = Rule(id="info.blocks", severity=Severity.WARNING)
RESERVED = Rule(id="info.reserved", severity=Severity.NOTE)
CADENCE = Rule(id="info.cadence", severity=Severity.WARNING, packets=3)
MISSING = Rule(id="info.missing", severity=Severity.WARNING, packets=4)
CHANGED = Rule(id="info.changed", severity=Severity.ERROR, packets=2)
MODEL = Rule(id="info.model", severity=Severity.WARNING)
NAME = Rule(id="info.name", severity=Severity.ERROR)
SERIAL = Rule(id="info.serial", severity=Severity.WARNING)
FIRMWARE = Rule(id="info.firmware", severity=Severity.WARNING)
RETURNS = Rule(id="info.returns", severity=Severity.ERROR)
POWER_UP = Rule(id="info.power_up", severity=Severity.WARNING, packets=2)
SYNC = Rule(id="info.sync", severity=Severity.WARNING, packets=2)
SYNC_LEAP = Rule(id="info.sync_leap", severity=Severity.WARNING, packets=2)

MODELS = frozenset((1, 3, 6, 7, 10, 11, 12, 14, 15, 16, 17, 18, 21, 22, 24, 25, 26, 27, 28, 30, 31, 32, 33, 34, 35, 36, 37))
_MAX_S = 5.0
_RESERVED = ("reserved_0", "reserved_1", "reserved_2", "reserved_3", "reserved_4")
_KEPT_GAPS = 4096
_MIN_POINT_PACKETS = 20


class InfoTopic:
    """Information packets of one sensor."""

    def __init__(self) -> None:
        self.packets = 0
        self.latest: InfoPacket | None = None
        self._latest_ns = 0
        self._gaps_s: list[float] = []
        self._stamp_us: int | None = None
        self._power_up_s: list[float] = []
        self._sync_s: list[float] = []

    @property
    def model(self) -> int | None:
        """Code of the model, if known."""
        return None if self.latest is None else self.latest.model

    @property
    def period_s(self) -> float:
        """Median time between packets by the host's clock; NaN for too few packets."""
        return float(np.median(self._gaps_s)) if self._gaps_s else float("nan")

    def look(self, datagram: CapturedDatagram, stamp_us: int | None, log: FindingLog) -> None:
        """Judge a packet; ``stamp_us`` is the stamp of the former point packet, None before any."""
        place = Place(self.packets, datagram.frame)
        self.packets += 1
        payload = datagram.payload
        if len(payload) < INFO_PACKET_SIZE or not INFO_PACKET_SIZE <= payload[4] <= len(payload):
            header = payload[4] if len(payload) > 4 else 0
            log.report(
                SIZE,
                f"an information packet must have a common header of {INFO_PACKET_SIZE} bytes or more, got one of {header} in {len(payload)} bytes",
                place,
            )
            return
        version = payload[5] >> 3
        if version != INFO_VERSION:
            log.report(
                VERSION,
                f"version must be {INFO_VERSION}, got {version}: not checked further",
                place.at(5),
                severity=Severity.WARNING if version == 0 else None,
            )
            return
        info = read_info_packet(payload)
        if info is not None:
            self._look_at_fields(payload, info, place, log)
            self._look_at_times(info, datagram.host_stamp_ns, stamp_us, place, log)
            self.latest, self._latest_ns = info, datagram.host_stamp_ns

    def _look_at_fields(self, payload: bytes, info: InfoPacket, place: Place, log: FindingLog) -> None:
        fields = np.frombuffer(payload, INFO_PACKET_DTYPE, count=1)[0]
        name = payload[20:48].rstrip(b"\0")
        is_name = bool(name) and name.isascii() and name.decode("ascii").isprintable()
        for rule, is_right, text, byte in (
            (BLOCKS, not info.blocks, f"block flags must be 0, got {info.blocks}", 5),
            (MODEL, info.model in MODELS, f"model must be one of the vendor's, got {info.model}", 8),
            (SERIAL, info.serial != 0, "serial number must not be 0", 12),
            (NAME, is_name, f"the model's name must be printable ASCII before zeros, got {name!r}", 20),
            (RETURNS, info.returns in {1, 2}, f"returns must be 1 or 2, got {info.returns}", 85),
        ):
            if not is_right:
                log.report(rule, text, place.at(byte))
        filled = [name for name in _RESERVED if np.any(fields[name])]
        if filled:
            log.report(RESERVED, f"reserved bytes must be 0, got others at byte {INFO_PACKET_DTYPE.fields[filled[0]][1]}", place)  # type: ignore[index] # the type has fields
        if bytes(fields["firmware"]) != bytes(fields["firmware_again"]):
            log.report(
                FIRMWARE,
                f"the firmware's version must be the same at bytes 16 and 52, got {payload[16:20].hex(' ')} and {payload[52:56].hex(' ')}",
                place,
            )
        if self.latest is not None:
            self._look_at_change(self.latest, info, place, log)

    def _look_at_change(self, latest: InfoPacket, info: InfoPacket, place: Place, log: FindingLog) -> None:
        for name in ("model", "serial", "model_name", "part_number", "firmware", "returns"):
            was, became = getattr(latest, name), getattr(info, name)
            if was != became:
                log.report(CHANGED, f"{name} must stay {was}, got {became}", place)
        if latest.power_up_us != info.power_up_us:
            is_later = info.power_up_us > latest.power_up_us
            log.report(
                CHANGED,
                f"power_up_us must stay {latest.power_up_us}, got {info.power_up_us}",
                place.at(64),
                severity=Severity.WARNING if is_later else None,
            )

    def _look_at_times(self, info: InfoPacket, host_ns: int, stamp_us: int | None, place: Place, log: FindingLog) -> None:
        if self.latest is not None:
            gap_s = (host_ns - self._latest_ns) / 1e9
            if len(self._gaps_s) < _KEPT_GAPS:
                self._gaps_s.append(gap_s)
            leap_us = info.sync_offset_us - self.latest.sync_offset_us
            if info.power_up_us == self.latest.power_up_us and abs(leap_us) > 1000.0 + 1000.0 * gap_s:
                log.report(SYNC_LEAP, f"the offset must move by at most 1 ms and 0.1 %, got {leap_us} us in {gap_s:.3f} s", place.at(SYNC_OFFSET))
        if stamp_us is None:
            return
        if info.sync_offset_us:
            self._sync_s.append((stamp_us + info.sync_offset_us) / 1e6 - host_ns / 1e9)
        if info.power_up_us and stamp_us < UTC_FROM_US:
            self._power_up_s.append((stamp_us + info.power_up_us) / 1e6 - host_ns / 1e9)
        self._sync_s, self._power_up_s = self._sync_s[-_KEPT_GAPS:], self._power_up_s[-_KEPT_GAPS:]

    def conclude(self, point_packets: int, seconds: int, log: FindingLog) -> None:
        """Judge the whole stream; ``seconds`` is the number of second returns among the points."""
        if self.packets == 0:
            if point_packets >= NONE.packets:
                log.report(NONE, f"no sensor information with {point_packets} point packets: SDK 3 makes no frames of them")
            return
        if self.latest is not None and point_packets >= _MIN_POINT_PACKETS and (self.latest.returns == 2) != (seconds > 0):
            log.report(RETURNS, f"returns must be {2 if seconds else 1} with {seconds} second returns among the points, got {self.latest.returns}")
        self._conclude_times(log)

    def _conclude_times(self, log: FindingLog) -> None:
        if self.packets >= CADENCE.packets and not 0.45 <= self.period_s <= 0.55:
            is_single = 0.9 <= self.period_s <= 1.1
            log.report(CADENCE, f"information must come each 0.5 s, got each {self.period_s:.3f} s", severity=Severity.NOTE if is_single else None)
        late = [gap_s for gap_s in self._gaps_s if gap_s > 1.5 * self.period_s]
        if late and self.packets >= MISSING.packets:
            log.report(MISSING, f"information must come each {self.period_s:.3f} s, got {len(late)} longer gaps, the longest {max(late):.3f} s")
        for rule, differences_s, what in ((SYNC, self._sync_s, "offset"), (POWER_UP, self._power_up_s, "time of power-up")):
            if len(differences_s) >= rule.packets and abs(float(np.median(differences_s))) > _MAX_S:
                log.report(rule, f"stamps and the {what} must give the host's time within {_MAX_S:g} s, got {float(np.median(differences_s)):+.1f} s")
