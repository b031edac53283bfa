"""Functions of sixteen numbers at a time: sines, cosines, logarithms. They use IEEE arithmetic only, so their bits are the same on every CPU."""

import math

import numpy as np

from hilsim.compilation.jit import kernel
from hilsim.compilation.lanes import Doubles, bit_patterns, floor_lanes, from_bit_patterns, select, signed_doubles

_RAD_PER_TURN = 2.0 * math.pi
_LN_2 = math.log(2.0)
_FRACTION = np.uint64((1 << 52) - 1)
_ONE = np.uint64(1023 << 52)
_EXPONENT = np.uint64(52)
_BIAS = 1023.0


@kernel
def sines_and_cosines(turns: Doubles) -> tuple[Doubles, Doubles]:
    """Sines and cosines of angles in turns, up to 2^40; both within 3e-16 for any angle.

    An angle is reduced to within an eighth of a turn of the nearest quarter, which is exact, and Taylor's series is used; the omitted terms are
    below 5e-17.
    """
    quarters = floor_lanes(turns * 4.0 + 0.5)
    x = (turns - quarters * 0.25) * _RAD_PER_TURN
    square = x * x
    odd = square * (-1.0 / 1307674368000.0) + 1.0 / 6227020800.0
    odd = square * odd - 1.0 / 39916800.0
    odd = square * odd + 1.0 / 362880.0
    odd = square * odd - 1.0 / 5040.0
    odd = square * odd + 1.0 / 120.0
    odd = square * odd - 1.0 / 6.0
    sine = x + x * square * odd
    even = square * (1.0 / 20922789888000.0) - 1.0 / 87178291200.0
    even = square * even + 1.0 / 479001600.0
    even = square * even - 1.0 / 3628800.0
    even = square * even + 1.0 / 40320.0
    even = square * even - 1.0 / 720.0
    even = square * even + 1.0 / 24.0
    cosine = 1.0 - (square * 0.5 - square * square * even)
    quarter = quarters - floor_lanes(quarters * 0.25) * 4.0
    is_across = (quarter == 1.0) | (quarter == 3.0)
    sine, cosine = select(is_across, cosine, sine), select(is_across, sine, cosine)
    return select(quarter >= 2.0, 0.0 - sine, sine), select((quarter == 1.0) | (quarter == 2.0), 0.0 - cosine, cosine)


@kernel
def logarithms(x: Doubles) -> Doubles:
    """Natural logarithms of positive numbers that are neither denormal nor infinite; relative error below 4e-16, or absolute below 1e-16.

    With ``x = 2^e m``, ``m`` from 0.71 to 1.41, the omitted terms of the series of the area tangent of ``(m - 1) / (m + 1)`` are below 1e-17.
    """
    bits = bit_patterns(x)
    exponent = signed_doubles(bits >> _EXPONENT) - _BIAS
    m = from_bit_patterns((bits & _FRACTION) | _ONE)
    is_large = m > math.sqrt(2.0)
    m = select(is_large, m * 0.5, m)
    exponent = select(is_large, exponent + 1.0, exponent)
    s = (m - 1.0) / (m + 1.0)
    square = s * s
    series = square * (1.0 / 21.0) + 1.0 / 19.0
    series = square * series + 1.0 / 17.0
    series = square * series + 1.0 / 15.0
    series = square * series + 1.0 / 13.0
    series = square * series + 1.0 / 11.0
    series = square * series + 1.0 / 9.0
    series = square * series + 1.0 / 7.0
    series = square * series + 1.0 / 5.0
    series = square * series + 1.0 / 3.0
    return exponent * _LN_2 + (2.0 * s + 2.0 * s * square * series)
