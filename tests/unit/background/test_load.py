"""A map from a file, whatever its name says."""

import numpy as np
import pytest

from hilsim.background.files.archive import write_archive
from hilsim.background.files.bitmap import write_bitmap
from hilsim.background.files.grey import write_grey
from hilsim.background.files.load import load_map
from hilsim.errors import AssetError
from tests.unit.background.backgrounds import AZIMUTH, IMAGE, assert_same_description, told


@pytest.mark.parametrize("write", [write_archive, write_bitmap])
@pytest.mark.parametrize("grid", [None, AZIMUTH])
def test_a_map_is_reported_by_its_content(tmp_path, write, grid):
    write(told(), tmp_path / "a.dat")
    found = load_map(tmp_path / "a.dat", grid=grid)
    assert_same_description(found, told())
    np.testing.assert_array_equal(found.distance_mm, told().distance_mm)


@pytest.mark.parametrize("write", [write_archive, write_bitmap])
def test_a_grid_is_passed_on(tmp_path, write):
    write(told(), tmp_path / "a.dat")
    with pytest.raises(AssetError, match="grid must be the one asked for, ImageGrid"):
        load_map(tmp_path / "a.dat", grid=IMAGE)


def test_a_grey_picture_is_no_map(tmp_path):
    write_grey(told(), tmp_path / "a.bmp")
    with pytest.raises(AssetError, match=r"a\.bmp: bits a pixel must be 32, got 8 at byte 28"):
        load_map(tmp_path / "a.bmp")
    write_grey(told(), tmp_path / "a.png")
    with pytest.raises(AssetError, match=r"a\.png: a background map must be an NPZ or 32-bit BMP file, got one that starts with b'\\x89P'"):
        load_map(tmp_path / "a.png")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(AssetError, match=r"none\.npz: no such file"):
        load_map(tmp_path / "none.npz")
