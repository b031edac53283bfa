"""Statistics and comparison of streams of either family, which the first data packet decides."""

from collections import deque
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path

from hilsim.analysis.comparison.comparison import Comparison, compare
from hilsim.analysis.comparison.draw import draw_comparison, draw_velodyne_panels
from hilsim.analysis.comparison.statistics import STATISTICS
from hilsim.analysis.comparison.stream import StreamStatistics, gather
from hilsim.capture.datagram import CapturedDatagram
from hilsim.capture.sensor_names import SensorNames
from hilsim.errors import CaptureError
from hilsim.families.ouster.comparison.comparison import OusterComparison, compare_ouster
from hilsim.families.ouster.comparison.draw import draw_ouster_panels
from hilsim.families.ouster.comparison.statistics import OUSTER_STATISTICS
from hilsim.families.ouster.comparison.stream import OusterStatistics, gather_ouster
from hilsim.families.ouster.metadata_files import OusterMetadata
from hilsim.protocols.recognise import PacketKind, recognise

ALL_NAMES = tuple(dict.fromkeys(statistic.name for statistic in (*STATISTICS, *OUSTER_STATISTICS)))
"""Names of the statistics of both families."""
_DATA = (PacketKind.VELODYNE_DATA, PacketKind.OUSTER_LIDAR)
_MOST_WAITING = 256  # datagrams before the first data packet that are kept, so that memory stays bounded


def gather_either(
    datagrams: Iterable[CapturedDatagram], metadata: OusterMetadata, *, name: str, sensor: str = ""
) -> StreamStatistics | OusterStatistics:
    """Gather the statistics of one sensor's packets.

    Args:
        datagrams: Datagrams in the order of their arrival.
        metadata: Metadata of Ouster sensors.
        name: Name of the stream in errors.
        sensor: Address of the sensor; optional for a single sensor.

    Raises:
        CaptureError: as of ``gather`` and ``gather_ouster``.
    """
    rest = iter(datagrams)
    before: deque[CapturedDatagram] = deque(maxlen=_MOST_WAITING)
    names = SensorNames(sensor)
    for datagram in rest:
        before.append(datagram)
        kind = recognise(datagram.payload)
        if names.of(datagram) == (sensor or names.of(datagram)) and kind in _DATA:
            break
    else:
        kind = None
    stream = chain(before, rest)
    if kind is PacketKind.OUSTER_LIDAR:
        return gather_ouster(stream, metadata, name=name, sensor=sensor)
    return gather(stream, name=name, sensor=sensor)


def compare_either(
    a: StreamStatistics | OusterStatistics,
    b: StreamStatistics | OusterStatistics,
    names: tuple[str, str],
    limits: Mapping[str, float] | None = None,
) -> Comparison:
    """Compare two streams of one family.

    Args:
        a: Statistics of the first stream.
        b: Statistics of the second stream.
        names: Names of the two streams in errors.
        limits: Largest allowed distances by names of statistics.

    Raises:
        CaptureError: the families differ, or Ouster sensors differ in product line, profile or mode.
    """
    if isinstance(a, OusterStatistics) and isinstance(b, OusterStatistics):
        return compare_ouster(a, b, names, limits)
    if isinstance(a, StreamStatistics) and isinstance(b, StreamStatistics):
        return compare(a, b, limits)
    kinds = " and ".join(
        f"{stream.line if isinstance(stream, OusterStatistics) else stream.model.name} in {name}" for stream, name in zip((a, b), names, strict=True)
    )
    raise CaptureError(f"both sensors must be of one family, got {kinds}")


def draw_either(comparison: Comparison, names: tuple[str, str], path: Path) -> None:
    """Draw both streams' distributions to a file, as ``draw_comparison``.

    Args:
        comparison: Comparison to draw.
        names: Names of the two streams.
        path: PNG (or SVG, PDF) file, replaced.

    Raises:
        CaptureError: the file cannot be written.
    """
    draw_comparison(comparison, names, path, draw_ouster_panels if isinstance(comparison, OusterComparison) else draw_velodyne_panels)
