"""Firings of whole packets as arrays, in which neighbouring firings of one laser are next to each other.

The statistics of the signal compare neighbours inside a packet only, so they do not depend on lost packets or on how a stream is cut into blocks. Packets of
fewer than 12 firing sequences are taken together, as many as have 12: of a VLS-128 four packets, which follow each other without a pause.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt

from hilsim.families.velodyne.comparison.blocks import PacketBlock

_FEWEST_SEQUENCES = 12
"""Firing sequences that a patch needs."""


@dataclass(frozen=True, kw_only=True)
class Firings:
    """Distances and bytes of ``n`` packets, or runs of packets, of ``m`` firing sequences with ``c`` lasers; in dual mode of the even blocks: the last return."""

    distance: Annotated[npt.NDArray[np.int64], "``int64[n, m, c]``, distance codes; 0 for a firing without a return."]
    byte: Annotated[npt.NDArray[np.int64], "``int64[n, m, c]``, reflectivity bytes."]
    unit_mm: Annotated[int, "Unit of the distance codes."]


def packet_firings(block: PacketBlock) -> Firings:
    """Find the firings of the block's packets, or runs of packets, that have no pause of firing inside."""
    records = block.records[:, :: 2 if block.is_dual else 1]
    sequences = records[0].size // block.model.channels
    packets = max(1, -(-_FEWEST_SEQUENCES // sequences))
    runs, groups = len(records) // packets, block.is_joined.shape[1]
    is_whole = block.is_joined[: runs * packets].reshape(runs, packets * groups)[:, 1:].all(axis=1)
    shape = (runs, packets * sequences, block.model.channels)
    return Firings(
        distance=records["distance"][: runs * packets].reshape(shape)[is_whole].astype(np.int64),
        byte=records["reflectivity"][: runs * packets].reshape(shape)[is_whole].astype(np.int64),
        unit_mm=block.model.distance_unit_mm,
    )
