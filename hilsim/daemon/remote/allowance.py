"""Bound on requests a second: some may come at once, on the whole no more than the limit."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(kw_only=True, eq=False)
class Allowance:
    """Requests that may still be obeyed.

    Attributes:
        most: Requests a second, and at once.
        now_s: A clock.
    """

    most: int
    now_s: Callable[[], float] = time.monotonic
    _left: float = field(default=0.0, init=False)
    _counted_s: float = field(default=-math.inf, init=False)

    def take(self) -> bool:
        """Whether another request may be obeyed now; it is counted then."""
        now_s = self.now_s()
        self._left = min(float(self.most), self._left + (now_s - self._counted_s) * self.most)
        self._counted_s = now_s
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True
