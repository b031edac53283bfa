"""Each fault that a program might make in an Ouster stream breaks the rule that is about it, and no other one."""

import functools
from dataclasses import replace

import numpy as np
import pytest

from hilsim.capture.pcap import CaptureFile
from hilsim.families.ouster.metadata_files import OusterMetadata
from hilsim.families.ouster.protocol.firmware import Footer
from hilsim.families.ouster.protocol.imu import ACCEL_GYRO_NMEA, encode_imu_measurements, imu_layout
from hilsim.families.ouster.protocol.profiles import HeaderKind
from hilsim.families.ouster.protocol.recognition import FORMS
from hilsim.protocols.crc64 import crc64
from hilsim.read.analysis.conformance.checker import StreamChecker
from hilsim.read.analysis.conformance.findings import Severity
from tests.ouster_sensors import header_of, sensor
from tests.ouster_streams import SOURCE, lidar_payloads, stream

SINGLE = sensor(channels=16, mode="512x10")
REV_6 = sensor(channels=16, mode="512x10", version="2.5.2")
DUAL = sensor("RNG19_RFL8_SIG16_NIR16_DUAL", 16, mode="512x10")
NEAREST = replace(DUAL, settings=dict(DUAL.settings) | {"return_order": "NEAREST_TO_FARTHEST"})
LOW = sensor("RNG15_RFL8_NIR8", 16, mode="512x10")
LEGACY = sensor("LEGACY", 16, version="2.3.0", mode="512x10")
FUSA = sensor("FUSA_RNG15_RFL8_NIR8_DUAL", 16, mode="512x10")
WINDOW = replace(SINGLE, column_window=(100, 299))
NEW_IMU = sensor(channels=16, mode="512x10", version="3.2.0", imu_profile=ACCEL_GYRO_NMEA)
CONSTANT = sensor(channels=16, mode="512x10", version="2.4.0")
OF_OTHERS = {
    "IMU_FORM": ("SINGLE", replace(SINGLE, imu_profile=ACCEL_GYRO_NMEA)),
    "FARTHEST": ("DUAL", replace(DUAL, settings=dict(DUAL.settings) | {"return_order": "FARTHEST_TO_NEAREST"})),
}
"""Streams beside metadata that they do not agree with."""


@functools.cache
def _made(name):
    metadata = globals()[name]
    made = stream(metadata, 4, first_frame=65_534 if metadata.profile.header is not HeaderKind.FUSA else 70_000, has_imu=name != "NEW_IMU")
    return tuple(made) if name != "NEW_IMU" else tuple(_with_measurements(made, metadata))


def _with_measurements(lidar, metadata):
    """One IMU packet of eight measurements behind every fourth lidar packet."""
    layout, found = imu_layout(8, metadata.profile.header, metadata.footer), []
    stamps = [stamp for stamp, _ in lidar_payloads(metadata, 4, first_frame=65_534)]
    for number, datagram in enumerate(lidar):
        found.append(datagram)
        if number % 4 == 3:
            frame, part = number // 32, number % 32 // 4
            columns = np.zeros((8, 3), np.int64)
            columns[:, 1] = 64 * part + 7 + 8 * np.arange(8)
            columns[:, 0] = stamps[number] + 1_562_500 * (np.arange(8) - 7)
            columns[:, 2] = 1
            payload, floats = np.zeros(layout.size, np.uint8), np.full((8, 3), 5.6, np.float32)
            header = header_of(metadata, (65_534 + frame) % 65_536, packet_type=2)
            encode_imu_measurements(layout, header, 0, np.zeros(0, np.uint8), columns, floats, floats, payload)
            imu = replace(datagram, payload=payload.tobytes(), destination_port=7503, source_port=51_514, link=None)
            found.append(imu)
    return found


def found_in(datagrams, *metadata):
    """Rules of errors and warnings."""
    checker = StreamChecker({"ouster": OusterMetadata(metadata)})
    checker.feed(datagrams)
    result = checker.result()
    findings = [*result.findings, *(finding for found in result.sensors for finding in found.findings)]
    return {finding.rule for finding in findings if finding.severity is not Severity.NOTE}


def with_crc(payload, metadata):
    """The payload with the footer's CRC made again, where it has one."""
    if metadata.footer is not Footer.CRC or len(payload) < 100:
        return payload
    return payload[:-8] + int(crc64(np.frombuffer(payload, np.uint8), len(payload) - 8)).to_bytes(8, "little")


def relinked(link, payload):
    """Headers with the lengths and the UDP checksum of another payload."""
    if link is None:
        return None
    size = len(payload) + 8
    head = bytearray(link)
    head[16:18], head[38:40], head[40:42] = (size + 20).to_bytes(2, "big"), size.to_bytes(2, "big"), b"\0\0"
    pseudo = bytes(head[26:34]) + b"\0\x11" + bytes(head[38:40])
    total = int.from_bytes(pseudo + bytes(head[34:42]) + payload + bytes(len(payload) % 2), "big") % 0xFFFF
    head[40:42] = ((0xFFFF - total) or 0xFFFF).to_bytes(2, "big")
    return bytes(head)


def lidar(change, rows=slice(None), *, crc=True):
    """Mutation: ``change(bytearray, number)`` of some lidar packets, with a valid CRC and checksum again."""

    def mutate(datagrams, metadata):
        places = [place for place, each in enumerate(datagrams) if each.destination_port == 7502]
        changed = list(datagrams)
        for number, place in list(enumerate(places))[rows]:
            payload = bytearray(datagrams[place].payload)
            payload = bytes(change(payload, number) or payload)
            payload = with_crc(payload, metadata) if crc else payload
            changed[place] = replace(datagrams[place], payload=payload, link=relinked(datagrams[place].link, payload))
        return changed

    return mutate


def imu(change, rows=slice(None)):
    """Mutation of some IMU packets."""

    def mutate(datagrams, metadata):
        places = [place for place, each in enumerate(datagrams) if each.destination_port == 7503]
        changed = list(datagrams)
        for number, place in list(enumerate(places))[rows]:
            payload = bytearray(datagrams[place].payload)
            payload = with_crc(bytes(change(payload, number) or payload), metadata)
            changed[place] = replace(datagrams[place], payload=payload, link=relinked(datagrams[place].link, payload))
        return changed

    return mutate


def put(at, value):
    """Change: bytes at a place."""

    def change(payload, _):
        payload[at : at + len(value)] = value

    return change


def column_at(payload, column):
    form = FORMS[len(payload)]
    return form.first_column + column * form.column_size


def columns(function):
    """Change: of the stamp (``uint64``) of each column."""

    def change(payload, number):
        for column in range(16):
            at = column_at(payload, column)
            stamp = int.from_bytes(payload[at : at + 8], "little")
            payload[at : at + 8] = int(function(stamp, 16 * number + column)).to_bytes(8, "little")

    return change


def words(function, words_per_pixel, header=12):
    """Change: of the pixels of a packet as ``uint32[16, beams, words]``."""

    def change(payload, _number):
        form = FORMS[len(payload)]
        body = np.frombuffer(bytes(payload), np.uint8)[form.first_column :][: 16 * form.column_size].reshape(16, form.column_size).copy()
        pixels = body[:, header : header + 16 * 4 * words_per_pixel].copy().view("<u4").reshape(16, 16, words_per_pixel)
        function(pixels)
        body[:, header : header + 16 * 4 * words_per_pixel] = pixels.reshape(16, -1).view(np.uint8)
        payload[form.first_column : form.first_column + 16 * form.column_size] = body.tobytes()

    return change


def link(change, port=None):
    """Mutation of the headers of packets to a port."""

    def mutate(datagrams, _metadata):
        changed = []
        for number, each in enumerate(datagrams):
            head = bytearray(each.link)
            if port in {None, each.destination_port}:
                change(head, number)
            changed.append(replace(each, link=bytes(head)))
        return changed

    return mutate


def frame_of(step):
    """Change: STANDARD frame ids by the number of the packet."""

    def change(payload, number):
        frame_id = int.from_bytes(payload[2:4], "little")
        payload[2:4] = (step(frame_id, number) % 65_536).to_bytes(2, "little")

    return change


def hosts(function):
    """Mutation of capture times."""

    def mutate(datagrams, _metadata):
        return [replace(each, host_stamp_ns=int(function(each.host_stamp_ns, number))) for number, each in enumerate(datagrams)]

    return mutate


def each_fourth(datagrams, _metadata):
    return [each for number, each in enumerate(datagrams) if number % 40 != 7 or each.destination_port == 7503]


def swapped(datagrams, _metadata):
    some = list(datagrams)
    places = [place for place, each in enumerate(some) if each.destination_port == 7502]
    some[places[9]], some[places[10]] = some[places[10]], some[places[9]]
    return some


def doubled(datagrams, _metadata):
    return [*datagrams[:9], datagrams[8], *datagrams[9:]] if datagrams[8].destination_port == 7502 else None


def frames_again(datagrams, _metadata):
    """The pixels of the first frame in every frame."""
    first = [each.payload for each in datagrams if each.destination_port == 7502][:32]
    return lidar(words_from(first))(datagrams, SINGLE)


def words_from(first):
    def change(payload, number):
        other = first[number % 32]
        for column in range(16):
            at = column_at(payload, column)
            payload[at + 12 : at + 204] = other[at + 12 : at + 204]

    return change


def straddled(payload, _number):
    for column in range(16):
        at = column_at(payload, column) + 8
        payload[at : at + 2] = ((504 + column) % 512).to_bytes(2, "little")


def blank_signal(pixels):
    pixels[..., 1] = np.where(pixels[..., 0] & 0x7FFFF, pixels[..., 1], pixels[..., 1] & 0xFFFF)


def no_near_ir(pixels):
    pixels[..., 2] = np.where(pixels[..., 0] & 0x7FFFF, pixels[..., 2], 0)
    pixels[:, :14, 2] = 0


def copy_first(pixels):
    has = (pixels[..., 0] & 0x7FFFF) > 0
    pixels[..., 1] = np.where(has, pixels[..., 0], pixels[..., 1])
    pixels[..., 2] = np.where(has, (pixels[..., 2] & 0xFFFF) * 0x10001, pixels[..., 2])


def second_alone(pixels):
    both = (pixels[..., 1] & 0x7FFFF) > 0
    pixels[..., 0] = np.where(both, pixels[..., 0] & ~np.uint32(0x7FFFF), pixels[..., 0])


def second_filled(pixels):
    pixels[..., 1] = np.where(pixels[..., 1] & 0x7FFFF, pixels[..., 1], pixels[..., 1] | np.uint32(7 << 24))


def exchanged(pixels):
    both = (pixels[..., 1] & 0x7FFFF) > 0
    pixels[..., 2] = np.where(both, 1 | 500 << 16, pixels[..., 2])


def nearer_last(pixels):
    both = (pixels[..., 1] & 0x7FFFF) > 0
    pixels[..., 1] = np.where(both, (pixels[..., 1] & ~np.uint32(0x7FFFF)) | 600, pixels[..., 1])


def saturated(pixels):
    pixels[..., 0] = np.where(pixels[..., 0] & 0x7FFF, pixels[..., 0], pixels[..., 0] | np.uint32(0x7FFF))


def near(pixels):
    pixels[3, 2, 0] = 170


def reserved_bit(pixels):
    pixels[5, 1, 0] |= np.uint32(1 << 26)


def window_byte(pixels):
    pixels[5, 1, 2] |= np.uint32(9 << 24)


def imu_values(scale, at=24):
    def change(payload, _number):
        values = np.frombuffer(bytes(payload[at : at + 12]), "<f4") * np.float32(scale)
        payload[at : at + 12] = values.astype("<f4").tobytes()

    return change


def outside(datagrams, metadata):
    """A packet wholly outside the window, as the sensor would fill it."""
    whole = [each for each in _made("SINGLE") if each.destination_port == 7502]
    places = [place for place, each in enumerate(datagrams) if each.destination_port == 7502]
    extra = bytearray(whole[34].payload)
    extra[2:4] = datagrams[places[13]].payload[2:4]
    payload = with_crc(bytes(extra), metadata)
    added = replace(whole[34], payload=payload, link=relinked(whole[34].link, payload), source=SOURCE)
    return [*datagrams[: places[13]], added, *datagrams[places[13] :]]


MUTATIONS = [
    ("a byte short", "SINGLE", lidar(lambda payload, _: payload[:-1], slice(3, 4), crc=False), "ouster.size", {"ouster.lost"}),
    ("the packet type 0", "SINGLE", lidar(put(0, b"\0"), slice(3, 4)), "ouster.type", {"ouster.lost"}),
    ("another serial number", "SINGLE", lidar(put(7, b"\1"), slice(3, 4)), "ouster.serial"),
    ("an old initialisation id", "SINGLE", lidar(put(4, b"\1\1\1")), "ouster.init_id"),
    ("bits behind the header's fields", "SINGLE", lidar(put(21, b"\1"), slice(3, 4)), "ouster.reserved"),
    ("bytes before the CRC", "SINGLE", lidar(lambda payload, _: payload.__setitem__(-20, 1), slice(3, 4)), "ouster.reserved"),
    ("a FUSA header with bytes behind it", "FUSA", lidar(put(24, b"\1"), slice(3, 4)), "ouster.reserved"),
    ("the status 0xffff", "SINGLE", lidar(lambda p, _: put(column_at(p, 4) + 10, b"\xff\xff")(p, _), slice(3, 4)), "ouster.status"),
    ("a countdown of 99 s", "SINGLE", lidar(put(16, b"\x63"), slice(3, 4)), "ouster.states"),
    ("a wrong CRC", "SINGLE", lidar(put(100, b"\x55"), slice(3, 4), crc=False), "ouster.footer", {"ouster.pixel_bits"}),
    ("a CRC of zero", "SINGLE", lidar(lambda p, _: p.__setitem__(slice(-8, None), bytes(8)), crc=False), "ouster.footer"),
    ("a CRC in FUSA", "FUSA", lidar(lambda p, _: p.__setitem__(slice(-8, None), b"\1" * 8), slice(3, 4)), "ouster.footer"),
    ("no constant in firmware 2.4", "CONSTANT", lidar(lambda p, _: p.__setitem__(slice(-8, None), bytes(8))), "ouster.footer"),
    ("a frame id that stays", "SINGLE", lidar(frame_of(lambda _id, _n: 7)), "ouster.frame_id", {"ouster.order"}),
    ("a frame id by packets", "SINGLE", lidar(frame_of(lambda _id, n: n)), "ouster.frame_id", {"ouster.lost"}),
    ("a frame id that skips one", "SINGLE", lidar(frame_of(lambda i, n: i + n // 32)), "ouster.frame_id", {"ouster.lost"}),
    ("a frame id that ends at 32767", "SINGLE", lidar(frame_of(lambda i, _n: i % 32_768)), "ouster.frame_id"),
    ("a measurement id of 600", "SINGLE", lidar(lambda p, _: put(column_at(p, 5) + 8, b"\x58\x02")(p, _), slice(3, 4)), "ouster.measurement_id"),
    ("a packet that straddles a frame", "SINGLE", lidar(straddled, slice(31, 32)), "ouster.straddle", {"ouster.place"}),
    (
        "measurement ids of the packet before",
        "SINGLE",
        lidar(lambda p, _: straddle_by(p, -16), slice(40, 44)),
        "ouster.place",
        {"ouster.lost", "ouster.duplicate"},
    ),
    ("a wrong encoder count", "LEGACY", lidar(lambda p, _: put(column_at(p, 5) + 12, b"\1")(p, _), slice(3, 4)), "ouster.encoder"),
    ("two frame ids in a packet", "LEGACY", lidar(lambda p, _: put(column_at(p, 5) + 10, b"\1")(p, _), slice(3, 4)), "ouster.straddle"),
    ("lost packets", "SINGLE", each_fourth, "ouster.lost"),
    ("exchanged packets", "SINGLE", swapped, "ouster.order"),
    ("packets outside the window", "WINDOW", outside, "ouster.window"),
    ("a valid column outside the window", "WINDOW", lidar(lambda p, _: put(column_at(p, 0) + 10, b"\1")(p, _), slice(0, 1)), "ouster.border"),
    ("a column inside that is not valid", "SINGLE", lidar(lambda p, _: blanked(p, 5), slice(3, 4)), "ouster.invalid"),
    ("pixels in a column that is not valid", "WINDOW", lidar(lambda p, _: put(column_at(p, 0) + 20, b"\7")(p, _), slice(0, 1)), "ouster.blank"),
    ("one stamp for a packet", "SINGLE", lidar(columns(lambda stamp, n: stamp - n % 16 * 190_000)), "ouster.stamp_order", None),
    (
        "stamps that fall between packets",
        "SINGLE",
        lidar(columns(lambda stamp, _n: stamp - 8_000_000), slice(9, 10)),
        "ouster.stamp_order",
        {"ouster.place"},
    ),
    ("stamps on another grid", "SINGLE", lidar(columns(lambda stamp, _n: stamp + 3)), "ouster.stamp_grid"),
    ("stamps on Rev 7's grid in Rev 6", "REV_6", lidar(columns(lambda stamp, _n: stamp // 8 * 8)), "ouster.stamp_grid"),
    ("stamps in microseconds", "SINGLE", lidar(columns(lambda stamp, _n: stamp // 1000 * 1000)), "ouster.stamp_coarse"),
    ("a constant column period", "SINGLE", lidar(columns(lambda _s, n: (500_000_000_000 + n * 195_312.5) // 8 * 8)), "ouster.column_constant"),
    ("another column period", "SINGLE", lidar(columns(lambda s, n: (s + n * 1200) // 8 * 8)), "ouster.column_period", {"ouster.rate"}),
    ("a column that is late", "SINGLE", lidar(columns(lambda s, n: s + 40_000 * (n % 16 == 5)), slice(3, 4)), "ouster.column_step"),
    ("a reserved bit of a pixel", "SINGLE", lidar(words(reserved_bit, 3), slice(3, 4)), "ouster.pixel_bits"),
    ("a window byte before firmware 3.2", "SINGLE", lidar(words(window_byte, 3), slice(3, 4)), "ouster.pixel_bits"),
    ("no signal without a return", "SINGLE", lidar(words(blank_signal, 3)), "ouster.no_signal"),
    ("no near infrared", "SINGLE", lidar(words(no_near_ir, 3)), "ouster.near_ir"),
    ("a second return that is a copy", "DUAL", lidar(words(copy_first, 4)), "ouster.second_copy"),
    ("a second return without a first", "DUAL", lidar(words(second_alone, 4)), "ouster.second_alone"),
    ("reflectivity without a second return", "DUAL", lidar(words(second_filled, 4)), "ouster.second_zero"),
    ("the weaker return first", "DUAL", lidar(words(exchanged, 4)), "ouster.return_order"),
    ("the nearer return last", "NEAREST", lidar(words(nearer_last, 4)), "ouster.return_order"),
    ("the nearer return first", "FARTHEST", None, "ouster.return_order"),
    ("ranges cut to the largest", "LOW", lidar(words(saturated, 1)), "ouster.range_most"),
    ("a range below the threshold", "SINGLE", lidar(words(near, 3), slice(3, 4)), "ouster.range_least"),
    ("a frame in a loop", "SINGLE", frames_again, "ouster.loop"),
    ("do-not-fragment on lidar packets", "SINGLE", link(lambda h, _: h.__setitem__(20, 0x40), 7502), "ouster.fragment"),
    ("fragments allowed for IMU packets", "SINGLE", link(lambda h, _: h.__setitem__(20, 0), 7503), "ouster.fragment"),
    ("a TTL of 255", "SINGLE", link(lambda h, _: h.__setitem__(22, 255)), "ouster.ttl"),
    ("an identification of 0", "SINGLE", link(lambda h, _: h.__setitem__(slice(18, 20), b"\0\0")), "ouster.identification"),
    (
        "counters for each stream",
        "SINGLE",
        link(lambda h, n: h.__setitem__(slice(18, 20), (40_000 * (h[37] == 0x4F) + n).to_bytes(2, "big"))),
        "ouster.identification",
    ),
    ("no UDP checksum", "SINGLE", link(lambda h, _: h.__setitem__(slice(40, 42), b"\0\0")), "ouster.udp_checksum"),
    ("a wrong UDP checksum", "SINGLE", link(lambda h, _: h.__setitem__(40, h[40] ^ 1)), "ouster.udp_checksum"),
    ("bursts of eight", "SINGLE", hosts(lambda ns, n: ns - n % 8 * 2_500_000), "ouster.burst"),
    ("a timer of 10 ms", "SINGLE", hosts(lambda ns, n: ns + (1_500_000 if n % 2 else 0)), "ouster.tick"),
    ("an IMU packet too short", "SINGLE", imu(lambda p, _: p[:-4], slice(3, 4)), "ouster.imu_form"),
    ("LEGACY IMU packets instead of the newer", "IMU_FORM", None, "ouster.imu_form"),
    (
        "200 IMU packets a second",
        "SINGLE",
        imu(lambda p, n: put(0, (500_003_000_000 + 5_000_000 * n).to_bytes(8, "little"))(p, n)),
        "ouster.imu_period",
    ),
    ("one time for both readings", "SINGLE", imu(lambda p, _n: p.__setitem__(slice(16, 24), p[8:16])), "ouster.imu_times"),
    ("acceleration in m/s²", "SINGLE", imu(imu_values(9.80665)), "ouster.imu_gravity", {"ouster.imu_values"}),
    ("angular velocity in rad/s", "SINGLE", imu(imu_values(0.0174533, 36)), "ouster.imu_values"),
    ("IMU times that fall", "SINGLE", imu(put(0, (500_003_000_000).to_bytes(8, "little")), slice(5, 6)), "ouster.imu_order"),
    ("IMU measurements in disorder", "NEW_IMU", imu(put(132 + 36 + 8, b"\1\0"), slice(3, 4)), "ouster.imu_measurements"),
    ("an IMU packet of another unit", "NEW_IMU", imu(put(7, b"\1"), slice(3, 4)), "ouster.imu_header"),
]


def straddle_by(payload, columns_by):
    for column in range(16):
        at = column_at(payload, column) + 8
        payload[at : at + 2] = (int.from_bytes(payload[at : at + 2], "little") + columns_by).to_bytes(2, "little")


def blanked(payload, column):
    form, at = FORMS[len(payload)], column_at(payload, column)
    payload[at + 10 : at + 12] = b"\0\0"
    payload[at + 12 : at + form.column_size] = bytes(form.column_size - 12)


@pytest.mark.parametrize("name", ["SINGLE", "REV_6", "DUAL", "NEAREST", "LOW", "LEGACY", "FUSA", "WINDOW", "NEW_IMU", "CONSTANT"])
def test_a_stream_without_a_fault_breaks_no_rule(name):
    assert found_in(_made(name), globals()[name]) == set()


@pytest.mark.parametrize(("grid_ns", "rules"), [(256, set()), (512, {"ouster.stamp_coarse"})])
def test_stamps_under_ptp_may_have_the_grid_of_a_double_and_no_coarser_one(grid_ns, rules):
    under_ptp = replace(SINGLE, settings=dict(SINGLE.settings) | {"timestamp_mode": "TIME_FROM_PTP_1588"})
    utc = lidar(columns(lambda stamp, _n: (1_560_000_000_000_000_000 + stamp) // grid_ns * grid_ns))
    datagrams = [each for each in _made("SINGLE") if each.destination_port == 7502]
    assert found_in(utc(datagrams, under_ptp), under_ptp) == rules


def _cases():
    return [pytest.param(*(*case, set())[1:5], id=case[0]) for case in MUTATIONS]


@pytest.mark.parametrize(("base", "mutate", "rule", "beside"), _cases())
def test_a_fault_breaks_its_rule(base, mutate, rule, beside):
    if base in OF_OTHERS:
        name, metadata = OF_OTHERS[base]
        datagrams = _made(name)
    else:
        metadata = globals()[base]
        datagrams = mutate(_made(base), metadata)
        assert list(datagrams) != list(_made(base))
    found = found_in(datagrams, metadata)
    assert rule in found
    if beside is not None:
        assert found - {rule} <= set(beside)


def unused_byte(payload):
    """Byte of a pixel of column 3 without a field: byte 14 of a dual pixel, byte 5 of a single one."""
    return column_at(payload, 3) + 12 + (14 if len(payload) == 8448 else 5)


REAL = [
    ("a serial number", lambda p: put(7, b"\1")(p, 0), "ouster.serial"),
    ("an initialisation id", lambda p: put(4, b"\1")(p, 0), "ouster.init_id"),
    ("reserved bits", lambda p: put(30, b"\1")(p, 0), "ouster.reserved"),
    ("the footer", lambda p: p.__setitem__(-1, 1), "ouster.footer"),
    ("a status", lambda p: put(column_at(p, 3) + 10, b"\3")(p, 0), "ouster.status"),
    ("a measurement id", lambda p: put(column_at(p, 3) + 8, b"\xff")(p, 0), "ouster.measurement_id"),
    ("a stamp off the grid", lambda p: p.__setitem__(column_at(p, 3), p[column_at(p, 3)] ^ 1), "ouster.stamp_grid"),
    ("a pixel's bits", lambda p: p.__setitem__(unused_byte(p), 0x80), "ouster.pixel_bits"),
]


@pytest.mark.parametrize("name", ["OS-2-128-U1_v2.3.0_1024x10", "OS-0-32-U1_v2.2.0_1024x10"])
@pytest.mark.parametrize(("change", "rule"), [case[1:] for case in REAL], ids=[case[0] for case in REAL])
def test_a_fault_in_a_real_packet_breaks_its_rule(capture, name, change, rule):
    path = capture(f"ouster/{name}.pcap")
    datagrams = list(CaptureFile(path))
    place = [number for number, each in enumerate(datagrams) if each.destination_port == 7502][20]
    payload = bytearray(datagrams[place].payload)
    change(payload)
    datagrams[place] = replace(datagrams[place], payload=bytes(payload))
    assert rule in found_in(datagrams, *OusterMetadata(capture=path).sensors)


@pytest.mark.parametrize("name", ["OS-2-128-U1_v2.3.0_1024x10", "OS-0-32-U1_v2.2.0_1024x10", "same_ports_nonlegacy"])
def test_captures_of_real_units_break_no_rule(capture, name):
    path = capture(f"ouster/{name}.pcap")
    assert found_in(CaptureFile(path), *OusterMetadata(capture=path).sensors) == set()
