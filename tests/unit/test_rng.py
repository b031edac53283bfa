"""Counter-based draws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilsim import rng as draws
from hilsim.compilation.jit import kernel
from hilsim.compilation.lanes import WIDTH, lane_numbers, store_lanes


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [  # known-answer vectors published with Random123 (kat_vectors, philox4x32 10)
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0), (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
    ],
)
def test_philox_gives_the_published_known_answers(counter, key, expected):
    assert tuple(int(word) for word in draws.philox4x32(*counter, *key)) == expected


def test_draws_differ_by_seed_stream_index_and_purpose():
    seen = {draws.uniform(*key) for key in [(1, 1, 1, 1), (2, 1, 1, 1), (1, 2, 1, 1), (1, 1, 2, 1), (1, 1, 1, 2)]}
    assert len(seen) == 5


def test_normal_draws_have_mean_zero_and_unit_variance():
    sample = np.array([draws.normal(7, 3, index, 1) for index in range(40_000)])
    assert abs(sample.mean()) < 4 / np.sqrt(sample.size)
    assert abs(sample.var() - 1) < 4 * np.sqrt(2 / sample.size)


@kernel
def sixteen(seed, first_stream, index, results):
    """``normals`` of sixteen streams that follow each other."""
    store_lanes(results, 0, draws.normals(seed, lane_numbers() + np.uint64(first_stream), index, 1))


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 17), st.integers(0, 2**62))
def test_sixteen_normal_draws_are_those_of_their_streams(seed, first_stream, index):
    results = np.zeros((1, WIDTH))
    sixteen(np.uint64(seed), first_stream, index, results)
    one_by_one = [draws.normal(np.uint64(seed), first_stream + lane, index, 1) for lane in range(WIDTH)]
    np.testing.assert_allclose(results[0], one_by_one, rtol=0.0, atol=1e-14)
