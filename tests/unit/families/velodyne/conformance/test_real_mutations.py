"""Real captures spoiled as decoders were seen to accept them: each must be an error, of the right rule."""

import numpy as np
import pytest

from hilsim.capture.pcap import CaptureFile

DUAL, SINGLE, GPS = "vlp16_dual.pcap", "vlp16_strongest_gps.pcap", "vlp16_strongest_gps.pcap"


def blocks(payloads):
    return payloads[:, :1200].reshape(-1, 12, 100)


def azimuth(payloads):
    return np.ascontiguousarray(blocks(payloads)[:, :, 2:4]).view("<u2")[:, :, 0].astype(np.int64)


def set_azimuth(payloads, values):
    view = blocks(payloads)
    view[:, :, 2] = values & 0xFF
    view[:, :, 3] = values >> 8


def swap_flags(payloads):
    blocks(payloads)[:, :, :2] = [0xDD, 0xFF]


def set_byte(at, value):
    def change(payloads):
        payloads[:, at] = value

    return change


def zero_stamps(payloads):
    payloads[:, 1200:1204] = 0


def freeze_azimuth(payloads):
    set_azimuth(payloads, np.full((len(payloads), 12), 4711))


def run_past_the_turn(payloads):
    values = azimuth(payloads)
    set_azimuth(payloads, np.where(values < 60, values + 36000, values))


def swap_pairs(payloads):
    view = blocks(payloads)
    view[:, ::2], view[:, 1::2] = view[:, 1::2].copy(), view[:, ::2].copy()


def add_four_bytes(payloads):
    return np.concatenate((payloads, np.zeros((len(payloads), 4), dtype=np.uint8)), axis=1)


def silence_empty_records(payloads):
    records = blocks(payloads)[:, :, 4:].reshape(-1, 12, 32, 3)
    empty = (records[..., 0] == 0) & (records[..., 1] == 0)
    records[..., 2][empty] = 0
    blocks(payloads)[:, :, 4:] = records.reshape(-1, 12, 96)


def sort_by_elevation(payloads):
    order = [*range(0, 16, 2), *range(1, 16, 2)]
    records = blocks(payloads)[:, :, 4:].reshape(-1, 12, 2, 16, 3)
    blocks(payloads)[:, :, 4:] = records[:, :, :, order].reshape(-1, 12, 96)


def take_line_feed(payloads):
    sentence = payloads[:, 206:334]
    sentence[sentence == ord("\n")] = 0


@pytest.mark.parametrize("name", [DUAL, SINGLE])
@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (set_byte(1205, 0x99), "factory.product"),
        (set_byte(1204, 0x00), "factory.mode"),
        (swap_flags, "data.flag"),
        (zero_stamps, "time.constant"),
        (freeze_azimuth, "azimuth.constant"),
        (run_past_the_turn, "azimuth.range"),
        (add_four_bytes, "data.size"),
        (silence_empty_records, "returns.no_return"),
        (sort_by_elevation, "returns.laser_order"),
        (set_byte(1205, 0x21), "time.cycle"),
    ],
    ids=[
        "unknown product",
        "unknown mode",
        "flags of another bank",
        "no time",
        "standing azimuth",
        "azimuth past the turn",
        "four more bytes",
        "silent empty records",
        "sorted by elevation",
        "marked as an hdl-32e",
    ],
)
def test_a_spoiled_real_capture_is_an_error(mutate, judge, name, change, rule):
    verdict = judge(mutate(name, change))
    if rule == "time.cycle":  # the timing shows that it is a VLP-16: what units with 2014 firmware really sent
        assert (verdict.errors, "factory.early_unit" in verdict.warnings) == (set(), True)
    else:
        assert rule in verdict.errors


def test_dual_data_marked_strongest_is_an_error(mutate, judge):
    assert judge(mutate(DUAL, set_byte(1204, 0x37))).errors == {"factory.mode"}


def test_single_data_marked_dual_is_an_error(mutate, judge):
    assert "factory.mode" in judge(mutate(SINGLE, set_byte(1204, 0x39))).errors


def test_swapped_pairs_are_an_error(mutate, judge):
    assert "dual.order" in judge(mutate(DUAL, swap_pairs)).errors


def test_another_product_byte_is_caught_by_the_timing_where_it_differs(mutate, judge):
    assert "time.cycle" in judge(mutate(SINGLE, set_byte(1205, 0x28))).errors


def test_a_source_port_of_another_program_is_an_error(any_capture, judge):
    datagrams = [
        type(d)(**{name: getattr(d, name) for name in d.__slots__} | {"source_port": 5555 if d.source_port == 2368 else 8308})
        for d in CaptureFile(any_capture(GPS))
    ]
    verdict = judge(datagrams)
    count = sum(d.source_port == 5555 for d in datagrams)
    assert f"the source port must be 2368, got 5555 ({count} of {count} data packets)" in verdict.first("header.source_port").message
    assert "header.source_port" in verdict.errors


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (set_byte(5, 1), "position.zero"),
        (set_byte(400, 1), "position.zero"),
        (set_byte(202, 9), "position.pps"),
        (set_byte(206 + 20, ord("9")), "nmea.checksum"),
        (take_line_feed, "nmea.ending"),
        (set_byte(206 + 100, 7), "nmea.padding"),
        (set_byte(206, ord("!")), "nmea.sentence"),
        (set_byte(slice(198, 202), 0), "position.order"),
        (set_byte(201, 0xFF), "position.range"),
    ],
    ids=[
        "noise before",
        "noise behind",
        "pps 9",
        "one digit changed",
        "no line feed",
        "padding",
        "no dollar",
        "no time",
        "past the hour",
    ],
)
def test_a_spoiled_real_position_packet_is_an_error(mutate, judge, change, rule):
    assert rule in judge(mutate(GPS, change, size=512)).errors


def test_an_hdl32e_without_inertial_words_is_an_error(mutate, judge):
    assert judge(mutate("hdl32e_strongest.pcap", set_byte(slice(14, 38), 0), size=512)).errors == {"position.imu"}


def test_a_locked_sensor_without_a_sentence_is_a_warning(mutate, judge):
    verdict = judge(mutate(GPS, set_byte(slice(206, 334), 0), size=512))
    assert (verdict.errors, "position.pps" in verdict.warnings) == (set(), True)
