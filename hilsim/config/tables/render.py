"""Settings of rendering."""

from dataclasses import dataclass
from typing import Literal

from hilsim.errors import require

Backend = Literal["auto", "cpu", "cuda"]

REAL_TIME_SHARE = 0.65
"""Default share of the cores; the rest leaves a quarter of a core and more for each ordinary busy process."""

_MAX_REAL_TIME_SHARE = 0.9


@dataclass(frozen=True, kw_only=True)
class RenderSpec:
    """Settings of rendering.

    Attributes:
        backend: ``cpu``: the CPU casts the rays; ``cuda``: an NVIDIA GPU does (extra ``cuda``), or the CPU if there is none, which health reports;
            ``auto``: the CPU, and a GPU if the CPU cannot render everything in time and a packet costs it less with the GPU.
        real_time_share: Largest share of the cores for rendering under SCHED_FIFO, 0 to 0.9: a larger share keeps more sensors punctual on a busy machine, and leaves less to ordinary
            programs.
    """

    backend: Backend = "auto"
    real_time_share: float = REAL_TIME_SHARE

    def __post_init__(self) -> None:
        require(
            (
                0.0 <= self.real_time_share <= _MAX_REAL_TIME_SHARE,
                f"real_time_share must be 0 to {_MAX_REAL_TIME_SHARE:g}, got {self.real_time_share}",
            )
        )
