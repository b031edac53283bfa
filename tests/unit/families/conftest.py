"""Fixtures of the emulator's tests, for those of families."""

from tests.unit.emulator.conftest import vlp16, world

__all__ = ["vlp16", "world"]
