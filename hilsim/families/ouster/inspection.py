"""Inspection of Ouster flows: lidar packets by their headers and columns, IMU packets of both forms."""

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.analysis.inspection.result import Missing, OusterImu, OusterLidar, Place
from hilsim.analysis.inspection.stamps import StampLog
from hilsim.analysis.inspection.times import CaptureTimes, Steps
from hilsim.emulator.inertial import STANDARD_GRAVITY_MPS2
from hilsim.families.ouster.metadata_files import Identity, packet_size
from hilsim.families.ouster.protocol.headers import VALID_STATUS
from hilsim.families.ouster.protocol.imu import IMU_DTYPE, IMU_PACKET_SIZE, MEASUREMENT_DTYPE, MEASUREMENT_SIZE, NMEA_SIZE
from hilsim.families.ouster.protocol.metadata import SensorMetadata
from hilsim.families.ouster.protocol.recognition import describe_fits, fits_of
from hilsim.families.ouster.stream import Heads, PacketOrder, Run, columns_seen, cut_head, read_heads, sent_packets

_HOST_DOUBT_NS = 300_000_000
_FIRST_MEASUREMENT, _FOOTER_SIZE, _NMEA_AT = 132, 32, 40
_LONGEST_STEP_NS = 1_000_000_000


class OusterLidarFlow:
    """Lidar packets of one sensor from one address to another."""

    def __init__(self, first: bytes, identity: Identity) -> None:
        """Prepare for packets like the ``first``.

        Args:
            first: Payload of the first packet.
            identity: Its sensor.
        """
        self._size = len(first)
        self._identity = identity
        self._cut: list[bytes] = []
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
        self._periods = np.zeros(3)  # count, sum and sum of squares of the times between columns, us

    @property
    def metadata(self) -> SensorMetadata | None:
        """Metadata by which the pixels can be read."""
        found = self._identity
        return found.metadata if found.is_sure and found.metadata is not None and packet_size(found.metadata) == self._size else None

    def take(self, payload: bytes) -> None:
        """Store the headers of a payload, which has the size of the first, until ``look``."""
        self._cut.append(cut_head(payload))

    def look(self, times: CaptureTimes) -> Steps:
        """Evaluate the packets taken since the last call."""
        heads, self._cut = read_heads(self._cut, self._identity.header), []
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
        self._periods += (period_us.size, period_us.sum(), (period_us**2).sum())

    def summary(self) -> OusterLidar:
        """Figures of the flow, after at least one block."""
        found, metadata = self._identity, self._identity.metadata
        columns = columns_seen(self._most_id) if metadata is None else metadata.columns_per_frame
        count, total_us, squares = self._periods.tolist()
        mean_us = total_us / count
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
            column_period_sd_us=max(squares / count - mean_us**2, 0.0) ** 0.5,
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


class OusterImuFlow:
    """IMU packets from one address to another, of the size of the first."""

    def __init__(self, first: bytes) -> None:
        self._size = len(first)
        self._payloads: list[bytes] = []
        self._last_ns: int | None = None
        self._steps = 0
        self._steps_ns = 0
        self._norms_g, self._measurements = 0.0, 0
        self._sentence = b""

    @property
    def _is_legacy(self) -> bool:
        return self._size == IMU_PACKET_SIZE

    def take(self, payload: bytes) -> None:
        """Store a payload, which has the size of the first, until ``look``."""
        self._payloads.append(payload)

    def look(self, times: CaptureTimes) -> Steps:
        """Evaluate the packets taken since the last call."""
        payloads, self._payloads = self._payloads, []
        stamp_ns, acceleration_g = self._read(payloads)
        step_ns = np.diff(stamp_ns, prepend=stamp_ns[0] if self._last_ns is None else self._last_ns)
        is_step = (step_ns > 0) & (step_ns < _LONGEST_STEP_NS)
        self._steps += int(is_step.sum())
        self._steps_ns += int(step_ns[is_step].sum())
        self._last_ns = int(stamp_ns[-1])
        self._norms_g += float(np.linalg.norm(acceleration_g.astype(np.float64), axis=1).sum())
        self._measurements += len(acceleration_g)
        every = np.full(len(times.host_ns), fill_value=True)
        return Steps(is_next=every, is_planned=~every)

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
