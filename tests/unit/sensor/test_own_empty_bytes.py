"""Bytes of empty firings, of lasers whose shares of them are known."""

import numpy as np

from hilsim.rng import Purpose, uniform
from hilsim.sensor.signal.empty import own_empty_byte, with_own_empty_bytes
from hilsim.sensor.signal.signal import drawn_lasers
from hilsim.sensor.signal.spec import SignalSpec

BASELINE = np.array([9, 23], np.uint8)
NO_RATIO = np.full(2, np.nan)


def lasers():
    return drawn_lasers(SignalSpec(), BASELINE, np.ones(2), np.zeros((2, 256), np.int64), seed=7, stream=0)


def shares(**others):
    table = np.zeros((2, 256))
    for byte, share in others.items():
        table[0, int(byte[1:])] = share
    return table


def shares_of_table(found, laser):
    byte, count = np.unique(found.empty_bytes[laser], return_counts=True)
    return dict(zip(byte.tolist(), (count / count.sum()).round(2).tolist(), strict=True))


def test_a_laser_without_other_bytes_keeps_its_figures_unless_all_its_empty_firings_have_the_baseline():
    found = with_own_empty_bytes(lasers(), BASELINE, np.array([0.97, 1.0]), np.zeros((2, 256)))
    assert found.has_empty_bytes.tolist() == [False, True]
    assert shares_of_table(found, 1) == {int(BASELINE[1]): 1.0}


def test_empty_firings_have_their_bytes_as_often_as_the_unit_has():
    found = with_own_empty_bytes(lasers(), BASELINE, NO_RATIO, shares(b18=0.2, b27=0.05))
    assert found.has_empty_bytes.tolist() == [True, False]
    assert shares_of_table(found, 0) == {9: 0.75, 18: 0.2, 27: 0.05}
    drawn = np.array([own_empty_byte(found.empty_bytes, 0, uniform(np.uint64(7), 0, index, Purpose.EMPTY_BYTE)) for index in range(4000)])
    for byte, share in ((9, 0.75), (18, 0.2), (27, 0.05)):
        np.testing.assert_allclose((drawn == byte).mean(), share, atol=4.0 * np.sqrt(share * (1.0 - share) / 4000))


def test_rare_bytes_that_a_file_leaves_out_are_shared_among_its_others():
    found = with_own_empty_bytes(lasers(), BASELINE, np.array([0.7, np.nan]), shares(b18=0.1, b27=0.1))
    assert shares_of_table(found, 0) == {9: 0.7, 18: 0.15, 27: 0.15}
