"""Limit on requests a second, which allows short bursts."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(kw_only=True, eq=False)
class Allowance:
    """Number of requests that may still be executed.

    Attributes:
        most: Largest number of requests a second, and in one burst.
        now_s: Clock in seconds.
    """

    most: int
    now_s: Callable[[], float] = time.monotonic
    _left: float = field(default=0.0, init=False)
    _counted_s: float = field(default=-math.inf, init=False)

    def take(self) -> bool:
        """Count another request if it may be executed now; returns whether it may."""
        now_s = self.now_s()
        self._left = min(float(self.most), self._left + (now_s - self._counted_s) * self.most)
        self._counted_s = now_s
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True
