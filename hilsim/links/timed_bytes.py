"""A device's bytes with the time at which they are due."""

from typing import NamedTuple


class TimedBytes(NamedTuple):
    """A frame and when it is due.

    Attributes:
        time_ns: Rig time.
        data: One whole frame, to be written by one call: PX4's drivers look for frames within what one read gave them.
    """

    time_ns: int
    data: bytes
