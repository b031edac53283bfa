"""32-bit bitmaps: the note's pixels bit by bit, and the headers around them."""

import errno
import struct

import numpy as np
import pytest
from hypothesis import given

from hilsim.errors import AssetError
from hilsim.read.background.files.bitmap import pack_pixels, write_bitmap
from hilsim.read.background.files.metadata import MAX_CELLS
from hilsim.world.scene.background import VALID, AzimuthGrid
from tests.unit.background.backgrounds import background, maps, told

PIXELS_AT = 122
ONE = AzimuthGrid(columns=1, elevation_deg=(0.0,))


@pytest.fixture
def written(tmp_path):
    def to_bytes(background):
        path = tmp_path / "a.bmp"
        write_bitmap(background, path)
        return path.read_bytes()

    return to_bytes


@pytest.mark.parametrize(
    ("distance_mm", "intensity", "flags", "stored"),
    [
        (15420, 0, VALID, "3c3c00c0"),
        (0, 0, 0, "00000000"),
        (1, 0, 0, "01000000"),
        (1024, 0, 0, "00040000"),
        (0xFFFFF, 0, 0, "ffff0f00"),
        (0, 1, 0, "00001000"),
        (0, 1023, 0, "0000f03f"),
        (0, 0, 1, "00000040"),
        (0xFFFFF, 1023, 3, "ffffffff"),
    ],
)
def test_a_pixel_has_its_bits_where_the_layout_says(written, distance_mm, intensity, flags, stored):
    data = written(background(ONE, distance_mm=[[distance_mm]], intensity=[[intensity]], flags=[[flags]]))
    assert data[PIXELS_AT:].hex() == stored


def test_a_bitmap_has_a_v4_header_with_bit_fields(written):
    data = written(told())
    assert struct.unpack_from("<2sIHHI", data) == (b"BM", len(data), 0, 0, PIXELS_AT)
    assert struct.unpack_from("<IiiHHIIiiII", data, 14) == (108, 5, 3, 1, 32, 3, 60, 2835, 2835, 0, 0)
    assert struct.unpack_from("<4I", data, 54) == (0x3FF00000, 0x000FFC00, 0x000003FF, 0xC0000000)
    assert data[70:PIXELS_AT] == b"BGRs" + bytes(48)
    assert len(data) == PIXELS_AT + 60


def test_the_lowest_row_is_the_first_in_the_file(written):
    packed = pack_pixels(background())
    assert written(background())[PIXELS_AT:] == packed.tobytes()


@given(expected=maps())
def test_the_pixels_of_any_map_have_its_distances_intensities_and_flags(expected):
    words = pack_pixels(expected)
    assert words.dtype.str == "<u4"
    np.testing.assert_array_equal(words & 0xFFFFF, expected.distance_mm)
    np.testing.assert_array_equal(words >> 20 & 0x3FF, expected.intensity)
    np.testing.assert_array_equal(words >> 30, expected.flags)


def test_more_cells_than_a_file_may_hold_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("hilsim.read.background.files.metadata.MAX_CELLS", 14)
    with pytest.raises(AssetError, match=r"rows x columns must be at most 14, got 3 x 5"):
        write_bitmap(told(), tmp_path / "a.bmp")
    assert list(tmp_path.iterdir()) == []
    assert MAX_CELLS == 67_108_864


def test_a_bitmap_that_cannot_be_finished_leaves_what_was_there(tmp_path, monkeypatch):
    (tmp_path / "a.bmp").write_bytes(b"before")

    def refuse(path, data):
        with path.open("wb") as file:
            file.write(data[:100])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", refuse)
    with pytest.raises(AssetError, match=r"a\.bmp: cannot be written: No space left on device"):
        write_bitmap(told(), tmp_path / "a.bmp")
    assert {entry.name: entry.read_bytes() for entry in tmp_path.iterdir()} == {"a.bmp": b"before"}
