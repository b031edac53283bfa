"""Maps of places from Cepton's packets: STDV points, and STDT packets, whose points the vendor's library decodes."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from hilsim.capture.batches import DatagramArrays
from hilsim.errors import CaptureError
from hilsim.families.cepton.background.points import add_points, build_image_plan, widen
from hilsim.families.cepton.recognition import CeptonKind
from hilsim.families.cepton.specs import CeptonSpec
from hilsim.protocols.recognise import PacketKind
from hilsim.read.background.compensation import Compensation
from hilsim.read.background.part import Advance, Batches, Counter, FoundSensor, GridSetting, MapSource, ReadableCapture, starts_with
from hilsim.sensor.specs import LidarSpec
from hilsim.world.scene.background import Grid, ImageGrid

_COLUMNS, _ROWS = 320, 160
_EXTENT_STEP = 0.01
_MIN_BYTES = 20


@dataclass(frozen=True, kw_only=True)
class StdvSource(MapSource):
    """STDV points."""

    kind: ClassVar[PacketKind] = CeptonKind.STDV
    signature: ClassVar[bytes] = b"STDV"
    model: str = "Cepton STDV"

    @classmethod
    def recognise(cls, batch: DatagramArrays) -> npt.NDArray[np.bool_]:
        """Packets that begin with their name."""
        return starts_with(batch, batch.size >= _MIN_BYTES, cls.signature)

    @classmethod
    def identify(cls, payloads: list[bytes]) -> Self:  # noqa: ARG003 - they name no model
        """The packets do not name their sensor."""
        return cls()

    def check_named(self, named: LidarSpec, sensor: FoundSensor, where: str) -> None:
        """The profile must be of the family."""
        if not isinstance(named, CeptonSpec):
            raise CaptureError(
                f'{where}: --profile must be of family "cepton" for Cepton packets, got one of a {named.model} and packets of {sensor}'
            )

    def grid(self, setting: GridSetting, named: LidarSpec | None, sensor: FoundSensor, batches: Batches, where: str) -> Grid:  # noqa: ARG002 - the image is measured
        """Image x and z, over the extent of the points where it is not set."""
        if setting.image_x is None or setting.image_z is None:
            with batches() as arrived:
                extents = _measured(arrived, sensor, where)
        x, z = setting.image_x or extents[0], setting.image_z or extents[1]
        return ImageGrid(columns=setting.columns or _COLUMNS, rows=setting.rows or _ROWS, x_min=x[0], x_max=x[1], z_min=z[0], z_max=z[1])

    def counter(self, grid: Grid, named: LidarSpec | None, moved: Compensation, epoch_ns: int) -> Counter:  # noqa: ARG002 - points have their directions
        """Kernel of ``points`` with the plan of the grid."""
        if not isinstance(grid, ImageGrid):
            raise TypeError(f"grid must be the one of the source, got {type(grid).__name__}")
        plan = build_image_plan(grid, moved, epoch_ns)
        return lambda batch, is_chosen, first, table, tally: add_points(plan, batch, is_chosen, first, table, tally)


def _measured(batches: Iterable[DatagramArrays], sensor: FoundSensor, where: str) -> tuple[tuple[float, float], tuple[float, float]]:
    """Extent of a sensor's points in image x and z, rounded outward to hundredths.

    Raises:
        CaptureError: there are no points.
    """
    extent = np.array([np.inf, -np.inf, np.inf, -np.inf])
    for batch in batches:
        widen(batch, StdvSource.recognise(batch) & (batch.sender == sensor.sender), extent)
    if not np.isfinite(extent).all():
        raise CaptureError(f"{where}: must hold points of {sensor}, got none")
    low, high = np.floor(extent[::2] / _EXTENT_STEP) * _EXTENT_STEP, np.ceil(extent[1::2] / _EXTENT_STEP) * _EXTENT_STEP
    return (float(low[0]), float(high[0])), (float(low[1]), float(high[1]))


@dataclass(frozen=True, kw_only=True)
class StdtSource(StdvSource):
    """STDT packets of the older generation, converted to STDV packets."""

    kind: ClassVar[PacketKind] = CeptonKind.STDT
    decoded: ClassVar[type[MapSource]] = StdvSource
    signature: ClassVar[bytes] = b"STDT"
    model: str = "Cepton STDT"

    @contextmanager
    def readable(self, path: Path, sensor: FoundSensor, advance: Advance) -> Iterator[ReadableCapture]:
        """Yield a temporary capture of the sensor's points as STDV packets.

        Raises:
            CaptureError: the vendor's library is not installed, or cannot decode the capture.
        """
        from hilsim.families.cepton.background.stdt import converted  # noqa: PLC0415 - a module of it is also a program

        with converted(path, sensor, advance) as capture:
            yield capture


PART = (StdvSource, StdtSource)
