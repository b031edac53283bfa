import pytest

from hilsim.capture.pcap import CaptureFile
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


@pytest.mark.parametrize(
    ("frame", "note"),
    [
        (lambda make: make(b"abc", fragment=0x2000), "fragments of larger IPv4 datagrams"),
        (lambda make: make(b"abc", fragment=0x0010), "fragments of larger IPv4 datagrams"),
        (lambda make: make(b"abc", protocol=6), "not UDP"),
        (lambda make: make(b"abc", link=bytes(12) + b"\x86\xdd"), "IPv6"),
        (lambda make: make(b"abc", link=bytes(12) + b"\x08\x06"), "not IPv4"),
        (lambda make: make(b"")[:30], "shorter than their headers"),
        (lambda make: make(b"")[:38], "shorter than their headers"),
    ],
    ids=["first fragment", "later fragment", "tcp", "ipv6", "arp", "half an ip header", "half a udp header"],
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
        (b"time,x,y,z\n1,2,3,4\n", 'is text beginning "time,x,y"'),
        (b"\x1f\x8b\x08\x00\x00", "is compressed with gzip: decompress it first"),
        (b"\x28\xb5\x2f\xfd\x00", "is compressed with zstd: decompress it first"),
        (b"\x00\x01\x02\x03\x04", "begins with bytes 00 01 02 03"),
        (b"ab", 'is text beginning "ab"'),
    ],
    ids=["empty", "text", "gzip", "zstd", "noise", "two bytes"],
)
def test_a_file_that_is_no_capture_is_named_with_what_it_is(file_of, content, message):
    path = file_of(content, "scan.pcap")
    with pytest.raises(CaptureError, match=rf"scan\.pcap: must be a PCAP or PCAPNG capture, but {message}"):
        read(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(CaptureError, match=r"none\.pcap: cannot be opened: No such file"):
        read(tmp_path / "none.pcap")


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
