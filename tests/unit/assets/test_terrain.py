"""Height maps written by Pillow with and without GeoTIFF tags."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from PIL.TiffImagePlugin import ImageFileDirectory_v2

from hilsim.errors import AssetError
from hilsim.world.assets import rasters
from hilsim.world.assets.terrain import load_terrain
from hilsim.world.scene.object_specs import TerrainSpec
from hilsim.world.scene.specs import BUILT_IN_MATERIALS
from tests.meshes import areas_m2

RAMP = np.array([[0, 1000, 2000], [3000, 4000, 65535]])
"""Two rows, three columns; the first row is in the north."""


def load(folder, name, **rest):
    return load_terrain(TerrainSpec(file=name, **rest), folder, BUILT_IN_MATERIALS)


def write_png(path, values=RAMP):
    Image.fromarray(np.asarray(values, dtype=np.uint16)).save(path)


def write_tiff(path, values, *, scale=(2.0, 3.0, 0.0), tie=(0.0, 0.0, 0.0, 691000.0, 5334000.0, 0.0), keys=(1024, 0, 1, 1), nodata=None, extra=None):
    tags = ImageFileDirectory_v2()
    if scale:
        tags[33550] = scale
        tags.tagtype[33550] = 12
    if tie:
        tags[33922] = tie
        tags.tagtype[33922] = 12
    if keys:
        tags[34735] = (1, 1, 0, len(keys) // 4, *keys)
        tags.tagtype[34735] = 3
    if nodata is not None:
        tags[42113] = nodata
        tags.tagtype[42113] = 2
    for tag, (kind, value) in (extra or {}).items():
        tags[tag] = value
        tags.tagtype[tag] = kind
    if values.dtype == np.int16:  # which Pillow reads but does not write
        tags[339] = 2
        tags.tagtype[339] = 3
        values = values.view(np.uint16)
    Image.fromarray(values).save(path, tiffinfo=tags)


def grid(mesh, rows, columns):
    return mesh.vertices_m.reshape(rows, columns, 3)


def test_a_png_is_a_grid_with_its_south_west_corner_at_zero_and_north_up(tmp_path):
    write_png(tmp_path / "a.png")
    mesh, notes = load(tmp_path, "a.png", size_m=(20.0, 5.0), scale_m=0.01, offset_m=-1.0)
    corners = grid(mesh, 2, 3)
    assert corners[1, 0].tolist() == [0.0, 0.0, pytest.approx(29.0)]
    assert corners[0, 0].tolist() == [0.0, 5.0, -1.0]
    assert corners[1, 2].tolist() == [20.0, 0.0, pytest.approx(654.35)]
    assert notes == ()


def test_the_span_of_heights_is_that_of_the_format(tmp_path):
    write_png(tmp_path / "a.png")
    mesh, _ = load(tmp_path, "a.png", pixel_m=1.0, height_min_m=100.0, height_max_m=200.0)
    assert grid(mesh, 2, 3)[0, 0, 2] == 100.0
    assert grid(mesh, 2, 3)[1, 2, 2] == 200.0


def test_every_triangle_faces_up_and_the_whole_area_is_covered(tmp_path):
    write_png(tmp_path / "a.png", np.zeros((5, 4)))
    mesh, _ = load(tmp_path, "a.png", pixel_m=2.0, scale_m=1.0)
    a, b, c = np.moveaxis(mesh.vertices_m[mesh.triangles], 1, 0)
    assert (np.cross(b - a, c - a)[:, 2] > 0.0).all()
    assert areas_m2(mesh).sum() == pytest.approx(6.0 * 8.0)
    assert [material.name for material in mesh.materials] == ["grass"]


@pytest.mark.parametrize("dtype", [np.float32, np.uint16, np.int16])
def test_a_geotiff_says_its_size_and_its_values_are_metres(tmp_path, dtype):
    write_tiff(tmp_path / "a.tif", np.array([[1, 2], [3, 40]], dtype=dtype))
    mesh, notes = load(tmp_path, "a.tif")
    np.testing.assert_array_equal(grid(mesh, 2, 2), [[[0, 3, 1], [2, 3, 2]], [[0, 0, 3], [2, 0, 40]]])
    assert notes == ()


@pytest.mark.parametrize("compression", ["raw", "packbits", "tiff_lzw", "tiff_adobe_deflate"])
@pytest.mark.parametrize("dtype", [np.uint16, np.float32])
def test_heights_of_a_tiff_that_pillow_wrote_are_exact_in_every_compression(tmp_path, compression, dtype):
    values = np.random.default_rng(1).integers(0, 9000, (40, 30)).astype(dtype)
    Image.fromarray(values).save(tmp_path / "a.tif", compression=compression)
    np.testing.assert_array_equal(grid(load(tmp_path, "a.tif", pixel_m=1.0)[0], 40, 30)[:, :, 2], values)


def test_negative_heights_of_a_signed_geotiff_stay_negative(tmp_path):
    write_tiff(tmp_path / "a.tif", np.array([[-5, 2], [3, -32768]], dtype=np.int16))
    spanned = load(tmp_path, "a.tif", height_min_m=0.0, height_max_m=65535.0)[0]
    assert spanned.vertices_m[:, 2].tolist() == [32763.0, 32770.0, 32771.0, 0.0]
    write_tiff(tmp_path / "a.tif", np.array([[-5, 2], [3, -8999]], dtype=np.int16))
    assert load(tmp_path, "a.tif")[0].vertices_m[:, 2].tolist() == [-5.0, 2.0, 3.0, -8999.0]


def test_a_georeferenced_map_lies_where_it_says_heights_in_the_middle_of_their_pixels(tmp_path):
    write_tiff(tmp_path / "a.tif", np.ones((2, 2), dtype=np.float32))
    mesh, _ = load(tmp_path, "a.tif", georeferenced=True)
    assert grid(mesh, 2, 2)[0, 0].tolist() == [691001.0, 5333998.5, 1.0]
    assert grid(mesh, 2, 2)[1, 1].tolist() == [691003.0, 5333995.5, 1.0]


def test_a_raster_of_points_is_not_shifted_and_the_tie_point_may_be_any_pixel(tmp_path):
    tie = (1.0, 1.0, 0.0, 691000.0, 5334000.0, 0.0)
    write_tiff(tmp_path / "a.tif", np.ones((2, 2), dtype=np.float32), keys=(1024, 0, 1, 1, 1025, 0, 1, 2), tie=tie)
    mesh, _ = load(tmp_path, "a.tif", georeferenced=True)
    assert grid(mesh, 2, 2)[1, 1].tolist() == [691000.0, 5334000.0, 1.0]


@pytest.mark.parametrize(
    ("nodata", "dtype", "value"),
    [("-9999", np.float32, -9999), ("-32768", np.int16, -32768), ("nan", np.float32, np.nan), ("-3.4e+38", np.float32, -3.4e38)],
)
def test_missing_heights_leave_holes_and_are_noted(tmp_path, nodata, dtype, value):
    values = np.ones((3, 3), dtype=dtype)
    values[0, 0] = value
    write_tiff(tmp_path / "a.tif", values, nodata=nodata)
    mesh, notes = load(tmp_path, "a.tif")
    assert areas_m2(mesh).sum() == pytest.approx(4 * 6.0 - 3.0)
    assert notes == (f"{tmp_path / 'a.tif'}: 1 of 9 heights are missing and leave holes",)


@pytest.mark.parametrize(
    ("marker", "dtype"),
    [(-9999, np.float32), (-32768, np.int16), (32767, np.int16), (-999, np.float32), (-99999, np.int32), (np.nan, np.float32)],
)
def test_missing_heights_that_the_file_does_not_declare_leave_holes_and_are_noted_with_their_height(tmp_path, marker, dtype):
    values = np.full((3, 3), 500, dtype=dtype)
    values[0, 0] = marker
    write_tiff(tmp_path / "a.tif", values, nodata="-1" if np.isnan(marker) else None)
    mesh, notes = load(tmp_path, "a.tif")
    assert areas_m2(mesh).sum() == pytest.approx(4 * 6.0 - 3.0)
    how = " are missing and leave holes" if np.isnan(marker) else f" ({marker:g}) are far from all others: taken as missing, they leave holes"
    assert notes == (f"{tmp_path / 'a.tif'}: 1 of 9 heights{how}",)


def test_a_sea_floor_of_about_the_depth_of_a_marker_is_no_missing_data(tmp_path):
    write_tiff(tmp_path / "a.tif", np.array([[-9999, -9600], [-9300, -8900]], dtype=np.float32))
    mesh, notes = load(tmp_path, "a.tif")
    assert (len(mesh.triangles), notes) == (2, ())


def projected(code, *more):
    return (1024, 0, 1, 1, 3072, 0, 1, code, *more)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            projected(3857),
            r"a metre of the map must be one on the ground, got 0\.731 m east-west and 0\.728 m north-south in EPSG:3857; .* EPSG:32632\)",
        ),
        (projected(2263), "must be in metres, got US survey foot across"),
        (projected(32632, 4096, 0, 1, 6360), "must be in metres, got metre across and US survey foot up"),
        (projected(32632, 4099, 0, 1, 9003), "must be in metres .* got unit codes 9001 across and 9003 up"),
        ((1024, 0, 1, 3), "got a geocentric one"),
    ],
)
def test_a_map_that_is_not_in_metres_on_the_ground_is_refused_by_its_code_too(tmp_path, keys, message):
    write_tiff(tmp_path / "a.tif", ones(), keys=keys)
    with pytest.raises(AssetError, match=message):
        load(tmp_path, "a.tif")


def test_degrees_without_a_coordinate_system_are_refused(tmp_path):
    write_tiff(tmp_path / "a.tif", ones(), scale=(0.0003, 0.0003, 0.0), keys=None)
    with pytest.raises(AssetError, match=r"a pixel must be at least 0.01 m, got 0\.0003: degrees\?"):
        load(tmp_path, "a.tif")


def test_a_world_file_beside_a_tiff_gives_its_place(tmp_path):
    write_tiff(tmp_path / "a.tif", ones(), scale=None, tie=None, keys=None)
    (tmp_path / "a.tfw").write_text("2\n0\n0\n-3\n691001\n5333998.5\n")
    assert grid(load(tmp_path, "a.tif", georeferenced=True)[0], 2, 2)[0, 0].tolist() == [691001.0, 5333998.5, 1.0]


def test_a_map_without_a_coordinate_system_is_noted(tmp_path):
    write_tiff(tmp_path / "a.tif", np.ones((2, 2), dtype=np.float32), keys=None)
    assert "no coordinate system is given; its pixel size is taken as metres" in load(tmp_path, "a.tif")[1][0]


def ones():
    return np.ones((2, 2), dtype=np.float32)


@pytest.mark.parametrize(
    ("write", "rest", "message"),
    [
        (
            lambda path: write_tiff(path, ones(), keys=(1024, 0, 1, 2)),
            {},
            r"must be in a projected coordinate system in metres, got a geographic \(degrees\) one",
        ),
        (
            lambda path: write_tiff(path, ones(), keys=(1024, 0, 1, 1, 3076, 0, 1, 9003)),
            {},
            r"must be in metres \(unit code 9001\), got unit codes 9003 across",
        ),
        (
            lambda path: write_tiff(path, ones(), scale=None, tie=None, extra={34264: (12, (2.0, 1.0, 0.0, 5.0, 1.0, -2.0, 0.0, 7.0) + (0.0,) * 8)}),
            {},
            "must be north up with a pixel size above 0, got the matrix 2 1 1 -2",
        ),
        (lambda path: write_tiff(path, ones(), scale=(-1.0, 1.0, 0.0)), {}, "must be north up with a pixel size above 0, got the matrix -1 0 0 -1"),
        (lambda path: write_tiff(path, ones(), scale=None, extra={33550: (12, 2.0)}), {}, "terrain must have size_m or pixel_m in the rig"),
        (
            lambda path: write_tiff(path, ones(), tie=(0.0, 0.0)),
            {"georeferenced": True},
            r"must be a GeoTIFF with pixel scale \(33550\) and tie point",
        ),
        (
            lambda path: write_tiff(path, ones(), keys=None, extra={34735: (3, (1, 1, 0, 5))}),
            {},
            r"key directory \(34735\) must have 24 values, got 4",
        ),
        (lambda path: write_tiff(path, ones(), scale=None, tie=None), {}, "terrain must have size_m or pixel_m in the rig"),
        (lambda path: write_tiff(path, ones(), tie=None), {"georeferenced": True}, "georeferenced terrain must be a GeoTIFF with pixel scale"),
        (lambda path: write_tiff(path, ones() * np.inf), {}, "heights must be finite or marked as missing .* got inf in row 0, column 0"),
        (lambda path: write_tiff(path, ones() * np.nan), {}, "must have at least one triangle of heights"),
        (lambda path: write_tiff(path, ones(), nodata="1"), {}, "must have at least one triangle of heights"),
        (lambda path: write_tiff(path, ones(), nodata="none"), {}, "no-data value .* must be a number, got 'none'"),
        (lambda path: write_tiff(path, ones()), {"height_min_m": 0.0, "height_max_m": 1.0}, "must go with integers, got floating point"),
        (
            lambda path: write_tiff(path, np.ones((2, 2), dtype=np.uint8)),
            {},
            r"must have a band of heights in 16 or 32-bit integers, float32 or float64, got 8 bits: 256 steps \(gray\)",
        ),
        (lambda path: write_tiff(path, np.ones((2, 2, 3), dtype=np.uint8)), {}, r"got 8 bits: 256 steps \(red\)"),
        (lambda path: write_tiff(path, np.ones((1, 4), dtype=np.float32)), {}, "must be at least 2 x 2 heights, got 4 x 1"),
        (lambda path: path.write_bytes(b"II*\0nonsense"), {}, "cannot be decoded"),
        (lambda path: path.touch(), {}, "must not be empty"),
        (lambda _: None, {}, "no such file"),
    ],
    ids=range(20),
)
def test_a_tiff_that_cannot_be_terrain_is_refused(tmp_path, write, rest, message):
    write(tmp_path / "a.tif")
    with pytest.raises(AssetError, match=message) as caught:
        load(tmp_path, "a.tif", **rest)
    assert str(tmp_path / "a.tif") in str(caught.value)


@pytest.mark.parametrize("name", ["a.png", "a.tif"])
def test_an_image_cut_short_is_refused(tmp_path, name):
    values = np.random.default_rng(1).integers(0, 65535, (64, 64)).astype(np.uint16)
    Image.fromarray(values).save(tmp_path / name)
    data = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(data[: len(data) // 2])
    with pytest.raises(AssetError, match="cannot be decoded"):
        load(tmp_path, name, pixel_m=1.0, scale_m=1.0)


def test_an_8_bit_png_is_refused(tmp_path):
    Image.fromarray(np.ones((2, 2), dtype=np.uint8)).save(tmp_path / "a.png")
    with pytest.raises(AssetError, match=r"got 8 bits: 256 steps \(gray\); convert it"):
        load(tmp_path, "a.png", pixel_m=1.0, scale_m=1.0)


def test_a_png_without_heights_in_the_rig_is_refused(tmp_path):
    write_png(tmp_path / "a.png")
    with pytest.raises(AssetError, match="must have height_min_m and height_max_m or scale_m in the rig"):
        load(tmp_path, "a.png", pixel_m=1.0)


def test_another_kind_of_file_is_refused(tmp_path):
    with pytest.raises(AssetError, match=r'must be a \.png, \.tif or \.tiff, got "\.jpg"'):
        load(tmp_path, "a.jpg")


def test_too_many_heights_are_refused_before_they_are_decoded(tmp_path, monkeypatch):
    monkeypatch.setattr(rasters, "TERRAIN_HEIGHTS", replace(rasters.TERRAIN_HEIGHTS, bound=5))
    write_png(tmp_path / "a.png")
    with pytest.raises(AssetError, match=r"heights \(3 x 2\) must be at most 5, got 6"):
        load(tmp_path, "a.png", pixel_m=1.0, scale_m=1.0)


def test_a_single_height_far_above_the_rest_is_named_with_row_and_column(tmp_path):
    values = np.zeros((8, 8), dtype=np.float32)
    values[3, 5] = 7e32
    write_tiff(tmp_path / "a.tif", values)
    with pytest.raises(AssetError, match="the height in row 3, column 5 must have coordinates of at most 100,000,000 m"):
        load(tmp_path, "a.tif")
    values[3, 5] = 3e5
    write_tiff(tmp_path / "a.tif", values)
    with pytest.raises(
        AssetError, match=r"row 3, column 5 must be at most 200 km from the rest, got 300 km: a value for missing data that .* \(42113\)\?"
    ):
        load(tmp_path, "a.tif")


def said_of(folder, name):
    """Standard output and error of a process that reads a height map."""
    code = (
        "import sys; from pathlib import Path; from hilsim.world.assets.terrain import load_terrain; from hilsim.errors import AssetError\n"
        "from hilsim.world.scene.specs import BUILT_IN_MATERIALS\nfrom hilsim.world.scene.object_specs import TerrainSpec\n"
        f"try: load_terrain(TerrainSpec(file={name!r}, pixel_m=1.0), Path(sys.argv[1]), BUILT_IN_MATERIALS)\n"
        "except AssetError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True)
    return done.stdout, done.stderr


def test_a_damaged_compressed_tiff_is_refused_and_gdal_says_nothing_of_its_own(tmp_path):
    Image.fromarray(np.arange(4096, dtype=np.float32).reshape(64, 64)).save(tmp_path / "a.tif", compression="tiff_adobe_deflate")
    with Image.open(tmp_path / "a.tif") as image:
        start, size = image.tag_v2[273][0], image.tag_v2[279][0]
    data = bytearray((tmp_path / "a.tif").read_bytes())
    data[start : start + size] = b"\xff" * size
    (tmp_path / "a.tif").write_bytes(data)
    out, err = said_of(tmp_path, "a.tif")
    assert "a.tif: cannot be decoded" in out
    assert err == ""


def test_a_tiff_of_bands_that_it_lacks_is_refused_and_gdal_says_nothing_of_its_own(tmp_path):
    write_tiff(tmp_path / "a.tif", np.zeros((4, 4), dtype=np.float32), extra={277: (3, 136)})
    out, err = said_of(tmp_path, "a.tif")
    assert "a.tif: cannot be decoded: a.tif, band 1" in out
    assert err == ""
