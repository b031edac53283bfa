"""Counter-based random numbers: a draw is a function of what it is for, never of what was drawn before.

Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC11), checked against the authors' known-answer
vectors in ``tests/unit/test_rng.py``. The key is the 64-bit seed of a rig; the counter is (index, stream, purpose). The same draw
therefore comes out whatever the batch size, thread or backend.
"""

from enum import IntEnum
from typing import Any

import numpy as np

from hilsim.compilation.jit import kernel
from hilsim.compilation.lane_math import logarithms, sines_and_cosines
from hilsim.compilation.lanes import Doubles, Words, roots, signed_doubles, spread


class Purpose(IntEnum):
    """Purpose of a random number; each use has its own, so that uses are independent."""

    RANGE_NOISE = 1
    DROP_OUT = 2
    ENCODER_NOISE = 3
    HEAD_RATE_JITTER = 4
    POSITION_JITTER = 5
    DISTURBANCE_POSITION = 6
    DISTURBANCE_AXIS = 7
    SCENE = 8
    DEVICE = 9
    DETECTION = 10
    LASER_BIAS = 11
    WEATHER_COUNT = 20
    SOFT_ECHO_RANGE = 21
    SOFT_ECHO_ENERGY = 22
    RAIN_DROP = 23
    SNOW_FLAKE = 24
    FALSE_ALARM = 25
    GAP = 26
    SPURIOUS = 27
    SIGNAL_UNIT = 30
    SIGNAL_LOSS = 31
    EMPTY_BYTE = 32
    ONE_SIDED = 33
    RECEIVER_SHADOW = 34
    FLAW = 35
    GUST = 40
    ACCELEROMETER = 41
    ACCELEROMETER_DRIFT = 42
    GYROSCOPE = 43
    GYROSCOPE_DRIFT = 44
    MAGNETOMETER = 45
    MAGNETOMETER_DRIFT = 46
    BAROMETER = 47
    BAROMETER_DRIFT = 48
    PITOT = 49
    GPS_POSITION = 50
    GPS_DRIFT = 51
    GPS_VELOCITY = 52
    RANGEFINDER_NOISE = 60
    # 70 to 79 belong to parts, each of which names its own numbers.
    ENCODER_SLOW_NOISE = 80
    UNIT_BIAS = 81
    UNIT_DIRECTION = 82
    UNIT_GAIN = 83
    UNIT_BASELINE = 84
    UNIT_CLOCK = 85
    UNIT_HEAD = 86
    UNIT_ENCODER = 87
    STAMP_WANDER = 88
    UNIT_WARM_UP = 89
    COLUMN_TIME = 90
    PHOTONS = 91
    UNIT_SIGNAL = 92
    ENCODER_TIMER = 93
    FAULT_SHARE = 100
    FAULT_ECHO = 101
    FAULT_ERROR = 102
    FAULT_LASER = 103
    FAULT_DROP = 104
    FAULT_EDGE = 105
    FAULT_CHARACTER = 106
    NETWORK_FATE = 110
    NETWORK_COUNT = 111
    NETWORK_PLACE = 112
    NETWORK_VALUE = 113
    NETWORK_BITS = 114
    FAULT_READING = 120
    FAULT_FIX = 121
    LINE_BYTE = 122
    LINE_BIT = 123
    LINE_HALF = 124
    FAULT_RANGE = 125


_MULTIPLIER_0 = np.uint64(0xD2511F53)
_MULTIPLIER_1 = np.uint64(0xCD9E8D57)
_WEYL_0 = np.uint64(0x9E3779B9)
_WEYL_1 = np.uint64(0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_11 = np.uint64(11)
_TO_UNIT = 1.0 / 9007199254740992.0  # 2**-53


@kernel
def philox4x32(
    counter_0: np.uint64, counter_1: np.uint64, counter_2: np.uint64, counter_3: np.uint64, key_0: np.uint64, key_1: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """Ten rounds of Philox on four 32-bit counter words (in ``uint64``) with a two-word key; returns four 32-bit words in ``uint64``."""
    return ten_rounds(
        np.uint64(counter_0) & _LOW, np.uint64(counter_1) & _LOW, np.uint64(counter_2) & _LOW, np.uint64(counter_3) & _LOW, key_0, key_1
    )


@kernel
def ten_rounds(c0: Any, c1: Any, c2: Any, c3: Any, key_0: np.uint64, key_1: np.uint64) -> tuple[Any, Any, Any, Any]:
    """``philox4x32`` of counter words below 2^32, each ``uint64`` or sixteen of them (``hilsim.compilation.lanes.Words``)."""
    k0 = np.uint64(key_0) & _LOW
    k1 = np.uint64(key_1) & _LOW
    for _ in range(10):
        product_0 = (c0 & _LOW) * _MULTIPLIER_0
        product_1 = (c2 & _LOW) * _MULTIPLIER_1
        n0 = (product_1 >> _32) ^ c1 ^ k0
        n2 = (product_0 >> _32) ^ c3 ^ k1
        c1 = product_1 & _LOW
        c3 = product_0 & _LOW
        c0 = n0
        c2 = n2
        k0 = (k0 + _WEYL_0) & _LOW
        k1 = (k1 + _WEYL_1) & _LOW
    return c0, c1, c2, c3


@kernel
def uniform_pair(seed: int | np.uint64, stream: int, index: int, purpose: int) -> tuple[float, float]:
    """Two independent uniform numbers in [0, 1) with 53 bits each.

    Args:
        seed: ``uint64`` of the rig.
        stream: Number of the stream (sensor and channel, track …), 32 bits.
        index: Number of the draw (firing, block, keyframe …), 64 bits.
        purpose: A ``Purpose``.
    """
    s = np.uint64(seed)
    i = np.uint64(index)
    w0, w1, w2, w3 = philox4x32(i & _LOW, i >> _32, np.uint64(stream), np.uint64(purpose), s & _LOW, s >> _32)
    return (((w0 << _32) | w1) >> _11) * _TO_UNIT, (((w2 << _32) | w3) >> _11) * _TO_UNIT


@kernel
def uniform(seed: int | np.uint64, stream: int, index: int, purpose: int) -> float:
    """One uniform number in [0, 1); see ``uniform_pair``."""
    first, _ = uniform_pair(seed, stream, index, purpose)
    return first


@kernel
def normal_pair(seed: int | np.uint64, stream: int, index: int, purpose: int) -> tuple[float, float]:
    """Two independent standard normal numbers (Box-Muller); see ``uniform_pair``."""
    a, b = uniform_pair(seed, stream, index, purpose)
    radius = np.sqrt(-2.0 * np.log(1.0 - a))
    angle = 2.0 * np.pi * b
    return radius * np.cos(angle), radius * np.sin(angle)


@kernel
def normal(seed: int | np.uint64, stream: int, index: int, purpose: int) -> float:
    """One standard normal number, the first of ``normal_pair``."""
    a, b = uniform_pair(seed, stream, index, purpose)
    return float(np.sqrt(-2.0 * np.log(1.0 - a)) * np.cos(2.0 * np.pi * b))  # an unused sine costs a seventh


@kernel
def uniforms(seed: int | np.uint64, streams: Words, index: int, purpose: int) -> Doubles:
    """``uniform`` of sixteen streams at a time, to the bit."""
    first, _ = uniform_pairs(seed, streams, index, purpose)
    return first


@kernel
def uniform_pairs(seed: int | np.uint64, streams: Words, index: int, purpose: int) -> tuple[Doubles, Doubles]:
    """``uniform_pair`` of sixteen streams at a time, to the bit."""
    s = np.uint64(seed)
    i = np.uint64(index)
    w0, w1, w2, w3 = ten_rounds(spread(i & _LOW), spread(i >> _32), streams, spread(np.uint64(purpose)), s & _LOW, s >> _32)
    return signed_doubles(((w0 << _32) | w1) >> _11) * _TO_UNIT, signed_doubles(((w2 << _32) | w3) >> _11) * _TO_UNIT


@kernel
def normals(seed: int | np.uint64, streams: Words, index: int, purpose: int) -> Doubles:
    """``normal`` of sixteen streams at a time, within 1e-14."""
    first, _ = normal_pairs(seed, streams, index, purpose)
    return first


@kernel
def normal_pairs(seed: int | np.uint64, streams: Words, index: int, purpose: int) -> tuple[Doubles, Doubles]:
    """``normal_pair`` of sixteen streams at a time, within 1e-14."""
    a, b = uniform_pairs(seed, streams, index, purpose)
    sine, cosine = sines_and_cosines(b)
    radius = roots(-2.0 * logarithms(1.0 - a))
    return radius * cosine, radius * sine
