"""Scan patterns: directions of the lines at any device time, as trigonometric polynomials of the phases of two rotations.

With the phases ``s`` of the slow and ``f`` of the fast rotation, each line's elevation and azimuth (degrees, counter-clockwise from ahead) are

    sum of c cos(j f + k s) + d sin(j f + k s),    azimuth: plus advance * f

over the orders ``j`` from 0 on and ``k`` from ``-reach[j]`` to ``reach[j]``, of order 0 from 0. Phases are counted in whole microturns of whole
seconds, so a pattern is as exact after days as at its begin. The vendor has published both patterns as tables (Livox-SDK/livox_laser_simulation, MIT).

Mid-360: least squares over 200,000 shots of four lines, 4 s, of ``mid360.csv``. Its rotations are 10 and -2189/12 turns a second within 1e-7, which repeats
after 12 s; what is left is 0.0014 (elevation) and 0.0042 degrees (azimuth, across) rms of lines 1 and 2, 0.0045 and 0.0118 of lines 0 and 3. That the table
repeats is one of its file, so the fast rotation here is 6.3e-6 turns a second faster: within 0.0026 degrees rms of the table, and no frame is that of 12 s before.

HAP: least squares over 960,000 of the 1,048,575 shots of ``HAP.csv``, which ends after 2.3 s and has no times. Its six lines take turns at even times, 1.2941
times as fast for directions within 20 degrees of azimuth and 6 of elevation as outside; with these times both rotations are even, and the times of the other shots
follow. What is left is 0.0064 and 0.052 degrees rms, 0.03 across within 40 degrees of azimuth and 0.15 beyond 50. The rates are those of 452,000 shots
a second. Here shots are even in time everywhere.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.lanes import WIDTH

FIGURES = 8
"""Rows of a table for each pair of orders: cosine and sine of elevation for ``k``, for ``-k``, and likewise of azimuth."""
_Doubles = npt.NDArray[np.float64]


class Figures(NamedTuple):
    """A scan pattern.

    Attributes:
        slow_uhz: Turns of the slow rotation in a million seconds.
        fast_uhz: Turns of the fast rotation in a million seconds, negative: clockwise from above.
        phase_turns: Phase of the fast rotation at device time 0.
        advance: Turns of azimuth in a turn of the fast rotation.
        reach: Orders of the slow rotation beside each order of the fast one.
        lines: ``float64[line, 2, n, 2]``: cosines and sines of elevation and of azimuth, in the order of ``orders_of(reach)``.
    """

    slow_uhz: int
    fast_uhz: int
    phase_turns: float
    advance: int
    reach: tuple[int, ...]
    lines: _Doubles


def orders_of(reach: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Orders ``j`` of the fast and ``k`` of the slow rotation."""
    return ((j, k) for j, most in enumerate(reach) for k in range(-most if j else 0, most + 1))


def _lines(text: str) -> _Doubles:
    """Figures of lines, for each elevation and azimuth: cosines and sines for rising orders; the sine of order 0 and 0 is left out."""
    figures = [np.insert(np.array(part.split(), float), 1, 0.0).reshape(-1, 2) for part in text.split("\n\n")]
    return np.array(figures).reshape(-1, 2, *figures[0].shape)


def _mirrored(reach: tuple[int, ...], heights: tuple[float, ...], *powers: tuple[tuple[int, ...], str, str]) -> _Doubles:
    """Lines of a pattern that is its own mirror image, left to right and top to bottom.

    A line's figures are a polynomial of its height. Those of its even powers have odd ``j + k`` alone, cosines of azimuth and sines of elevation; those of its
    odd powers even ``j + k``, sines of azimuth and cosines of elevation.

    Args:
        reach: As of ``Figures``.
        heights: Height of each line among the others.
        powers: For each power, orders of the slow rotation beside those of the fast one, and figures of elevation and azimuth.
    """
    place = {orders: number for number, orders in enumerate(orders_of(reach))}
    lines = np.zeros((len(heights), 2, len(place), 2))
    for power, (own_reach, *texts) in enumerate(powers):
        rows = [place[j, k] for j, k in orders_of(own_reach) if (j + k + power) % 2]
        for angle, text in enumerate(texts):
            lines[:, angle, rows, (angle + 1 + power) % 2] += np.outer(np.power(heights, power), np.array(text.split(), float))
    return lines


MID360 = Figures(
    slow_uhz=10_000_000,
    fast_uhz=-182_416_673,
    phase_turns=1.27e-5,
    advance=1,
    reach=(10, 6, 6),
    lines=_lines("""
20.4597 23.5512 0.2749 1.1326 0.0218 2.3068 0.0253 0.2258 0.0054 0.158 0.0034 0.0337 0.0011 0.0168 0.0006 0.0052 0.0002 0.0024 0.0001 0.0008 -0
0.0047 -0.0001 0.0092 -0.0002 0.0251 -0.0004 0.0466 -0.0004 0.1168 -0.0007 0.2534 0.0003 2.7646 0.0303 0.1576 0.0035 0.5409 0.0168 0.0763 0.0028
0.1064 0.0037 0.0209 0.0009 0.0156 0.0007 0.0004 -0 0.0008 -0 0.0016 -0 0.0033 0 0.0052 0 0.013 0.0002 0.0194 0.0004 0.0243 0.0007 0.0085 0.0003
0.0194 0.001 0.0047 0.0003 0.0056 0.0003 0.0016 0.0001

269.351 -0.2397 28.474 -0.0475 2.3677 -0.0414 2.7073 -0.0137 0.5435 -0.0083 0.3092 -0.0035 0.0966 -0.0019 0.0469 -0.0009 0.0178 -0.0006 0.0083
-0.0004 0.0035 -0.0004 -0.0161 -0.0007 -0.0311 -0.0011 -0.0735 -0.0013 -0.1288 -0.0025 -0.2724 0.0011 -0.582 0.039 -3.1471 0.0014 0.0089 -0.0201
0.6474 -0.006 0.1461 -0.0064 0.167 -0.0026 0.0557 -0.0018 0.0359 -0 -0.0017 -0.0001 -0.0033 -0 -0.0058 -0 -0.0112 0.0001 -0.0172 0.0004 -0.0353
0.0012 -0.0487 0.0018 -0.0486 0.0002 -0.003 -0.0011 0.0193 -0.0005 0.0085 -0.0006 0.01 -0.0003 0.0046

20.4472 23.4952 0.2743 1.1167 0.0215 2.2936 0.025 0.2206 0.0052 0.1548 0.0033 0.0323 0.001 0.016 0.0005 0.0049 0.0002 0.0022 0.0001 0.0008 0 0.0015
-0 0.003 -0.0001 0.0082 -0.0001 0.0153 -0.0001 0.0384 -0.0002 0.0839 0.0001 0.9206 0.0101 0.0519 0.0012 0.1791 0.0056 0.025 0.0009 0.0351 0.0012
0.0068 0.0003 0.0051 0.0002 0 -0 0.0001 0 0.0002 -0 0.0004 -0 0.0006 -0 0.0014 0 0.0021 0 0.0027 0.0001 0.0009 0 0.0021 0.0001 0.0005 0 0.0006 0
0.0002 0

269.351 -0.239 28.3824 -0.0467 2.3276 -0.0406 2.6763 -0.0132 0.527 -0.0078 0.2988 -0.0032 0.0912 -0.0018 0.0438 -0.0008 0.0162 -0.0004 0.0074
-0.0002 0.003 -0.0002 -0.0051 -0.0002 -0.01 -0.0004 -0.0238 -0.0004 -0.0419 -0.0008 -0.0893 0.0003 -0.1922 0.0129 -1.0468 0.0004 0.0031 -0.0067
0.2142 -0.0019 0.0477 -0.0021 0.0547 -0.0009 0.0179 -0.0006 0.0115 -0 -0.0001 -0 -0.0003 -0 -0.0006 -0 -0.0012 -0 -0.0018 0 -0.0039 0.0001 -0.0053
0.0002 -0.0053 0.0001 -0.0003 -0.0001 0.0021 -0.0001 0.0009 -0.0001 0.0011 -0.0001 0.0005

20.4472 23.4952 0.2743 1.1167 0.0215 2.2936 0.025 0.2206 0.0052 0.1548 0.0033 0.0323 0.001 0.0161 0.0006 0.0049 0.0002 0.0022 0.0001 0.0008 0.0001
-0.0015 0 -0.003 0.0001 -0.0082 0.0001 -0.0153 0.0001 -0.0384 0.0002 -0.0839 -0.0001 -0.9206 -0.0101 -0.0519 -0.0012 -0.1791 -0.0056 -0.025 -0.0009
-0.0351 -0.0012 -0.0068 -0.0003 -0.0051 -0.0002 0 -0 0.0001 -0 0.0002 0 0.0004 0 0.0006 0 0.0014 0 0.0021 0.0001 0.0027 0.0001 0.0009 0 0.0021
0.0001 0.0005 0 0.0006 0 0.0002 0

269.351 -0.2389 28.3824 -0.0467 2.3276 -0.0406 2.6762 -0.0132 0.527 -0.0078 0.2988 -0.0032 0.0912 -0.0017 0.0438 -0.0007 0.0162 -0.0003 0.0073
-0.0001 0.0029 0.0002 0.0051 0.0002 0.01 0.0003 0.0238 0.0004 0.0419 0.0008 0.0893 -0.0004 0.1922 -0.013 1.0469 -0.0004 -0.0031 0.0067 -0.2142 0.002
-0.0477 0.0021 -0.0547 0.0008 -0.018 0.0005 -0.0115 -0 -0.0002 0 -0.0003 -0 -0.0006 -0 -0.0012 0 -0.0019 0 -0.0039 0.0002 -0.0053 0.0002 -0.0053 -0
-0.0003 -0.0001 0.0021 -0 0.0009 -0 0.0011 -0.0001 0.0005

20.4597 23.5512 0.2749 1.1326 0.0218 2.3068 0.0253 0.2258 0.0054 0.1581 0.0034 0.0337 0.0011 0.0169 0.0006 0.0053 0.0003 0.0024 0.0002 0.0009 0.0001
-0.0047 0.0001 -0.0092 0.0002 -0.0251 0.0004 -0.0466 0.0004 -0.1168 0.0007 -0.2534 -0.0002 -2.7646 -0.0303 -0.1576 -0.0035 -0.5409 -0.0168 -0.0763
-0.0028 -0.1064 -0.0037 -0.0209 -0.0009 -0.0156 -0.0007 0.0004 -0 0.0008 -0 0.0016 -0 0.0033 0 0.0052 0 0.013 0.0002 0.0194 0.0004 0.0243 0.0007
0.0085 0.0003 0.0194 0.001 0.0047 0.0003 0.0056 0.0003 0.0016 0.0001

269.351 -0.2396 28.474 -0.0474 2.3677 -0.0414 2.7072 -0.0136 0.5435 -0.0082 0.3092 -0.0034 0.0965 -0.0018 0.0469 -0.0008 0.0178 -0.0003 0.0082 0
0.0033 0.0004 0.016 0.0007 0.0311 0.0011 0.0736 0.0013 0.1289 0.0024 0.2724 -0.0011 0.582 -0.039 3.1471 -0.0014 -0.009 0.0201 -0.6474 0.006 -0.1461
0.0063 -0.167 0.0026 -0.0557 0.0018 -0.0359 -0 -0.0017 -0.0001 -0.0033 -0 -0.0059 0 -0.0112 0.0001 -0.0173 0.0004 -0.0354 0.0012 -0.0488 0.0018
-0.0486 0.0002 -0.0029 -0.001 0.0192 -0.0005 0.0085 -0.0006 0.01 -0.0003 0.0046
"""),
)
_HAP_REACH = (*(3, 4) * 5, 3)
HAP = Figures(
    slow_uhz=10_251_940,
    fast_uhz=128_307_050,
    phase_turns=0.0,
    advance=0,
    reach=_HAP_REACH,
    lines=_mirrored(
        _HAP_REACH,
        (2.5, 1.5, 0.5, -0.5, -1.5, -2.5),
        (
            _HAP_REACH,
            """
-5.2196 -0.0014 0.0005 0.015 -6.4122 -0.0225 -0.0007 0.0006 -0.5003 -0.4393 -0.0028 0 -0.0266 -1.4761 -0.0121 -0.0009 -0.0034 -0.1429 -0.0632 -0.0026
-0.0006 -0.0186 -0.2026 -0.0079 -0.0006 -0.0032 -0.046 -0.0228 -0.0018 -0.0008 -0.0102 -0.0451 -0.0043 -0.0004 -0.0024 -0.0169 -0.0092 -0.0009 -0.0009
-0.0054 -0.0138 -0.0025 -0.0005 -0.002 -0.0073 -0.0042 -0.0008
""",
            """
7.204 0.057 0.0198 0.3273 41.5273 0.2143 0.0167 0.0711 1.9021 0.9468 0.0428 0.0198 0.2673 3.439 0.1201 0.0124 0.0621 0.6505 0.33 0.0302 0.0188 0.1517
0.6865 0.0649 0.0077 0.0429 0.2446 0.1345 0.0186 0.0154 0.0827 0.2026 0.0363 0.0061 0.0283 0.1022 0.0594 0.0094 0.011 0.0438 0.0758 0.0212 0.0053
0.0196 0.0481 0.0299 0.0079
""",
        ),
        (
            (2,) * 8,
            """
0.9281 0.0025 0.018 -0.0038 0.0025 -0.0101 -0.0012 0.0028 -0.008 0.001 -0.0146 -0.0007 -0.0008 -0.0028 0.0001 -0.0046 -0.0007 -0.001 -0.0013
""",
            """
0 -0.0167 0.0556 -0.0984 0.0081 -0.179 -0.0153 -0.0137 -0.0446 -0.0005 -0.0663 -0.0097 -0.0137 -0.0205 -0.0033 -0.0269 -0.0079 -0.0103 -0.0109
""",
        ),
        (
            (1,) * 5,
            "-0.0014 -0.002 -0.0004 -0.0004 -0.0011 -0.0004 -0.0001",
            "0.005 0.0157 0.0042 0.0019 0.0041 0.0026 0.0009",
        ),
    ),
)
PATTERNS = {"mid360": MID360, "hap": HAP}


def table_of(figures: Figures, offset_ns: npt.NDArray[np.int64]) -> _Doubles:
    """``float64[n, 16]`` for channels whose lines take turns, sixteen side by side, ``rows_of`` rows each, in turns of azimuth and elevation.

    The first two rows are what the slow and the fast rotation turn until each channel fires; then, order after order, each order's ``k`` from 0 on beside ``-k``.

    Args:
        figures: The pattern.
        offset_ns: ``int64[c]``, firing offset of each channel; the last group repeats its last one.
    """
    starts = np.cumsum([0, *(most + 1 for most in figures.reach)])
    dense = np.zeros((len(figures.lines), int(starts[-1]), 2, 2, 2))  # order and k, elevation or azimuth, sign of k, cosine or sine
    for number, (j, k) in enumerate(orders_of(figures.reach)):
        dense[:, starts[j] + abs(k), :, int(k < 0)] = figures.lines[:, :, number] / 360.0
    channels = np.minimum(np.arange(-(-offset_ns.size // WIDTH) * WIDTH), offset_ns.size - 1)
    of_channel = dense.reshape(len(dense), -1)[channels % len(dense)]
    turned = offset_ns[channels, None] * np.array([figures.slow_uhz, figures.fast_uhz]) * 1e-15
    table = np.concatenate([turned, of_channel], axis=1)
    return np.ascontiguousarray(table.reshape(-1, WIDTH, table.shape[1]).transpose(0, 2, 1).reshape(-1, WIDTH))


def rows_of(figures: Figures) -> int:
    """Rows of the table for each sixteen channels."""
    return 2 + FIGURES * sum(reach + 1 for reach in figures.reach)
