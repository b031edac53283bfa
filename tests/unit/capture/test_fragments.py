"""Datagrams in fragments, through whole capture files."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilsim.capture.fragments import LONGEST_WAIT_NS, MAX_UNFINISHED
from hilsim.capture.pcap import CaptureFile

PAYLOAD = bytes(range(256)) * 12


@pytest.fixture
def read(by_hand, file_of):
    def read_frames(frames, *, step_s=0):
        capture = CaptureFile(file_of(by_hand.classic([(index * step_s, index, frame) for index, frame in enumerate(frames)])))
        return list(capture), capture.notes.lines()

    return read_frames


def test_fragments_become_the_datagram_with_the_stamp_of_the_one_that_completes_it(by_hand, read):
    first, second, third = by_hand.fragments(by_hand.udp_frame(PAYLOAD), [1480, 2960])
    (datagram,), notes = read([third, first, by_hand.udp_frame(b"", protocol=6), second])
    assert (datagram.payload, datagram.frame, datagram.host_stamp_ns) == (PAYLOAD, 4, 3000)
    assert notes == ("1 of 4 frames: passed over: not UDP", "datagrams in fragments: 1 put together")


@given(
    st.binary(max_size=5000),
    st.lists(st.integers(1, 625), max_size=40, unique=True),
    st.randoms(use_true_random=False),
    st.booleans(),
)
def test_any_cutting_in_any_order_with_any_duplicates_gives_the_original(by_hand, tmp_path_factory, payload, units, random, is_doubled):
    cuts = sorted(8 * unit for unit in units if 8 * unit < 8 + len(payload))
    frames = by_hand.fragments(by_hand.udp_frame(payload), cuts) if cuts else [by_hand.udp_frame(payload)]
    random.shuffle(frames)
    if is_doubled and len(frames) > 1:
        frames = [frame for frame in frames[:-1] for _ in range(2)] + frames[-1:]
    path = tmp_path_factory.getbasetemp() / "cut.pcap"
    path.write_bytes(by_hand.classic([(0, 0, frame) for frame in frames]))
    (datagram,) = CaptureFile(path)
    assert (datagram.payload, datagram.frame) == (payload, len(frames))


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 40)), min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_overlapping_fragments_that_agree_give_the_original(by_hand, tmp_path_factory, pieces, random):
    data = by_hand.udp_frame(PAYLOAD[:312], link=b"")[20:]
    spans = [(8 * at, min(8 * (at + size), len(data))) for at, size in pieces if 8 * at < len(data)] + [(0, 160), (160, len(data))]
    random.shuffle(spans)
    frames = [by_hand.fragment(data[start:stop], start, is_last=stop == len(data)) for start, stop in spans]
    path = tmp_path_factory.getbasetemp() / "overlap.pcap"
    path.write_bytes(by_hand.classic([(0, 0, frame) for frame in frames]))
    datagrams = list(CaptureFile(path))
    assert datagrams
    assert all(datagram.payload == PAYLOAD[:312] for datagram in datagrams)


def test_interleaved_datagrams_of_several_sources_are_not_mixed(by_hand, read):
    datagrams_of = {}
    for source in (201, 202):
        for identification in (1, 2):
            payload = bytes([source, identification]) * 1000
            datagrams_of[source, identification] = by_hand.fragments(
                by_hand.udp_frame(payload), [800, 1600], identification=identification, source=source
            )
    frames = [fragment for together in zip(*datagrams_of.values(), strict=True) for fragment in together]
    datagrams, notes = read(frames)
    assert [(int(d.source.split(".")[-1]), d.payload[1], d.payload) for d in datagrams] == [
        (source, identification, bytes([source, identification]) * 1000) for source, identification in datagrams_of
    ]
    assert notes == ("datagrams in fragments: 4 put together",)


def test_the_headers_are_those_of_a_frame_that_was_never_cut(by_hand, read):
    frame = by_hand.udp_frame(PAYLOAD, fragment=0)
    (datagram,), _ = read(by_hand.fragments(frame, [1480]))
    words = struct.unpack(">10H", datagram.link[14:34])
    assert sum(words) % 0xFFFF == 0
    assert (words[1], words[3]) == (28 + len(PAYLOAD), 0)
    (again,), _ = read([datagram.link + datagram.payload])
    assert (again.payload, again.link) == (PAYLOAD, datagram.link)


def test_padding_behind_a_short_last_fragment_is_not_payload(by_hand, read):
    first, last = by_hand.fragments(by_hand.udp_frame(PAYLOAD[:1475]), [1480])
    (datagram,), _ = read([first, last + bytes(23)])
    assert datagram.payload == PAYLOAD[:1475]


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (2, 0, 1, 3), (1, 0, 2, 3)])
def test_fragments_that_overlap_and_disagree_discard_the_datagram(by_hand, read, order):
    data = bytes(4) + struct.pack(">HH", 48, 0) + bytes(40)
    frames = [
        by_hand.fragment(data[:24], 0, is_last=False),
        by_hand.fragment(b"\x01" * 16, 16, is_last=False),
        by_hand.fragment(data[24:40], 24, is_last=False),
        by_hand.fragment(data[40:], 40, is_last=True),
    ]
    datagrams, notes = read([frames[index] for index in order])
    assert datagrams == []
    assert notes == ("datagrams in fragments: 1 passed over: their fragments overlap and do not agree",)


@pytest.mark.parametrize(
    "make",
    [
        lambda by_hand: [by_hand.fragment(bytes(16), 16, is_last=True), by_hand.fragment(bytes(8), 32, is_last=True)],
        lambda by_hand: [by_hand.fragment(bytes(16), 16, is_last=True), by_hand.fragment(bytes(8), 32, is_last=False)],
        lambda by_hand: [by_hand.fragment(bytes(16), 32, is_last=False), by_hand.fragment(bytes(8), 8, is_last=True)],
        lambda by_hand: [by_hand.fragment(bytes(13), 0, is_last=False)],
        lambda by_hand: [by_hand.fragment(bytes(100), 65528, is_last=True)],
    ],
    ids=["two ends", "behind the end", "end before the middle", "odd size", "larger than a datagram can be"],
)
def test_fragments_that_cannot_be_discard_the_datagram(by_hand, read, make):
    datagrams, notes = read(make(by_hand))
    assert datagrams == []
    assert notes == ("datagrams in fragments: 1 passed over: their fragments overlap and do not agree",)


def test_a_datagram_mixed_of_two_with_one_identification_is_reported_by_its_checksum(by_hand, read):
    def with_checksum(payload):
        total = sum(struct.unpack(">10H", bytes((192, 168, 1, 201, 255, 255, 255, 255, 0, 17)) + struct.pack(">5H", 2008, 2368, 2368, 2008, 0)))
        total += sum(struct.unpack(">1000H", payload))
        return by_hand.fragments(by_hand.udp_frame(payload, checksum=-total % 0xFFFF), [1000])

    one, other = with_checksum(b"\x11" * 2000), with_checksum(b"\x22" * 2000)
    datagrams, notes = read([one[0], other[1], *other])
    assert [datagram.payload for datagram in datagrams] == [b"\x22" * 2000]
    assert notes == (
        "datagrams in fragments: 1 passed over: UDP length or checksum does not fit what the fragments make",
        "datagrams in fragments: 1 put together",
    )


def test_a_datagram_that_never_becomes_whole_is_counted_at_the_end(by_hand, read):
    first, _, last = by_hand.fragments(by_hand.udp_frame(PAYLOAD), [1480, 2960])
    datagrams, notes = read([first, last, by_hand.udp_frame(b"good")])
    assert [datagram.payload for datagram in datagrams] == [b"good"]
    assert notes == ("datagrams in fragments: 1 passed over: not all fragments came",)


def test_fragments_more_than_30_s_apart_are_of_two_datagrams(by_hand, read):
    assert LONGEST_WAIT_NS == 30 * 10**9
    first, last = by_hand.fragments(by_hand.udp_frame(PAYLOAD), [1480])
    datagrams, notes = read([first, last], step_s=30)  # and a microsecond
    assert datagrams == []
    assert notes == (
        "datagrams in fragments: 1 passed over: not all fragments came",
        "datagrams in fragments: 1 passed over: not all fragments came within 30 s",
    )


def test_unfinished_datagrams_do_not_fill_the_memory(by_hand, read):
    frames = [by_hand.fragment(bytes(8), 65000, is_last=True, identification=number) for number in range(MAX_UNFINISHED + 5)]
    datagrams, notes = read(frames)
    assert datagrams == []
    assert notes == (
        "datagrams in fragments: 5 passed over: more than 1024 were unfinished at once",
        "datagrams in fragments: 1024 passed over: not all fragments came",
    )


def test_a_fragment_cut_by_the_snap_length_is_counted_as_cut(by_hand, file_of):
    first, last = by_hand.fragments(by_hand.udp_frame(PAYLOAD), [1480])
    capture = CaptureFile(file_of(by_hand.classic([(0, 0, first)]) + by_hand.record(0, 1, last[:96], wire_size=len(last))))
    assert list(capture) == []
    assert capture.notes.lines() == (
        "datagrams in fragments: 1 passed over: not all fragments came",
        "1 of 2 frames: passed over: cut by the capture's snap length of 96 bytes: capture again with tcpdump -s 0",
    )
