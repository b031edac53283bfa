"""Chunks of a rover's scan."""

import pytest

from hilsim.parts.rovers.protocol import CHUNK_POINTS, chunk_count, chunk_points


@pytest.mark.parametrize(("points", "chunks"), [(0, 0), (1, 1), (99, 1), (100, 1), (101, 2), (200, 2), (201, 3), (2400, 24)])
def test_all_chunks_of_a_scan_but_the_last_are_full(points, chunks):
    assert chunk_count(points) == chunks
    sizes = [chunk_points(points, chunk) for chunk in range(chunks)]
    assert sum(sizes) == points
    assert sizes[:-1] == [CHUNK_POINTS] * max(chunks - 1, 0)
