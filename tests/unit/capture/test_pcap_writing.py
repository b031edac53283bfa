from pathlib import Path

import dpkt
import numpy as np
import pytest

from hilsim.capture.pcap import CaptureFile, PcapWriter
from hilsim.errors import CaptureError

STAMP_NS = 1_700_000_000_123_456_789


def frames_in(path):
    with path.open("rb") as file:
        return [(int(stamp * 10**9), bytes(data)) for stamp, data in dpkt.pcap.Reader(file)]


def write_frames(path, count):
    with PcapWriter(path) as writer:
        for index in range(count):
            writer.write(STAMP_NS + index, bytes(1248))


def test_a_written_frame_is_read_back_with_its_nanosecond(tmp_path, by_hand):
    path = tmp_path / "out.pcap"
    with PcapWriter(path) as writer:
        writer.write(STAMP_NS, by_hand.udp_frame(b"abc"))
    (datagram,) = CaptureFile(path)
    assert (datagram.host_stamp_ns, datagram.payload) == (STAMP_NS, b"abc")


def test_arrays_are_written_as_the_same_bytes_as_single_frames(tmp_path):
    generator = np.random.default_rng(1)
    count = 2500
    frames = generator.integers(0, 256, (count, 1248), dtype=np.uint8)
    sizes = generator.choice(np.array([554, 1248], dtype=np.int32), count)
    stamps = STAMP_NS + np.arange(count, dtype=np.int64) * 1_327_104
    with PcapWriter(tmp_path / "many.pcap") as many:
        many.write_many(stamps, frames, sizes)
    with PcapWriter(tmp_path / "single.pcap") as single:
        for stamp, frame, size in zip(stamps.tolist(), frames, sizes.tolist(), strict=True):
            single.write(stamp, frame[:size].tobytes())
    assert (tmp_path / "many.pcap").read_bytes() == (tmp_path / "single.pcap").read_bytes()


def test_stamps_in_microseconds_are_cut_off_and_named_by_the_files_magic(tmp_path, by_hand):
    frame = np.frombuffer(by_hand.udp_frame(b"abc"), np.uint8)
    with PcapWriter(tmp_path / "us.pcap", stamps="us") as writer:
        writer.write(STAMP_NS, frame.tobytes())
        writer.write_many(np.array([STAMP_NS + 1000]), frame[np.newaxis], np.array([frame.size], np.int32))
    assert np.frombuffer((tmp_path / "us.pcap").read_bytes()[:4], dtype="=u4")[0] == 0xA1B2C3D4
    assert [datagram.host_stamp_ns for datagram in CaptureFile(tmp_path / "us.pcap")] == [STAMP_NS // 1000 * 1000, STAMP_NS // 1000 * 1000 + 1000]


def test_the_file_opens_with_the_nanosecond_magic(tmp_path):
    PcapWriter(tmp_path / "empty.pcap").close()
    assert np.frombuffer((tmp_path / "empty.pcap").read_bytes()[:4], dtype="=u4")[0] == 0xA1B23C4D


def test_a_full_disk_is_an_error_that_names_the_file():
    writer = PcapWriter(Path("/dev/full"))
    writer.write(STAMP_NS, bytes(1248))
    with pytest.raises(CaptureError, match="/dev/full: cannot be written: No space left on device"):
        writer.close()


def test_a_full_disk_leaves_whole_records_only(tmp_path):
    resource = pytest.importorskip("resource")
    signal = pytest.importorskip("signal")
    path = tmp_path / "small.pcap"
    before_limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    before_handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, before_limit[1]))
        with pytest.raises(CaptureError, match="File too large"):
            write_frames(path, 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before_limit)
        signal.signal(signal.SIGXFSZ, before_handler)
    capture = CaptureFile(path)
    list(capture)
    assert capture.notes.broken is None
    assert len(frames_in(path)) > 200


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(CaptureError, match=r"none/out\.pcap: cannot be created: No such file"):
        PcapWriter(tmp_path / "none" / "out.pcap")


def test_a_real_capture_survives_being_written_and_read(any_capture, tmp_path):
    datagrams = list(CaptureFile(any_capture("vlp16_strongest_gps.pcap")))
    with PcapWriter(tmp_path / "copy.pcap") as writer:
        for datagram in datagrams:
            writer.write(datagram.host_stamp_ns, datagram.link + datagram.payload)
    assert list(CaptureFile(tmp_path / "copy.pcap")) == datagrams
