"""Byte noise, learned from visits of directions that are made here."""

import numpy as np
import pytest

from hilsim.families.velodyne.calibration.byte_noise import learn_byte_noise, repeats_of
from hilsim.families.velodyne.calibration.cells import Visits
from hilsim.families.velodyne.calibration.figures import Learned

CELLS, TURNS = 120, 60


def byte_noise_of(byte):
    """Learn from the bytes of one laser, ``byte[cell, turn]``, all at one range."""
    visits = Visits(
        cell=np.repeat(np.arange(CELLS), TURNS),
        range_m=np.full(byte.size, 5.0),
        reflectivity=byte.ravel().astype(np.int64),
        azimuth_rad=np.zeros(byte.size),
        sequence=np.zeros(byte.size, np.int64),
        cells=CELLS,
    )
    learned = Learned(lasers=[{}])
    learn_byte_noise(repeats_of([visits]), learned)
    return dict(learned.keys["byte_noise"])


def test_rare_steps_of_a_laser_between_distant_bytes_are_noise():
    byte = np.where(np.random.default_rng(1).random((CELLS, TURNS)) < 0.1, 7, 4)
    (sd,) = byte_noise_of(byte).values()
    assert sd == pytest.approx(byte.std(), rel=0.05)


def test_borders_of_surfaces_are_not_noise():
    rng = np.random.default_rng(2)
    level = np.where(np.arange(CELLS) // 10 % 2, 12.0, 25.0)[:, None] + np.zeros((CELLS, TURNS))
    level[::10] += (np.roll(level, 1, axis=0) - level)[::10] * rng.random((CELLS // 10, TURNS))
    found = byte_noise_of(np.rint(level + rng.normal(size=level.shape)))
    assert sorted(map(round, found)) == [12, 25]
    assert list(found.values()) == pytest.approx([np.hypot(1.0, 12.0**-0.5)] * 2, rel=0.05)
