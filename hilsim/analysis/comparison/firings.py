"""Firings of whole packets as arrays, in which neighbouring firings of one laser are next to each other.

The statistics of the signal compare neighbours inside a packet only, so they do not depend on lost packets or on how a stream is cut into blocks.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hilsim.analysis.comparison.blocks import PacketBlock


@dataclass(frozen=True, kw_only=True)
class Firings:
    """Distances and bytes of ``n`` packets of ``m`` firing sequences with ``c`` lasers; in dual mode of the even blocks, which have the last return.

    Attributes:
        distance: ``int64[n, m, c]``, distance codes; 0 for a firing without a return.
        byte: ``int64[n, m, c]``, reflectivity bytes.
        unit_mm: Unit of the distance codes.
    """

    distance: npt.NDArray[np.int64]
    byte: npt.NDArray[np.int64]
    unit_mm: int


def packet_firings(block: PacketBlock) -> Firings:
    """Find the firings of the block's packets that have no pause of firing inside."""
    records = block.records[:, :: 2 if block.is_dual else 1][block.is_joined[:, 1:].all(axis=1)]
    shape = (len(records), -1, block.model.channels) if len(records) else (0, 1, block.model.channels)
    return Firings(
        distance=records["distance"].astype(np.int64).reshape(shape),
        byte=records["reflectivity"].astype(np.int64).reshape(shape),
        unit_mm=block.model.distance_unit_mm,
    )
