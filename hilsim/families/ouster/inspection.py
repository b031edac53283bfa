"""Inspection of Ouster flows: lidar packets by their headers and columns, IMU packets of both forms."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from hilsim.emulator.inertial import STANDARD_GRAVITY_MPS2
from hilsim.families.ouster.metadata_files import Identity, OusterMetadata, packet_size
from hilsim.families.ouster.points import OusterDecoder, stacked_payloads
from hilsim.families.ouster.protocol.headers import VALID_STATUS
from hilsim.families.ouster.protocol.imu import IMU_DTYPE, IMU_PACKET_SIZE, MEASUREMENT_DTYPE, MEASUREMENT_SIZE, NMEA_SIZE
from hilsim.families.ouster.protocol.recognition import describe_fits, fits_of
from hilsim.families.ouster.recognition import OusterKind
from hilsim.families.ouster.stream import Heads, PacketOrder, Run, columns_seen, cut_head, read_heads, sent_packets
from hilsim.protocols.recognise import PacketKind
from hilsim.read.analysis.ground import Reason
from hilsim.read.analysis.inspection.lines import Line, captured_lines, clock_lines, detail, missing_lines, problem, times
from hilsim.read.analysis.inspection.part import FlowDetails, FlowInspection, InspectionPart
from hilsim.read.analysis.inspection.result import DeviceClock, FlowSummary, Missing, Place
from hilsim.read.analysis.inspection.stamps import StampLog
from hilsim.read.analysis.inspection.times import CaptureTimes, Steps
from hilsim.read.analysis.scatter import Scatter

_HOST_DOUBT_NS = 300_000_000
_FIRST_MEASUREMENT, _FOOTER_SIZE, _NMEA_AT = 132, 32, 40
_MAX_IDS = 4
_LONGEST_STEP_NS = 1_000_000_000


@dataclass(frozen=True, kw_only=True)
class OusterLidar(FlowDetails):
    """Figures of the lidar packets of one Ouster sensor."""

    serial: Annotated[int, "Serial number in the packets; 0 in packets without packet header."]
    header: Annotated[str, "Kind of the packet header: ``NONE``, ``STANDARD`` or ``FUSA``."]
    model: Annotated[str | None, "Product line by the metadata, as ``OS-1-128``; None without metadata, as the next four."]
    firmware: Annotated[str | None, "Version of the firmware."]
    profile: Annotated[str | None, "Lidar profile."]
    lidar_mode: Annotated[str | None, "Columns a turn and turns a second of the setting, as ``1024x10``."]
    column_window: Annotated[tuple[int, int] | None, "First and last measurement id that is sent."]
    channels: Annotated[int, "Beams; 0 if the metadata are missing and the packets' size allows several."]
    fits: Annotated[str, "Profiles and channels that the packets' size allows, as text; empty with metadata."]
    mismatch: Annotated[str, "Disagreement of packets and metadata; empty for none."]
    init_ids: Annotated[tuple[int, ...], "Initialisation ids seen, the most frequent first."]
    first_frame_id: Annotated[int, "Frame id of the first packet."]
    last_frame_id: Annotated[int, "Frame id of the last packet."]
    frames: Annotated[int, "Number of frames, of which the first and last may be incomplete."]
    frame_breaks: Annotated[int, "Number of times that frame ids began anew."]
    columns_per_frame: Annotated[int, "Columns a turn, by the metadata, else those of the smallest mode with the measurement ids seen."]
    columns: Annotated[int, "Number of columns in the packets."]
    invalid_columns: Annotated[int, "Number of those with status 0, as outside the azimuth window."]
    frame_rate_hz: Annotated[float, "Turns a second by the columns' stamps."]
    column_period_us: Annotated[float, "Mean time from a column to the next one."]
    column_period_sd_us: Annotated[float, "Standard deviation of that time."]
    stamp_grid_ns: Annotated[int, "Largest number of nanoseconds of which all stamps are multiples."]
    alert_flags: Annotated[tuple[int, ...], "Values of the alert flags seen, the most frequent first."]
    missing: Annotated[Missing, "Packets missing by frame ids and measurement ids."]
    clock: Annotated[DeviceClock, "Clock of the stamps of the packets' last columns."]

    @property
    def title(self) -> str:
        """Model, profile and mode."""
        if self.model is None:
            channels = f", {self.channels} channels" if self.channels else ""
            return f"Ouster{_of_serial(self)}, {self.profile or 'unknown profile'}{channels}, {self.columns_per_frame} columns a turn"
        returns = f"Ouster {self.model}, firmware {self.firmware}, {self.profile}, {self.lidar_mode}"
        return f"{returns}{_of_serial(self)}"

    @property
    def loops_seamlessly(self) -> bool:
        """Whether two places of the flow may fit each other: those of several frames."""
        return self.frames > 1

    def lines(self, flow: FlowSummary) -> Iterator[Line]:
        """Yield lines of the report."""
        yield detail("frames", _frames(self))
        yield detail("columns", _columns(self))
        clock = self.clock
        period = "" if math.isnan(self.column_period_us) else f", a column each {self.column_period_us:.3f} ± {self.column_period_sd_us:.3f} us"
        missing = "" if self.missing.packets else ", no packet missing"
        yield detail("stamps", f"{clock.first_us / 1e6:,.3f} to {clock.last_us / 1e6:,.3f} s, multiples of {self.stamp_grid_ns} ns{period}{missing}")
        yield detail("header", _header(self))
        if self.fits:
            yield problem(f"there are no metadata of this sensor: {self.fits}")
        if self.mismatch:
            yield problem(self.mismatch)
        if self.frame_breaks:
            yield problem(f"frame ids begin anew {times(self.frame_breaks)}")
        yield from captured_lines(flow)
        yield from missing_lines(self.missing)
        yield from clock_lines(clock, flow.packets)


def _of_serial(lidar: OusterLidar) -> str:
    return f", serial number {lidar.serial}" if lidar.serial else ""


def _frames(lidar: OusterLidar) -> str:
    rate = "" if math.isnan(lidar.frame_rate_hz) else f", {lidar.frame_rate_hz:.3f} a second"
    if lidar.frames == 1:
        return f"1, frame id {lidar.first_frame_id}{rate}"
    return f"{lidar.frames:,}, frame ids {lidar.first_frame_id} to {lidar.last_frame_id}{rate}"


def _columns(lidar: OusterLidar) -> str:
    window = lidar.column_window
    is_whole = window is None or (window[1] + 1 - window[0]) % lidar.columns_per_frame == 0
    view = "" if is_whole or window is None else f", window {window[0]} to {window[1]}"
    invalid = f", {lidar.invalid_columns:,} not valid (status 0)" if lidar.invalid_columns else ""
    return f"{lidar.columns:,} of {lidar.columns_per_frame} a turn{view}{invalid}"


def _header(lidar: OusterLidar) -> str:
    if lidar.header == "NONE":
        return "none (LEGACY): packets state neither serial number nor initialisation id"
    ids = ", ".join(map(str, lidar.init_ids[:_MAX_IDS])) + (" …" if len(lidar.init_ids) > _MAX_IDS else "")
    alerts = ", ".join(f"0x{value:02x}" for value in lidar.alert_flags[:_MAX_IDS])
    return f"{lidar.header}, initialisation id {ids}, alert flags {alerts}"


@dataclass(frozen=True, kw_only=True)
class OusterImu(FlowDetails):
    """Figures of IMU packets."""

    form: Annotated[str, "``LEGACY`` (48 bytes) or ``ACCEL32_GYRO32_NMEA``."]
    rate_hz: Annotated[float, "Measurements a second by their stamps."]
    measurements_per_packet: Annotated[int, "Measurements a packet."]
    acceleration_g: Annotated[float, "Mean norm of the acceleration."]
    sentence: Annotated[str | None, "NMEA sentence seen last; None without one."]

    def lines(self, _flow: FlowSummary) -> Iterator[Line]:
        """Yield lines of the report."""
        rate = "" if math.isnan(self.rate_hz) else f", {self.rate_hz:.2f} measurements a second"
        each = "" if self.measurements_per_packet == 1 else f", {self.measurements_per_packet} a packet"
        yield detail("IMU", f"{self.form}{rate}{each}, mean acceleration {self.acceleration_g:.3f} g{f', {self.sentence}' if self.sentence else ''}")


class OusterLidarFlow(FlowInspection):
    """Lidar packets of one sensor from one address to another."""

    sample_bytes = 2_200_000  # a frame of 1024 columns, 128 channels and two returns

    def __init__(self, first: bytes, identity: Identity) -> None:
        """Prepare for packets like the ``first``.

        Args:
            first: Payload of the first packet.
            identity: Its sensor.
        """
        super().__init__()
        self._size = len(first)
        self._identity = identity
        self._order = PacketOrder(identity.header)
        self._stamps = StampLog()
        self._init_ids: Counter[int] = Counter()
        self._alerts: Counter[int] = Counter()
        self._frame_ids: tuple[int, int] | None = None
        self._frames = 0
        self._last_frame: int | None = None
        self._breaks = 0
        self._most_id = 0
        self._columns = self._invalid = 0
        self._grid_ns = 0
        self._last_ns: int | None = None
        self._periods = Scatter()  # of the times between columns, us

    def points(self, payloads: list[bytes]) -> npt.NDArray[Any] | Reason:
        """Points of packets, if the metadata are known."""
        found = self._identity
        if not found.is_sure or found.metadata is None or packet_size(found.metadata) != self._size:
            return Reason(reason="the metadata must be known for its beams' angles")
        return OusterDecoder(found.metadata).points(stacked_payloads(payloads))

    def take(self, payload: bytes) -> None:
        """Store the headers of a payload, which has the size of the first, until ``look``."""
        super().take(cut_head(payload))

    def look(self, times: CaptureTimes) -> Steps:
        """Evaluate the packets taken since the last call."""
        heads = read_heads(self.taken(), self._identity.header)
        run = self._order.look(heads, times.place)
        self._note_headers(heads, run)
        self._note_columns(heads)
        stamp_ns = heads.stamp_ns
        step_ns = np.diff(stamp_ns, prepend=stamp_ns[0] if self._last_ns is None else self._last_ns)
        self._last_ns = int(stamp_ns[-1])
        is_by_host = np.abs(times.step_ns() - step_ns) <= _HOST_DOUBT_NS + np.abs(step_ns) // 10
        is_sound = run.is_late | ((step_ns > 0) & is_by_host)
        # steps of rounded stamps: rounded steps would lose half a microsecond each
        step_us = stamp_ns // 1000 - (stamp_ns - step_ns) // 1000
        self._stamps.look(stamp_ns // 1000, step_us, is_sound=is_sound, is_late=run.is_late, is_point=run.is_next & is_sound, times=times)
        return Steps(is_next=run.is_next, is_planned=np.zeros(stamp_ns.size, np.bool_))

    def _note_headers(self, heads: Heads, run: Run) -> None:
        ids = heads.headers["frame_id"]
        self._frame_ids = (int(ids[0]) if self._frame_ids is None else self._frame_ids[0]), int(ids[-1])
        before = self._last_frame if self._last_frame is not None else int(run.frame[0]) - 1
        self._frames += int((np.diff(run.frame, prepend=before) > 0).sum()) + int((run.is_break & (np.diff(run.frame, prepend=before) < 0)).sum())
        self._last_frame = int(run.frame[-1])
        self._breaks += int(run.is_break.sum())
        self._init_ids.update(heads.headers["init_id"].tolist())
        self._alerts.update(heads.headers["alert_flags"].tolist())

    def _note_columns(self, heads: Heads) -> None:
        columns = heads.columns
        is_valid = columns["status"] & VALID_STATUS != 0
        stamp_ns = columns["timestamp_ns"].astype(np.int64)
        self._columns += is_valid.size
        self._invalid += int((~is_valid).sum())
        if is_valid.any():
            self._most_id = max(self._most_id, int(columns["measurement_id"][is_valid].max()))
        self._grid_ns = int(np.gcd.reduce(np.append(stamp_ns.ravel(), self._grid_ns)))
        period_us = np.diff(stamp_ns, axis=1).ravel() / 1000.0
        self._periods.add(period_us, np.ones(period_us.size, np.bool_))

    def summary(self) -> OusterLidar:
        """Figures of the flow, after at least one block."""
        found, metadata = self._identity, self._identity.metadata
        columns = columns_seen(self._most_id) if metadata is None else metadata.columns_per_frame
        mean_us = self._periods.mean
        lost = self._order.lost(sent_packets(metadata))
        after = lost.after if isinstance(lost.after, Place) else None
        fits = fits_of(self._size, found.header)
        return OusterLidar(
            serial=found.serial,
            header=found.header.name,
            model=None if metadata is None else metadata.prod_line,
            firmware=None if metadata is None else str(metadata.firmware),
            profile=fits[0].profile if metadata is None and len(fits) == 1 else None if metadata is None else metadata.lidar_profile,
            lidar_mode=None if metadata is None else metadata.lidar_mode,
            column_window=None if metadata is None else metadata.window,
            channels=metadata.beams.channels if metadata is not None else fits[0].channels if len(fits) == 1 else 0,
            fits=describe_fits(self._size, found.header) if metadata is None else "",
            mismatch=_mismatch(self._size, found, tuple(self._init_ids)),
            init_ids=_by_frequency(self._init_ids),
            first_frame_id=(self._frame_ids or (0, 0))[0],
            last_frame_id=(self._frame_ids or (0, 0))[1],
            frames=self._frames,
            frame_breaks=self._breaks,
            columns_per_frame=columns,
            columns=self._columns,
            invalid_columns=self._invalid,
            frame_rate_hz=1e6 / (mean_us * columns) if mean_us > 0 else float("nan"),
            column_period_us=mean_us,
            column_period_sd_us=self._periods.sd,
            stamp_grid_ns=self._grid_ns,
            alert_flags=_by_frequency(self._alerts),
            missing=Missing(packets=lost.packets, runs=lost.runs, longest_run=lost.longest, longest_after=after),
            clock=self._stamps.summary(),
        )


def _mismatch(size: int, found: Identity, init_ids: tuple[int, ...]) -> str:
    """Disagreements of packets and metadata."""
    metadata = found.metadata
    if metadata is None:
        return ""
    faults = []
    if packet_size(metadata) != size:
        faults.append(f"packets of {packet_size(metadata)} bytes, got {size}")
    if not found.is_sure:
        faults.append(f"serial number {metadata.serial}, got {found.serial}")
    if found.serial and set(init_ids) != {metadata.initialization_id}:
        faults.append(f"initialisation id {metadata.initialization_id}, got {', '.join(map(str, init_ids[:3]))}")
    return f"the metadata have {'; '.join(faults)}" if faults else ""


def _by_frequency(counts: Counter[int]) -> tuple[int, ...]:
    return tuple(value for value, _ in counts.most_common())


class OusterImuFlow(FlowInspection):
    """IMU packets from one address to another, of the size of the first."""

    def __init__(self, first: bytes) -> None:
        super().__init__()
        self._size = len(first)
        self._last_ns: int | None = None
        self._steps = 0
        self._steps_ns = 0
        self._norms_g, self._measurements = 0.0, 0
        self._sentence = b""

    @property
    def _is_legacy(self) -> bool:
        return self._size == IMU_PACKET_SIZE

    def look(self, times: CaptureTimes) -> Steps:
        """Evaluate the packets taken since the last call."""
        stamp_ns, acceleration_g = self._read(self.taken())
        step_ns = np.diff(stamp_ns, prepend=stamp_ns[0] if self._last_ns is None else self._last_ns)
        is_step = (step_ns > 0) & (step_ns < _LONGEST_STEP_NS)
        self._steps += int(is_step.sum())
        self._steps_ns += int(step_ns[is_step].sum())
        self._last_ns = int(stamp_ns[-1])
        self._norms_g += float(np.linalg.norm(acceleration_g.astype(np.float64), axis=1).sum())
        self._measurements += len(acceleration_g)
        return Steps.even(len(times.host_ns))

    def _read(self, payloads: list[bytes]) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
        """Stamps and accelerations of all measurements."""
        if self._is_legacy:
            records = np.frombuffer(b"".join(payloads), IMU_DTYPE)
            return records["accelerometer_ns"].astype(np.int64), records["acceleration_g"]
        measured = b"".join(payload[_FIRST_MEASUREMENT:-_FOOTER_SIZE] for payload in payloads)
        rows = np.frombuffer(measured, MEASUREMENT_DTYPE)
        self._sentence = payloads[-1][_NMEA_AT : _NMEA_AT + NMEA_SIZE].rstrip(b"\0") or self._sentence
        return rows["time_ns"].astype(np.int64), rows["acceleration_mps2"] / np.float32(STANDARD_GRAVITY_MPS2)

    def summary(self) -> OusterImu:
        """Figures of the flow, after at least one block."""
        return OusterImu(
            form="LEGACY" if self._is_legacy else "ACCEL32_GYRO32_NMEA",
            rate_hz=self._steps / self._steps_ns * 1e9 if self._steps_ns else float("nan"),
            measurements_per_packet=1 if self._is_legacy else (self._size - _FIRST_MEASUREMENT - _FOOTER_SIZE) // MEASUREMENT_SIZE,
            acceleration_g=self._norms_g / self._measurements,
            sentence=self._sentence.decode("ascii", errors="backslashreplace").strip() or None,
        )


_NO_METADATA = OusterMetadata()


def _flow(kind: PacketKind, first: bytes, metadata: OusterMetadata | None) -> FlowInspection:
    return OusterLidarFlow(first, (metadata or _NO_METADATA).identify(first)) if kind is OusterKind.LIDAR else OusterImuFlow(first)


def _number(kind: PacketKind, payload: bytes, metadata: OusterMetadata | None) -> tuple[int, int]:
    """Size of a packet, and the serial number of a lidar packet."""
    return len(payload), (metadata or _NO_METADATA).identify(payload).serial if kind is OusterKind.LIDAR else 0


PART = InspectionPart(kinds=frozenset((OusterKind.LIDAR, OusterKind.IMU)), flow=_flow, number=_number)
