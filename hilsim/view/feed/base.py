"""Interface between the sources of scans and what shows them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

IDENTITY_WXYZ = (1.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, kw_only=True)
class Scan:
    """One turn of one sensor, decoded from the packets that left.

    Attributes:
        sensor: Name of the sensor.
        number: Number of the scan; each sensor's scans are counted from 0.
        stamp_ns: UTC at which the first packet of the scan was sent.
        points: ``hilsim.api.points.DECODED_DTYPE[n]`` in the sensor frame: x right, y forward, z up.
        instance: ``int32[n]``, object of each point in the ground truth; None where it is not known.
        label: ``int16[n]``, label of that object; None where it is not known.
        position_m: Position of the sensor frame in the world at the middle of the scan.
        wxyz: Orientation of the sensor frame in the world at the middle of the scan, ``world_from_sensor``; the identity where it is not known.
    """

    sensor: str
    number: int
    stamp_ns: int
    points: npt.NDArray[Any]
    instance: npt.NDArray[np.int32] | None = None
    label: npt.NDArray[np.int16] | None = None
    position_m: tuple[float, float, float] = (0.0, 0.0, 0.0)
    wxyz: tuple[float, float, float, float] = IDENTITY_WXYZ


class Feed(Protocol):
    """Source of scans. Any thread may call any method; none of them waits for packets."""

    @property
    def title(self) -> str:
        """Name of the source for people, such as the path of a capture."""
        ...

    def sensors(self) -> tuple[str, ...]:
        """Names of the sensors of which packets have come, in order of their first packets."""
        ...

    def scans_since(self, sensor: str, number: int) -> Sequence[Scan]:
        """Complete scans from ``number`` on that are still stored, oldest first; none for an unknown sensor."""
        ...

    def status(self) -> Mapping[str, object] | None:
        """Keys of the daemon's latest ``state``, and its latest ``health`` under that key; None where the source is no daemon, or nothing has come yet."""
        ...

    def close(self) -> None:
        """End the threads and connections; closing again does nothing."""
        ...


@runtime_checkable
class TruthfulFeed(Feed, Protocol):
    """Feed that knows the ground truth of points: that of a daemon."""

    def truth(self, scan: Scan, index: int) -> Mapping[str, object]:
        """Ground truth of a point of a stored scan; it may take a second."""
        ...
