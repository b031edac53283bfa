"""Noise of sensors as pure functions of time: a reading at an instant does not depend on earlier readings or on the rate.

White noise is a function of the instant. Slow drift is interpolated from one random key to the next along a quarter circle, ``cos(a) k_i + sin(a)
k_(i+1)``: a Gaussian process with the same variance at every time, without history. Keys are 1.23 correlation times apart, so that the integral of
its autocorrelation is that of the first-order Gauss-Markov process for which figures are published.
"""

import math

import numpy as np

from hilsim.compilation.jit import kernel
from hilsim.rng import normal_pair
from hilsim.world.geometry.frames import Vector

_FIRST_KEY = 1 << 40  # draws are numbered from 0; keys before rig time 0 need numbers as well
_FIRST_NS = 1 << 61  # the same for instants
KEYS_PER_CORRELATION_TIME = math.pi**2 / 8.0
"""2 tau = (4 / pi)^2 interval: equal integrals of both autocorrelations over all lags, averaged over the phase between keys."""


def key_interval_ns(correlation_s: float) -> int:
    """Time between keys for a correlation time."""
    return round(KEYS_PER_CORRELATION_TIME * correlation_s * 1e9)


@kernel
def white(seed: np.uint64, stream: int, time_ns: int, purpose: int) -> Vector:
    """Three independent standard normal numbers at an instant."""
    index = 2 * (time_ns + _FIRST_NS)
    x, y = normal_pair(seed, stream, index, purpose)
    z, _ = normal_pair(seed, stream, index + 1, purpose)
    return x, y, z


@kernel
def _key(seed: np.uint64, stream: int, key: int, purpose: int) -> Vector:
    index = 2 * (key + _FIRST_KEY)
    x, y = normal_pair(seed, stream, index, purpose)
    z, _ = normal_pair(seed, stream, index + 1, purpose)
    return x, y, z


@kernel
def drift(seed: np.uint64, stream: int, time_ns: int, interval_ns: int, purpose: int) -> Vector:
    """Three independent numbers of unit variance that change slowly; ``interval_ns`` from ``key_interval_ns``."""
    key = time_ns // interval_ns
    angle = 0.5 * math.pi * ((time_ns - key * interval_ns) / interval_ns)
    ax, ay, az = _key(seed, stream, key, purpose)
    bx, by, bz = _key(seed, stream, key + 1, purpose)
    c, s = math.cos(angle), math.sin(angle)
    return c * ax + s * bx, c * ay + s * by, c * az + s * bz
