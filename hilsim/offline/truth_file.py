"""Ground truth as a Parquet file: one row a return, written piece by piece (decision 11)."""

import json
from contextlib import suppress
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, NoReturn, Self

import numpy as np
import numpy.typing as npt

from hilsim.assembly.build import Scenery
from hilsim.config.rig import Rig
from hilsim.emulator.truth import BackgroundObject, Cause, Truth, allocate_truth
from hilsim.errors import CaptureError
from hilsim.faults.catalogue import FAULTS
from hilsim.sensor.echoes import ReturnType
from hilsim.version import __version__

METADATA_KEY = b"hilsim.truth"
"""Key of the file's metadata: JSON with ``objects`` (by id), ``materials``, ``sensors``, ``seed``, ``utc_epoch_ns`` and ``hilsim`` (the version)."""

_ROWS_PER_GROUP = 1 << 18
_LATTICE_PER_M = float(1 << 20)  # positions are stored to 1 um: the noise below that would be a third of the file


class PacketsTruth(NamedTuple):
    """Ground truth of a stretch of one sensor's packets: place of the sensor among the names, deadline of each row's packet ``int64[n]``, and the rows."""

    sensor: int
    deadline_ns: npt.NDArray[np.int64]
    truth: Truth


class SensorsTruth(NamedTuple):
    """Ground truth of several sensors: the number in the rig of each row's sensor ``int32[n]``, and the rows."""

    sensor: npt.NDArray[np.int32]
    truth: Truth


def merged_truth(parts: list[PacketsTruth]) -> SensorsTruth:
    """Merge rows of the rig's sensors by their packets' deadlines; equal deadlines are in the order of the sensors."""
    deadline_ns = np.concatenate([part.deadline_ns for part in parts])
    sensor = np.repeat(np.array([part.sensor for part in parts], np.int32), [part.truth.packet.size for part in parts])
    order = np.argsort(deadline_ns, kind="stable")
    columns = zip(*(part.truth for part in parts), strict=True)
    return SensorsTruth(sensor[order], Truth._make(np.concatenate(column)[order] for column in columns))


class TruthFile:
    """A Parquet file of ground truth; use it as a context manager.

    Rows are gathered and written in groups of 2^18, so the file does not depend on how they were divided among calls. It can be read once it is closed; a file
    that cannot be finished is removed.
    """

    def __init__(self, path: Path, rig: Rig, scenery: Scenery, *, utc_epoch_ns: int) -> None:
        """Create or overwrite ``path``.

        Args:
            path: Path of the file.
            rig: Rig of the sensors.
            scenery: Scene that the sensors see.
            utc_epoch_ns: UTC of rig time 0.

        Raises:
            CaptureError: the file cannot be created, or pyarrow is not installed.
        """
        try:
            self._arrow, self._parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
        except ImportError as error:
            raise CaptureError(
                f'{path}: ground truth must have pyarrow, got none; pip install pyarrow (in a checkout: pip install -e ".[truth]")'
            ) from error
        self.path = path
        self._utc_epoch_ns = utc_epoch_ns
        self._names = {
            "sensor": [*rig.spec.streams],
            "object": [*scenery.object_names, "background", "background before an object"],
            "material": [material.name for material in scenery.materials],
            "return_type": [kind.name.lower() for kind in ReturnType],
            "cause": [cause.name.lower() for cause in Cause],
            "fault": ["", *(row.kind for row in FAULTS)],
        }
        tables = {
            "hilsim": __version__,
            "seed": rig.spec.seed,
            "utc_epoch_ns": utc_epoch_ns,
            "sensors": self._names["sensor"],
            "objects": [{"name": thing.name, "label": thing.label} for thing in scenery.objects],
            "materials": [asdict(material) for material in scenery.materials],
        }
        self._pending: list[SensorsTruth] = []
        self._pending_rows = 0
        empty = self._table(SensorsTruth(np.zeros(0, np.int32), allocate_truth(0)))
        schema = empty.schema.with_metadata({METADATA_KEY: json.dumps(tables).encode()})
        try:
            self._file = path.open("wb")
        except OSError as error:
            raise CaptureError(f"{path}: cannot be created: {error.strerror}") from error
        floats = [field.name for field in schema if self._arrow.types.is_floating(field.type)]
        rising = ["packet", "sequence", "time_ns", "utc"]
        self._writer = self._parquet.ParquetWriter(
            self._file,
            schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=[name for name in schema.names if name not in {*floats, *rising}],
            column_encoding=dict.fromkeys(floats, "BYTE_STREAM_SPLIT") | dict.fromkeys(rising, "DELTA_BINARY_PACKED"),
        )
        self.rows = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def write(self, rows: SensorsTruth) -> None:
        """Append rows.

        Raises:
            CaptureError: the disk is full or fails.
        """
        self._pending.append(rows)
        self._pending_rows += rows.sensor.size
        while self._pending_rows >= _ROWS_PER_GROUP:
            self._write_group(_ROWS_PER_GROUP)

    def close(self) -> None:
        """Write the remaining rows and the file's end, without which it cannot be read; closing again has no effect.

        Raises:
            CaptureError: the disk is full or fails.
        """
        if self._file.closed:
            return
        if self._pending_rows:
            self._write_group(self._pending_rows)
        try:
            self._writer.close()
            self._file.close()
        except OSError as error:
            self._give_up(error)

    def _write_group(self, count: int) -> None:
        rows = SensorsTruth(
            np.concatenate([part.sensor for part in self._pending]),
            Truth._make(np.concatenate(column) for column in zip(*(part.truth for part in self._pending), strict=True)),
        )
        try:
            self._writer.write_table(self._table(_cut(rows, slice(count))), row_group_size=count)
        except OSError as error:
            self._give_up(error)
        self._pending = [_cut(rows, slice(count, None))]
        self._pending_rows -= count
        self.rows += count

    def _give_up(self, error: OSError) -> NoReturn:
        """Remove the file, which is unreadable without its end."""
        with suppress(OSError):
            self._file.close()
        if self.path.is_file():
            self.path.unlink()
        raise CaptureError(
            f"{self.path}: cannot be written: {error.strerror or error}; ground truth that is cut off cannot be read and was removed"
        ) from error

    def _table(self, rows: SensorsTruth) -> Any:
        """Table (pyarrow) of the file's columns."""
        pa, truth = self._arrow, rows.truth
        position_m = np.rint(truth.position_m * _LATTICE_PER_M) / _LATTICE_PER_M
        columns = {
            "sensor": self._named("sensor", rows.sensor),
            "packet": truth.packet,
            "block": truth.block,
            "record": truth.record,
            "sequence": truth.sequence,
            "channel": truth.channel,
            "return_type": self._named("return_type", truth.return_type),
            "time_ns": truth.time_ns,
            "utc": pa.array(self._utc_epoch_ns + truth.time_ns, pa.timestamp("ns", tz="UTC")),
            "distance": truth.distance,
            "reflectivity": truth.reflectivity,
            "range_m": truth.range_m,
            "noise_m": truth.noise_m,
            "bias_m": truth.bias_m,
            "correction_m": truth.correction_m,
            "byte_noise": truth.byte_noise,
            "echo": truth.echo,
            "echoes": truth.echoes,
            "sub_rays": truth.sub_rays,
            "object_id": truth.object_id,
            "object": self._named("object", self._object_code(truth.object_id)),
            "label": truth.label,
            "material": self._named("material", truth.material),
            "cause": self._named("cause", truth.cause),
            "incidence_deg": truth.incidence_deg,
            "fault": self._named("fault", truth.fault),
            **{f"position_{axis}_m": np.ascontiguousarray(position_m[:, at]) for at, axis in enumerate("xyz")},
            **{f"orientation_{part}": np.ascontiguousarray(truth.orientation[:, at]) for at, part in enumerate("wxyz")},
        }
        return pa.table(columns)

    def _object_code(self, object_id: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """Index of each object's name among the names."""
        alone = len(self._names["object"]) - 2
        code = np.where(object_id == BackgroundObject.ALONE, alone, object_id)
        return np.where(object_id == BackgroundObject.CHOSEN, alone + 1, code).astype(np.int32)

    def _named(self, name: str, code: npt.NDArray[Any]) -> Any:
        """Column of names by code, null where the code is negative."""
        pa = self._arrow
        codes = code.astype(np.int32)
        return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), pa.array(self._names[name], pa.string()))


def _cut(rows: SensorsTruth, part: slice) -> SensorsTruth:
    return SensorsTruth(rows.sensor[part], Truth._make(column[part] for column in rows.truth))
