"""What a family gives for maps of places: module ``background`` of its folder, whose ``PART`` is a tuple of subclasses of ``MapSource``."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from hilsim.capture.batches import DatagramArrays
from hilsim.errors import require
from hilsim.protocols.recognise import PacketKind
from hilsim.read.background.compensation import Compensation
from hilsim.read.background.table import CellTable
from hilsim.registry import family_parts
from hilsim.sensor.specs import LidarSpec
from hilsim.world.scene.background import Grid

Counter = Callable[[DatagramArrays, npt.NDArray[np.bool_], int, CellTable, npt.NDArray[np.int64]], int]
"""Counts the returns of a batch's chosen packets, from an index on. Arguments: batch, ``bool[n]``, index, table and ``int64[6]`` tally to update.
Returns the index to continue with when the table has grown; the batch's length when all are done."""
Batches = Callable[[], AbstractContextManager[Iterable[DatagramArrays]]]
"""Opens the batches from which a grid is measured."""
Advance = Callable[[int], object]
"""Called with the number of further bytes processed."""


@dataclass(frozen=True, kw_only=True)
class GridSetting:
    """Grid settings of the user; None for the sensor's default.

    Attributes:
        columns: Number of columns.
        rows: Number of rows; for image grids only.
        image_x: Image x of the first and last column.
        image_z: Image z of the first and last row.
    """

    columns: int | None = None
    rows: int | None = None
    image_x: tuple[float, float] | None = None
    image_z: tuple[float, float] | None = None

    def check_turning(self) -> None:
        """Raise ``ValueError`` for what does not apply to a sensor that turns."""
        require(
            (self.rows is None, f"rows must be left to a sensor that turns (one a laser), got {self.rows}"),
            (self.image_x is None and self.image_z is None, "image x and z must not be given for a rotating sensor"),
        )


class ReadableCapture(NamedTuple):
    """A capture whose packets hilsim can decode.

    Attributes:
        path: Path of the file.
        notes: Notes about the original file.
    """

    path: Path
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class MapSource(ABC):
    """Packets of one kind from one sensor, of which a map can be made.

    Attributes:
        kind: Kind of the packets.
        decoded: Class of the packets that ``readable`` gives in their place; None: they are counted themselves.
        model: Name of the sensor's model; empty if unknown.
        rate_rpm: Rotation rate; 0 if unknown.
    """

    kind: ClassVar[PacketKind]
    decoded: ClassVar["type[MapSource] | None"] = None
    model: str
    rate_rpm: float = 0.0

    @classmethod
    @abstractmethod
    def recognise(cls, batch: DatagramArrays) -> npt.NDArray[np.bool_]:
        """``bool[n]``, which datagrams of a batch are packets of this kind."""

    @classmethod
    @abstractmethod
    def identify(cls, payloads: list[bytes]) -> Self:
        """The source of a sensor's first packets."""

    @abstractmethod
    def check_named(self, named: LidarSpec, sensor: "FoundSensor", where: str) -> None:
        """Raise ``CaptureError`` for a profile that the user names and that does not match the packets of ``sensor``; ``where`` is their source."""

    @abstractmethod
    def grid(self, setting: GridSetting, named: LidarSpec | None, sensor: "FoundSensor", batches: Batches, where: str) -> Grid:
        """Cells of a map.

        Args:
            setting: Settings of the user.
            named: Profile of the sensor, if the user gives it.
            sensor: The sensor, for messages and to choose its packets.
            batches: Packets from which what is not set is measured.
            where: Name of their source in errors.

        Raises:
            CaptureError: the model is unknown, or there are no points.
            ValueError: the settings do not apply to the sensor.
        """

    @abstractmethod
    def counter(self, grid: Grid, named: LidarSpec | None, moved: Compensation, epoch_ns: int) -> Counter:
        """Function that counts the returns of packets.

        Args:
            grid: Grid of ``grid``.
            named: Profile of the sensor, if the user gives it.
            moved: Motion of the sensor.
            epoch_ns: Capture time that is time 0 of the poses.
        """

    @contextmanager
    def readable(self, path: Path, sensor: "FoundSensor", advance: Advance) -> Iterator[ReadableCapture]:  # noqa: ARG002 - of interest to packets that others decode
        """Yield a capture of the sensor's packets as ``decoded``; ``advance`` is called with the number of bytes converted since the last call."""
        yield ReadableCapture(path, ())

    def row_heights_m(self) -> npt.NDArray[np.float64] | None:
        """``float64[rows]``, height above the sensor's origin from which the beams of each row leave; None: from the origin."""
        return None

    def settable_rate_rpm(self, spec: LidarSpec) -> int | None:  # noqa: ARG002 - of interest to heads that turn
        """Rate of a rig's sensor that is nearest to the measured one; None for a sensor that does not turn."""
        return None


@dataclass(frozen=True, kw_only=True)
class FoundSensor:
    """One sensor found in a capture.

    Attributes:
        address: Name by ``SensorNames``: the IPv4 address, of a further sensor behind it with the port.
        sender: ``sender_number`` of its packets.
        source: Its packets.
        packets: Number of packets read until it was identified.
    """

    address: str
    sender: int
    source: MapSource
    packets: int

    def __str__(self) -> str:
        return f"{self.address} ({self.source.model or 'unknown model'})"


@cache
def map_sources() -> tuple[type[MapSource], ...]:
    """All kinds of packets of which maps are made; one's number, from 1 on, is its place."""
    return tuple(source for part in family_parts("background").values() for source in part.PART)


def starts_with(batch: DatagramArrays, is_such: npt.NDArray[np.bool_], signature: bytes) -> npt.NDArray[np.bool_]:
    """``bool[n]``, which of a batch's datagrams ``is_such``, none shorter than the signature, begin with it."""
    rows = np.flatnonzero(is_such)
    for offset, byte in enumerate(signature):
        rows = rows[batch.data[batch.start[rows] + offset] == byte]
    found = np.zeros(is_such.size, dtype=np.bool_)
    found[rows] = True
    return found
