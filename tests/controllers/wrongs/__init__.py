"""Bridges that are wrong in one way: ``WRONGS`` has the changes that break the reference bridge, by name."""

from tests.controllers.wrongs import link, receiver, sensors, timing
from tests.controllers.wrongs.registry import WRONGS, Wrong

__all__ = ["WRONGS", "Wrong", "link", "receiver", "sensors", "timing"]
