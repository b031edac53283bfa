"""Fixtures of the Velodyne's tests, for those of the checker."""

from tests.unit.families.velodyne.conformance.conftest import dual, judge, single, spoil, streams

__all__ = ["dual", "judge", "single", "spoil", "streams"]
