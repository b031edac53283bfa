"""Conversion factors of units, for exact whole numbers; kernels freeze them as they do constants of their own module."""

import math

NS_PER_S = 1_000_000_000
HOUR_US = 3_600_000_000
"""Velodyne's stamps count microseconds past the hour."""
HOUR_NS = 1000 * HOUR_US
TURN_CDEG = 36_000
"""Velodyne's azimuths count hundredths of a degree."""
CDEG_PER_RAD = TURN_CDEG / (2.0 * math.pi)
RAD_PER_CDEG = 2.0 * math.pi / TURN_CDEG
WHOLE_PPB = 1_000_000_000
WHOLE_PPM = 1_000_000
"""A ratio of one, in billionths and in millionths."""
