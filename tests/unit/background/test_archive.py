"""NPZ archives of maps: round trips, NumPy as the independent reader, wrong and damaged files."""

import io
import json
import zipfile

import numpy as np
import pytest
from hypothesis import given

from hilsim.errors import AssetError
from hilsim.read.background.files.archive import read_archive, write_archive
from hilsim.world.geometry.poses import Pose
from tests.unit.background.backgrounds import AZIMUTH, IMAGE, assert_same_cells, assert_same_description, background, maps, told

NAMES = ["confidence", "distance_mm", "flags", "hit_count", "intensity", "metadata"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.npz"


@pytest.fixture
def changed(path):
    """A whole archive with some members replaced (None: left out), read back."""

    def read(**members):
        write_archive(told(), path)
        with np.load(path) as stored:
            arrays = {**stored, **members}
        np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
        return read_archive(path)

    return read


def metadata(**rest):
    stored = {
        "format": "hilsim-background",
        "version": 1,
        "grid": {"kind": "azimuth", "columns": 5, "elevation_deg": [-15.0, -0.1, 7.25]},
        "model": "",
        "pose": None,
        "provenance": {},
    }
    stored.update(rest)
    return np.array(json.dumps({key: value for key, value in stored.items() if value is not ...}))


@pytest.mark.parametrize("grid", [AZIMUTH, IMAGE])
def test_all_of_a_map_comes_back(path, grid):
    write_archive(told(grid), path)
    found = read_archive(path)
    assert_same_cells(found, told(grid))
    assert_same_description(found, told(grid))


@given(expected=maps())
def test_any_map_comes_back(tmp_path_factory, expected):
    path = tmp_path_factory.getbasetemp() / "any.npz"
    write_archive(expected, path)
    assert_same_cells(read_archive(path), expected)
    assert_same_description(read_archive(path), expected)


def test_equal_maps_are_equal_files_whatever_the_time(path, monkeypatch):
    write_archive(told(), path)
    first = path.read_bytes()
    monkeypatch.setattr("time.time", lambda: 2e9)
    write_archive(told(), path)
    assert path.read_bytes() == first
    with zipfile.ZipFile(path) as archive:
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_numpy_reads_the_arrays_and_the_metadata_without_pickles(path):
    expected = told()
    write_archive(expected, path)
    with np.load(path, allow_pickle=False) as stored:
        assert sorted(stored) == NAMES
        for name in NAMES[:-1]:
            np.testing.assert_array_equal(stored[name], getattr(expected, name))
        assert [stored[name].dtype.str for name in NAMES[:-1]] == ["<f4", "<u4", "|u1", "<u4", "<u2"]
        assert json.loads(stored["metadata"].item()) == {
            "format": "hilsim-background",
            "version": 1,
            "grid": {"kind": "azimuth", "columns": 5, "elevation_deg": [-15.0, -0.1, 7.25]},
            "model": "VLP-16",
            "pose": {"position_m": [691000.125, 5334000.1, 1.8], "orientation": list(expected.pose.orientation)},
            "provenance": expected.provenance,
        }


def test_arrays_of_numpy_written_by_hand_are_a_map(changed):
    found = changed(metadata=metadata(pose={"position_m": [1, 2, 3], "orientation": [1, 0, 0, 0]}))
    assert found.pose == Pose(position_m=(1.0, 2.0, 3.0))
    assert found.grid == AZIMUTH


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_member_is_named(changed, name):
    with pytest.raises(AssetError, match=rf"a\.npz: a background map must hold confidence, .*, metadata; {name} is missing"):
        changed(**{name: None})


def test_an_archive_of_something_else_is_refused(path):
    np.savez(path, points=np.zeros(3))
    with pytest.raises(AssetError, match=f"must hold .*; {', '.join(NAMES)} is missing"):
        read_archive(path)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"distance_mm": np.zeros((3, 5), np.int64)}, r"distance_mm must be uint32 of 3 rows x 5 columns, got int64 of shape \(3, 5\)"),
        ({"flags": np.zeros((5, 3), np.uint8)}, r"flags must be uint8 of 3 rows x 5 columns, got uint8 of shape \(5, 3\)"),
        ({"intensity": np.full((3, 5), 1024, np.uint16)}, "intensity must be at most 1023, got 1024"),
        ({"flags": np.full((3, 5), 4, np.uint8)}, "flags must be at most 3, got 4"),
        ({"distance_mm": np.full((3, 5), 1 << 20, np.uint32)}, "distance_mm must be at most 1048575, got 1048576"),
        ({"hit_count": np.zeros((200, 200), np.uint32)}, "hit_count must have at most 60 bytes, got 160,128 with its header"),
        ({"metadata": np.array(["a", "b"])}, r"metadata must be one text, got <U1 of shape \(2,\)"),
        ({"metadata": np.array(3)}, r"metadata must be one text, got int64 of shape \(\)"),
        ({"metadata": np.array("{")}, "metadata: must be JSON: EOF while parsing"),
        ({"metadata": np.array("[]")}, 'metadata: format must be "hilsim-background", got None'),
        ({"metadata": np.array('{"format": NaN}')}, "metadata: must be JSON: expected value"),
        ({"metadata": np.array("[" * 5000)}, "metadata: nesting must be at most 64 levels, got 5,000 levels"),
        ({"metadata": metadata(format="other")}, "metadata: format must be \"hilsim-background\", got 'other'"),
        ({"metadata": metadata(version=2)}, "metadata: version of hilsim-background must be 1, got 2; written by a newer hilsim"),
        ({"metadata": metadata(grid={"kind": "cube"})}, "metadata: grid.kind must be azimuth or image, got 'cube'"),
        ({"metadata": metadata(grid={"kind": ["azimuth"]})}, r"metadata: grid.kind must be azimuth or image, got \['azimuth'\]"),
        ({"metadata": metadata(grid={"kind": "azimuth", "columns": 5})}, "metadata: grid: elevation_deg must be given"),
        (
            {"metadata": metadata(grid={"kind": "azimuth", "columns": "5", "elevation_deg": [0.0]})},
            'metadata: grid: columns must be integer, got "5"',
        ),
        ({"metadata": metadata(grid={"kind": "azimuth", "columns": 0, "elevation_deg": [0.0]})}, "metadata: grid: columns must be 1 to 65536, got 0"),
        ({"metadata": metadata(grid={"kind": "azimuth", "columns": 5, "rows": 3, "elevation_deg": [0.0]})}, "metadata: grid: rows: unknown key"),
        (
            {"metadata": metadata(pose={"position_m": [0, 0, 0], "orientation": [1, 1, 0, 0]})},
            r"metadata: pose\.orientation must be a unit quaternion",
        ),
        (
            {"metadata": metadata(pose={"position_m": [0, 0], "orientation": [1, 0, 0, 0]})},
            r"metadata: pose\.position_m must have 3 entries, got \[0, 0\]",
        ),
        ({"metadata": metadata(model=...)}, "metadata: model must be given"),
        ({"metadata": metadata(colour="red")}, "metadata: colour: unknown key"),
        ({"metadata": metadata(provenance=[])}, "metadata: provenance must be an object, got \\[\\]"),
        (
            {"metadata": metadata(grid={"kind": "image", "columns": 65536, "rows": 65536, "x_min": 0, "x_max": 1, "z_min": 0, "z_max": 1})},
            "metadata: rows x columns must be at most 67108864, got 65536 x 65536",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "-",
)
def test_a_wrong_member_is_named_with_what_it_must_be(changed, members, message):
    with pytest.raises(AssetError, match=rf"a\.npz: {message}"):
        changed(**members)


def test_pickled_members_are_refused(changed):
    with pytest.raises(AssetError, match="flags is damaged: Object arrays cannot be loaded when allow_pickle=False"):
        changed(flags=np.array([{}]))


def test_an_archive_cut_anywhere_is_refused(path):
    write_archive(told(), path)
    data = path.read_bytes()
    for size in range(1, len(data), 7):
        path.write_bytes(data[:size])
        with pytest.raises(AssetError, match=r"a\.npz: must be a whole NPZ file: File is not a zip file"):
            read_archive(path)


@pytest.mark.extended
def test_an_archive_with_a_byte_changed_is_refused_or_the_same_map(path):
    write_archive(told(), path)
    data = path.read_bytes()
    refused = 0
    for place in range(len(data)):
        altered = bytearray(data)
        altered[place] ^= 0x04
        path.write_bytes(altered)
        try:
            found = read_archive(path)
        except AssetError as error:
            assert str(error).startswith(f"{path}: ")  # noqa: PT017 - which fault it is depends on the byte
            refused += 1
        else:  # a byte that says nothing: a time, an attribute
            assert_same_cells(found, told())
            assert_same_description(found, told())
    assert refused > len(data) * 0.8


def test_a_member_that_is_no_array_is_refused(path):
    write_archive(told(), path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["flags.npy"] = b"no array"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    with pytest.raises(AssetError, match=r"flags is damaged: the magic string is not correct; .*, got b'no arr"):
        read_archive(path)


def test_a_member_that_says_less_than_it_holds_is_refused_before_it_fills_memory(path):
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        header = (
            np.lib.format.magic(1, 0) + (118).to_bytes(2, "little") + b"{'descr': '<U10', 'fortran_order': False, 'shape': (), }".ljust(117) + b"\n"
        )
        archive.writestr("metadata.npy", header + bytes(300 << 20))
        for name in NAMES[:-1]:
            archive.writestr(f"{name}.npy", b"")
    path.write_bytes(bomb.getvalue())
    with pytest.raises(AssetError, match="metadata must have at most 16,777,216 bytes, got 314,572,928 with its header"):
        read_archive(path)


def test_a_file_of_another_kind_is_refused(path):
    path.write_bytes(b"BM" + bytes(100))
    with pytest.raises(AssetError, match=r"a\.npz: must be a whole NPZ file: File is not a zip file"):
        read_archive(path)


def test_an_array_of_another_type_is_the_callers_fault(path):
    with pytest.raises(TypeError, match="Cannot cast array data"):
        write_archive(background(hit_count=np.zeros((3, 5), np.int64)), path)


def test_provenance_that_is_no_json_is_the_callers_fault(path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_archive(background(provenance={"quantile": float("nan")}), path)
    assert not path.exists()


@pytest.fixture
def with_member(path):
    """A whole archive with a member's bytes replaced, read back."""

    def read(name, change, compression=zipfile.ZIP_DEFLATED):
        write_archive(told(), path)
        with zipfile.ZipFile(path) as archive:
            members = {known: archive.read(known) for known in archive.namelist()}
        members[f"{name}.npy"] = change(members[f"{name}.npy"])
        with zipfile.ZipFile(path, "w", compression) as archive:
            for known, data in members.items():
                archive.writestr(known, data)
        return read_archive(path)

    return read


def headed(text):
    def change(_):
        return np.lib.format.magic(1, 0) + len(text).to_bytes(2, "little") + text.encode("latin-1")

    return change


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{'descr': '<u4', 'fortran_order': False, 'shape': (1000000, 1000000), }\n", "is damaged: must fit into the memory of this machine"),
        ("{'descr': '<u4', 'fortran_order': False, 'shape': (3, 5), }\n", "is damaged: EOF: reading array data, expected 60 bytes got 0"),
        ("{'descr': (" * 100 + "\n", "is damaged"),
        ("{'descr': '''\n", "is damaged"),
        ("{'descr': '<u4', 'fortran_order': False, 'shape': (3L, 5L), }\n", "is damaged"),
        ("(" * 9000, "is damaged"),
        ("", "is damaged"),
    ],
    ids=["terabytes", "short", "nested", "unfinished", "old", "brackets", "empty"],
)
def test_a_header_is_looked_at_before_it_is_believed(with_member, text, message):
    with pytest.raises(AssetError, match=r"a\.npz: hit_count .*" + message):
        with_member("hit_count", headed(text))


def test_an_unknown_version_is_refused(with_member):
    with pytest.raises(AssetError, match=r"hit_count is damaged: we only support format version \(1,0\), .* not \(9, 0\)"):
        with_member("hit_count", lambda data: data[:6] + b"\x09" + data[7:])


def test_a_member_without_its_suffix_is_missing(path):
    write_archive(told(), path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["metadata"] = members.pop("metadata.npy")
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    with pytest.raises(AssetError, match=r"must hold .*; metadata is missing"):
        read_archive(path)


def test_an_archive_for_a_later_unzip_is_refused(path):
    write_archive(told(), path)
    data = bytearray(path.read_bytes())
    entry = data.index(b"PK\x01\x02")
    data[entry + 6 : entry + 8] = (99).to_bytes(2, "little")
    path.write_bytes(data)
    with pytest.raises(AssetError, match=r"a\.npz: must be a whole NPZ file: zip file version 9\.9"):
        read_archive(path)


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_compressions_that_numpy_does_not_write_are_refused(with_member, compression):
    with pytest.raises(AssetError, match="metadata must be stored or deflated, got compression 1"):
        with_member("flags", bytes, compression)


@pytest.mark.parametrize("letter", [0xD800, 0x110000, 0xFFFFFFFF])
def test_metadata_of_what_is_no_letter_is_refused(with_member, letter):
    with pytest.raises(AssetError, match="metadata: must be JSON"):
        with_member("metadata", lambda data: data[:128] + letter.to_bytes(4, "little") + data[132:])
