"""The probe of a flight controller: bytes to send and their times, and interpretation of received bytes; without a clock or a port.

Until the controller's own heartbeat is received, only heartbeats are sent, because a board starts MAVLink on USB only after reading one. Then parameters are requested one
by one, several times if necessary. The probe never sends commands, settings or sensor data, and sends nothing to an armed controller.
"""

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from hilsim.errors import require, within
from hilsim.parts.vehicle.diagnosis.probe_result import NO_AUTOPILOT, PX4, Beat, Health, ProbeResult, Stream, Text
from hilsim.protocols.mavlink.codec import read_payload, write_frame
from hilsim.protocols.mavlink.frames import LARGEST_FRAME, Frame, FrameState, StreamCount, abandon, allocate_stream, append, next_frame, pending
from hilsim.protocols.mavlink.messages import (
    ESTIMATOR_STATUS,
    HEARTBEAT,
    HEARTBEAT_PERIOD_NS,
    PARAM_REQUEST_READ,
    PARAM_VALUE,
    PROTOCOL_VERSION,
    STATUSTEXT,
    SYS_STATUS,
    Draft,
    Message,
    build_draft,
    build_origin,
)
from hilsim.units import NS_PER_S

PARAMETERS = (
    "SYS_HITL",
    "SYS_AUTOSTART",
    "CAL_ACC0_ID",
    "CAL_GYRO0_ID",
    "CAL_MAG0_ID",
    "COM_RC_IN_MODE",
    "NAV_RCL_ACT",
    "NAV_DLL_ACT",
    "EKF2_REQ_GPS_H",
    *(f"MAV_{instance}_{what}" for instance in range(3) for what in ("CONFIG", "RATE")),
    *(f"SER_TEL{port}_BAUD" for port in range(1, 5)),
    "EKF2_AID_MASK",
    "EKF2_GPS_CTRL",
)
"""Parameters that determine whether PX4 flies in the loop."""

_ASK_NS = 20_000_000
_ROUND_NS = 700_000_000
_ROUNDS = 4
_SHIFT = 5
"""Each round begins so many parameters later than the one before, so that a regular loss takes others."""
_SILENT_NS = 50_000_000
_SAMPLE_BYTES = 4096
_MAX_TEXTS = 50
_VALUE_DTYPES = {1: "u1", 2: "i1", 3: "<u2", 4: "<i2", 5: "<u4", 6: "<i4", 9: "<f4"}
"""Types of a parameter's value by MAV_PARAM_TYPE, as PX4 stores it in the value's four bytes."""


@dataclass(frozen=True, kw_only=True)
class ProbeSpec:
    """Settings of a probe.

    Attributes:
        wait_s: Timeout for the first heartbeat.
        listen_s: Duration of listening after the first heartbeat.
        asks: Whether to request parameters; PX4's simulator link does not support them.
        system: hilsim's MAVLink system id.
        component: hilsim's MAVLink component id.
    """

    wait_s: float = 8.0
    listen_s: float = 8.0
    asks: bool = True
    system: int = 1
    component: int = 200

    def __post_init__(self) -> None:
        require(
            *(
                (0.0 < getattr(self, name) <= 600.0, f"{name} must be above 0 and at most 600, got {getattr(self, name):g}")
                for name in ("wait_s", "listen_s")
            ),
            *within(self, system=(1, 255), component=(1, 255)),
        )


@dataclass(eq=False)
class Probe:
    """One conversation; ``now_ns`` counts from its start."""

    spec: ProbeSpec
    _stream: Any = field(default_factory=allocate_stream)
    _frame: Any = field(default_factory=lambda: np.zeros(LARGEST_FRAME, np.uint8))
    _received_bytes: int = 0
    _frames: int = 0
    _sample: bytes = b""
    _last_ns: int = 0
    _beat: Beat | None = None
    _beat_ns: int = 0
    _others: dict[tuple[int, int], Beat] = field(default_factory=dict)
    _has_echo: bool = False
    _streams: dict[int, tuple[int, int]] = field(default_factory=dict)
    _health: Health | None = None
    _estimator_flags: int | None = None
    _texts: dict[Text, None] = field(default_factory=dict)
    _pieces: dict[int, str] = field(default_factory=dict)
    _parameters: dict[str, float] = field(default_factory=dict)
    _asked: dict[str, None] = field(default_factory=dict)
    _queue: list[str] = field(default_factory=list)
    _rounds: int = 0
    _next_beat_ns: int = 0
    _next_ask_ns: int = 0
    _next_round_ns: int = 0

    def __post_init__(self) -> None:
        self._origin = build_origin(self.spec.system, self.spec.component)
        self._drafts = {message.id: build_draft(message) for message in (HEARTBEAT, SYS_STATUS, PARAM_VALUE, ESTIMATOR_STATUS, STATUSTEXT)}
        self._own = build_draft(HEARTBEAT)
        self._own.record["autopilot"], self._own.record["mavlink_version"] = NO_AUTOPILOT, PROTOCOL_VERSION
        self._own.record["system_status"] = 4  # active

    def prepare(self) -> None:
        """Compile the kernels for reading and writing frames, so that they do not delay the probe."""
        other = Probe(self.spec)
        other.receive(other.advance(0), 0)

    def receive(self, data: bytes, now_ns: int) -> None:
        """Process received bytes."""
        self._received_bytes += len(data)
        self._sample += data[: _SAMPLE_BYTES - len(self._sample)]
        rest = np.frombuffer(data, np.uint8)
        while rest.size:
            rest = rest[append(self._stream, rest) :]
            self._take_frames(now_ns)
        self._last_ns = now_ns

    def advance(self, now_ns: int) -> bytes:
        """Bytes to send now."""
        if pending(self._stream) > 0 and now_ns - self._last_ns > _SILENT_NS:
            abandon(self._stream)
            self._take_frames(now_ns)
        if self._beat is not None and (self._beat.is_armed or self._beat.autopilot != PX4):
            return b""
        out = b""
        if now_ns >= self._next_beat_ns:
            self._next_beat_ns = now_ns + HEARTBEAT_PERIOD_NS
            out += self._write(HEARTBEAT, self._own)
        return out + self._ask(now_ns)

    def is_over(self, now_ns: int) -> bool:
        """Whether enough was received; true at once when no more requests are permitted."""
        if self._beat is None:
            return now_ns >= self.spec.wait_s * NS_PER_S
        return self._beat.is_armed or self._beat.autopilot != PX4 or now_ns - self._beat_ns >= self.spec.listen_s * NS_PER_S

    def result(self, now_ns: int) -> ProbeResult:
        """Result so far."""
        has_beat = self._beat is not None
        return ProbeResult(
            waited_s=(self._beat_ns if has_beat else now_ns) / NS_PER_S,
            listened_s=(now_ns - self._beat_ns) / NS_PER_S if has_beat else 0.0,
            beat=self._beat,
            others=tuple(self._others.values()),
            has_echo=self._has_echo,
            streams=tuple(Stream(id=number, frames=frames, bytes=size) for number, (frames, size) in sorted(self._streams.items())),
            received_bytes=self._received_bytes,
            skipped_bytes=int(self._stream.counts[StreamCount.SKIPPED_BYTES]),
            frames=self._frames,
            sample=self._sample,
            health=self._health,
            estimator_flags=self._estimator_flags,
            texts=tuple(self._texts),
            asked=tuple(self._asked),
            parameters=MappingProxyType(dict(self._parameters)),
        )

    def _write(self, message: Message, content: Draft) -> bytes:
        size = write_frame(message, content.payload, self._origin, self._frame)
        return bytes(self._frame[:size])

    def _ask(self, now_ns: int) -> bytes:
        """Next request, if one is due: no faster than a slow line carries the answers."""
        if self._beat is None or not self.spec.asks or now_ns < self._next_ask_ns:
            return b""
        if not self._queue and self._rounds < _ROUNDS and now_ns >= self._next_round_ns:
            missing = [name for name in PARAMETERS if name not in self._parameters]
            first = _SHIFT * self._rounds % max(len(missing), 1)
            self._queue = missing[first:] + missing[:first]
            self._rounds += 1
        if not self._queue:
            return b""
        self._next_ask_ns = now_ns + _ASK_NS
        self._next_round_ns = now_ns + _ROUND_NS
        name = self._queue.pop(0)
        self._asked[name] = None
        request = build_draft(PARAM_REQUEST_READ)
        request.record["param_index"] = -1  # requested by name
        request.record["target_system"], request.record["target_component"] = self._beat.system, self._beat.component
        request.record["param_id"][0, : len(name)] = np.frombuffer(name.encode(), np.uint8)
        return self._write(PARAM_REQUEST_READ, request)

    def _take_frames(self, now_ns: int) -> None:
        while True:
            frame = next_frame(self._stream)
            if frame.state == FrameState.NONE:
                return
            self._frames += 1
            if frame.state == FrameState.CHECKED and frame.id in self._drafts:
                read_payload(self._stream.buffer, frame, self._drafts[frame.id].payload)
                self._read(frame, self._drafts[frame.id], now_ns)
            if self._beat is not None and frame.id != PARAM_VALUE.id:  # answers do not count as a stream
                frames, size = self._streams.get(frame.id, (0, 0))
                self._streams[frame.id] = frames + 1, size + frame.size

    def _read(self, frame: Frame, content: Draft, now_ns: int) -> None:
        record = content.record[0]
        if frame.id == HEARTBEAT.id:
            self._read_heartbeat(frame, record, now_ns)
        elif self._beat is None or frame.system != self._beat.system:
            return
        elif frame.id == SYS_STATUS.id:
            enabled, healthy = int(record["onboard_control_sensors_enabled"]), int(record["onboard_control_sensors_health"])
            self._health = Health(enabled=enabled, healthy=healthy, load_ratio=float(record["load"]) / 1000.0)
        elif frame.id == ESTIMATOR_STATUS.id:
            self._estimator_flags = int(record["flags"])
        elif frame.id == PARAM_VALUE.id:
            name, kind = _text(record["param_id"]), _VALUE_DTYPES.get(int(record["param_type"]))
            if name in self._asked and kind is not None:
                self._parameters[name] = content.payload[: np.dtype(kind).itemsize].view(kind)[0].item()
        elif frame.id == STATUSTEXT.id:
            self._read_text(record)

    def _read_heartbeat(self, frame: Frame, record: Any, now_ns: int) -> None:
        beat = Beat(
            system=frame.system,
            component=frame.component,
            vehicle_type=int(record["type"]),
            autopilot=int(record["autopilot"]),
            base_mode=int(record["base_mode"]),
        )
        sender = frame.system, frame.component
        if sender == (self.spec.system, self.spec.component) and beat.autopilot == NO_AUTOPILOT:
            self._has_echo = True
        elif beat.autopilot != NO_AUTOPILOT and (self._beat is None or sender == (self._beat.system, self._beat.component)):
            if self._beat is None:
                self._beat_ns = now_ns
            self._beat = beat
        else:
            self._others[sender] = beat

    def _read_text(self, record: Any) -> None:
        """Store a whole text: a longer one arrives in pieces of 50 characters under one id."""
        text, number = _text(record["text"]), int(record["id"])
        if number:
            self._pieces[number] = self._pieces.get(number, "") + text
            if len(text) == record["text"].size:
                return
            text = self._pieces.pop(number)
        if len(self._texts) < _MAX_TEXTS:
            self._texts[Text(severity=int(record["severity"]), text=text)] = None


def _text(characters: Any) -> str:
    return bytes(characters).split(b"\0", 1)[0].decode("utf-8", errors="replace")
