"""Points of Hesai packets, decoded like a driver of the lidar does."""

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from hilsim.capture.batches import DatagramArrays
from hilsim.emulator.lidar import LidarEmulator
from hilsim.emulator.setting import LidarSetting
from hilsim.emulator.truth import Truth
from hilsim.families.hesai.protocol.models import Model
from hilsim.families.hesai.protocol.points import BY_SIZE, UNIT_MM, ReturnMode, utc_ns
from hilsim.read.analysis.decode import POINT_DTYPE, batch_of, paired

if TYPE_CHECKING:
    from hilsim.families.hesai.specs import HesaiSpec

_CDEG_PER_NS_PER_RPM = 6e-7
_RETURNS = np.array([ReturnMode(byte).returns if byte in set(ReturnMode) else 1 for byte in range(256)])


class Angles(NamedTuple):
    """Where lasers look.

    Attributes:
        elevation_deg: Of each laser.
        azimuth_deg: Of each laser, beside its block's.
    """

    elevation_deg: tuple[float, ...]
    azimuth_deg: tuple[float, ...]


def decode_hesai(
    batch: DatagramArrays, chosen: npt.NDArray[np.bool_] | None = None, angles: Angles | None = None, *, with_empty: bool = False
) -> npt.NDArray[Any]:
    """Decode the points of Hesai packets, in the order of their bytes.

    Args:
        batch: Datagrams, as ``capture.batches`` yields them.
        chosen: ``bool[n]``, selection of the sensor's packets; None: all.
        angles: Where the lasers look; None: where those of the model do nominally.
        with_empty: Whether firings without a return are points, too, of range 0.

    Returns:
        Points ``POINT_DTYPE[n]``, without those of no return, else once for each firing, and second ones that are copies; ``ring`` counts channels from the lowest, 0.
    """
    start = batch.start if chosen is None else batch.start[chosen]
    size = batch.size if chosen is None else batch.size[chosen]
    found = [np.empty(0, POINT_DTYPE)]
    for packet_size, (model, _) in BY_SIZE.items():
        rows = np.flatnonzero(size == packet_size)
        if rows.size:
            payloads = batch.data[start[rows, None] + np.arange(packet_size)]
            found.append(_decoded(model, payloads, rows, angles or Angles(model.elevation_deg, model.azimuth_deg), with_empty=with_empty))
    points = np.concatenate(found)
    return points[np.argsort(points["packet"], kind="stable")] if len(found) > 2 else points


def decode_emulated(payloads: npt.NDArray[np.uint8], setting: LidarSetting) -> npt.NDArray[Any]:
    """Decode the packets ``uint8[n, size]`` of one emulated sensor, as ``decode_hesai`` does."""
    spec = cast("HesaiSpec", setting.spec)
    return decode_hesai(batch_of(payloads), angles=Angles(spec.elevations_deg, spec.azimuths_deg))


def points_with_rows(
    lidar: LidarEmulator, first: int, payloads: npt.NDArray[np.uint8], truth: Truth
) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp]]:
    """Decoded points of rendered packets from ``first`` on, and the row of ground truth of each."""
    model = cast("HesaiSpec", lidar.setting.spec).known
    makes_point = _makes_point(_records(payloads[:, : lidar.plan.data_size]))
    row_place = ((truth.packet - first) * model.blocks + truth.block) * model.channels + truth.record
    return paired(decode_emulated(payloads, lidar.setting), np.flatnonzero(makes_point), row_place)


def _records(payloads: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
    return np.ascontiguousarray(payloads).view(BY_SIZE[payloads.shape[1]][1])[:, 0]


def _makes_point(packets: npt.NDArray[Any], *, with_empty: bool = False) -> npt.NDArray[np.bool_]:
    """``bool[n, blocks, channels]``: returns, but for the second of two equal ones; ``with_empty`` the first of each firing without a return, too."""
    units = packets["blocks"]["units"]
    makes_point = units["distance"] > 0
    is_empty = ~makes_point & with_empty
    is_dual = _RETURNS[packets["tail"]["mode"]] > 1
    is_empty[is_dual, ::2] &= is_empty[is_dual, 1::2]
    is_empty[is_dual, 1::2] = False
    makes_point[is_dual, 1::2] &= units[is_dual, 1::2] != units[is_dual, ::2]
    return np.asarray(makes_point | is_empty)


def _decoded(model: Model, payloads: npt.NDArray[np.uint8], packets: npt.NDArray[np.intp], angles: Angles, *, with_empty: bool) -> npt.NDArray[Any]:
    """Points of packets ``uint8[n, size]`` of one model."""
    sent = _records(payloads)
    packet, block, channel = np.nonzero(_makes_point(sent, with_empty=with_empty))
    tail, returns = sent["tail"][packet], _RETURNS[sent["tail"]["mode"]][packet]
    block_ns = np.stack([model.block_ns(number) for number in (1, 2)])
    firing_ns = np.array(model.firing_ns)[channel]
    unit = sent["blocks"]["units"][packet, block, channel]
    range_m = unit["distance"] * (UNIT_MM / 1000.0)
    azimuth_cdeg = sent["blocks"]["azimuth"][packet, block] + _CDEG_PER_NS_PER_RPM * tail["speed_rpm"] * (firing_ns - model.azimuth_ns)
    azimuth = np.radians(azimuth_cdeg * 0.01 + np.array(angles.azimuth_deg)[channel])
    elevation = np.radians(angles.elevation_deg)[channel]
    points = np.zeros(packet.size, POINT_DTYPE)
    points["x"], points["y"] = range_m * np.cos(elevation) * np.sin(azimuth), range_m * np.cos(elevation) * np.cos(azimuth)
    points["z"], points["range"], points["azimuth"] = range_m * np.sin(elevation), range_m, np.degrees(azimuth) % 360.0
    points["packet"], points["ring"], points["intensity"] = (
        packets[packet],
        np.argsort(np.argsort(angles.elevation_deg))[channel],
        unit["reflectivity"],
    )
    points["time_ns"] = utc_ns(sent["tail"])[packet] + block_ns[returns - 1, block] + firing_ns
    points["return_number"] = block % returns
    return points
