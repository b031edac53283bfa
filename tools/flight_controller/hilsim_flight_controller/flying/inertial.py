"""Behaviour of PX4 1.12's VehicleIMU after a pause: it measures its sensor's period from the first samples.

With one old sample, left in the port before its start, and then none for a second, it assumes that second as the period and never publishes again, whatever the later rate (seen in 11 of 16
starts; pauses of up to 0.8 s are tolerated, and so is any pause once it has settled).
"""

from dataclasses import dataclass

_PAUSE_US = 900_000
_SETTLED = 250


@dataclass
class InertialDriver:
    """Called with each sample; ``stuck`` is permanent."""

    samples: int = 0
    last_us: int = 0
    stuck: bool = False

    def takes(self, now_us: int) -> bool:
        """Whether a sample is accepted."""
        if 0 < self.samples < _SETTLED and now_us - self.last_us >= _PAUSE_US:
            self.stuck = True
        self.samples += 1
        self.last_us = now_us
        return not self.stuck
