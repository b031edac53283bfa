"""Bytes of a device with the time at which they are due."""

from typing import NamedTuple


class TimedBytes(NamedTuple):
    """A frame and its due time.

    Attributes:
        time_ns: Rig time.
        data: One whole frame, written by one call: PX4's drivers search for frames within the bytes of one read.
    """

    time_ns: int
    data: bytes
