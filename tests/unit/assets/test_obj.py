"""OBJ files by hand: what is read, and how each fault is named with its line."""

import numpy as np
import pytest

from hilsim.errors import AssetError
from hilsim.world.assets.obj import read_obj

SQUARE = "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\n"


@pytest.fixture
def obj(tmp_path):
    def write(text):
        path = tmp_path / "thing.obj"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_a_polygon_becomes_a_fan(obj):
    (part,) = read_obj(obj(SQUARE + "f 1 2 3 4\n")).parts
    assert part.triangles.tolist() == [[0, 1, 2], [0, 2, 3]]


@pytest.mark.parametrize("face", ["f 1/1 2/2 3/3", "f 1//1 2//2 3//3", "f 1/1/1 2/2/2 3/3/3", "f -4 -3 -2", "f 1 2 \\\n3", "f 1 2 3 # a comment"])
def test_every_way_to_write_a_face_means_the_same(obj, face):
    (part,) = read_obj(obj(SQUARE + face + "\n")).parts
    assert part.triangles.tolist() == [[0, 1, 2]]


def test_utm_coordinates_keep_every_digit(obj):
    (part,) = read_obj(obj("v 691000.123456 5334000.654321 520.5\nv 691001 5334000 520\nv 691000 5334001 520\nf 1 2 3\n")).parts
    assert part.vertices[0].tolist() == [691000.123456, 5334000.654321, 520.5]


def test_material_names_are_kept_though_no_library_is_named(obj):
    (part,) = read_obj(obj(SQUARE + "f 1 2 3\nusemtl Red brick\nf 1 3 4\nusemtl Glass\nf 1 2 4\nusemtl Red brick\nf 2 3 4\n")).parts
    assert part.names == ("", "Red brick", "Glass")
    assert part.material.tolist() == [0, 1, 2, 1]


def test_normals_groups_lines_and_colours_are_passed_over(obj):
    (part,) = read_obj(obj("o a\ng b\ns 1\nv 0 0 0 1 0 0\nv 1 0 0 1 0 0\nv 0 1 0 1 0 0\nvn 0 0 1\nvt 0 0\nl 1 2\np 1\nf 1 2 3\n")).parts
    assert len(part.triangles) == 1


def test_names_in_latin_1_are_read(obj):
    (part,) = read_obj(obj(SQUARE.encode() + b"usemtl Stra\xdfe\nf 1 2 3\n")).parts
    assert part.names == ("Straße",)


@pytest.mark.parametrize("name", ["none.mtl", "C:\\models\\my wall.mtl", "a" * 5000, ""])
def test_a_library_is_not_read_so_it_may_be_missing(obj, name):
    assert read_obj(obj(f"mtllib {name}\n" + SQUARE + "f 1 2 3\n")).parts


@pytest.mark.parametrize("text", ["# wall\n" + SQUARE, SQUARE])
def test_a_byte_order_mark_is_no_part_of_the_text(obj, text):
    assert len(read_obj(obj("\ufeff" + text + "f 1 2 3\n")).parts[0].triangles) == 1


def test_names_may_contain_a_number_sign_and_a_comment_may_follow(obj):
    (part,) = read_obj(obj(SQUARE + "usemtl Material #25\nf 1 2 3\nusemtl Material #26 # of walls\ng wall#1\nf 1 3 4\n# f 1 2 4\nf 1 2 4 #f\n")).parts
    assert (part.names, part.pieces, part.material.tolist()) == (("Material #25", "Material #26"), ("", "wall#1"), [0, 1, 1])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SQUARE + "f 1 2 9\n", r"thing\.obj: line 5: a face must name vertices 1 to 4 \(those before it\), got 9"),
        (SQUARE + "f 0 1 2\n", "line 5: a face must name vertices 1 to 4 .* got 0"),
        (SQUARE + "f -5 1 2\n", "line 5: .* got -5"),
        (SQUARE + "f 1 2\n", "line 5: a face must have at least three vertices, got 2"),
        (SQUARE + "f 1 b 3\n", "line 5: a face must name vertices by number, got 'b'"),
        (SQUARE + "v 1 2\nf 1 2 3\n", "line 5: a vertex must have three numbers, got '1 2'"),
        ("v 0 0 nan\n" + SQUARE + "f 1 2 3\n", r"line 1: a vertex must be finite, got \(0.0, 0.0, nan\)"),
        (SQUARE, "must have at least one face .* got 4 vertices and none"),
        (SQUARE + "l 1 2\n", "must have at least one face"),
        ("hello world\n", "line 1: must begin with an OBJ keyword of polygons, got 'hello'"),
        (SQUARE + "f 1 2 3 \\\n", "line 5: the file must not end in a continued line"),
        (b"v 0 0\0 0\n", "must be an OBJ text file, got a zero byte at 5"),
    ],
    ids=range(12),
)
def test_a_fault_is_named_with_its_line(obj, text, message):
    with pytest.raises(AssetError, match=message):
        read_obj(obj(text))


def test_faults_are_reported_together_up_to_ten(obj):
    with pytest.raises(AssetError) as caught:
        read_obj(obj(SQUARE + "f 1 2 9\n" * 30))
    assert [line.split(": ")[1] for line in str(caught.value).splitlines()] == [f"line {number}" for number in range(5, 15)]


def test_a_large_file_is_read_whole(obj):
    rng = np.random.default_rng(1)
    vertices = rng.normal(size=(2000, 3))
    text = "".join(f"v {x!r} {y!r} {z!r}\n" for x, y, z in vertices.tolist()) + "".join(f"f {i} {i + 1} {i + 2}\n" for i in range(1, 1999))
    (part,) = read_obj(obj(text)).parts
    np.testing.assert_array_equal(part.vertices, vertices)
    assert len(part.triangles) == 1998


def test_a_face_of_too_many_corners_is_refused_with_its_line(obj):
    with pytest.raises(AssetError, match="line 5: corners of a face must be at most 10,000, got 10,001"):
        read_obj(obj(SQUARE + "f" + " 1" * 10_001 + "\n"))


def test_a_line_without_end_is_refused(obj):
    with pytest.raises(AssetError, match=r"line 5: length of a line must be at most 1,048,576 bytes, got 1,800,00"):
        read_obj(obj(SQUARE + "f" + " 1" * 900_000 + "\n"))


def test_continued_lines_count_as_one(obj):
    with pytest.raises(AssetError, match=r"line 16: length of a line must be at most 1,048,576 bytes"):
        read_obj(obj(SQUARE + "f" + (" 1" * 45_000 + "\\\n") * 20 + "\n"))


def test_a_number_of_thousands_of_digits_is_no_vertex(obj):
    with pytest.raises(AssetError, match="line 5: a face must name vertices by number, got '11111111111111111111'"):
        read_obj(obj(SQUARE + "f 1 2 " + "1" * 5000 + "\n"))
