"""32-bit bitmaps: the note's pixels bit by bit, our own files, files made by hand, and damage."""

import errno
import struct

import numpy as np
import pytest
from hypothesis import given

from hilsim.background.files.bitmap import MASKS, pack_pixels, read_bitmap, write_bitmap
from hilsim.background.files.metadata import MOST_CELLS
from hilsim.errors import AssetError
from hilsim.scene.background import VALID, AzimuthGrid, ImageGrid
from tests.unit.background.backgrounds import AZIMUTH, IMAGE, assert_same_cells, assert_same_description, background, maps, told

IN_A_BITMAP = ("distance_mm", "intensity", "flags")
PIXELS_AT = 122
ONE = AzimuthGrid(columns=1, elevation_deg=(0.0,))
WORDS = [[0xC0003C3C, 0x00000000, 0xFFFFFFFF], [0xC0100064, 0x40000001, 0x80000400]]
"""Two rows of three pixels; the first is the lowest."""
GRID = ImageGrid(columns=3, rows=2, x_min=-1.0, x_max=1.0, z_min=-1.0, z_max=1.0)


def made_by_hand(
    words=WORDS,
    *,
    header_size=40,
    compression=0,
    masks=(),
    top_down=False,
    padding=b"",
    image_size=None,
    file_size=None,
    offset=None,
    width=None,
    height=None,
    planes=1,
    bit_count=32,
    behind=b"",
):
    """A BMP written byte by byte, without anything of hilsim."""
    rows = [struct.pack(f"<{len(row)}I", *row) + padding for row in words]
    pixels = b"".join(reversed(rows) if top_down else rows)
    tall = len(words) if height is None else height
    info = struct.pack(
        "<IiiHHIIiiII",
        header_size,
        len(words[0]) if width is None else width,
        -tall if top_down else tall,
        planes,
        bit_count,
        compression,
        len(pixels) if image_size is None else image_size,
        0,
        0,
        0,
        0,
    )
    info += struct.pack(f"<{len(masks)}I", *masks)
    info += bytes(max(header_size - len(info), 0))
    start = 14 + len(info) if offset is None else offset
    whole = 14 + len(info) + len(pixels) + len(behind)
    return struct.pack("<2sIHHI", b"BM", whole if file_size is None else file_size, 0, 0, start) + info + pixels + behind


@pytest.fixture
def read(tmp_path):
    def from_bytes(data, grid=GRID):
        path = tmp_path / "a.bmp"
        path.write_bytes(data)
        return read_bitmap(path, grid=grid)

    return from_bytes


@pytest.fixture
def written(tmp_path):
    def to_bytes(background):
        path = tmp_path / "a.bmp"
        write_bitmap(background, path)
        return path.read_bytes()

    return to_bytes


def words_of(found):
    return (found.flags.astype(np.int64) << 30 | found.intensity.astype(np.int64) << 20 | found.distance_mm).tolist()


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
    assert data[PIXELS_AT : PIXELS_AT + 4].hex() == stored


def test_a_bitmap_has_a_v4_header_with_bit_fields_and_counts_its_trailer(written):
    data = written(told())
    assert struct.unpack_from("<2sIHHI", data) == (b"BM", len(data), 0, 0, PIXELS_AT)
    assert struct.unpack_from("<IiiHHII", data, 14) == (108, 5, 3, 1, 32, 3, 60)
    assert struct.unpack_from("<4I", data, 54) == (0x3FF00000, 0x000FFC00, 0x000003FF, 0xC0000000) == MASKS
    assert data[70:74] == b"BGRs"
    assert data[PIXELS_AT + 60 : PIXELS_AT + 68] == b"hilsim\r\n"


def test_the_lowest_row_is_the_first_in_the_file(written):
    packed = pack_pixels(background())
    assert written(background())[PIXELS_AT : PIXELS_AT + 60] == packed.tobytes()


@pytest.mark.parametrize("grid", [AZIMUTH, IMAGE])
def test_a_map_comes_back_with_all_but_hits_and_confidence(tmp_path, grid):
    expected = told(grid)
    write_bitmap(expected, tmp_path / "a.bmp")
    found = read_bitmap(tmp_path / "a.bmp")
    assert_same_cells(found, expected, IN_A_BITMAP)
    assert_same_description(found, expected)
    assert found.hit_count.dtype == np.uint32
    assert found.confidence.dtype == np.float32
    assert not found.hit_count.any()
    assert not found.confidence.any()


@given(expected=maps())
def test_any_map_comes_back(tmp_path_factory, expected):
    path = tmp_path_factory.getbasetemp() / "any.bmp"
    write_bitmap(expected, path)
    found = read_bitmap(path, grid=expected.grid)
    assert_same_cells(found, expected, IN_A_BITMAP)
    assert_same_description(found, expected)


def with_alpha(size):
    return {"header_size": size, "compression": 3, "masks": MASKS}


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"header_size": 52},
        {"header_size": 108},
        {"header_size": 124},
        {"compression": 3, "masks": MASKS[:3]},
        {"compression": 6, "masks": MASKS},
        {"header_size": 52, "compression": 3, "masks": MASKS[:3]},
        with_alpha(56),
        with_alpha(108),
        with_alpha(124),
        {"image_size": 0},
        {"file_size": 0},
        {"file_size": 0, "image_size": 0},
        {"padding": b"\0"},
        {"padding": b"\0" * 3, "image_size": 0},
        {"padding": b"\0" * 244},
        {"behind": b"an ICC profile"},
    ],
    ids=str,
)
@pytest.mark.parametrize("top_down", [False, True])
def test_a_bitmap_from_elsewhere_gives_its_words_lowest_row_first(read, form, top_down):
    found = read(made_by_hand(top_down=top_down, **form))
    assert words_of(found) == WORDS
    assert found.grid == GRID
    assert (found.model, found.pose, found.provenance) == ("", None, {})


def test_a_bitmap_from_elsewhere_must_come_with_a_grid(read):
    with pytest.raises(AssetError, match=r"a\.bmp: a bitmap from elsewhere must come with a grid.*at byte 78, and this one does not"):
        read(made_by_hand(), None)


def test_a_bitmap_must_fit_the_grid(read):
    with pytest.raises(AssetError, match=r"picture must be 3 rows x 5 columns as its grid, got 2 x 3 at byte 18"):
        read(made_by_hand(), AZIMUTH)


def test_our_own_bitmap_must_have_the_grid_that_is_asked_for(read, written):
    with pytest.raises(AssetError, match=r"trailer at byte 182: grid must be the one asked for, ImageGrid.*, got AzimuthGrid"):
        read(written(told()), IMAGE)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"width": 0}, "width must be 1 to 65536, got 0 at byte 18"),
        ({"width": -3}, "width must be 1 to 65536, got -3 at byte 18"),
        ({"width": 2**31 - 1}, "width must be 1 to 65536, got 2147483647 at byte 18"),
        ({"height": 0}, "height must be 1 to 65536, or minus that, got 0 at byte 22"),
        ({"height": -(2**31)}, "height must be 1 to 65536, or minus that, got -2147483648 at byte 22"),
        ({"height": 3}, "size of the picture at byte 34 must be 36, or that with 1 to 255 bytes of padding a row, got 24"),
        ({"width": 65536}, "size of the picture at byte 34 must be 524288, .*, got 24"),
        ({"planes": 0}, "planes must be 1, got 0 at byte 26"),
        ({"bit_count": 24}, "bits a pixel must be 32, got 24 at byte 28"),
        ({"header_size": 12}, r"header size must be one of \(40, 52, 56, 108, 124\), got 12 at byte 14"),
        ({"compression": 1}, r"compression must be none \(0\) or bit fields \(3, 6\), got 1 at byte 30"),
        ({"offset": 53}, "pixel offset must be 54 to 77, got 53 at byte 10"),
        ({"offset": 78}, "pixel offset must be 54 to 77, got 78 at byte 10"),
        ({"offset": 2**32 - 1}, "pixel offset must be 54 to 77, got 4294967295 at byte 10"),
        ({"offset": 54, "compression": 3, "masks": MASKS[:3]}, "pixel offset must be 66 to 89, got 54 at byte 10"),
        ({"offset": 58}, "2 rows of 12 bytes from byte 58 on must end by byte 78, got 82"),
        ({"offset": 55, "image_size": 0}, "bytes behind the pixel offset must be 24, .*, got 23"),
        ({"image_size": 25}, "size of the picture at byte 34 must be 24, .*, got 25"),
        ({"image_size": 24 + 2 * 256}, "size of the picture at byte 34 must be 24, .*, got 536"),
        ({"image_size": 32}, "2 rows of 16 bytes from byte 54 on must end by byte 78, got 86"),
        ({"file_size": 79}, r"size of the file must be the 79 bytes stated at byte 2, got 78 \(cut short\?\)"),
        ({"file_size": 53}, "size of the file must be the 53 bytes stated at byte 2, got 78"),
        ({"file_size": 77}, "2 rows of 12 bytes from byte 54 on must end by byte 77, got 78"),
        ({"padding": b"\0\1\0\0"}, r"padding behind the pixels of a row must be 0, got 1 at byte 67: is the width right\?"),
    ],
    ids=str,
)
def test_a_damaged_header_is_named_with_its_byte(read, form, message):
    with pytest.raises(AssetError, match=rf"a\.bmp: {message}"):
        read(made_by_hand(**form))


def test_sides_that_the_file_cannot_hold_are_refused(read):
    side = 65_536
    data = bytearray(made_by_hand(file_size=0, image_size=0, width=side, height=side))
    with pytest.raises(AssetError, match=r"bytes behind the pixel offset must be 17179869184, .*, got 24"):
        read(bytes(data))


def test_more_cells_than_a_file_may_hold_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("hilsim.background.files.metadata.MOST_CELLS", 14)
    with pytest.raises(AssetError, match=r"rows x columns must be at most 14, got 3 x 5"):
        write_bitmap(told(), tmp_path / "a.bmp")
    assert list(tmp_path.iterdir()) == []
    assert MOST_CELLS == 67_108_864


def test_a_file_of_another_kind_is_refused(read):
    with pytest.raises(AssetError, match=r"a BMP must start with b'BM', got b'\\xd4\\xc3' at byte 0"):
        read(b"\xd4\xc3\xb2\xa1" + bytes(100))


def test_an_empty_or_missing_file_is_refused(read, tmp_path):
    with pytest.raises(AssetError, match="must not be empty, got 0 bytes"):
        read(b"")
    with pytest.raises(AssetError, match=r"none\.bmp: no such file"):
        read_bitmap(tmp_path / "none.bmp")


def test_our_own_bitmap_cut_anywhere_is_refused(read, written):
    data = written(told())
    for size in range(1, len(data)):
        with pytest.raises(AssetError, match=r"a\.bmp: (a BMP must (start|have)|size of the file must be the \d+ bytes stated at byte 2)"):
            read(data[:size], None)


def test_our_own_bitmap_with_any_byte_changed_is_refused(read, written):
    data = written(told())
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 0x10
        with pytest.raises(AssetError, match=r"a\.bmp: "):
            read(bytes(changed), None)


def test_a_changed_pixel_of_our_own_bitmap_is_reported_by_the_check_sum(read, written):
    changed = bytearray(written(told()))
    changed[PIXELS_AT] ^= 1
    with pytest.raises(AssetError, match=r"CRC-32 must be 0x[0-9a-f]{8} as at byte 194, got 0x[0-9a-f]{8}: damaged or edited"):
        read(bytes(changed), None)


def test_an_edited_bitmap_is_taken_without_its_trailer(read, written):
    edited = bytearray(written(told())[: PIXELS_AT + 60])
    edited[2:6] = struct.pack("<I", len(edited))
    edited[PIXELS_AT : PIXELS_AT + 4] = struct.pack("<I", 0xC0003C3C)
    found = read(bytes(edited), AZIMUTH)
    assert (found.distance_mm[0, 0], found.flags[0, 0], found.intensity[0, 0]) == (15420, VALID, 0)
    assert found.distance_mm[0, 1:].tolist() == told().distance_mm[0, 1:].tolist()


def test_bytes_behind_the_trailer_are_refused(read, written):
    data = written(told())
    with pytest.raises(AssetError, match=rf"hilsim's trailer must end with the file at byte {len(data) + 1}, got {len(data)} \(size at byte 190\)"):
        read(data + b"\n", None)


def test_a_trailer_without_its_header_is_refused(read):
    with pytest.raises(AssetError, match="hilsim's trailer at byte 78 must have 16 bytes, got 8"):
        read(made_by_hand(behind=b"hilsim\r\n"), None)


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
