"""Capture files cut into parts: whole records, nothing lost, nothing twice; what cannot be cut is left whole."""

import gzip
import struct
from itertools import pairwise

import numpy as np
import pytest

from hilsim.capture.batches import CaptureBatches, UnusualRecordError
from hilsim.capture.cuts import FilePart, cut
from hilsim.capture.pcap import PcapWriter
from tests.unit.capture.frames_by_hand import udp_frame

BEGIN_NS = 1_700_000_000_000_000_000


@pytest.fixture
def plain(tmp_path):
    """500 datagrams of all sizes, in a plain file of some 350 kB."""
    path = tmp_path / "plain.pcap"
    with PcapWriter(path) as writer:
        for number in range(500):
            writer.write(BEGIN_NS + number * 1000, udp_frame(struct.pack("<I", number) + bytes((number * 37) % 1400)))
    return path


def numbers(batches):
    """The number each datagram begins with."""
    return [int.from_bytes(batch.data[start : start + 4].tobytes(), "little") for batch in batches for start in batch.start]


@pytest.mark.parametrize("count", [1, 2, 3, 7, 499, 2000])
def test_parts_hold_every_datagram_once_and_in_order(plain, count):
    parts = cut(plain, count)
    assert len(parts) == count
    assert (parts[0].start, parts[-1].stop) == (24, plain.stat().st_size)
    assert all(one.stop == other.start for one, other in pairwise(parts))
    assert [number for part in parts for number in numbers(CaptureBatches(plain, part))] == list(range(500))
    stamps = np.concatenate([batch.host_stamp_ns for part in parts for batch in CaptureBatches(plain, part)])
    assert stamps.tolist() == [BEGIN_NS + number * 1000 for number in range(500)]


def test_a_part_is_where_it_is_whatever_the_number_of_the_others(plain):
    thirds = cut(plain, 3)
    assert [part.start for part in cut(plain, 12)[::4]] == [part.start for part in thirds]
    sizes = [part.stop - part.start for part in thirds]
    assert max(sizes) - min(sizes) < 2 * 1500


def test_a_file_larger_than_what_is_read_at_once_is_cut_at_records(tmp_path):
    path = tmp_path / "large.pcap"
    with PcapWriter(path) as writer:
        for number in range(9000):
            writer.write(BEGIN_NS + number, udp_frame(struct.pack("<I", number) + bytes(1200)))
    assert path.stat().st_size > 2 * (4 << 20)
    parts = cut(path, 5)
    assert [number for part in parts for number in numbers(CaptureBatches(path, part))] == list(range(9000))
    read = CaptureBatches(path, parts[3])
    assert len(numbers(read)) == pytest.approx(1800, abs=1)
    assert read.read_bytes == parts[3].stop - parts[3].start


def test_only_plain_files_are_divided(plain, tmp_path):
    data = plain.read_bytes()
    others = {"zipped.pcap.gz": gzip.compress(data), "short.pcap": data[:-1], "head.pcap": data[:20], "big-endian.pcap": data[:4][::-1] + data[4:]}
    others["wrong-size.pcap"] = data[:32] + b"\xff\xff\xff\x7f" + data[36:]
    for name, content in others.items():
        (tmp_path / name).write_bytes(content)
        assert cut(tmp_path / name, 3) == (), name
    (tmp_path / "empty.pcap").write_bytes(data[:24])
    assert cut(tmp_path / "empty.pcap", 2) == (FilePart(24, 24, 1), FilePart(24, 24, 1))


def test_a_part_with_a_frame_that_only_the_reader_of_the_whole_knows_says_so(tmp_path):
    tagged = udp_frame(b"tagged")
    with PcapWriter(tmp_path / "tagged.pcap") as writer:
        writer.write(BEGIN_NS, udp_frame(b"plain"))
        writer.write(BEGIN_NS, tagged[:12] + b"\x81\x00\x00\x05" + tagged[12:])
    first, second = cut(tmp_path / "tagged.pcap", 2)
    assert len(numbers(CaptureBatches(tmp_path / "tagged.pcap", first))) + 1 == 2
    with pytest.raises(UnusualRecordError):
        list(CaptureBatches(tmp_path / "tagged.pcap", second))
