"""Trajectory files: poses with times, as CSV or in the formats of TUM, EuRoC and KITTI, read as a smooth track.

=========  ====================================================================================================================
.csv       A header names the columns in any order: time (``time_s``, ``t``, ``time``, ``timestamp``, or ``time_ns``), ``x_m y_m z_m`` (or
           ``x y z``, ``px py pz``, ``tx ty tz``) and ``qw qx qy qz`` or ``roll_deg pitch_deg yaw_deg``. Without a header the columns are
           time_s, x, y, z, qw, qx, qy, qz. Names may have units (``timestamp [ns]``); those of EuRoC (``p_RS_R_x`` …) are known, too.
.tum .txt  ``time x y z qx qy qz qw`` separated by blanks (the TUM RGB-D benchmark's format; note that w comes last).
           Rows of 12 numbers are KITTI's: 3 x 4 matrices of a camera (x right, y down, z forward), whose times in seconds are in ``times.txt``, and
           whose place in the body is ``Tr`` of ``calib.txt``, both beside it or in KITTI's folder ``../sequences/NAME``.
=========  ====================================================================================================================

Lines that begin with ``#`` are comments. The pose is that of the platform's body (x forward, y left, z up) in the world.
"""

import math
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hilsim.errors import AssetError
from hilsim.limits import COORDINATE_M, STAMP_NS, TRAJECTORY_POSES
from hilsim.world.assets.mesh_parts import is_file, read_bytes
from hilsim.world.geometry.frames import Quaternion, Vector
from hilsim.world.geometry.rotations import from_roll_pitch_yaw, quaternion_from_matrix
from hilsim.world.geometry.tracks import PoseTrack, smooth_track

MAX_FAULTS = 10
CLOSED_WITHIN_M = 0.01
CLOSED_WITHIN_DEG = 0.5
LENGTH_WITHIN = 1e-3
"""Largest difference of a quaternion's length from 1, the precision of three or four printed digits; it is then normalised."""

_TIMES = {"time_s": 9, "t": 9, "time": 9, "timestamp": 9, "timestamp_s": 9, "t_s": 9, "time_ns": 0, "timestamp_ns": 0, "t_ns": 0}
_LONGEST_NS = STAMP_NS.bound
_EUROC = ("p_rs_r_x", "p_rs_r_y", "p_rs_r_z")
_POSITIONS = (("x_m", "y_m", "z_m"), ("x", "y", "z"), ("px", "py", "pz"), ("tx", "ty", "tz"), ("p_x", "p_y", "p_z"), _EUROC)
_QUATERNIONS = (("qw", "qx", "qy", "qz"), ("q_w", "q_x", "q_y", "q_z"), ("q_rs_w", "q_rs_x", "q_rs_y", "q_rs_z"))
_ANGLES = ("roll_deg", "pitch_deg", "yaw_deg")


@dataclass(frozen=True, kw_only=True)
class _Columns:
    """Columns of a trajectory file.

    Attributes:
        time: Column of the time.
        time_digits: Number of decimal places from its unit to nanoseconds.
        position: Columns of x, y, z.
        quaternion: Columns of w, x, y, z; empty if there are angles.
        angles: Columns of roll, pitch and yaw.
        separator: Separator of columns; None for blanks.
        matrix: Columns of a 3 x 4 matrix of KITTI; empty if there is another pose.
    """

    time: int
    time_digits: int
    position: tuple[int, ...]
    quaternion: tuple[int, ...]
    angles: tuple[int, ...] = ()
    separator: str | None = ","
    matrix: tuple[int, ...] = ()

    @property
    def used(self) -> tuple[int, ...]:
        """All columns that are read."""
        return (self.time, *self.position, *self.quaternion, *self.angles, *self.matrix)


_PLAIN_CSV = _Columns(time=0, time_digits=9, position=(1, 2, 3), quaternion=(4, 5, 6, 7))
_TUM = _Columns(time=0, time_digits=9, position=(1, 2, 3), quaternion=(7, 4, 5, 6), separator=None)
_KITTI = _Columns(time=0, time_digits=9, position=(), quaternion=(), separator=None, matrix=tuple(range(1, 13)))
_CAMERA_FROM_BODY = np.array([[0.0, -1.0, 0.0, 0.0], [0.0, 0.0, -1.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]])

_Row = tuple[int, Vector, Quaternion]


def load_trajectory(path: Path, *, loop: bool = False, start_at_zero: bool = True) -> PoseTrack:
    """Read a smooth track through all poses of a file.

    Args:
        path: Path of a ``.csv``, ``.tum`` or ``.txt`` file.
        loop: Whether to repeat; the last pose must equal the first one within 1 cm and 0.5 degrees, and is replaced by it.
        start_at_zero: Whether to shift the first pose to rig time 0; else the file's times are rig times.

    Raises:
        AssetError: the file has faults; the message names up to ten with their lines.
    """
    lines = _lines(path)
    columns, body = _columns(path, lines)
    TRAJECTORY_POSES.enforce(len(body), str(path), AssetError)
    body_from_camera = np.eye(4)
    if columns is _KITTI:
        body, body_from_camera = _of_kitti(path, body)
    rows: list[_Row] = []
    faults: list[str] = []
    for number, line in body:
        try:
            row = _row(columns, line, body_from_camera)
        except ValueError as error:
            faults.append(f"line {number}: {error}")
            continue
        if rows and row[0] <= rows[-1][0]:
            faults.append(f"line {number}: time must be later than in the row before, got {row[0] / 1e9:.9f} s after {rows[-1][0] / 1e9:.9f} s")
        else:
            rows.append(row)
    if not faults and len(rows) < 2:
        faults.append(f"a trajectory must have at least 2 poses, got {len(rows)}")
    if loop and not faults:
        faults.extend(_gaps(rows[0], rows[-1]))
    if faults:
        more = [f"{path}: and {len(faults) - MAX_FAULTS} more faults"] if len(faults) > MAX_FAULTS else []
        raise AssetError("\n".join([f"{path}: {fault}" for fault in faults[:MAX_FAULTS]] + more))
    return _track(rows, loop=loop, start_at_zero=start_at_zero)


def _track(rows: list[_Row], *, loop: bool, start_at_zero: bool) -> PoseTrack:
    shift_ns = rows[0][0] if start_at_zero else 0
    period_ns = rows[-1][0] - rows[0][0] if loop else 0
    kept = rows[:-1] if loop else rows
    return smooth_track(
        np.array([time_ns - shift_ns for time_ns, _, _ in kept], dtype=np.int64),
        [position for _, position, _ in kept],
        [orientation for _, _, orientation in kept],
        period_ns,
    )


def _lines(path: Path) -> list[tuple[int, str]]:
    """Numbered lines without blank ones."""
    if path.suffix.lower() not in (".csv", ".tum", ".txt"):
        raise AssetError(f'{path}: a trajectory must be a .csv, .tum or .txt file, got "{path.suffix}"')
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise AssetError(f"{path}: must be text in UTF-8, got byte 0x{error.object[error.start]:02x} at {error.start}") from None
    return [(number, line.strip()) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]


def _columns(path: Path, lines: list[tuple[int, str]]) -> tuple[_Columns, list[tuple[int, str]]]:
    """Meaning of the columns, and the lines with poses. The header may be a comment (``#``)."""
    comments = [(number, line) for number, line in lines if line.startswith("#")]
    body = [(number, line) for number, line in lines if not line.startswith("#")]
    if path.suffix.lower() != ".csv":
        return _KITTI if body and len(body[0][1].split()) == len(_KITTI.matrix) else _TUM, body
    if body and not _is_number(body[0][1].split(",")[0]):
        return _named_columns(path, *body[0]), body[1:]
    named = [(number, line.lstrip("# ")) for number, line in comments if _name(line.lstrip("# ").split(",")[0]) in _TIMES]
    return (_named_columns(path, *named[-1]) if named else _PLAIN_CSV), body


def _named_columns(path: Path, number: int, header: str) -> _Columns:
    names = [_name(name) for name in header.split(",")]
    times = [name for name in names if name in _TIMES]
    position = next((wanted for wanted in _POSITIONS if set(wanted) <= set(names)), ())
    quaternion = next((wanted for wanted in _QUATERNIONS if set(wanted) <= set(names)), ())
    angles = _ANGLES if not quaternion and set(_ANGLES) <= set(names) else ()
    twice = sorted({name for name in names if name and names.count(name) > 1})
    faults = []
    if len(times) != 1:
        faults.append(f"must have one time column (time_s or time_ns), got {len(times)}")
    if not position:
        faults.append("must have the columns x_m, y_m, z_m")
    if not quaternion and not angles:
        faults.append("must have the columns qw, qx, qy, qz or roll_deg, pitch_deg, yaw_deg")
    if twice:
        faults.append(f"must name each column once, got {', '.join(twice)} twice")
    if faults:
        raise AssetError("\n".join(f"{path}: line {number}: the header {fault}" for fault in faults))
    return _Columns(
        time=names.index(times[0]),
        time_digits=0 if position is _EUROC or "[ns]" in header else _TIMES[times[0]],
        position=tuple(map(names.index, position)),
        quaternion=tuple(map(names.index, quaternion)),
        angles=tuple(map(names.index, angles)),
    )


def _name(word: str) -> str:
    """Name of a column without its unit in brackets."""
    return word.partition("[")[0].strip().strip('"').lower()


def _of_kitti(path: Path, body: list[tuple[int, str]]) -> tuple[list[tuple[int, str]], npt.NDArray[np.float64]]:
    """Lines of a file of KITTI, each with its time before it, and the pose of its camera in the body."""
    folders = (path.parent, path.parent.parent / "sequences" / path.stem)
    folder = next((folder for folder in folders if is_file(folder / "times.txt")), None)
    if folder is None:
        raise AssetError(f"{path}: rows of 12 numbers are poses of KITTI, whose times must be in times.txt beside it, got no such file")
    times = _lines(folder / "times.txt")
    if len(times) != len(body):
        raise AssetError(f"{folder / 'times.txt'}: must have a time for each of the {len(body)} poses of {path.name}, got {len(times)}")
    camera_from_body = _CAMERA_FROM_BODY
    if is_file(folder / "calib.txt"):
        found = [line.split()[1:] for _, line in _lines(folder / "calib.txt") if line.startswith("Tr:")]
        if len(found) != 1 or len(found[0]) != 12 or not all(map(_is_number, found[0])):
            raise AssetError(f"{folder / 'calib.txt'}: must have one line Tr: with 12 numbers, got {len(found)}")
        camera_from_body = np.array([*map(float, found[0]), 0.0, 0.0, 0.0, 1.0]).reshape(4, 4)
    if abs(np.linalg.det(camera_from_body[:3, :3]) - 1.0) > LENGTH_WITHIN:
        raise AssetError(f"{folder / 'calib.txt'}: Tr must be a rotation and a translation")
    return [(number, f"{time} {line}") for (number, line), (_, time) in zip(body, times, strict=True)], np.linalg.inv(camera_from_body)


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _row(columns: _Columns, line: str, body_from_camera: npt.NDArray[np.float64]) -> _Row:
    """Parse a pose.

    Raises:
        ValueError: the line is invalid; the message gives the reason.
    """
    words = [word.strip() for word in line.split(columns.separator)]
    if len(words) <= max(columns.used):
        added = 1 if columns.matrix else 0  # the time, which is in another file
        raise ValueError(f"a pose must have {max(columns.used) + 1 - added} columns, got {len(words) - added}")
    bad = [words[column] for column in columns.used if not _is_number(words[column])]
    if bad:
        raise ValueError(f"a pose must be numbers, got {bad[0][:30]!r}")
    numbers = [float(words[column]) for column in columns.used]
    if not all(map(math.isfinite, numbers)):
        raise ValueError(f"a pose must be finite, got {next(number for number in numbers if not math.isfinite(number))}")
    if columns.matrix:
        numbers[1:] = _pose_of_matrix(np.array([*numbers[1:], 0.0, 0.0, 0.0, 1.0]).reshape(4, 4), body_from_camera)
    x, y, z = numbers[1:4]
    is_near, fault = COORDINATE_M.rule(max(map(abs, (x, y, z))), "each coordinate")
    if not is_near:
        raise ValueError(fault)
    return _time_ns(words[columns.time], columns.time_digits), (x, y, z), _orientation(columns, numbers[4:])


def _pose_of_matrix(camera: npt.NDArray[np.float64], body_from_camera: npt.NDArray[np.float64]) -> list[float]:
    """Position and quaternion of the body whose camera has a pose."""
    if not np.allclose(camera[:3, :3] @ camera[:3, :3].T, np.eye(3), atol=LENGTH_WITHIN) or np.linalg.det(camera[:3, :3]) < 0.0:
        raise ValueError("the first three columns of a matrix must be a rotation")
    body = body_from_camera @ camera @ np.linalg.inv(body_from_camera)
    return [*body[:3, 3].tolist(), *quaternion_from_matrix(body[:3, :3])]


def _time_ns(word: str, digits: int) -> int:
    """Parse a time exactly to the nanosecond, which a float of seconds since 1970 cannot represent."""
    try:
        time = Decimal(word)
    except InvalidOperation:
        raise ValueError(f"time must be a decimal number, got {word[:30]!r}") from None
    if abs(time) > Decimal(_LONGEST_NS).scaleb(-digits):  # checked before conversion: the number may have a million digits
        raise ValueError(f"time must be within 146 years of 0, got {word[:30]} {'s (a header names nanoseconds: time_ns)' if digits else 'ns'}")
    return int(time.scaleb(digits).to_integral_value())


def _orientation(columns: _Columns, numbers: list[float]) -> Quaternion:
    if columns.angles:
        roll, pitch, yaw = numbers
        return from_roll_pitch_yaw(roll, pitch, yaw)
    length = math.hypot(*numbers)
    if abs(length - 1.0) > LENGTH_WITHIN:
        raise ValueError(f"the quaternion must have length 1, got {length:.6g}")
    w, x, y, z = (number / length for number in numbers)
    return w, x, y, z


def _gaps(first: _Row, last: _Row) -> list[str]:
    gap_m = math.dist(first[1], last[1])
    cosine = min(1.0, abs(sum(a * b for a, b in zip(first[2], last[2], strict=True))))
    turn_deg = math.degrees(2.0 * math.acos(cosine))
    faults = []
    if gap_m > CLOSED_WITHIN_M:
        faults.append(f"a loop must end where it starts within {CLOSED_WITHIN_M} m, got {gap_m:.6g} m away")
    if turn_deg > CLOSED_WITHIN_DEG:
        faults.append(f"a loop must end as it starts within {CLOSED_WITHIN_DEG} degrees, got {turn_deg:.6g} degrees off")
    return faults
