"""File of a vehicle's true states: a row for each sample of pose, velocity and rates, with contacts and the error of the autopilot's estimate.

A separate thread reads the states that the flight thread leaves in ``world.platforms.live``; the flight thread does not depend on it. A write error is reported
once and has no other effect.
"""

import csv
import threading
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import structlog

from hilsim.errors import CaptureError
from hilsim.parts.vehicle.autopilot.passing_state import AutopilotStatus, Errors, Truth
from hilsim.parts.vehicle.autopilot.session import SessionState
from hilsim.units import NS_PER_S
from hilsim.world.platforms.live import LivePose

log = structlog.get_logger("hilsim")

COLUMNS = (
    "time_s",
    *(f"position_{axis}_m" for axis in ("east", "north", "up")),
    *(f"velocity_{axis}_mps" for axis in ("east", "north", "up")),
    *(f"{angle}_deg" for angle in ("roll", "pitch", "yaw")),
    *(f"rate_{axis}_radps" for axis in ("forward", "left", "up")),
    "contact_kinds",
    "contacts",
    "crashed",
    "armed",
    "session",
    *(f"estimate_minus_truth_{axis}_m" for axis in ("east", "north", "up")),
    *(f"estimate_minus_truth_{axis}_mps" for axis in ("east", "north", "up")),
    *(f"estimate_minus_truth_{angle}_deg" for angle in ("roll", "pitch", "yaw")),
)
"""Columns of the file; the last nine are empty until the autopilot reports its estimate. Angles are NED from FRD; rates are about the body's axes."""
_INTEGERS = ("contact_kinds", "contacts", "crashed", "armed")
_PERIOD_S = 0.2
"""Time between two readings of the ring, which holds one second; half of it may be overwritten during a reading."""


class Flown(Protocol):
    """Properties of a vehicle that the log reads."""

    live: LivePose
    autopilot: AutopilotStatus

    @property
    def state(self) -> SessionState:
        """State of the session."""
        ...

    @property
    def is_armed(self) -> bool:
        """Whether the controller has armed the vehicle."""
        ...

    @property
    def is_crashed(self) -> bool:
        """Whether the vehicle cannot fly until it is reset."""
        ...

    @property
    def contacts(self) -> tuple[int, int]:
        """Number of contacts so far, and the kinds of the present one."""
        ...


def newest_truth(live: LivePose) -> Truth:
    """Present true state of the vehicle."""
    slot = (int(live.written[0]) - 1) % live.time_ns.size if live.written[0] > 0 else 0
    return truth_of(live.state[slot].copy())


def truth_of(state: npt.NDArray[np.float64]) -> Truth:
    """True state in a row of ``LivePose.state``."""
    x, y, z, vx, vy, vz, qw, qx, qy, qz, p, q, r = state.tolist()
    return Truth(position_m=(x, y, z), velocity_mps=(vx, vy, vz), orientation=(qw, qx, qy, qz), rates_radps=(p, q, r))


def samples_since(live: LivePose, last_ns: int, period_ns: int) -> list[tuple[int, npt.NDArray[np.float64]]]:
    """Rig times and states at each whole ``period_ns`` after ``last_ns`` up to now, without those already overwritten."""
    count = int(live.written[0])
    first = max(count - live.time_ns.size // 2, 0)
    slots = np.arange(first, count) % live.time_ns.size
    times, states = live.time_ns[slots].copy(), live.state[slots].copy()
    if not len(times):
        return []
    begin = max(last_ns // period_ns + 1, -(-int(times[0]) // period_ns))
    due = np.arange(begin, int(times[-1]) // period_ns + 1) * period_ns
    rows = np.searchsorted(times, due, side="right") - 1
    return [(int(at), states[row]) for at, row in zip(due.tolist(), rows.tolist(), strict=True) if row >= 0]


class PoseLog:
    """Writer of the file, created before the flight and closed after it."""

    def __init__(self, path: Path, rate_hz: int, flown: Flown) -> None:
        """Create or overwrite ``path``, as Parquet if it ends in ``.parquet``, else as CSV.

        Raises:
            CaptureError: the file cannot be created, or pyarrow is not installed.
        """
        self._flown, self._period_ns = flown, NS_PER_S // rate_hz
        self._last_ns, self.rows = -1, 0
        self._sink: _CsvSink | _ParquetSink = _ParquetSink(path) if path.suffix == ".parquet" else _CsvSink(path)
        self._path, self._ends = path, threading.Event()
        self._thread = threading.Thread(target=self._run, name="truth", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Write the remaining rows."""
        self._ends.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._ends.wait(_PERIOD_S):
                self._write()
            self._write()
            self._sink.close()
        except OSError as error:
            log.error("truth.log_ended", file=str(self._path), rows=self.rows, reason=error.strerror or str(error))  # noqa: TRY400 - an operator's error
            with suppress(OSError):
                self._sink.close()

    def _write(self) -> None:
        found = samples_since(self._flown.live, self._last_ns, self._period_ns)
        if not found:
            return
        self._sink.write([self._row(at_ns, state) for at_ns, state in found])
        self._last_ns = found[-1][0]
        self.rows += len(found)

    def _row(self, at_ns: int, state: npt.NDArray[np.float64]) -> list[float | int | str | None]:
        flown, truth = self._flown, truth_of(state)
        contacts, kinds = flown.contacts
        errors = flown.autopilot.errors
        return [
            at_ns * 1e-9,
            *truth.position_m,
            *truth.velocity_mps,
            *truth.roll_pitch_yaw_deg,
            *truth.rates_radps,
            kinds,
            contacts,
            int(flown.is_crashed),
            int(flown.is_armed),
            flown.state.name.lower(),
            *_errors(errors),
        ]


def _errors(errors: Errors) -> list[float | None]:
    found: list[float | None] = []
    for part in (errors.position_m, errors.velocity_mps, errors.attitude_deg):
        found += [None] * 3 if part is None else list(part)
    return found


class _CsvSink:
    def __init__(self, path: Path) -> None:
        try:
            self._file = path.open("w", newline="")
        except OSError as error:
            raise CaptureError(f"{path}: cannot be created: {error.strerror}") from error
        self._writer = csv.writer(self._file)
        self._writer.writerow(COLUMNS)

    def write(self, rows: list[list[float | int | str | None]]) -> None:
        self._writer.writerows([[round(value, 9) if isinstance(value, float) else value for value in row] for row in rows])
        self._file.flush()

    def close(self) -> None:
        self._file.close()


class _ParquetSink:
    def __init__(self, path: Path) -> None:
        try:
            self._arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
        except ImportError as error:
            raise CaptureError(
                f'{path}: truth as Parquet must have pyarrow, got none; pip install pyarrow (in a checkout: pip install -e ".[truth]"), or name a .csv'
            ) from error
        pa = self._arrow
        kinds = {"session": pa.string()} | dict.fromkeys(_INTEGERS, pa.int32())
        self._schema = pa.schema([(name, kinds.get(name, pa.float64())) for name in COLUMNS])
        try:
            self._file = path.open("wb")
        except OSError as error:
            raise CaptureError(f"{path}: cannot be created: {error.strerror}") from error
        self._writer: Any = parquet.ParquetWriter(self._file, self._schema, compression="zstd")

    def write(self, rows: list[list[float | int | str | None]]) -> None:
        columns = zip(*rows, strict=True)
        self._writer.write_table(self._arrow.table(dict(zip(COLUMNS, map(list, columns), strict=True)), schema=self._schema))

    def close(self) -> None:
        self._writer.close()
        self._file.close()
