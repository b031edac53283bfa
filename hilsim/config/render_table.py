"""What can be set about rendering."""

from dataclasses import dataclass
from typing import Literal

from hilsim.errors import require

Backend = Literal["auto", "cpu", "cuda"]

REAL_TIME_SHARE = 0.65
"""What is left of the cores is a quarter of a core and more for each ordinary busy process."""

_MOST_REAL_TIME_SHARE = 0.9


@dataclass(frozen=True, kw_only=True)
class RenderSpec:
    """How what the sensors see is rendered.

    Attributes:
        backend: ``cpu``: this machine's cores cast the rays; ``cuda``: an NVIDIA GPU does (extra ``cuda``), or the cores where there is none, which health reports;
            ``auto``: the cores, and a GPU where they cannot render all that the rig asks for.
        real_time_share: Of the cores, that rendering takes at most under SCHED_FIFO, 0 to 0.9: with more, more sensors are punctual on a busy machine, and ordinary
            programs have less of it.
    """

    backend: Backend = "auto"
    real_time_share: float = REAL_TIME_SHARE

    def __post_init__(self) -> None:
        require(
            (
                0.0 <= self.real_time_share <= _MOST_REAL_TIME_SHARE,
                f"real_time_share must be 0 to {_MOST_REAL_TIME_SHARE:g}, got {self.real_time_share}",
            )
        )
