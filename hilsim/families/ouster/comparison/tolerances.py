"""Distances up to which two streams of Ouster sensors count as alike.

No two captures of one product line with pixels were at hand, so a tolerance is the range of captures of different lines and firmwares, widened: it finds
streams unlike any Ouster, and not those unlike one model. Statistics without such figures are not judged.
"""

from hilsim.families.ouster.protocol.firmware import Firmware
from hilsim.read.analysis.comparison.tolerance import Tolerance

MEASURED_MODE = "1024x10"
"""Mode of the captures by which the steps of the columns are judged."""
OLDER_BEFORE = Firmware(2, 4)


def _of_lines(limit: float, fewest: int, source: str, low: float, high: float) -> Tolerance:
    return Tolerance(limit=limit, real=(low, high), fewest=fewest, source=f"public captures of OS0, OS1 and OS2, widened: {source}")


OUSTER_TOLERANCES = {
    "columns.mean": Tolerance(limit=0.25, fewest=500, source="public captures of OS0, OS1 and OS2 at 1024x10: 97.550 to 97.668 us, widened"),
    "columns.sd": _of_lines(0.4, 500, "1.4 to 1.9 us (firmware to 2.3), 5 to 6 us (Rev 7)", 1.2, 7.0),
    "columns.smallest": _of_lines(1.0, 500, "92.4 to 92.8 us, 87 us (Rev 7)", 85.0, 95.0),
    "columns.largest": _of_lines(1.0, 500, "100.6 to 102.8 us, 108 us (Rev 7)", 99.8, 110.0),
    "columns.on_10_ns": Tolerance(limit=2.0, fewest=500, source="one clock and firmware give one grid: 10 ns (to 2.3), 8 ns (Rev 7), none with PTP"),
    "columns.on_8_ns": Tolerance(limit=10.0, fewest=500, source="as columns.on_10_ns; of stamps on a grid of 10 ns a fifth is on one of 8 ns"),
    "frames.mean": Tolerance(limit=0.1, fewest=10, source="two frames of one unit: 99.951 and 100.008 ms"),
    "imu.rate": Tolerance(limit=2.0, fewest=5, source="LEGACY in public captures: 100 a second"),
    "ranges.odd": _of_lines(2.0, 10_000, "49 to 50 %", 46.0, 53.0),
    "signal.empty_p50": _of_lines(2.0, 500, "2 to 8 photons", 1.0, 10.0),
    "near_ir.zero": Tolerance(limit=0.5, fewest=10_000, source="eight public captures: no pixel without ambient light"),
    "dual.only_second": Tolerance(limit=1.0, fewest=1000, source="firmware 2.2: 0.5 % of pixels with a return; wide, of one unit"),
}
"""Tolerances by name of the statistic, for streams of one product line, profile and mode."""
OF_OLDER = OUSTER_TOLERANCES | {
    "columns.sd": _of_lines(0.4, 500, "firmware to 2.3: 1.4 to 1.9 us", 1.2, 2.3),
    "columns.smallest": _of_lines(1.0, 500, "firmware to 2.3: 92.4 to 92.8 us", 91.0, 94.0),
    "columns.largest": _of_lines(1.0, 500, "firmware to 2.3: 100.6 to 102.8 us", 99.8, 104.0),
    "ranges.multiples_of_3": _of_lines(3.0, 10_000, "firmware 2.1 to 2.3: 50 to 51 %", 47.0, 54.0),
}
"""The same if both have a firmware before ``OLDER_BEFORE``."""
