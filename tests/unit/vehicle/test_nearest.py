"""The nearest point of a triangle against a search over many of its points."""

import numpy as np
import pytest

from hilsim.parts.vehicle.physics.nearest import nearest_on_triangle

_SHARES = np.linspace(0.0, 1.0, 201)
_U, _V = (part[np.add.outer(_SHARES, _SHARES) <= 1.0 + 1e-9] for part in np.meshgrid(_SHARES, _SHARES, indexing="ij"))


@pytest.mark.parametrize("seed", range(40))
def test_no_point_of_the_triangle_is_nearer(seed):
    point, corner, first, second = np.random.default_rng(seed).uniform(-1.0, 1.0, (4, 3))
    found = np.array(nearest_on_triangle(tuple(point), tuple(corner), tuple(first), tuple(second)))
    searched = corner + np.outer(_U, first) + np.outer(_V, second)
    best_m = np.linalg.norm(searched - point, axis=1).min()
    assert np.linalg.norm(found - point) <= best_m + 1e-12
    assert np.linalg.norm(searched - found, axis=1).min() < 0.02  # it is on the triangle
