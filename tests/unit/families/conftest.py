"""Fixtures of the emulator's and the checker's tests, for those of families."""

from tests.unit.conformance.conftest import own, own_stream, single, streams
from tests.unit.emulator.conftest import vlp16, world

__all__ = ["own", "own_stream", "single", "streams", "vlp16", "world"]
