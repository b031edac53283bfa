"""PCAP files as sinks: names, rotation, full disks."""

import contextlib
import resource
from pathlib import Path

import numpy as np
import pytest

from hilsim.capture.pcap import CaptureFile
from hilsim.capture.sinks.base import SentBatch, SinkFlow
from hilsim.capture.sinks.pcap import PcapFileSink, PcapSeriesSink, RecordSpec
from hilsim.errors import CaptureError
from hilsim.families.velodyne.recognition import VELODYNE_DATA_STYLE
from hilsim.protocols.ethernet import build_framing
from hilsim.protocols.flow_key import FlowKey

SECOND = 1_000_000_000
UTC_NS = 1_800_000_000 * SECOND
SIZE = 84  # of a frame below; a record of it is 100 bytes
HEADERS = build_framing(
    VELODYNE_DATA_STYLE,
    FlowKey("192.168.1.201", 2368, "192.168.1.77", 2368),
    source_mac="60:76:88:10:00:01",
    destination_mac="ff:ff:ff:ff:ff:ff",
)


def batch_of(stamp_ns, frames, size):
    return SentBatch(stamp_ns, stamp_ns, np.zeros(size.size, np.int64), frames, size, {0: SinkFlow(number=0, name="lidar/data")})


def frames(numbers):
    """Ethernet frames of 84 bytes whose payload begins with a number."""
    made = np.zeros((len(numbers), SIZE), np.uint8)
    made[:, :42] = HEADERS.template
    made[:, 16:18], made[:, 38:40] = (0, 70), (0, 50)  # the lengths in the headers
    made[:, 42:50] = np.asarray(numbers, np.int64).view(np.uint8).reshape(-1, 8)
    return made


def write(series, numbers, stamp_ns=None):
    stamps = UTC_NS + np.asarray(numbers, np.int64) * SECOND if stamp_ns is None else stamp_ns
    series.write(batch_of(stamps, frames(numbers), np.full(len(numbers), SIZE, np.int32)))


def numbers_in(path):
    return [int.from_bytes(datagram.payload[:8], "little") for datagram in CaptureFile(path)]


def files(directory):
    return {path.name: numbers_in(path) for path in sorted(directory.iterdir())}


@contextlib.contextmanager
def series(directory, **spec):
    made = PcapSeriesSink(RecordSpec(file="drive.pcap", **spec), directory)
    made.check()
    made.open(())
    try:
        yield made
    finally:
        made.close()


@contextlib.contextmanager
def largest_file(size):
    """No file of this process may grow above ``size`` bytes: the kernel refuses the rest, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_without_rotation_there_is_one_file_of_the_given_name_and_a_former_one_is_replaced(tmp_path):
    for first in (0, 10):
        with series(tmp_path) as made:
            write(made, range(first, first + 5))
    assert files(tmp_path) == {"drive.pcap": [10, 11, 12, 13, 14]}


def test_a_recording_of_nothing_is_a_capture_too(tmp_path):
    with series(tmp_path):
        assert files(tmp_path) == {"drive.pcap": []}


def test_no_file_grows_above_the_size_given_and_the_next_goes_on_where_it_ended(tmp_path):
    with series(tmp_path, rotate_mb=0.01) as made:
        write(made, range(150))
        write(made, range(150, 250))
    sizes = [path.stat().st_size for path in sorted(tmp_path.iterdir())]
    assert files(tmp_path) == {"drive-0001.pcap": [*range(99)], "drive-0002.pcap": [*range(99, 198)], "drive-0003.pcap": [*range(198, 250)]}
    assert sizes[:2] == [24 + 99 * 100] * 2
    assert made.written == 250


def test_a_frame_larger_than_the_size_given_has_a_file_of_its_own(tmp_path):
    with series(tmp_path, rotate_mb=0.01) as made:
        big = np.zeros((3, 20_000), np.uint8)
        made.write(batch_of(UTC_NS + np.arange(3), big, np.full(3, 20_000, np.int32)))
    assert [path.stat().st_size for path in sorted(tmp_path.iterdir())] == [24 + 16 + 20_000] * 3


def test_files_begin_at_whole_multiples_of_the_time_given_after_the_first_frame(tmp_path):
    offsets_s = np.array([0.0, 0.9, 1.999, 2.0, 2.1, 7.5, 7.9, 8.0])
    with series(tmp_path, rotate_s=2.0) as made:
        write(made, range(8), UTC_NS + (offsets_s * SECOND).astype(np.int64))
    assert [*files(tmp_path).values()] == [[0, 1, 2], [3, 4], [5, 6], [7]]


def test_time_and_size_together_rotate_by_what_comes_first(tmp_path):
    with series(tmp_path, rotate_s=120.0, rotate_mb=0.01) as made:
        write(made, range(250))
    assert [(found[0], found[-1]) for found in files(tmp_path).values()] == [(0, 98), (99, 119), (120, 218), (219, 239), (240, 249)]


def test_numbers_go_on_where_an_earlier_run_stopped_and_nothing_is_replaced(tmp_path):
    (tmp_path / "drive-0007.pcap").write_bytes(b"an earlier run's")
    (tmp_path / "drive-x.pcap").write_bytes(b"something else")
    with series(tmp_path, rotate_s=1.0) as made:
        write(made, range(2))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["drive-0007.pcap", "drive-0008.pcap", "drive-0009.pcap", "drive-x.pcap"]
    assert (tmp_path / "drive-0007.pcap").read_bytes() == b"an earlier run's"


def test_numbers_grow_beyond_four_digits(tmp_path):
    (tmp_path / "drive-9999.pcap").touch()
    with series(tmp_path, rotate_s=1.0, keep=2) as made:
        write(made, range(3))
    assert files(tmp_path) == {"drive-10001.pcap": [1], "drive-10002.pcap": [2]}


def test_only_the_newest_files_are_kept_and_other_files_are_left_alone(tmp_path):
    for name in ("drive-0001.pcap", "drive.pcap", "drive-old.pcap", "overdrive-0001.pcap"):
        (tmp_path / name).touch()
    with series(tmp_path, rotate_s=1.0, keep=3) as made:
        write(made, range(10))
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == ["drive-0009.pcap", "drive-0010.pcap", "drive-0011.pcap", "drive-old.pcap", "drive.pcap", "overdrive-0001.pcap"]


def test_frames_written_before_a_full_disk_are_counted_exactly_and_readable(tmp_path):
    with series(tmp_path) as made:
        write(made, range(10))
        with largest_file(24 + 4999 * 100 + 50), pytest.raises(CaptureError, match=r"drive\.pcap: cannot be written: File too large"):
            write(made, range(10, 6000))
        assert numbers_in(made.path) == [*range(made.written)]
        assert 10 <= made.written < 5000


def test_a_file_whose_very_header_does_not_fit_is_not_left_behind(tmp_path):
    with series(tmp_path, rotate_s=1.0) as made:
        write(made, [0])
        with largest_file(10), pytest.raises(CaptureError, match=r"drive-0002\.pcap: cannot be written: File too large"):
            write(made, [1])
    assert files(tmp_path) == {"drive-0001.pcap": [0]}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full in place of a full disk")
def test_a_device_that_takes_nothing_is_a_fault_and_is_not_deleted(tmp_path):
    (tmp_path / "drive.pcap").symlink_to("/dev/full")
    with pytest.raises(CaptureError, match=r"drive\.pcap: cannot be written: No space left on device"), series(tmp_path):
        pass
    assert (tmp_path / "drive.pcap").is_symlink()


@pytest.mark.parametrize(
    ("file", "fault"),
    [
        ("nowhere/drive.pcap", "nowhere/drive.pcap: the directory of a recording must exist, and .*nowhere does not"),
        ("taken", "taken: a recording must be a file, and this is a directory"),
    ],
)
def test_a_place_that_cannot_hold_files_is_named(tmp_path, file, fault):
    (tmp_path / "taken").mkdir()
    with pytest.raises(CaptureError, match=fault):
        PcapSeriesSink(RecordSpec(file=file), tmp_path).check()


def test_one_file_holds_every_frame_when_it_is_closed(tmp_path):
    sink = PcapFileSink(tmp_path / "drive.pcap", stamps="ns")
    sink.open(())
    write(sink, range(5))
    sink.close()
    assert (sink.written, numbers_in(tmp_path / "drive.pcap")) == (5, [0, 1, 2, 3, 4])
