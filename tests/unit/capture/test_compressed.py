"""Captures in gzip and zstd."""

import gzip
import subprocess
import sys
import zlib
from contextlib import suppress
from pathlib import Path

import pytest

from hilsim.capture.pcap import CaptureFile
from hilsim.capture.source import BrokenFileError, CaptureBytes
from hilsim.errors import CaptureError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

COMPRESS = {"gzip": gzip.compress, "zstd": zstd.compress}


@pytest.fixture(params=["gzip", "zstd"])
def compress(request):
    return COMPRESS[request.param]


@pytest.fixture
def content(by_hand):
    """A capture of 2,000 datagrams that can be packed to about half: 2.5 MB."""
    noise = b"".join(b"%08x" % zlib.crc32(number.to_bytes(4)) for number in range(150 * 2000))
    return by_hand.classic([(number, 0, by_hand.udp_frame(noise[1200 * number : 1200 * (number + 1)])) for number in range(2000)])


def read(path):
    capture = CaptureFile(path)
    return list(capture), capture.notes


def test_a_compressed_capture_is_read_whatever_its_name(file_of, content, compress):
    plain, _ = read(file_of(content, "plain.pcap"))
    datagrams, notes = read(file_of(compress(content), "some.pcap"))
    assert datagrams == plain
    assert notes.lines() == ()


def test_streams_that_follow_each_other_are_one_capture(file_of, content, compress):
    plain, _ = read(file_of(content, "plain.pcap"))
    pieces = [content[:10], content[10:3000], b"", content[3000:]]
    datagrams, notes = read(file_of(b"".join(compress(piece) for piece in pieces)))
    assert datagrams == plain
    assert notes.lines() == ()


def test_zeros_behind_a_gzip_stream_are_padding(file_of, content):
    datagrams, notes = read(file_of(gzip.compress(content) + bytes(200_000)))
    assert (len(datagrams), notes.lines()) == (2000, ())


def test_skippable_zstd_frames_are_skipped(file_of, content):
    skippable = b"\x53\x2a\x4d\x18\x03\x00\x00\x00abc"
    datagrams, notes = read(file_of(skippable + zstd.compress(content) + skippable))
    assert (len(datagrams), notes.lines()) == (2000, ())


def test_what_is_no_stream_behind_one_is_reported(file_of, content, compress):
    compressed = compress(content)
    datagrams, notes = read(file_of(compressed + b"something else"))
    assert len(datagrams) == 2000
    assert f"behind byte {len(compressed)} of the file, something else follows the" in notes.broken


@pytest.mark.parametrize("kept", [0.3, 0.9999])
def test_a_truncated_stream_yields_what_is_whole_and_says_where_it_ends(file_of, content, compress, kept):
    compressed = compress(content)
    plain, _ = read(file_of(content, "plain.pcap"))
    size = int(kept * len(compressed))
    datagrams, notes = read(file_of(compressed[:size]))
    assert datagrams == plain[: len(datagrams)]
    assert len(datagrams) > (kept - 0.15) * 2000
    assert f"the file breaks off after frame {len(datagrams)}, at byte" in notes.broken
    assert notes.broken.endswith(f"stream ends too early, at byte {size} of the file")


def test_a_damaged_gzip_stream_yields_every_byte_before_the_damage(by_hand, file_of):
    content = by_hand.classic([(number, 0, by_hand.udp_frame(b"%d" % number)) for number in range(100)])
    stored = gzip.compress(content, compresslevel=0)
    assert content in stored  # so that a place in the stream is a place in the capture
    half = bytearray(stored)
    at = len(half) - 8
    half[at] ^= 0xFF  # the checksum
    datagrams, notes = read(file_of(bytes(half)))
    assert len(datagrams) == 100
    assert "the gzip stream is damaged" in notes.broken
    assert "incorrect data check" in notes.broken


def test_a_damaged_stream_yields_what_comes_before_the_damage(file_of, content, compress):
    compressed = compress(content)
    plain, _ = read(file_of(content, "plain.pcap"))
    middle = len(compressed) // 2
    datagrams, notes = read(file_of(compressed[:middle] + b"\xff" * middle))
    assert datagrams[:800] == plain[:800]
    assert "the file breaks off after frame" in notes.broken


def test_a_capture_compressed_twice_is_named(file_of, content, compress):
    with pytest.raises(CaptureError, match="must be a PCAP or PCAPNG capture, but is compressed twice: decompress it first"):
        read(file_of(compress(compress(content))))


def test_bytes_read_are_those_of_the_compressed_file(file_of, content, compress):
    compressed = compress(content)
    capture = CaptureFile(file_of(compressed))
    assert capture.size_bytes == len(compressed)
    reading = iter(capture)
    next(reading)
    assert 0 < capture.read_bytes < len(compressed) / 2
    assert sum(1 for _ in reading) == 1999
    assert capture.read_bytes == len(compressed)


@pytest.mark.extended
@pytest.mark.parametrize("name", ["plain", "gzip", "zstd"])
def test_300_mb_of_datagrams_do_not_fill_the_memory_even_where_they_come_out_of_few_bytes(by_hand, tmp_path, name):
    path = tmp_path / "bomb.pcap"
    record = by_hand.record(1, 2, by_hand.udp_frame(bytes(60_000))) * 100
    streams = {"plain": lambda data: data} | COMPRESS
    with path.open("wb") as file:
        file.write(streams[name](by_hand.classic([])))
        piece = streams[name](record)
        for _ in range(50):
            file.write(piece)
    program = f"""
import resource
from pathlib import Path
from hilsim.capture.pcap import CaptureFile
from hilsim.capture.source import BrokenFileError, CaptureBytes
from hilsim.errors import CaptureError
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
count = sum(1 for _ in CaptureFile(Path({str(path)!r})))
print(count, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    count, grown_kib = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True).stdout.split()
    assert int(count) == 5_000
    assert int(grown_kib) < 20_000


def take_all(opened, into):
    while piece := opened.read(1 << 16):
        into += piece


@pytest.mark.extended
@pytest.mark.parametrize("place", [20, 1000, 70_000, 200_000])
def test_output_before_the_damage_equals_that_of_reading_byte_by_byte(file_of, content, place):
    data = bytearray(gzip.compress(content))
    data[place : place + 40] = b"\xff" * 40
    stream, whole = zlib.decompressobj(wbits=31), bytearray()
    with suppress(zlib.error):
        for at in range(len(data)):
            whole += stream.decompress(data[at : at + 1])
    with CaptureBytes(file_of(bytes(data))) as opened:
        found = bytearray()
        with pytest.raises(BrokenFileError, match="the gzip stream is damaged before byte"):
            take_all(opened, found)
    assert found == whole


def test_a_name_that_no_file_can_have_is_refused():
    with pytest.raises(CaptureError, match=r"'a\\x00\.pcap': cannot be opened: .*null byte"):
        list(CaptureFile(Path("a\0.pcap")))
