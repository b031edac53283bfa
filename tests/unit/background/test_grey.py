"""Grey pictures: the distance of each grey value, the picture as a person sees it, and what another program finds in it."""

import json
import math
import struct

import numpy as np
import pytest
from hypothesis import given
from PIL import Image

from hilsim.background.files.grey import grey_values, write_grey
from hilsim.background.files.grey_scale import GreyScale, draw_bar
from hilsim.errors import AssetError
from hilsim.scene.background import AzimuthGrid
from tests.grey_pictures import read_grey
from tests.unit.background.backgrounds import AZIMUTH, IMAGE, background, maps, told

LAYOUT = {"format": "hilsim-grey", "version": 1, "rows": 3, "columns": 5, "row_pixels": 54, "column_pixels": 72, "near_m": 2.0, "far_m": 20.0}
BAR_ROWS = 32


@pytest.fixture(params=[".png", ".bmp"])
def path(tmp_path, request):
    return tmp_path / f"a{request.param}"


def pixels_of(path):
    with Image.open(path) as image:
        assert image.mode == "L"
        return np.asarray(image)


def test_the_nearest_cell_is_white_the_farthest_dark_and_nothing_black():
    grey, scale = grey_values(background(distance_mm=np.geomspace(1500, 150_000, 15).reshape(3, 5)))
    assert grey[0, 0] == 255
    assert grey[2, 4] == 32
    assert grey[0, 4] == 0  # flagged as invalid
    assert (scale.near_m, scale.far_m) == (1.5, 150.0)
    assert grey[1, 2] == 255 - round(223 * math.log(15.0 / 1.5) / math.log(150.0 / 1.5))


def test_cells_unused_by_an_overlay_are_black():
    grey, scale = grey_values(background(distance_mm=[[100, 101, 199_999, 200_000, 5000], [0] * 5, [5000] * 5]))
    assert grey[0].tolist() == [0, 255, 32, 0, 0]
    assert grey[1].tolist() == [0] * 5
    assert (scale.near_m, scale.far_m) == (0.101, 199.999)


def test_a_map_of_nothing_is_black_and_has_the_scale_of_what_may_be_used(path):
    nothing = background(distance_mm=np.zeros((3, 5)))
    write_grey(nothing, path)
    grey, scale = read_grey(path)
    assert not grey.any()
    assert scale == GreyScale(near_m=0.1, far_m=200.0)


def test_each_grey_value_from_32_to_255_encodes_a_distance():
    metres = GreyScale(near_m=2.0, far_m=50.0).distance_m
    assert np.isnan(metres[:32]).all()
    assert metres[255] == 2.0
    assert metres[32] == pytest.approx(50.0, rel=1e-15)
    np.testing.assert_allclose(metres[32:-1] / metres[33:], 25.0 ** (1 / 223), rtol=1e-12)


@pytest.mark.parametrize("grid", [AZIMUTH, IMAGE, AzimuthGrid(columns=1800, elevation_deg=tuple(range(-15, 17, 2)))])
def test_grey_values_and_scale_come_back_as_they_were_written(path, grid):
    expected, scale = grey_values(told(grid))
    write_grey(told(grid), path)
    found, found_scale = read_grey(path)
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, expected)
    assert found_scale == scale
    np.testing.assert_array_equal(found_scale.distance_m, scale.distance_m)


@given(expected=maps())
def test_grey_values_of_any_map_come_back(tmp_path_factory, expected):
    path = tmp_path_factory.getbasetemp() / "any.bmp"
    write_grey(expected, path)
    grey, scale = grey_values(expected)
    assert read_grey(path)[1] == scale
    np.testing.assert_array_equal(read_grey(path)[0], grey)


def test_the_picture_is_upright_and_small_cells_are_enlarged(path):
    grey, _ = grey_values(told())
    write_grey(told(), path)
    pixels = pixels_of(path)
    assert pixels.shape == (3 * 54 + BAR_ROWS, 5 * 72)
    assert (pixels[:54, :72] == grey[2, 0]).all()
    assert (pixels[108:162, 288:] == grey[0, 4]).all()


def marks(scale, width):
    """Columns of the bar's marks: white right below its grey values."""
    return np.nonzero(draw_bar(scale, width)[16] == 255)[0].tolist()


def test_another_program_finds_the_scale_in_a_png(tmp_path):
    write_grey(background(distance_mm=np.geomspace(2000, 20_000, 15).reshape(3, 5)), tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as image:
        assert json.loads(image.text["hilsim-grey"]) == LAYOUT


def test_a_bmp_has_a_palette_of_greys_and_is_read_by_pillow(tmp_path):
    write_grey(told(), tmp_path / "a.bmp")
    data = (tmp_path / "a.bmp").read_bytes()
    assert struct.unpack_from("<HI", data, 28) == (8, 0)
    assert struct.unpack_from("<I", data, 2)[0] == len(data)
    assert pixels_of(tmp_path / "a.bmp").shape == (194, 360)


def test_a_name_of_another_kind_is_refused(tmp_path):
    with pytest.raises(AssetError, match=r'a\.jpg: a grey picture must be a \.png or \.bmp, got "\.jpg"'):
        write_grey(told(), tmp_path / "a.jpg")
