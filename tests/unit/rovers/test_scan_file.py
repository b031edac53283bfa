"""Files of scans: every number as C rounds it, damaged lines named and left out, every compression."""

import ctypes
import gzip
import io
import lzma
import sys
import tarfile

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hilsim.errors import AssetError
from hilsim.parts.rovers.scan_file import ScanFile, Tally, parse_scan

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

TEXT = b"1.5,2,-3,0,90,0; 1,2,3; 4,5,6\n\n-1,0.1,1e-3,1,2,3; 7,8,9;\n"


def rounded_by_c(text):
    strtof = ctypes.CDLL(None).strtof
    strtof.restype, strtof.argtypes = ctypes.c_float, (ctypes.c_char_p, ctypes.c_void_p)
    return np.float32(strtof(text.encode(), None))


@pytest.fixture
def scan_file(tmp_path):
    def write(content, name="rover.dat"):
        path = tmp_path / name
        path.write_bytes(content)
        return ScanFile(path)

    return write


def read(file):
    tally = Tally()
    return list(file.scans(tally)), tally


def test_a_line_is_a_pose_and_its_points():
    scan = parse_scan("1.5,2,-3,0,90,0; 1,2,3; 4,5,6")
    assert scan.pose.tolist() == [1.5, 2.0, -3.0, 0.0, 90.0, 0.0]
    assert scan.points.tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    assert (scan.pose.dtype, scan.points.dtype) == (np.float32, np.float32)


@pytest.mark.parametrize("line", ["0,0,0,0,0,0", "0,0,0,0,0,0;", "0,0,0,0,0,0; ; \r\n", "0,0,0,0,0,0; 1,2; nonsense"])
def test_a_scan_may_have_no_points_and_short_points_are_none(line):
    assert parse_scan(line).points.shape == (0, 3)


def test_further_numbers_of_a_pose_and_of_a_point_are_ignored():
    scan = parse_scan("1,2,3,4,5,6,7,8; 1,2,3,4\r\n")
    assert (scan.pose.tolist(), scan.points.tolist()) == ([1, 2, 3, 4, 5, 6], [[1, 2, 3]])


@pytest.mark.parametrize("line", ["", "\n", "   \r\n"])
def test_an_empty_line_is_no_scan(line):
    assert parse_scan(line) is None


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1,2,3; 1,2,3", "a pose must have 6 numbers, got 3"),
        ("; 1,2,3", "a pose must have 6 numbers, got 0"),
        ("1,2,3,4,5,six; 1,2,3", "must be numbers"),
        ("1,2,3,4,5,6; 1,2,x", "must be numbers"),
        ("1,2,3,4,5,6; 1_0,2,3", "must be numbers, got 1_0"),
        ("1,2,3,4,5,6; 1e40,2,3", "must be a float32, got 1e40"),
        ("1,2,3,4,5,6; " + "1,2,3;" * 100_001, "points of a scan must be at most 100,000, got 100,001"),
    ],
)
def test_violations_of_the_format_are_named(line, message):
    with pytest.raises(ValueError, match=message):
        parse_scan(line)


def test_what_is_no_number_of_the_real_ones_is_sent_as_it_is():
    scan = parse_scan("nan,inf,-inf,0,0,0; nan,1,2")
    assert np.isnan(scan.pose[0])
    assert scan.pose[1:3].tolist() == [np.inf, -np.inf]
    assert np.isnan(scan.points[0, 0])


MIDDLE = "1.00000005960464477539062"  # between 1 and the float32 after it, by less than float64 can tell


@given(st.one_of(st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr), st.decimals(-1000, 1000, places=12).map(str)))
@example(MIDDLE + "5")
@example(MIDDLE + "50000000000000000000001")
@example(MIDDLE + "49999999999999999999999")
@example("-" + MIDDLE + "50000000000000000000001")
@example("1e-45")
@example("7.1e-46")
@example("3.4028235e38")
def test_every_number_is_rounded_as_c_rounds_it(text):
    pose = parse_scan(f"{text},0,0,0,0,0").pose
    assert pose[:1].tobytes() == np.array([rounded_by_c(text)]).tobytes()


def test_good_lines_are_read_in_order_and_counted(scan_file):
    scans, tally = read(scan_file(TEXT))
    assert [scan.pose[0] for scan in scans] == [1.5, -1.0]
    assert (tally.scans, tally.damaged, tally.faults) == (2, 0, [])


def test_damaged_lines_are_left_out_and_named_with_their_numbers(scan_file):
    scans, tally = read(scan_file(b"what\n" + TEXT + b"\xff\xfe\n0,0,0,0,0,0; 1,2,bad\n" + TEXT))
    assert len(scans) == tally.scans == 4
    assert tally.damaged == 3
    assert [fault.split(":")[0] for fault in tally.faults] == ["line 1", "line 5", "line 6"]


def test_many_damaged_lines_are_counted_and_the_first_are_named(scan_file):
    _, tally = read(scan_file(b"bad\n" * 1000 + TEXT))
    assert (tally.scans, tally.damaged, len(tally.faults)) == (2, 1000, 20)


def test_a_file_without_line_ends_is_not_read_for_ever(scan_file):
    _, tally = read(scan_file(b"1," * (9 << 20)))
    assert (tally.scans, tally.damaged) == (0, 1)
    assert "a line must be at most 16,777,216 bytes" in tally.faults[0]


def tar_of(content, kind):
    memory = io.BytesIO()
    with tarfile.open(fileobj=memory, mode=f"w:{kind}") as archive:
        folder = tarfile.TarInfo("data")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        entry = tarfile.TarInfo("data/rover1.dat")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    return memory.getvalue()


PACKED = {
    "plain": bytes,
    "gzip": gzip.compress,
    "xz": lzma.compress,
    "zstd": zstd.compress,
    "tar": lambda content: tar_of(content, ""),
    "tar.gz": lambda content: tar_of(content, "gz"),
    "tar.xz": lambda content: tar_of(content, "xz"),
}


@pytest.mark.parametrize("kind", PACKED)
def test_a_file_is_read_however_it_is_packed(scan_file, kind):
    scans, tally = read(scan_file(PACKED[kind](TEXT * 200)))
    assert (len(scans), tally.damaged) == (400, 0)


@pytest.mark.parametrize("kind", [kind for kind in PACKED if kind != "plain"])
def test_a_packed_file_that_breaks_off_is_read_up_to_there_and_reported(scan_file, kind):
    numbers = np.random.default_rng(1).normal(size=(4000, 6))
    content = "".join(",".join(map(str, row)) + "\n" for row in numbers).encode()
    packed = PACKED[kind](content)
    scans, tally = read(scan_file(packed[: len(packed) // 2]))
    assert 200 < len(scans) < 4000
    assert tally.damaged == 1
    assert "breaks off" in tally.faults[0] or "must have 6 numbers" in tally.faults[0] or "must be numbers" in tally.faults[0]


def test_the_first_good_scan_is_found_behind_damaged_lines(scan_file):
    assert scan_file(b"bad\n\n" + TEXT).first().pose[0] == 1.5


@pytest.mark.parametrize("content", [b"", b"\n\n", b"bad\n", b"\x1f\x8b" + b"\0" * 40, tar_of(b"", "")])
def test_a_file_without_a_scan_is_refused_by_name(scan_file, content):
    file = scan_file(content)
    with pytest.raises(AssetError, match="must hold a scan") as caught:
        file.first()
    assert str(file.path) in str(caught.value)


def test_a_missing_file_is_refused_by_name(tmp_path):
    with pytest.raises(AssetError, match=r"nowhere\.dat: must be a file that can be read, got No such file or directory"):
        ScanFile(tmp_path / "nowhere.dat").first()
