"""The stream of position packets, as settings."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from hilsim.errors import require, within


@dataclass(frozen=True, kw_only=True)
class PositionScheduleSpec:
    """One of the periodic tasks that send position packets; several run side by side, which makes the intervals irregular.

    Attributes:
        period_us: Mean interval.
        jitter_us: Largest displacement of a packet in either direction, uniformly distributed.
    """

    period_us: float
    jitter_us: float = 0.0

    def __post_init__(self) -> None:
        require(
            *within(self, period_us=(1000, 10_000_000)),
            (0.0 <= self.jitter_us < self.period_us / 2, f"jitter_us must be 0 to less than half of period_us, got {self.jitter_us}"),
        )


@dataclass(frozen=True, kw_only=True)
class PositionSpec:
    """The position packet stream.

    Attributes:
        schedules: Periodic tasks that send position packets, 1 to 4.
        minimum_gap_us: Minimum interval between a packet of another schedule and one of the first.
        latency_us: Time from a packet's stamp to its departure, beyond ``data_latency_us``; below 0 where position packets depart sooner than data packets.
    """

    moved_keys: ClassVar[Mapping[str, str]] = {"trains": "schedules"}

    schedules: tuple[PositionScheduleSpec, ...]
    minimum_gap_us: float
    latency_us: float

    def __post_init__(self) -> None:
        require(
            (1 <= len(self.schedules) <= 4, f"schedules must be 1 to 4, got {len(self.schedules)}"),
            *within(self, minimum_gap_us=(0, 5000), latency_us=(-100_000, 100_000)),
        )
