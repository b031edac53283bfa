"""Grey pictures: the distance of each grey value, and the picture as a person sees it."""

import math

import numpy as np
import pytest
from PIL import Image

from hilsim.read.background.files.grey import GreyScale, draw_bar, grey_values, write_grey
from tests.unit.background.backgrounds import background, told

BAR_ROWS = 32


@pytest.fixture(params=[".png", ".bmp"])
def path(tmp_path, request):
    return tmp_path / f"a{request.param}"


def pixels_of(path):
    with Image.open(path) as image:
        assert (image.mode, image.format) == ("L", path.suffix.removeprefix(".").upper())
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


def test_a_map_of_nothing_is_black_and_has_the_scale_of_what_may_be_used():
    grey, scale = grey_values(background(distance_mm=np.zeros((3, 5))))
    assert not grey.any()
    assert scale == GreyScale(near_m=0.1, far_m=200.0)


def test_the_picture_is_upright_and_small_cells_are_enlarged(path):
    grey, scale = grey_values(told())
    write_grey(told(), path)
    pixels = pixels_of(path)
    assert pixels.shape == (3 * 54 + BAR_ROWS, 5 * 72)
    np.testing.assert_array_equal(pixels[: 3 * 54 : 54, ::72], grey[::-1])
    assert (pixels[:54, :72] == grey[2, 0]).all()
    assert (pixels[108:162, 288:] == grey[0, 4]).all()
    np.testing.assert_array_equal(pixels[162:], draw_bar(scale, 360))


def test_the_bar_has_every_grey_value_from_near_to_far():
    bar = draw_bar(GreyScale(near_m=2.0, far_m=20.0), 360)
    assert bar.shape == (BAR_ROWS, 360)
    assert bar[5].tolist() == sorted(range(32, 256), reverse=True)[:1] + bar[5, 1:].tolist()
    assert set(bar[5].tolist()) == set(range(32, 256))
    assert (np.diff(bar[5].astype(int)) <= 0).all()


def test_the_bar_is_marked_at_both_ends_and_at_round_distances():
    scale = GreyScale(near_m=2.0, far_m=20.0)
    marks = np.nonzero(draw_bar(scale, 720)[16] == 255)[0].tolist()
    assert marks == [0, *(round(719 * math.log(metres / 2.0) / math.log(10.0)) for metres in (5, 10)), 719]


def test_the_bar_of_a_large_picture_is_enlarged():
    assert draw_bar(GreyScale(near_m=2.0, far_m=20.0), 1900).shape == (2 * BAR_ROWS, 1900)
