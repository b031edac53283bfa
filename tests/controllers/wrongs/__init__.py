"""Bridges that are wrong in one way: ``WRONGS`` has what spoils the reference bridge, by name."""

from tests.controllers.wrongs import link, receiver, sensors, timing
from tests.controllers.wrongs.registry import WRONGS, Wrong

__all__ = ["WRONGS", "Wrong", "link", "receiver", "sensors", "timing"]
