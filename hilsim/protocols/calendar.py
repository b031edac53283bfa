"""Dates of packets as six bytes."""

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, kernel
from hilsim.protocols.nmea import civil_date

_DAY_S = constant(86_400)


@kernel
def write_calendar(second: int, payload: npt.NDArray[np.uint8], at: int) -> None:
    """Write year since 1900, month, day, hour, minute and second of a time since 1970 to ``payload[at : at + 6]``."""
    day = second // _DAY_S
    of_day = second - day * _DAY_S
    year, month, date = civil_date(day)
    payload[at], payload[at + 1], payload[at + 2] = year - 1900, month, date
    payload[at + 3], payload[at + 4], payload[at + 5] = of_day // 3600, of_day // 60 % 60, of_day % 60
