"""Heightmaps of SDF files against a plain statement of Gazebo's rules: a loop over vertices, in words of its own."""

import math
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from hilsim.errors import AssetError
from hilsim.world.assets import heightmaps
from hilsim.world.assets.heightmaps import heightmap_mesh
from hilsim.world.assets.sdf_objects import sdf_objects
from hilsim.world.geometry.poses import Pose
from hilsim.world.scene.specs import BUILT_IN_MATERIALS
from hilsim.world.sdf.reading import read_sdf
from hilsim.world.sdf.specs import SdfShape
from tests.unit.assets.test_terrain import write_tiff

GREY = np.random.default_rng(7).integers(0, 200, (5, 5))
"""Brightest 199 at most: no height is that of white."""


def shape_of(path, size=(40.0, 20.0, 8.0), **rest):
    return SdfShape(name="ground", kind="heightmap", pose=Pose(), size_m=size, file=path, uri=path.name, **rest)


def vertices(path, size=(40.0, 20.0, 8.0), *, is_seen=False, **rest):
    mesh, why = heightmap_mesh(shape_of(path, size, **rest), BUILT_IN_MATERIALS["grass"], is_seen=is_seen)
    assert why == ""
    side = math.isqrt(len(mesh.vertices_m))
    return mesh.vertices_m.reshape(side, side, 3)


def stated(shares, brightest, size, samples):
    """Where Gazebo's physics has the vertices of an image: each worked out alone, the first row in the north."""
    width = len(shares)
    count = width * samples - samples + 1
    found = np.empty((count, count, 3))
    for j in range(count):
        for i in range(count):
            x, y = i / samples, j / samples
            x1, y1 = int(x), int(y)
            x2, y2 = min(math.ceil(x), width - 1), min(math.ceil(y), width - 1)
            north = shares[y1][x1] * (1 - (x - x1)) + shares[y1][x2] * (x - x1)
            south = shares[y2][x1] * (1 - (x - x1)) + shares[y2][x2] * (x - x1)
            height = (north * (1 - (y - y1)) + south * (y - y1)) * abs(size[2]) / brightest
            height = 1.0 - height if size[2] < 0 else height
            found[j, i] = (i - (count - 1) / 2) * size[0] / count, ((count - 1) / 2 - j) * size[1] / count, height
    return found


def save(path, pixels, kind):
    Image.fromarray(np.asarray(pixels, dtype=kind)).save(path)
    return path


@pytest.mark.parametrize("samples", [1, 2, 3])
@pytest.mark.parametrize("height_m", [8.0, -8.0])
@pytest.mark.parametrize(("kind", "most"), [(np.uint8, 255), (np.uint16, 65535)])
def test_a_collisions_heights_are_where_gazebos_physics_puts_them(tmp_path, kind, most, height_m, samples):
    pixels = GREY * (1 if most == 255 else 200)
    path = save(tmp_path / "a.png", pixels, kind)
    size = (40.0, 20.0, height_m)
    np.testing.assert_allclose(vertices(path, size, sampling=samples), stated(pixels / most, pixels.max() / most, size, samples), atol=1e-9)


def test_the_highest_is_the_sizes_z_however_bright_and_zero_is_at_zero(tmp_path):
    at = vertices(save(tmp_path / "a.png", [[0, 30], [10, 20]], np.uint8))
    np.testing.assert_allclose(at[:, :, 2], [[0.0, 8.0], [8.0 / 3, 16.0 / 3]])


def test_of_colours_red_counts_and_the_brightest_of_all_channels_is_the_scale(tmp_path):
    pixels = np.random.default_rng(8).integers(0, 180, (5, 5, 3))
    pixels[3, 1] = 60, 255, 255
    np.testing.assert_allclose(
        vertices(save(tmp_path / "a.png", pixels, np.uint8)), stated(pixels[:, :, 0] / 255, 60 / 255, (40.0, 20.0, 8.0), 1), atol=1e-9
    )


def test_of_equally_bright_colours_the_first_from_the_south_is_the_scale(tmp_path):
    pixels = np.zeros((3, 3, 3), np.uint8)
    pixels[0, 0], pixels[2, 2] = (200, 0, 0), (50, 100, 50)
    assert vertices(save(tmp_path / "a.png", pixels, np.uint8))[0, 0, 2] == pytest.approx(8.0 * 200 / 50)


def test_a_palette_and_a_jpeg_are_colours(tmp_path):
    pixels = np.full((5, 5, 3), 100, np.uint8)
    pixels[:2] = 200
    Image.fromarray(pixels).quantize(4).save(tmp_path / "a.png")
    Image.fromarray(pixels).resize((64, 64), Image.Resampling.NEAREST).save(tmp_path / "a.jpg", quality=100)
    assert vertices(tmp_path / "a.png")[4, 4, 2] == pytest.approx(4.0)
    assert vertices(tmp_path / "a.jpg")[60, 60, 2] == pytest.approx(4.0, abs=0.1)


def test_black_is_flat(tmp_path):
    assert not vertices(save(tmp_path / "a.png", np.zeros((3, 3)), np.uint8))[:, :, 2].any()


def test_cells_are_cut_zigzag_as_bullet_cuts_them_and_face_up(tmp_path):
    path = save(tmp_path / "a.png", GREY, np.uint8)
    mesh, _ = heightmap_mesh(shape_of(path), BUILT_IN_MATERIALS["grass"], is_seen=False)
    expected = set()
    for j in range(4):  # rows of cells from the south; vertices are counted from the north
        for x in range(4):
            sw, se, nw, ne = ((4 - j - up) * 5 + x + right for up, right in ((0, 0), (0, 1), (1, 0), (1, 1)))
            halves = ((sw, nw, ne), (sw, ne, se)) if j % 2 == 0 else ((sw, nw, se), (se, nw, ne))
            expected |= {frozenset(half) for half in halves}
    assert {frozenset(triangle) for triangle in mesh.triangles.tolist()} == expected
    a, b, c = np.moveaxis(mesh.vertices_m[mesh.triangles], 1, 0)
    assert (np.cross(b - a, c - a)[:, 2] > 0.0).all()


# -- what is seen -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "samples", "cells"), [(5, 1, 4), (5, 2, 8), (4, 1, 4), (4, 2, 8)])
def test_what_is_seen_fills_its_size_with_cells_of_a_power_of_two(tmp_path, width, samples, cells):
    pixels = np.random.default_rng(9).integers(0, 255, (width, width))
    at = vertices(save(tmp_path / "a.png", pixels, np.uint8), is_seen=True, sampling=samples)
    assert at.shape == (cells + 1, cells + 1, 3)
    np.testing.assert_allclose(at[0, :, 0], np.linspace(-20.0, 20.0, cells + 1))
    np.testing.assert_allclose(at[:, 0, 1], np.linspace(10.0, -10.0, cells + 1))
    last = (width - 1) * samples + 1  # of the heights that the image has
    np.testing.assert_allclose(at[:last:samples, :last:samples, 2], pixels / pixels.max() * 8.0)
    np.testing.assert_allclose(at[last - 1 :, :, 2], np.broadcast_to(at[last - 1, :, 2], at[last - 1 :, :, 2].shape))


def world(folder, heightmap, tag="collision"):
    text = f'<{tag} name="ground"><pose>1 2 3 0 0 0</pose><geometry><heightmap>{heightmap}</heightmap></geometry></{tag}>'
    path = folder / "world.sdf"
    path.write_text(
        f'<sdf version="1.9"><world name="w"><model name="m"><pose>100 0 0 0 0 1.5707963267948966</pose><link name="l">\n{text}</link></model></world></sdf>'
    )
    return path


def objects(folder, heightmap, sees="collisions"):
    return sdf_objects(read_sdf(world(folder, heightmap, sees.removesuffix("s"))), BUILT_IN_MATERIALS, sees)


def test_a_heightmaps_position_moves_what_is_seen_and_not_what_is_met(tmp_path):
    save(tmp_path / "a.png", GREY, np.uint8)
    text = "<uri>a.png</uri><size>4 4 1</size><pos>10 0 -5</pos>"
    (met,), (note,) = objects(tmp_path, text)
    np.testing.assert_allclose(met.placement.position_m, (98, 1, 3), atol=1e-12)
    assert note == f"{tmp_path}/world.sdf:2: <pos> of a heightmap moves only the visual, as in Gazebo: m::l::ground is placed by its pose"
    (seen,), notes = objects(tmp_path, text, "visuals")
    np.testing.assert_allclose(seen.placement.position_m, (98, 11, -2), atol=1e-12)
    assert notes == ()


def test_a_heightmap_that_gazebo_does_not_draw_is_only_a_collision(tmp_path):
    save(tmp_path / "a.png", np.ones((7, 7)), np.uint8)
    (met,), notes = objects(tmp_path, "<uri>a.png</uri>")
    assert (len(met.mesh.vertices_m), notes) == (49, ())
    seen, (note,) = objects(tmp_path, "<uri>a.png</uri>", "visuals")
    assert seen == []
    assert "world.sdf:2: Gazebo draws no heightmap of 7 heights a side with a sampling of 1: they must be 2^n or 2^n + 1: m::l::ground is" in note


def test_without_a_size_it_is_a_metre_as_in_libsdformat(tmp_path):
    save(tmp_path / "a.png", GREY, np.uint8)
    (met,), _ = objects(tmp_path, "<uri>a.png</uri>")
    np.testing.assert_allclose(np.ptp(met.mesh.vertices_m, axis=0)[:2], [0.8, 0.8])
    assert met.mesh.vertices_m[:, 2].max() == pytest.approx(1.0)


# -- elevation models -------------------------------------------------------------------------------------------------------------------


def test_a_dem_keeps_its_lowest_height_and_its_highest_is_the_size_above_it(tmp_path):
    values = np.linspace(100.0, 300.0, 25, dtype=np.float32).reshape(5, 5)
    write_tiff(tmp_path / "a.tif", values)
    at = vertices(tmp_path / "a.tif")
    np.testing.assert_allclose(at[:, :, 2], 100.0 + (values - 100.0) * (8.0 / 200.0), rtol=1e-6)
    np.testing.assert_allclose(vertices(tmp_path / "a.tif", (40.0, 20.0, -8.0))[:, :, 2], -at[:, :, 2])


def test_a_dem_that_is_no_square_is_stretched_to_one_and_filled_up_with_its_lowest_height(tmp_path):
    rng = np.random.default_rng(3)
    for rows, columns in ((6, 3), (3, 6)):
        values = rng.uniform(10.0, 90.0, (rows, columns)).astype(np.float32)
        write_tiff(tmp_path / "a.tif", values)
        at = vertices(tmp_path / "a.tif", (1.0, 1.0, float(values.max()) - float(values.min())))
        assert at.shape[0] == 9  # 8 + 1, for 6 fit into 8
        deep, wide = (9, 4) if rows > columns else (4, 9)
        for j in range(9):
            for i in range(9):
                inside = j < deep and i < wide
                expected = values[int((j + 0.5) * rows / deep), int((i + 0.5) * columns / wide)] if inside else values.min()
                assert at[j, i, 2] == pytest.approx(float(expected), rel=1e-6)


@pytest.mark.parametrize(("nodata", "marker"), [("-32768", -32768.0), (None, -9999.0), ("nan", math.nan)])
def test_missing_heights_of_a_dem_are_at_the_lowest(tmp_path, nodata, marker):
    values = np.full((5, 5), 50.0, np.float32)
    values[0, 0], values[4, 4], values[2, 2] = 40.0, 60.0, marker
    write_tiff(tmp_path / "a.tif", values, nodata=nodata)
    at = vertices(tmp_path / "a.tif", sampling=2)[:, :, 2]
    assert (at[0, 0], at[4, 4], at[-1, -1]) == (40.0, 40.0, pytest.approx(48.0))


def test_a_dem_may_be_in_degrees_for_its_size_is_the_worlds(tmp_path):
    write_tiff(tmp_path / "a.tif", np.eye(3, dtype=np.float32), keys=(1024, 0, 1, 2))
    assert vertices(tmp_path / "a.tif").shape == (3, 3, 3)


# -- what is refused --------------------------------------------------------------------------------------------------------------------


def refused(path, **rest):
    with pytest.raises(AssetError) as caught:
        heightmap_mesh(shape_of(path, **rest), BUILT_IN_MATERIALS["grass"], is_seen=False)
    assert str(caught.value).startswith(str(path))
    return str(caught.value)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(columns, rows, depth, colour, data=b"", extra=b""):
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", columns, rows, depth, colour, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + extra + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("side", "why"),
    [(100_000, "Image size (10000000000 pixels) exceeds limit"), (10_000, "heights (10000 x 10000) must be at most 4,198,401, got 100,000,000")],
)
def test_an_image_of_very_many_pixels_is_refused_before_it_is_decoded(tmp_path, side, why):
    path = tmp_path / "a.png"
    path.write_bytes(png(side, side, 8, 0, bytes(1_000_000)))
    assert why in refused(path)


def test_many_heights_in_place_of_each_are_refused_before_they_are_made(tmp_path):
    path = save(tmp_path / "a.png", GREY, np.uint8)
    assert "heights (4001 x 4001, of 5 with a sampling of 1000) must be at most 4,198,401, got 16,008,001" in refused(path, sampling=1000)
    assert "must be at most 4,198,401" in refused(path, sampling=10**14)


def test_an_image_that_gazebo_would_not_read_is_refused(tmp_path):
    path = tmp_path / "a.png"
    Image.fromarray(np.zeros((4, 5), np.uint8)).save(path)
    assert "an image of heights must be square, got 5 x 4" in refused(path)
    Image.new("LA", (4, 4)).save(path)
    assert "must be grey (without transparency), RGB or RGBA, got mode LA" in refused(path)
    Image.new("L", (4, 4)).save(path, transparency=3)
    assert "must be grey (without transparency), RGB or RGBA, got mode L" in refused(path)
    Image.new("CMYK", (4, 4)).save(tmp_path / "a.jpg")
    assert "got mode CMYK" in refused(tmp_path / "a.jpg")
    path.write_bytes(png(2, 2, 16, 2, bytes(2 * 13)))
    assert "must have 8 bits a channel, or 16 bits grey, got 16 bits in colour" in refused(path)


@pytest.mark.parametrize("data", [b"", b"\x89PNG\r\n\x1a\n", b"GIF89a" + bytes(20), png(4, 4, 8, 0)[:-30]])
def test_an_image_that_is_damaged_or_of_another_kind_is_refused(tmp_path, data):
    path = tmp_path / "a.png"
    path.write_bytes(data)
    assert refused(path)


def test_a_dem_without_any_height_is_refused(tmp_path):
    write_tiff(tmp_path / "a.tif", np.full((3, 3), -9999.0, np.float32))
    assert "must have a height, got none without missing data" in refused(tmp_path / "a.tif")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("<size>nan 1 1</size>", '<size> must be a finite number, got "nan"'),
        ("<size>1 1 1e300</size>", "the height of a <heightmap> must be at most 100,000,000 m"),
        ("<size>0 1 1</size>", "<size> of a <heightmap> must be at least 1e-06 m"),
        ("<size>-1 1 1</size>", "<size> of a <heightmap> must be at least 1e-06 m"),
        ("<pos>0 1e9 0</pos>", "<pos> and the height of a <heightmap> must be at most"),
        ("<sampling>0</sampling>", "<sampling> must be at least 1, got 0"),
        ("<sampling>-1</sampling>", "<sampling> must be a whole number of 0 or more"),
    ],
)
def test_a_heightmap_without_a_sound_size_is_a_fault_with_its_line(tmp_path, text, fault):
    save(tmp_path / "a.png", GREY, np.uint8)
    with pytest.raises(AssetError) as caught:
        objects(tmp_path, f"<uri>a.png</uri>{text}")
    assert fault in str(caught.value)
    assert str(caught.value).startswith(f"{tmp_path}/world.sdf:2: ")


def test_a_broken_image_is_a_fault_with_the_files_line(tmp_path):
    (tmp_path / "a.png").write_text("no image")
    with pytest.raises(AssetError, match=r"world\.sdf:2: m::l::ground: .*a\.png: must be a PNG or JPEG image"):
        objects(tmp_path, "<uri>a.png</uri>")


def test_an_elevation_model_of_another_format_is_left_out_by_name_and_line(tmp_path):
    for place in (tmp_path / "a.dem", tmp_path / "nowhere.nc"):
        if place.suffix == ".dem":
            place.write_text("USGS")
        found, (note,) = objects(tmp_path, f"<uri>{place.name}</uri>")
        assert found == []
        assert note.startswith(
            f'{tmp_path}/world.sdf:2: a <heightmap> of format "{place.suffix}" is not supported ({", ".join(heightmaps.SUFFIXES)})'
        )


def test_a_heightmap_that_is_named_twice_is_read_once(tmp_path, monkeypatch):
    save(tmp_path / "a.png", GREY, np.uint8)
    read, reads = heightmaps._read_image, []
    monkeypatch.setattr(heightmaps, "_read_image", lambda path: reads.append(path) or read(path))
    text = '<collision name="{}"><geometry><heightmap><uri>a.png</uri></heightmap></geometry></collision>'
    (tmp_path / "w.sdf").write_text(f'<sdf version="1.9"><model name="m"><link name="l">{text.format("a")}{text.format("b")}</link></model></sdf>')
    (first, second), _ = sdf_objects(read_sdf(tmp_path / "w.sdf"), BUILT_IN_MATERIALS)
    assert first.mesh is second.mesh
    assert len(reads) == 1
