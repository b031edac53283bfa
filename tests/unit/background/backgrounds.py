"""Background maps that several tests share."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from hilsim.world.geometry.poses import extrinsics
from hilsim.world.scene.background import BRIGHTEST, INVALID, MAX_MM, VALID, AzimuthGrid, BackgroundMap, ImageGrid

AZIMUTH = AzimuthGrid(columns=5, elevation_deg=(-15.0, -0.1, 7.25))
IMAGE = ImageGrid(columns=5, rows=3, x_min=-0.5, x_max=0.7, z_min=-0.2, z_max=0.1)


def beyond_mm(distance_mm):
    """How far a distance is beyond the nearest one of its bin: what its eight leading bits do not tell."""
    lost = max(int(distance_mm).bit_length() - 8, 0)
    return int(distance_mm) & ((1 << lost) - 1)


def background(grid=AZIMUTH, *, distance_mm=None, intensity=None, flags=None, **rest):
    """A map whose cells are all different; 1.5 m and more, valid but for one cell."""
    shape = (grid.rows, grid.columns)
    number = np.arange(grid.rows * grid.columns).reshape(shape)
    distance_mm = 1500 + 997 * number % 190_000 if distance_mm is None else np.asarray(distance_mm)
    if flags is None:
        flags = np.full(shape, VALID)
        flags[0, -1] = INVALID
    return BackgroundMap(
        grid=grid,
        distance_mm=distance_mm.astype(np.uint32),
        intensity=np.asarray(17 * number % 1024 if intensity is None else intensity).astype(np.uint16),
        flags=np.asarray(flags).astype(np.uint8),
        hit_count=rest.pop("hit_count", (number + 3).astype(np.uint32)),
        confidence=rest.pop("confidence", (number / number.size).astype(np.float32)),
        **rest,
    )


def told(grid=AZIMUTH):
    """A map with all of its metadata."""
    return background(
        grid,
        model="VLP-16",
        pose=extrinsics((691_000.125, 5_334_000.1, 1.8), (0.3, -2.0, 47.11)),
        provenance={"captures": [{"name": "straße.pcap", "sha256": "ab" * 32}], "settings": {"quantile": 0.95}, "covered": None, "hits": 2**40},
    )


def assert_same_cells(found, expected, names=("distance_mm", "intensity", "flags", "hit_count", "confidence")):
    for name in names:
        array = getattr(found, name)
        assert array.dtype == getattr(expected, name).dtype, name
        np.testing.assert_array_equal(array, getattr(expected, name), err_msg=name)


def assert_same_description(found, expected):
    assert (found.grid, found.model, found.pose, found.provenance) == (expected.grid, expected.model, expected.pose, expected.provenance)


def cells(draw, dtype, shape, most):
    return draw(arrays.arrays(dtype, shape, elements=st.integers(0, most)))


finite = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def grids(draw):
    columns = draw(st.integers(2, 7))
    if draw(st.booleans()):
        elevation = draw(st.lists(finite, min_size=1, max_size=4, unique=True))
        return AzimuthGrid(columns=columns, elevation_deg=tuple(sorted(elevation)))
    x, z = (sorted(draw(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=2, unique=True))) for _ in range(2))
    return ImageGrid(columns=columns, rows=draw(st.integers(2, 4)), x_min=x[0], x_max=x[1], z_min=z[0], z_max=z[1])


@st.composite
def maps(draw):
    """Any map at all: every bit of every field."""
    grid = draw(grids())
    shape = (grid.rows, grid.columns)
    places, angles = st.tuples(*[st.floats(-1e7, 1e7)] * 3), st.tuples(*[st.floats(-180.0, 180.0)] * 3)
    values = st.recursive(st.none() | st.booleans() | st.integers(-(2**63), 2**63) | finite | st.text(), st.lists, max_leaves=4)
    return BackgroundMap(
        grid=grid,
        distance_mm=cells(draw, np.uint32, shape, MAX_MM),
        intensity=cells(draw, np.uint16, shape, BRIGHTEST),
        flags=cells(draw, np.uint8, shape, VALID),
        hit_count=cells(draw, np.uint32, shape, 2**32 - 1),
        confidence=draw(arrays.arrays(np.float32, shape, elements=st.floats(0.0, 1.0, width=32))),
        model=draw(st.text()),
        pose=draw(st.none() | st.builds(extrinsics, places, angles)),
        provenance=draw(st.dictionaries(st.text(), values, max_size=3)),
    )
