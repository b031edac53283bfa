import gzip
import struct
from contextlib import suppress
from ipaddress import IPv6Address

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilsim.capture.batches import CaptureBatches
from hilsim.capture.pcap import CaptureFile
from hilsim.capture.sensor_names import SensorNames
from hilsim.errors import CaptureError


def read(path):
    capture = CaptureFile(path)
    return list(capture), capture.notes


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("magic", "stamp_ns"), [(0xA1B2C3D4, 1_700_000_000_123_456_000), (0xA1B23C4D, 1_700_000_000_000_123_456)])
def test_classic_stamps_are_exact_in_both_byte_orders_and_resolutions(by_hand, file_of, order, magic, stamp_ns):
    content = by_hand.classic([(1_700_000_000, 123_456, by_hand.udp_frame(b"abc"))], order=order, magic=magic)
    (datagram,), _ = read(file_of(content))
    assert datagram.host_stamp_ns == stamp_ns


def test_every_microsecond_of_a_second_is_read_back_exactly(by_hand, file_of):
    fractions = [*range(0, 1_000_000, 997), 999_999]
    content = by_hand.classic([(1_785_000_000, fraction, by_hand.udp_frame(b"x")) for fraction in fractions])
    datagrams, _ = read(file_of(content))
    assert [datagram.host_stamp_ns for datagram in datagrams] == [1_785_000_000_000_000_000 + 1000 * fraction for fraction in fractions]


@pytest.mark.parametrize("order", ["<", ">"])
def test_pcapng_stamps_are_exact_in_both_byte_orders(by_hand, file_of, order):
    content = by_hand.section(order=order) + by_hand.interface(resolution=9, order=order)
    content += by_hand.enhanced(1_700_000_000_123_456_789, by_hand.udp_frame(b"abc"), order=order)
    (datagram,), _ = read(file_of(content))
    assert datagram.host_stamp_ns == 1_700_000_000_123_456_789


def test_pcapng_interfaces_keep_their_own_link_type_and_resolution(by_hand, file_of):
    raw = by_hand.udp_frame(b"raw", link=b"")
    content = by_hand.section() + by_hand.interface(link_type=101) + by_hand.interface(resolution=0x80 | 10)
    content += by_hand.enhanced(5_000_001, raw) + by_hand.enhanced(6 * 1024 + 1, by_hand.udp_frame(b"wire"), which=1)
    datagrams, _ = read(file_of(content))
    assert [(d.payload, d.host_stamp_ns) for d in datagrams] == [(b"raw", 5_000_001_000), (b"wire", 6_000_976_562)]


def test_pcapng_sections_count_their_interfaces_anew(by_hand, file_of):
    first = by_hand.section() + by_hand.interface() + by_hand.enhanced(1, by_hand.udp_frame(b"one"))
    second = by_hand.section(order=">") + by_hand.interface(link_type=101, order=">")
    second += by_hand.enhanced(2, by_hand.udp_frame(b"two", link=b""), order=">")
    datagrams, _ = read(file_of(first + second))
    assert [datagram.payload for datagram in datagrams] == [b"one", b"two"]


@pytest.mark.parametrize(
    ("link_type", "link"),
    [
        (1, bytes.fromhex("ffffffffffff 607688102f6f 8100 0005 0800")),
        (1, bytes.fromhex("ffffffffffff 607688102f6f 88a8 0005 8100 0006 0800")),
        (113, bytes.fromhex("0001 0001 0006 607688102f6f0000 0800")),
        (276, bytes.fromhex("0800 0000 00000003 0001 01 06 607688102f6f0000")),
        (101, b""),
        (12, b""),
        (228, b""),
        (0, bytes.fromhex("02000000")),
        (0, bytes.fromhex("00000002")),
        (108, bytes.fromhex("00000002")),
    ],
    ids=["vlan", "double vlan", "cooked", "cooked 2", "raw", "raw 12", "ipv4", "null little", "null big", "loop"],
)
def test_datagrams_are_found_under_every_link_layer(by_hand, file_of, link_type, link):
    content = by_hand.classic([(1, 2, by_hand.udp_frame(b"payload", link=link))], link_type=link_type)
    (datagram,), _ = read(file_of(content))
    assert (datagram.source, datagram.destination, datagram.payload, datagram.link[: len(link)]) == (
        "192.168.1.201",
        "255.255.255.255",
        b"payload",
        link,
    )


def test_a_wrong_ip_length_neither_cuts_nor_pads_the_payload(by_hand, file_of):
    content = by_hand.classic([(1, 2, by_hand.udp_frame(bytes(512), ip_size=0x04D2))])
    (datagram,), notes = read(file_of(content))
    assert (len(datagram.payload), notes.lines()) == (512, ("1 of 1 frames: IPv4 length is not the frame's; the UDP length was taken",))


def test_a_udp_length_beyond_the_frame_gives_what_the_frame_has(by_hand, file_of):
    content = by_hand.classic([(1, 2, by_hand.udp_frame(bytes(100), udp_size=1214))])
    (datagram,), notes = read(file_of(content))
    assert (len(datagram.payload), notes.lines()) == (100, ("1 of 1 frames: UDP length is not the frame's; the frame's was taken",))


def test_ethernet_padding_is_not_payload(by_hand, file_of):
    content = by_hand.classic([(1, 2, by_hand.udp_frame(b"abc") + bytes(15))])
    (datagram,), _ = read(file_of(content))
    assert datagram.payload == b"abc"


def ipv6_frame(payload, *, source="fe80::1", destination="fe80::2", extensions=(), protocol=17):
    """Frame of a datagram over IPv6 (RFC 8200), with extension headers of (kind, bytes behind the first two)."""
    kinds = [*(kind for kind, _ in extensions), protocol]
    headers = b"".join(bytes([following, (len(rest) + 2) // 8 - 1]) + rest for following, (_, rest) in zip(kinds[1:], extensions, strict=True))
    data = headers + struct.pack(">HHHH", 7502, 7503, 8 + len(payload), 1) + payload
    ends = IPv6Address(source).packed + IPv6Address(destination).packed
    return bytes(12) + b"\x86\xdd" + struct.pack(">IHBB", 6 << 28, len(data), kinds[0], 64) + ends + data


@pytest.mark.parametrize("extensions", [[], [(0, bytes(6)), (60, bytes(14))]])
def test_datagrams_over_ipv6_are_read_among_others_and_are_sensors(by_hand, file_of, extensions):
    frames = [by_hand.udp_frame(b"four"), ipv6_frame(b"six", extensions=extensions), by_hand.udp_frame(b"four")]
    path = file_of(by_hand.classic([(1, 2, frame) for frame in frames]))
    datagrams, notes = read(path)
    assert [datagram.payload for datagram in datagrams] == [b"four", b"six", b"four"]
    assert datagrams[1].flow == ("fe80::1", 7502, "fe80::2", 7503)
    assert str(datagrams[1].flow) == "[fe80::1]:7502>[fe80::2]:7503"
    assert notes.lines() == ()
    found = [(name, batch.size[row]) for batch in CaptureBatches(path) for name, rows in SensorNames().rows(batch) for row in rows]
    assert sorted(found) == [("192.168.1.201", 4), ("192.168.1.201", 4), ("fe80::1", 3)]


@pytest.mark.parametrize(
    ("frame", "note"),
    [
        (lambda make: make(b"abc", fragment=0x2000, ip_size=100), "shorter than their headers"),
        (lambda make: make(b"abc", protocol=6), "not UDP"),
        (lambda make: make(b"abc", link=bytes(12) + b"\x86\xdd"), "IPv6"),
        (lambda _: ipv6_frame(b"abc", destination="ff02::fb"), "IPv6"),
        (lambda _: ipv6_frame(b"abc", extensions=[(44, bytes(8))]), "IPv6"),
        (lambda _: ipv6_frame(b"abc", protocol=58), "not UDP"),
        (lambda _: ipv6_frame(b"abc")[:58], "shorter than their headers"),
        (lambda make: make(b"abc", link=bytes(12) + b"\x08\x06"), "not IPv4"),
        (lambda make: make(b"")[:30], "shorter than their headers"),
        (lambda make: make(b"")[:38], "shorter than their headers"),
    ],
    ids=[
        "half a fragment",
        "tcp",
        "ipv4 as ipv6",
        "a link's talk",
        "ipv6 fragment",
        "icmpv6",
        "half an ipv6 header",
        "arp",
        "half an ip header",
        "half a udp header",
    ],
)
def test_frames_without_a_datagram_are_passed_over_and_counted(by_hand, file_of, frame, note):
    content = by_hand.classic([(1, 2, frame(by_hand.udp_frame)), (1, 3, by_hand.udp_frame(b"good"))])
    datagrams, notes = read(file_of(content))
    assert [(d.payload, d.frame) for d in datagrams] == [(b"good", 2)]
    assert f"passed over: {note}" in notes.lines()[0]


@pytest.mark.parametrize("cut", [1, 10, 15, 17, 30])
def test_a_truncated_file_yields_what_is_whole_and_says_where_it_broke(by_hand, file_of, cut):
    frame = by_hand.udp_frame(b"abc")
    content = by_hand.classic([(1, 2, frame), (1, 3, frame)])
    second = 24 + 16 + len(frame)
    datagrams, notes = read(file_of(content[: second + cut]))
    assert len(datagrams) == 1
    assert "the file breaks off after frame 1, at byte" in notes.broken


def test_a_truncated_pcapng_yields_what_is_whole_and_says_where_it_broke(by_hand, file_of):
    content = by_hand.section() + by_hand.interface() + 2 * by_hand.enhanced(1, by_hand.udp_frame(b"one"))
    datagrams, notes = read(file_of(content[:-7]))
    assert len(datagrams) == 1
    assert "the file breaks off after frame 1" in notes.broken


def test_captures_behind_each_other_in_one_file_are_all_read(by_hand, file_of):
    kinds = [("<", 0xA1B2C3D4, 2000), (">", 0xA1B23C4D, 2), ("<", 0xA1B2C3D4, 2000)]
    content = b"".join(
        by_hand.classic([(number, 2, by_hand.udp_frame(b"abc"))] * 3, order=order, magic=magic) for number, (order, magic, _) in enumerate(kinds)
    )
    path = file_of(content)
    datagrams, notes = read(path)
    assert [datagram.host_stamp_ns for datagram in datagrams] == [number * 10**9 + kind[2] for number, kind in enumerate(kinds) for _ in range(3)]
    assert notes.lines() == ("the file is 3 captures, one behind the other (hilsim replay takes several files, too)",)
    assert np.concatenate([batch.host_stamp_ns for batch in CaptureBatches(path)]).tolist() == [datagram.host_stamp_ns for datagram in datagrams]
    seeking = CaptureFile(path, point_spacing_bytes=40)
    assert list(seeking.datagrams(seeking.seek_point_before(2 * 10**9))) == datagrams[5:]
    _, notes = read(file_of(content + by_hand.section()))
    assert "cannot be: a PCAPNG capture was appended, give it as a file of its own" in notes.broken
    _, notes = read(file_of(by_hand.section() + content))
    assert "a PCAP capture was appended: give it as a file of its own" in notes.broken


def test_a_broken_record_length_ends_the_reading_instead_of_filling_memory(by_hand, file_of):
    good = by_hand.udp_frame(b"abc")
    content = by_hand.classic([(1, 2, good)]) + b"\xff" * 16 + bytes(1000)
    datagrams, notes = read(file_of(content))
    assert len(datagrams) == 1
    assert "a record of 4294967295 bytes cannot be" in notes.broken


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"time,x,y,z\n1,2,3,4\n", 'is text beginning "time,x,y,z"'),
        (b"\x1f\x8b\x08\x00\x00", "the gzip stream ends too early, at byte 5 of the file"),
        (b"\x28\xb5\x2f\xfd\x00", "the zstd stream ends too early, at byte 5 of the file"),
        (b"BZh91AY&SY", "is compressed with bzip2: decompress it first"),
        (b"#ROSBAG V2.0\n", "is a ROS bag: hilsim convert makes a capture of it"),
        (b"\x00\x01\x02\x03\x04", "begins with bytes 00 01 02 03"),
        (b"ab", 'is text beginning "ab"'),
    ],
    ids=["empty", "text", "gzip", "zstd", "bzip2", "bag", "noise", "two bytes"],
)
def test_a_file_that_is_no_capture_is_named_with_what_it_is(file_of, content, message):
    path = file_of(content, "scan.pcap")
    with pytest.raises(CaptureError, match=rf"scan\.pcap: must be a PCAP or PCAPNG capture, but {message}"):
        read(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(CaptureError, match=r"none\.pcap: cannot be opened: No such file"):
        read(tmp_path / "none.pcap")


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(CaptureError, match="cannot be opened: Is a directory"):
        read(tmp_path)


def test_packets_without_times_are_an_error_that_says_where(by_hand, file_of):
    content = by_hand.section() + by_hand.interface() + by_hand.enhanced(1, by_hand.udp_frame(b"one")) + by_hand.block(3, bytes(20))
    with pytest.raises(CaptureError, match=r"some\.pcap: has packets without times \(PCAPNG simple packet blocks\) after frame 1, at byte \d+"):
        read(file_of(content))


def test_packets_in_the_obsolete_block_are_read(by_hand, file_of):
    for order in "<>":
        content = (
            by_hand.section(order=order) + 2 * by_hand.interface(order=order) + by_hand.obsolete(5, by_hand.udp_frame(b"old"), which=1, order=order)
        )
        (datagram,), _ = read(file_of(content))
        assert (datagram.payload, datagram.host_stamp_ns, datagram.interface) == (b"old", 5000, 1)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (lambda make: make.enhanced(1, make.udp_frame(b"x"), which=2), "a packet names interface 2 of 1"),
        (lambda make: make.block(6, bytes(8)), "a packet in a block of 20 bytes cannot be"),
        (lambda make: make.block(6, bytes(12) + b"\x7f" + bytes(15)), "a packet of 127 bytes cannot be in a block of 40"),
        (lambda make: make.block(5, bytes(8))[:-4] + bytes(4), "a block of 20 bytes does not end with its length"),
        (lambda _: b"\x05\x00\x00\x00" + bytes(20), "a block of 0 bytes cannot be"),
        (lambda _: b"\x05\x00\x00\x00\xff\xff\xff\xff" + bytes(20), "a block of 4294967295 bytes cannot be"),
        (lambda make: make.block(0x0A0D0D0A, b"abcd" + bytes(12)), "a section's byte order cannot be derived from 61 62 63 64"),
        (lambda make: make.interface(resolution=0) + make.enhanced(1 << 63, make.udp_frame(b"x"), which=1), "a time of 9223372036854775808 s"),
    ],
    ids=["interface", "small packet", "large packet", "two lengths", "no length", "absurd length", "byte order", "time"],
)
def test_a_pcapng_block_that_makes_no_sense_ends_the_reading_and_is_named(by_hand, file_of, wrong, reason):
    good = by_hand.section() + by_hand.interface() + by_hand.enhanced(1, by_hand.udp_frame(b"one"))
    datagrams, notes = read(file_of(good + wrong(by_hand) + good))
    assert [datagram.payload for datagram in datagrams] == [b"one"]
    assert "the file breaks off after frame 1, at byte " in notes.broken
    assert notes.broken.endswith(reason + (" since 1970 cannot be" if "time" in reason else ""))


def test_a_classic_file_of_the_modified_format_is_read(by_hand, file_of):
    frame = by_hand.udp_frame(b"abc")
    content = by_hand.classic([], magic=0xA1B2CD34) + 2 * (by_hand.record(1, 2, frame)[:16] + bytes(8) + frame)
    datagrams, _ = read(file_of(content))
    assert [(d.payload, d.host_stamp_ns) for d in datagrams] == 2 * [(b"abc", 1_000_002_000)]


def test_frames_of_an_unknown_link_layer_beside_known_ones_are_passed_over(by_hand, file_of):
    content = by_hand.section() + by_hand.interface(link_type=127) + by_hand.interface()
    content += by_hand.enhanced(1, b"radio") + by_hand.enhanced(2, by_hand.udp_frame(b"wire"), which=1)
    (datagram,), notes = read(file_of(content))
    assert (datagram.payload, datagram.frame) == (b"wire", 2)
    assert notes.lines() == ("1 of 2 frames: passed over: link type 127, which hilsim cannot read",)


def test_stamps_that_go_backwards_are_counted_and_kept(by_hand, file_of):
    stamps = [5, 6, 4, 4, 7, 6]
    datagrams, notes = read(file_of(by_hand.classic([(stamp, 0, by_hand.udp_frame(b"x")) for stamp in stamps])))
    assert [d.host_stamp_ns // 10**9 for d in datagrams] == stamps
    assert notes.lines() == ("2 of 6 frames: earlier than the one before; first at frame 3",)


@pytest.mark.parametrize("kept_size", [4, 30, 40, 42, 141])
def test_a_datagram_cut_by_the_snap_length_is_passed_over_with_the_cure(by_hand, file_of, kept_size):
    frame = by_hand.udp_frame(bytes(100))
    records = [by_hand.record(1, 2, frame[:kept_size], wire_size=len(frame)), by_hand.record(1, 3, frame)]
    (datagram,), notes = read(file_of(by_hand.classic([]) + b"".join(records)))
    assert datagram.frame == 2
    sentence = f"1 of 2 frames: passed over: cut by the capture's snap length of {kept_size} bytes: capture again with tcpdump -s 0"
    assert notes.lines() == (sentence,)


def test_a_pcapng_datagram_cut_by_the_snap_length_is_passed_over(by_hand, file_of):
    frame = by_hand.udp_frame(bytes(100))
    content = by_hand.section() + by_hand.interface() + by_hand.enhanced(1, frame[:96], wire_size=len(frame)) + by_hand.enhanced(2, frame)
    datagrams, notes = read(file_of(content))
    assert [d.frame for d in datagrams] == [2]
    assert "cut by the capture's snap length of 96 bytes" in notes.lines()[0]


def test_a_frame_cut_behind_its_payload_is_whole(by_hand, file_of):
    content = by_hand.classic([]) + by_hand.record(1, 2, by_hand.udp_frame(b"abc") + bytes(3), wire_size=60)
    (datagram,), notes = read(file_of(content))
    assert (datagram.payload, notes.lines()) == (b"abc", ())


def test_a_wrong_ip_length_in_a_cut_frame_does_not_lose_a_whole_payload(by_hand, file_of):
    content = by_hand.classic([]) + by_hand.record(1, 2, by_hand.udp_frame(bytes(512), ip_size=0x04D2), wire_size=1248)
    (datagram,), _ = read(file_of(content))
    assert len(datagram.payload) == 512


def test_datagrams_seen_on_two_interfaces_are_kept_and_counted(by_hand, file_of):
    content = by_hand.section() + 2 * by_hand.interface()
    for ticks in (1000, 5000):
        for which in (0, 1):  # two sensors' packets, so that copies do not follow each other directly
            for port in (2368, 2369):
                content += by_hand.enhanced(ticks + 100 * which, by_hand.udp_frame(b"%d" % ticks, source_port=port), which=which)
    datagrams, notes = read(file_of(content))
    assert [d.interface for d in datagrams] == 2 * [0, 0, 1, 1]
    sentence = "4 of 8 frames: repeats of the previous datagram on another interface, both kept: first frames 1 and 3 on interfaces 0 and 1"
    assert notes.lines() == (sentence,)


@pytest.mark.parametrize(("second", "ticks"), [(b"other", 1100), (b"same", 2001)], ids=["payload", "time"])
def test_datagrams_of_two_interfaces_that_differ_are_no_copies(by_hand, file_of, second, ticks):
    content = by_hand.section() + 2 * by_hand.interface() + by_hand.enhanced(1000, by_hand.udp_frame(b"same"))
    content += by_hand.enhanced(ticks, by_hand.udp_frame(second), which=1)
    _, notes = read(file_of(content))
    assert notes.lines() == ()


def test_datagrams_that_repeat_on_one_interface_are_no_copies(by_hand, file_of):
    content = by_hand.section() + 2 * by_hand.interface() + 3 * by_hand.enhanced(1000, by_hand.udp_frame(b"same"), which=1)
    _, notes = read(file_of(content))
    assert notes.lines() == ()


def test_cooked_headers_of_version_2_tell_the_interface(by_hand, file_of):
    links = [bytes.fromhex(f"0800 0000 {index:08x} 0001 01 06 607688102f6f0000") for index in (3, 5)]
    content = by_hand.classic([(1, 2, by_hand.udp_frame(b"same", link=link)) for link in links], link_type=276)
    datagrams, notes = read(file_of(content))
    assert [d.interface for d in datagrams] == [3, 5]
    assert notes.lines()[0].endswith("both kept: first frames 1 and 2 on interfaces 3 and 5")


def test_copies_under_cooked_headers_that_do_not_tell_the_interface_are_counted(by_hand, file_of):
    link = bytes.fromhex("0001 0001 0006 607688102f6f0000 0800")
    content = by_hand.classic(2 * [(1, 2, by_hand.udp_frame(b"same", link=link))], link_type=113)
    datagrams, notes = read(file_of(content))
    assert len(datagrams) == 2
    assert notes.lines()[0].endswith("on another interface, both kept: first frames 1 and 2")


def test_size_and_bytes_read_tell_the_progress(by_hand, file_of):
    content = by_hand.classic([(1, 2, by_hand.udp_frame(bytes(1000)))] * 1000)
    capture = CaptureFile(file_of(content))
    assert (capture.size_bytes, capture.read_bytes) == (len(content), 0)
    reading = iter(capture)
    next(reading)
    assert 0 < capture.read_bytes < len(content) / 2
    assert sum(1 for _ in reading) == 999
    assert capture.read_bytes == len(content)


def test_an_unknown_link_layer_is_named_with_its_frame(by_hand, file_of):
    with pytest.raises(CaptureError, match="frame 1 is of link type 127"):
        read(file_of(by_hand.classic([(1, 2, b"radio")], link_type=127)))


def test_reading_a_file_twice_gives_the_same_and_counts_once(by_hand, file_of):
    capture = CaptureFile(file_of(by_hand.classic([(1, 2, by_hand.udp_frame(b"abc"))])))
    assert list(capture) == list(capture)
    assert capture.notes.frames == 1


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("vlp16_strongest_gps.pcap", {1206: 293, 512: 57}),
        ("vlp16_strongest_1200rpm.pcap", {1206: 1902, 512: 367}),
        ("hdl32e_strongest.pcap", {1206: 2702, 512: 299}),
        ("vlp16_dual.pcap", {1206: 603}),
    ],
)
def test_real_captures_give_the_packets_their_catalogue_counts(capture, name, sizes):
    datagrams, _ = read(capture(name))
    assert {size: sum(len(d.payload) == size for d in datagrams) for size in sizes} == sizes


@pytest.mark.parametrize("kind", ["classic", "pcapng", "gzip"])
@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 255)), min_size=1, max_size=8), st.integers(0, 1000))
def test_damage_anywhere_is_a_note_or_a_clear_error(by_hand, tmp_path_factory, kind, changes, cut):
    frames = [by_hand.udp_frame(b"one"), *by_hand.fragments(by_hand.udp_frame(bytes(40)), [24]), by_hand.udp_frame(b"four", fragment=0)]
    content = by_hand.section() + by_hand.interface(resolution=9) + b"".join(by_hand.enhanced(5, frame) for frame in frames)
    if kind != "pcapng":
        content = by_hand.classic([(1, 2, frame) for frame in frames])
    damaged = bytearray(gzip.compress(content) if kind == "gzip" else content)
    for at, value in changes:
        damaged[at % len(damaged)] = value
    path = tmp_path_factory.getbasetemp() / "damaged.pcap"
    path.write_bytes(damaged[: len(damaged) - cut // 20])
    capture = CaptureFile(path, point_spacing_bytes=64)
    with suppress(CaptureError):
        datagrams = list(capture)
        assert len(datagrams) <= capture.notes.frames
        point = capture.seek_point_before(1 << 62)
        assert all(datagram.frame >= point.frame for datagram in capture.datagrams(point))
