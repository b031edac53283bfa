"""Starting in the middle of a capture file."""

import gzip
import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilsim.capture import seek
from hilsim.capture.pcap import CaptureFile
from hilsim.capture.seek import SeekIndex, SeekPoint
from hilsim.errors import CaptureError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

NS_PER_S = 1_000_000_000


def classic_file(by_hand, stamps_and_payloads):
    return by_hand.classic([(stamp, 0, by_hand.udp_frame(payload)) for stamp, payload in stamps_and_payloads])


def pcapng_file(by_hand, stamps_and_payloads, *, section_every=7):
    """A file whose byte order, interfaces and resolution change on the way, with blocks without packets between."""
    content = b""
    for index, (stamp, payload) in enumerate(stamps_and_payloads):
        order = "<>"[index // section_every % 2]
        if index % section_every == 0:
            content += by_hand.section(order=order) + by_hand.interface(order=order)
        if index % section_every == 3:
            content += by_hand.interface(resolution=9, order=order) + by_hand.block(5, bytes(40), order=order)
        which = int(index % section_every >= 3)
        content += by_hand.enhanced(stamp * (10**9 if which else 10**6), by_hand.udp_frame(payload), which=which, order=order)
    return content


def points_of(capture, stamps_ns):
    """Every point that seeking can give for these times and those before and after."""
    times = {stamp + step for stamp in stamps_ns for step in (-1, 0, 1)}
    points = {point.frame: point for point in map(capture.seek_point_before, sorted(times))}
    return [points[frame] for frame in sorted(points)]


@pytest.mark.parametrize("make", [classic_file, pcapng_file], ids=["classic", "pcapng"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd.compress], ids=["plain", "gzip", "zstd"])
@given(st.lists(st.tuples(st.integers(0, 100), st.binary(max_size=80)), min_size=1, max_size=40), st.integers(40, 600), st.randoms())
def test_from_every_seek_point_the_rest_is_the_rest_of_the_whole(by_hand, tmp_path_factory, make, pack, content, spacing, random):
    path = tmp_path_factory.getbasetemp() / "seek.pcap"
    path.write_bytes(pack(make(by_hand, content)))
    whole = list(CaptureFile(path))
    capture = CaptureFile(path, point_spacing_bytes=spacing)
    if random.random() < 0.5:
        assert list(capture) == whole  # fills the index by reading, else seeking does
    points = points_of(capture, [datagram.host_stamp_ns for datagram in whole])
    assert points[0].frame == 1
    for point in points:
        datagrams = list(capture.datagrams(point))
        assert datagrams == whole[point.frame - 1 :]
        assert datagrams[0].host_stamp_ns == point.host_stamp_ns
        assert capture.notes.frames == len(datagrams)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=60), st.integers(40, 300), st.integers(-1, 51), st.booleans())
def test_a_seek_point_is_the_last_before_anything_later(by_hand, tmp_path_factory, stamps, spacing, wanted, is_read_before):
    path = tmp_path_factory.getbasetemp() / "before.pcap"
    path.write_bytes(classic_file(by_hand, [(stamp, b"") for stamp in stamps]))
    capture = CaptureFile(path, point_spacing_bytes=spacing)
    if is_read_before:
        list(capture)
    point = capture.seek_point_before(wanted * NS_PER_S)
    later = next((index for index, stamp in enumerate(stamps, start=1) if stamp > wanted), len(stamps) + 1)
    assert point.frame < later or point.frame == 1
    assert later - point.frame <= 2 * spacing // 58 + 3  # a record has 58 bytes, and a piece at most the spacing


def test_points_lie_about_the_spacing_apart(by_hand, file_of):
    path = file_of(classic_file(by_hand, [(stamp, bytes(1000)) for stamp in range(5000)]))
    capture = CaptureFile(path, point_spacing_bytes=1 << 20)
    capture.seek_point_before(5000 * NS_PER_S)
    offsets = [point.offset for point in points_of(capture, [stamp * NS_PER_S for stamp in range(5000)])]
    assert len(offsets) == 5
    assert all(1 << 20 <= after - before < (1 << 20) + (1 << 18) + 2000 for before, after in pairwise(offsets))


def test_seeking_reads_no_further_than_it_must(by_hand, file_of):
    path = file_of(classic_file(by_hand, [(stamp, bytes(1000)) for stamp in range(1000)]) + b"\xff" * 100)
    capture = CaptureFile(path, point_spacing_bytes=10_000)
    assert 480 < capture.seek_point_before(500 * NS_PER_S).frame <= 501
    assert capture._index.last().frame < 520


def test_a_reading_from_a_point_of_another_object_of_the_file_leaves_no_gap_in_the_index(by_hand, file_of):
    path = file_of(classic_file(by_hand, [(stamp, bytes(1000)) for stamp in range(1000)]))
    point = CaptureFile(path, point_spacing_bytes=10_000).seek_point_before(700 * NS_PER_S)
    capture = CaptureFile(path, point_spacing_bytes=10_000)
    assert sum(1 for _ in capture.datagrams(point)) == 1000 - point.frame + 1
    assert 280 < capture.seek_point_before(300 * NS_PER_S).frame <= 301


def test_a_stamp_far_ahead_does_not_lead_behind_it(by_hand, file_of):
    stamps = [*range(20), 1000, *range(20, 40)]
    capture = CaptureFile(file_of(classic_file(by_hand, [(stamp, bytes(100)) for stamp in stamps])), point_spacing_bytes=100)
    for _ in range(2):  # with an index that does not reach that far yet, and with one of the whole file
        assert capture.seek_point_before(30 * NS_PER_S).frame == 20
        assert capture.seek_point_before(2000 * NS_PER_S).frame == 41


def test_numbers_of_frames_and_the_place_of_a_break_are_those_of_the_whole_file(by_hand, file_of):
    content = classic_file(by_hand, [(stamp, bytes(100)) for stamp in range(100)])
    capture = CaptureFile(file_of(content[:-50]), point_spacing_bytes=1000)
    list(capture)
    from_start = capture.notes.broken
    list(capture.datagrams(capture.seek_point_before(90 * NS_PER_S)))
    assert capture.notes.broken == from_start
    assert "after frame 99, at byte" in from_start
    assert capture.notes.frames < 20


def test_a_datagram_with_fragments_on_both_sides_of_a_point_is_lost_and_counted(by_hand, file_of):
    first, last = by_hand.fragments(by_hand.udp_frame(bytes(2000)), [1480])
    frames = [by_hand.udp_frame(b"before"), first, last, by_hand.udp_frame(b"after")]
    capture = CaptureFile(file_of(by_hand.classic([(stamp, 0, frame) for stamp, frame in enumerate(frames)])), point_spacing_bytes=50)
    point = capture.seek_point_before(2 * NS_PER_S)
    assert point.frame == 3
    assert [datagram.payload for datagram in capture.datagrams(point)] == [b"after"]
    assert capture.notes.lines() == ("datagrams in fragments: 1 passed over: not all fragments came",)


def test_a_capture_without_frames_has_its_start_for_a_point(by_hand, file_of):
    capture = CaptureFile(file_of(by_hand.classic([])))
    point = capture.seek_point_before(5)
    assert (point.frame, point.offset, list(capture.datagrams(point))) == (1, 0, [])


def test_seeking_in_what_is_no_capture_is_an_error(file_of):
    with pytest.raises(CaptureError, match=r"notes\.txt: must be a PCAP or PCAPNG capture, but is text"):
        CaptureFile(file_of(b"hello", "notes.txt")).seek_point_before(0)


def test_the_index_stays_bounded_and_keeps_its_first_point():
    index = SeekIndex(1)
    for number in range(3 * seek.MAX_POINTS):
        index.add(SeekPoint(host_stamp_ns=number, frame=number + 1, latest_ns=number, offset=number, layout=None))
    assert seek.MAX_POINTS / 2 <= len(index) <= seek.MAX_POINTS
    assert index.before(-1).frame == 1
    assert 0 <= 150_000 - index.before(150_000).host_stamp_ns < 8


def test_every_point_of_a_real_capture_gives_its_rest(any_capture):
    file = CaptureFile(any_capture("hdl32e_strongest.pcap"), point_spacing_bytes=1 << 19)
    whole = list(file)
    points = points_of(file, [datagram.host_stamp_ns for datagram in whole])
    assert len(points) > 4
    for point in points:
        assert list(file.datagrams(point)) == [datagram for datagram in whole if datagram.frame >= point.frame]
