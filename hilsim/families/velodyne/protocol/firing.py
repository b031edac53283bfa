"""Direction and time of a record's firing, for maps, pictures and points.

A packet has an azimuth for each *group* of records: the firing sequences of a block, or of the four blocks of a VLS-128. It is the azimuth at which the
group's first laser fired. The head goes on turning: what it turned until each other laser fired is interpolated up to the next group of the packet, as
drivers do; for the last group, and where the head jumped over what a field of view leaves out, the last step before counts.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, inlined_kernel, kernel, signed
from hilsim.families.velodyne.protocol.data import BLOCKS, RECORDS_PER_BLOCK
from hilsim.families.velodyne.protocol.geometry import FiringGeometry
from hilsim.families.velodyne.protocol.steps import GAP_CDEG
from hilsim.units import HOUR_US, TURN_CDEG

_BLOCKS, _MAX_GROUPS = constant(BLOCKS), constant(100)  # groups between two packets that give the head's rate


class RecordFirings(NamedTuple):
    """Directions and times of the lasers in a group's records; build with ``build_record_firings``.

    Attributes:
        blocks: Number of blocks of a group in a mode with one return: 1, or 4 for a VLS-128.
        group_ns: Time from one group's azimuth to the next one's.
        time_ns: ``int64[r]``, from the group's azimuth to the record's firing; r = 32, or 128 of a VLS-128.
        share: ``float64[r]``, how much of the way to the next group's azimuth the head has turned by then.
        offset_cdeg: ``float64[r]``, of the record's laser, added to the azimuth.
        elevation_rad: ``float64[r]``, of the record's laser.
        unit_mm: Unit of the raw distance.
    """

    blocks: int
    group_ns: int
    time_ns: npt.NDArray[np.int64]
    share: npt.NDArray[np.float64]
    offset_cdeg: npt.NDArray[np.float64]
    elevation_rad: npt.NDArray[np.float64]
    unit_mm: float


def build_record_firings(geometry: FiringGeometry) -> RecordFirings:
    """Build the directions and times for a model's packets."""
    lasers = len(geometry.elevation_deg)
    sequences = max(RECORDS_PER_BLOCK // lasers, 1)
    group_ns = sequences * geometry.sequence_ns
    elevation_deg = np.array(geometry.elevation_deg)
    time_ns = np.add.outer(np.arange(sequences) * geometry.sequence_ns, np.array(geometry.delay_ns)).reshape(-1)
    return RecordFirings(
        blocks=max(lasers // RECORDS_PER_BLOCK, 1),
        group_ns=group_ns,
        time_ns=time_ns.astype(np.int64),
        share=time_ns / group_ns,
        offset_cdeg=np.tile(np.array(geometry.azimuth_offset_deg) * 100.0, sequences),
        elevation_rad=np.tile(np.radians(elevation_deg), sequences),
        unit_mm=float(geometry.distance_unit_mm),
    )


@kernel
def block_azimuth_cdeg(payload: npt.NDArray[np.uint8], block: int) -> int:
    """The azimuth in a block of a data packet."""
    azimuth_cdeg: int = signed(payload[100 * block + 2]) | signed(payload[100 * block + 3]) << 8
    return azimuth_cdeg


@kernel
def data_stamp_us(payload: npt.NDArray[np.uint8]) -> int:
    """The stamp of a data packet, in microseconds past the hour."""
    stamp_us: int = signed(payload[1200]) | signed(payload[1201]) << 8 | signed(payload[1202]) << 16 | signed(payload[1203]) << 24
    return stamp_us


@kernel
def step_between(firings: RecordFirings, earlier_cdeg: int, earlier_us: int, later_cdeg: int, later_us: int) -> float:
    """Turn of the head during one group, by the first azimuths and the stamps of two packets; -1 if they are too far apart."""
    turned_cdeg = (later_cdeg - earlier_cdeg) % TURN_CDEG
    passed_ns = 1000 * ((later_us - earlier_us) % HOUR_US)
    is_known = turned_cdeg <= GAP_CDEG and 0 < passed_ns <= _MAX_GROUPS * firings.group_ns
    return turned_cdeg * firings.group_ns / passed_ns if is_known else -1.0


@kernel
def packet_step_cdeg(payload: npt.NDArray[np.uint8], block: int, group_blocks: int) -> int:
    """Rotation of the head from a group, which begins with ``block`` and has ``group_blocks``, to the next; -1 if the packet does not show it."""
    if block + 2 * group_blocks > _BLOCKS:
        return -1
    step = (block_azimuth_cdeg(payload, block + group_blocks) - block_azimuth_cdeg(payload, block)) % TURN_CDEG
    return step if step <= GAP_CDEG else -1


@kernel
def first_step_cdeg(payload: npt.NDArray[np.uint8], group_blocks: int) -> int:
    """The first step that a packet shows, which is used for the groups before it; -1 if there is none."""
    for block in range(0, _BLOCKS, group_blocks):
        step = packet_step_cdeg(payload, block, group_blocks)
        if step >= 0:
            return step
    return -1


@inlined_kernel
def fired_cdeg(azimuth_cdeg: float, step_cdeg: float, share: float, offset_cdeg: float) -> float:
    """Azimuth at which a record's laser fired: of its group, the head's step to the next group, and the record's ``share`` and ``offset_cdeg``."""
    return azimuth_cdeg + step_cdeg * share + offset_cdeg


@kernel
def fire_groups(firings: RecordFirings, azimuth_cdeg: npt.NDArray[np.int64], step_cdeg: float, fired: npt.NDArray[np.float64]) -> None:
    """Write the azimuths of groups' firings to ``float64[n, r]``, with one step for all groups.

    Args:
        firings: Directions and times of the model.
        azimuth_cdeg: ``int64[n]`` of each group.
        step_cdeg: Step from a group's azimuth to the next one's.
        fired: ``float64[n, r]``, written, 0.01 deg, not brought into 0..36000.
    """
    for group in range(azimuth_cdeg.size):
        for record in range(firings.share.size):
            fired[group, record] = fired_cdeg(float(azimuth_cdeg[group]), step_cdeg, firings.share[record], firings.offset_cdeg[record])
