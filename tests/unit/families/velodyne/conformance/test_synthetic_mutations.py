"""A synthetic stream spoiled in each way that lenient decoders accept: an error, of the right rule."""

from dataclasses import replace

import numpy as np
import pytest

from hilsim.read.analysis.conformance.checker import StreamChecker
from hilsim.units import HOUR_US

CYCLE_NS = 1_327_104


def ramp(data, step=39.813, first=0.0):
    """An exact ramp in place of the encoder."""
    index = np.arange(len(data) * 12).reshape(-1, 12)
    data["blocks"]["azimuth"] = np.rint(first + index * step) % 36000


def restamp(data, stamps):
    data["stamp"] = np.asarray(stamps, dtype=np.int64) % (1 << 32)


def test_a_faultless_stream_has_no_findings(judge, single):
    assert judge(single).findings == []


def test_a_faultless_dual_stream_has_no_findings(judge, dual):
    assert judge(dual).findings == []


@pytest.mark.parametrize("rpm", [300.0, 720.0, 900.0, 1200.0])
def test_a_faultless_stream_at_another_speed_has_no_findings(streams, judge, rpm):
    assert judge(streams.vlp16(rpm=rpm)).findings == []


def test_a_faultless_stream_across_the_hour_has_no_findings(streams, judge):
    assert (
        judge(
            streams.vlp16(start_us=HOUR_US - 400_000, seed=2).change(position=np.zeros((0, 512), np.uint8), position_host_ns=np.zeros(0, np.int64))
        ).findings
        == []
    )


# time


def test_rounded_steps_added_up_are_an_error(judge, single, spoil):
    verdict = judge(spoil(single, lambda data: restamp(data, 1_082_000_000 + 1327 * np.arange(len(data)))))
    assert "time.rounding" in verdict.errors


@pytest.mark.parametrize("step", [663, 664])
def test_rounded_dual_steps_added_up_are_an_error(judge, dual, spoil, step):
    verdict = judge(spoil(dual, lambda data: restamp(data, 1_082_000_000 + step * np.arange(len(data)))))
    assert "time.rounding" in verdict.errors


def test_the_time_of_sending_as_stamp_is_an_error(judge, single, spoil):
    noise = np.random.default_rng(3).normal(0, 14, len(single.data))
    verdict = judge(spoil(single, lambda data: restamp(data, data["stamp"] + noise)))
    assert "time.step" in verdict.errors


def drift(amplitude_us):
    def change(data):
        restamp(data, data["stamp"] + np.rint(amplitude_us * np.sin(np.arange(len(data)) / 25)))

    return change


def test_stamps_that_wander_by_microseconds_are_an_error(judge, single, spoil):
    assert judge(spoil(single, drift(5.0))).errors == {"time.residual"}


def test_stamps_that_wander_as_those_of_steered_units_are_a_warning(judge, single, spoil):
    verdict = judge(spoil(single, drift(1.2)))
    assert (verdict.errors, verdict.warnings) == (set(), {"time.residual"})


def test_a_steered_clock_is_a_warning(streams, judge, single, spoil):
    verdict = judge(spoil(single, lambda data: restamp(data, streams.stamps_us(len(data), 1_327_286, 1_082_000_000))))
    assert (verdict.errors, "time.drift" in verdict.warnings) == (set(), True)


def test_stamps_of_the_packets_end_are_an_error_where_position_packets_tell(judge, single, spoil):
    assert "position.lead" in judge(spoil(single, lambda data: restamp(data, data["stamp"] + 1327))).errors


def test_unix_time_as_stamp_is_an_error(judge, single, spoil):
    verdict = judge(spoil(single, lambda data: restamp(data, data["stamp"].astype(np.int64) + 3_100_000_000)))
    assert "the stamp must be below 3,600,000,000, got 4,182,000,000" in verdict.first("time.range").message
    assert "time.range" in verdict.errors


def test_a_stamp_that_starts_again_at_zero_with_the_hour_is_an_error(streams, judge, spoil):
    stream = streams.vlp16(start_us=HOUR_US - 400_000)

    def restart(data):
        after = data["stamp"] < 1_000_000_000
        data["stamp"][after] -= data["stamp"][after][0]

    assert "time.wrap" in judge(spoil(stream, restart)).errors


def test_one_wrong_stamp_is_an_error_at_its_packet(judge, single, spoil):
    def shift(data):
        data["stamp"][100] += 50

    verdict = judge(spoil(single, shift))
    finding = verdict.first("time.step")
    assert ("time.step" in verdict.errors, finding.place.packet_index, finding.place.byte_offset) == (True, 100, 1200)


def test_a_clock_set_once_is_a_warning(judge, single, spoil):
    def step(data):
        data["stamp"][300:] += 123_456

    verdict = judge(spoil(single, step).change(position=np.zeros((0, 512), np.uint8), position_host_ns=np.zeros(0, np.int64)))
    assert (verdict.errors, verdict.warnings) == (set(), {"time.jump"})


def test_a_clock_set_where_each_second_begins_is_a_note(judge, streams, spoil):
    def pulse(data):
        data["stamp"] += (data["stamp"].astype(np.int64) // 1_000_000 - 1082).astype(np.uint32) * 90

    nothing = {"position": np.zeros((0, 512), np.uint8), "position_host_ns": np.zeros(0, np.int64)}
    verdict = judge(spoil(streams.vlp16(3000), pulse).change(**nothing))
    assert (verdict.errors | verdict.warnings, verdict.notes) == (set(), {"time.jump"})


def test_a_clock_set_again_and_again_is_an_error(judge, single, spoil):
    def steps(data):
        for row in range(50, 700, 75):
            data["stamp"][row:] += 40

    assert "time.step" in judge(spoil(single, steps)).errors


def test_lost_packets_are_a_warning_with_their_number(judge, single):
    keep = np.full(len(single.data), fill_value=True)
    keep[[50, 51, 52, 300]] = False
    verdict = judge(single.change(keep=keep))
    assert (verdict.errors, verdict.result.sensors[0].summary.lost_packets) == (set(), 4)
    assert "time.lost" in verdict.warnings


def test_a_network_that_loses_each_third_packet_is_a_warning(judge, dual):
    verdict = judge(dual.change(keep=np.arange(len(dual.data)) % 3 != 1))
    assert (verdict.errors, verdict.warnings) == (set(), {"time.lost"})


def test_packets_out_of_order_are_a_warning_when_rare(judge, single):
    host = single.data_host_ns.copy()
    host[[200, 201]] = host[[201, 200]]
    verdict = judge(single.change(data_host_ns=host, live=True))
    assert "time.order" in verdict.warnings


def test_packets_out_of_order_are_an_error_when_frequent(judge, single):
    host = single.data_host_ns.copy().reshape(-1, 2)[:, ::-1].ravel()
    assert "time.order" in judge(single.change(data_host_ns=host, live=True)).errors


# azimuth


def test_an_exact_ramp_is_an_error(judge, single, spoil):
    assert "azimuth.ramp" in judge(spoil(single, ramp)).errors


def test_a_ramp_that_changes_its_speed_slowly_is_still_an_error(judge, single, spoil):
    def breathe(data):
        index = np.arange(len(data) * 12)
        data["blocks"]["azimuth"] = np.rint((index * 39.813 + 60 * np.sin(index / 300)) % 35999).reshape(-1, 12)

    assert "azimuth.ramp" in judge(spoil(single, breathe)).errors


def test_azimuth_on_a_coarse_grid_is_an_error(judge, single, spoil):
    def quantise(data):
        data["blocks"]["azimuth"] = data["blocks"]["azimuth"] // 10 * 10

    assert "azimuth.grid" in judge(spoil(single, quantise)).errors


def turns_from_zero(data):
    """Every turn starts at 0 and has 900 blocks (75 packets), with noise elsewhere."""
    index = np.arange(len(data) * 12)
    noise = np.where(index % 900 == 0, 0, np.rint(np.random.default_rng(1).normal(0, 0.6, len(index))))
    data["blocks"]["azimuth"] = ((index % 900) * 40 + noise).reshape(-1, 12)


def test_turns_that_always_start_at_zero_are_an_error(judge, single, spoil):
    assert "azimuth.start" in judge(spoil(single, turns_from_zero)).errors


def test_a_whole_number_of_packets_a_turn_is_an_error(judge, single, spoil):
    assert "azimuth.turn" in judge(spoil(single, turns_from_zero)).errors


def test_a_leap_of_azimuth_at_every_packet_is_an_error(judge, single, spoil):
    def leap(data):
        data["blocks"]["azimuth"] = (data["blocks"]["azimuth"] + 7 * np.arange(len(data))[:, None]) % 36000

    assert "azimuth.motion" in judge(spoil(single, leap)).errors


def test_a_head_turning_backwards_is_an_error(judge, single, spoil):
    def reverse(data):
        data["blocks"]["azimuth"] = 35999 - data["blocks"]["azimuth"]

    assert "azimuth.motion" in judge(spoil(single, reverse)).errors


def test_one_azimuth_that_steps_back_is_an_error_at_its_block(judge, single, spoil):
    def step_back(data):
        data["blocks"]["azimuth"][5, 7] = data["blocks"]["azimuth"][5, 6] - 3

    finding = judge(spoil(single, step_back)).first("azimuth.motion")
    assert (finding.place.packet_index, finding.place.byte_offset) == (5, 702)


def test_noise_on_the_speed_instead_of_the_angle_is_a_warning(judge, single, spoil):
    def integrate(data):
        step = 39.813 + np.random.default_rng(2).normal(0, 0.8, len(data) * 12)
        data["blocks"]["azimuth"] = np.rint(np.cumsum(step)).reshape(-1, 12) % 36000

    assert "azimuth.noise" in judge(spoil(single, integrate)).warnings


def test_a_speed_no_sensor_has_is_a_warning(streams, judge):
    assert "azimuth.rate" in judge(streams.vlp16(rpm=1500.0)).warnings


# dual return


def test_swapped_pairs_are_an_error(judge, dual, spoil):
    def swap(data):
        even, odd = data["blocks"]["records"][:, ::2].copy(), data["blocks"]["records"][:, 1::2].copy()
        data["blocks"]["records"][:, ::2], data["blocks"]["records"][:, 1::2] = odd, even

    assert "dual.order" in judge(spoil(dual, swap)).errors


def test_an_empty_odd_block_for_single_returns_is_an_error(judge, dual, spoil):
    def clear(data):
        records = data["blocks"]["records"]
        same = records[:, ::2] == records[:, 1::2]
        odd = records[:, 1::2].copy()
        odd["distance"][same] = 0
        records[:, 1::2] = odd

    assert "dual.copy" in judge(spoil(dual, clear)).errors


def test_strongest_in_the_odd_block_even_where_it_is_the_last_is_an_error(judge, dual, spoil):
    def favour(data):
        records = data["blocks"]["records"]
        even, odd = records[:, ::2].copy(), records[:, 1::2].copy()
        differ = even["distance"] != odd["distance"]
        odd["reflectivity"][differ] = np.maximum(odd["reflectivity"], even["reflectivity"])[differ]
        records[:, 1::2] = odd

    assert "dual.second_strongest" in judge(spoil(dual, favour)).errors


def test_returns_closer_than_a_metre_are_an_error(judge, dual, spoil):
    def approach(data):
        records = data["blocks"]["records"]
        even, odd = records[:, ::2].copy(), records[:, 1::2]
        apart = even["distance"].astype(np.int64) - odd["distance"]
        even["distance"] = odd["distance"] + np.minimum(apart, 200 + apart // 20)
        records[:, ::2] = even

    assert "dual.separation" in judge(spoil(dual, approach)).errors


def test_dual_packets_at_the_single_rate_are_an_error(judge, dual, spoil):
    def slow(data):
        restamp(data, 1_082_000_000 + np.arange(len(data)) * CYCLE_NS // 1000)

    assert "time.cycle" in judge(spoil(dual, slow).change(live=True)).errors


def test_twelve_azimuths_in_a_dual_packet_are_an_error(judge, single, spoil):
    def say_dual(data):
        data["mode"] = 0x39

    assert "factory.mode" in judge(spoil(single, say_dual)).errors


def test_one_unequal_pair_of_azimuths_is_an_error_at_its_block(judge, dual, spoil):
    def differ(data):
        data["blocks"]["azimuth"][9, 5] += 1

    finding = judge(spoil(dual, differ)).first("dual.azimuth")
    assert (finding.place.packet_index, finding.place.byte_offset) == (9, 502)


# distances and reflectivities


def set_distance(function):
    def change(data):
        distance = data["blocks"]["records"]["distance"]
        data["blocks"]["records"]["distance"] = np.where(distance > 0, function(distance.astype(np.int64)), 0)

    return change


def centimetres(raw):
    return raw // 5 * 5


def far_misses(data):
    distance = data["blocks"]["records"]["distance"]
    data["blocks"]["records"]["distance"] = np.where(distance == 0, 50_000, np.where(distance % 2, distance, 50_000))


def blank_sector(data):
    outside = data["blocks"]["azimuth"] > 30_000
    data["blocks"]["records"]["distance"][outside] = 0
    data["blocks"]["records"]["reflectivity"][outside] = 0


def copy_first_firing(data):
    data["blocks"]["records"][:, :, 16:] = data["blocks"]["records"][:, :, :16]


def sort_records(data):
    order = [*range(0, 16, 2), *range(1, 16, 2)]
    data["blocks"]["records"][:, :, :16] = data["blocks"]["records"][:, :, :16][:, :, order]
    data["blocks"]["records"][:, :, 16:] = data["blocks"]["records"][:, :, 16:][:, :, order]


def fill_reflectivity(value):
    def change(data):
        has = data["blocks"]["records"]["distance"] > 0
        data["blocks"]["records"]["reflectivity"][has] = value

    return change


def empty_reflectivity(value):
    def change(data):
        empty = data["blocks"]["records"]["distance"] == 0
        data["blocks"]["records"]["reflectivity"][empty] = value

    return change


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (set_distance(lambda raw: raw // 2 * 2), "returns.even"),
        (set_distance(centimetres), "returns.grid"),
        (set_distance(lambda raw: raw // 20 + 100), "returns.minimum"),
        (set_distance(lambda raw: np.minimum(raw * 12, 65535)), "returns.maximum"),
        (far_misses, "returns.repeated"),
        (empty_reflectivity(0), "returns.no_return"),
        (fill_reflectivity(255), "returns.reflectivity"),
        (blank_sector, "returns.blank"),
        (copy_first_firing, "returns.second_firing"),
        (sort_records, "returns.laser_order"),
    ],
    ids=[
        "even distances",
        "centimetres",
        "too near",
        "too far",
        "a far distance for a miss",
        "silent empty records",
        "one reflectivity",
        "zeros outside the field of view",
        "second firing copied",
        "sorted by elevation",
    ],
)
def test_spoiled_records_are_an_error(judge, single, spoil, change, rule):
    assert rule in judge(spoil(single, change)).errors


def test_one_noise_floor_for_all_lasers_is_a_warning(judge, single, spoil):
    assert "returns.baseline" in judge(spoil(single, empty_reflectivity(7))).warnings


def test_one_reflectivity_throughout_is_a_warning(judge, single, spoil):
    verdict = judge(spoil(single, fill_reflectivity(60)))
    assert (verdict.errors, verdict.warnings) == (set(), {"returns.reflectivity"})


def test_a_distance_beyond_all_that_was_seen_is_a_warning(judge, single, spoil):
    def place_one(data):
        data["blocks"]["records"]["distance"][9, 4, 3] = 61_234

    verdict = judge(spoil(single, place_one))
    finding = verdict.first("returns.maximum")
    assert (verdict.errors, finding.place.packet_index, finding.place.byte_offset) == (set(), 9, 413)
    assert "got 61234 (122.468 m) in 1 records" in finding.message


def test_mostly_retroreflectors_are_a_warning(judge, single, spoil):
    def raise_all(data):
        data["blocks"]["records"]["reflectivity"] += 120

    assert "returns.reflectivity" in judge(spoil(single, raise_all)).warnings


# field of view and partial packets


def test_a_field_of_view_with_joined_blocks_has_no_findings(streams, judge):
    stream = streams.vlp16(3000)
    inside = (stream.data["blocks"]["azimuth"] < 9090) | (stream.data["blocks"]["azimuth"] > 27_010)
    rows, columns = np.nonzero(inside)
    count = len(rows) // 12
    rows, columns = rows[: count * 12].reshape(-1, 12), columns[: count * 12].reshape(-1, 12)
    data = np.zeros(count, dtype=stream.data.dtype)
    data["blocks"] = stream.data["blocks"][rows, columns]
    exact_ns = 1_082_000_000_000 + 417 + (rows[:, 0] * 12 + columns[:, 0]).astype(np.int64) * 110_592
    data["stamp"], data["mode"], data["product"] = exact_ns // 1000, 0x37, 0x22
    host = 1_700_000_000_000_000_000 + (rows[:, -1] * 12 + columns[:, -1]).astype(np.int64) * 110_592
    empty = {"position": np.zeros((0, 512), np.uint8), "position_host_ns": np.zeros(0, np.int64)}
    verdict = judge(stream.change(data=data, data_host_ns=host, **empty))
    assert verdict.findings == []
    assert verdict.result.sensors[0].summary.field_of_view_gaps > 30


def test_a_short_packet_is_an_error(judge, single):
    datagrams = single.datagrams()
    cut = datagrams[50]
    datagrams[50] = type(cut)(**{name: getattr(cut, name) for name in cut.__slots__} | {"payload": cut.payload[:606]})
    verdict = judge(datagrams)
    assert "data.size" in verdict.errors
    assert verdict.first("data.size").message == "a data packet must be 1206 bytes, got 606"


# position packets


def test_position_packets_on_the_data_packets_beat_are_an_error(streams, judge, single):
    every = single.data["stamp"][13::14].astype(np.int64) + 1400
    host = single.data_host_ns[13::14] + 300_000
    assert "position.locked" in judge(single.change(position=streams.position_packets(every), position_host_ns=host)).errors


def test_position_packets_with_the_last_data_stamp_are_an_error(streams, judge, single):
    index = np.searchsorted(single.data_host_ns, single.position_host_ns) - 1
    stamps = single.data["stamp"][np.maximum(index, 0)].astype(np.int64)
    assert "position.copied" in judge(single.change(position=streams.position_packets(stamps))).errors


def test_position_packets_of_another_clock_are_an_error(streams, judge, single):
    stamps = single.position[:, 198:202].copy().view("<u4")[:, 0].astype(np.int64) + 700_000
    assert "position.clock" in judge(single.change(position=streams.position_packets(stamps))).errors


def _with_position_packets(stream, streams, rate_hz):
    stamps = (1_082_000_000 + np.arange(3000, len(stream.data) * stream.cycle_us, 1e6 / rate_hz)).astype(np.int64)
    host = stream.data_host_ns[0] + (stamps - 1_082_000_000) * 1000 - 300_000
    return stream.change(position=streams.position_packets(stamps), position_host_ns=host)


def test_position_packets_doubled_in_dual_mode_are_an_error(streams, judge, dual):
    assert "position.rate" in judge(_with_position_packets(dual, streams, 107.6)).errors


def test_a_real_units_rate_of_position_packets_with_a_limited_view_is_accepted(streams, judge, single):
    verdict = judge(_with_position_packets(single, streams, 99.6))
    assert "position.rate" not in verdict.errors | verdict.warnings


def test_a_sentence_far_from_the_stamp_is_an_error_in_lock(streams, judge):
    assert "nmea.time" in judge(streams.vlp16(start_us=1_090_000_000)).errors


def test_a_sentence_a_second_more_behind_is_a_warning(streams, judge):
    verdict = judge(streams.vlp16(start_us=1_084_000_000))
    assert (verdict.errors, verdict.warnings) == (set(), {"nmea.time"})


def test_a_sentence_with_a_wrong_field_is_an_error(streams, judge, single):
    body = streams.SENTENCE[:-5].replace(b"210116", b"219916")
    checksum = int(np.bitwise_xor.reduce(np.frombuffer(body[1:], dtype=np.uint8)))
    sentence = body + b"*%02X\r\n" % checksum
    stamps = single.position[:, 198:202].copy().view("<u4")[:, 0].astype(np.int64)
    assert "nmea.fields" in judge(single.change(position=streams.position_packets(stamps, sentence=sentence))).errors


def test_a_position_packet_of_another_size_is_an_error(judge, single):
    datagrams = single.datagrams()
    row = next(row for row, datagram in enumerate(datagrams) if datagram.destination_port == 8308)
    cut = datagrams[row]
    datagrams[row] = type(cut)(**{name: getattr(cut, name) for name in cut.__slots__} | {"payload": cut.payload[:500]})
    assert "position.size" in judge(datagrams).errors


# headers and arrival


def test_an_ordinary_sockets_headers_are_errors(judge, single):
    head = {"ttl": 64, "identification": lambda k: 31_000 + k, "checksum": True}
    verdict = judge(single.change(head=head, source_port=45_678))
    assert {"header.ttl", "header.identification", "header.source_port"} <= verdict.errors
    assert "header.udp_checksum" in verdict.warnings


@pytest.mark.parametrize(
    ("field", "rule"),
    [
        ({"flags": 0}, "header.fragment"),
        ({"ip_checksum": 0x1234}, "header.ip"),
        ({"ttl": 254}, "header.ttl"),
    ],
)
def test_one_wrong_header_field_is_the_only_error(judge, single, field, rule):
    assert judge(single.change(head=field)).errors == {rule}


@pytest.mark.parametrize(
    ("field", "rule"),
    [
        ({"checksum": False}, "header.udp_checksum"),
        ({"ttl": 255}, "header.ttl"),
        ({"identification": 0}, "header.identification"),
        ({"flags": 0x4000}, "header.fragment"),
    ],
)
def test_position_packets_with_the_data_packets_headers_are_an_error(judge, single, field, rule):
    assert judge(single.change(position_head=field)).errors == {rule}


@pytest.mark.parametrize("head", [{}, {"ttl": 254}, {"ttl": 64, "flags": 0, "identification": lambda k: 7 + k, "ip_checksum": 0}])
def test_headers_of_a_router_or_of_a_programs_socket_are_a_note(judge, single, head):
    foreign = {"mac": "7eb911223344"}
    position_head = {"ttl": 63, "checksum": False} | foreign
    verdict = judge(single.change(head=head | foreign, position_head=position_head))
    assert (verdict.errors, verdict.warnings, verdict.notes) == (set(), set(), {"header.own"})
    assert "not the sensor's own but those of a router, a bridge or another program (from 7e:b9:11:22:33:44)" in verdict.first("header.own").message


def test_another_source_port_with_headers_that_are_not_the_sensors_own_is_a_note(judge, single):
    verdict = judge(single.change(head={"mac": "7eb911223344"}, source_port=45_678))
    assert (verdict.errors, verdict.notes) == (set(), {"header.own", "header.source_port"})


def test_the_partial_checksum_of_a_capture_on_the_sending_host_is_a_note(judge, single):
    verdict = judge(single.change(position_head={"checksum": "partial"}))
    assert (verdict.errors, verdict.notes) == (set(), {"header.offload"})


def test_a_wrong_checksum_of_the_sensors_own_is_an_error(judge, single):
    assert judge(single.change(position_head={"checksum": "wrong"})).errors == {"header.udp_checksum"}


def test_two_devices_with_one_address_are_a_warning(judge, single):
    datagrams = [
        replace(d, link=d.link[:6] + bytes.fromhex("60768820126e") + d.link[12:]) if number % 50 == 9 else d
        for number, d in enumerate(single.datagrams())
    ]
    verdict = judge(datagrams)
    assert (verdict.errors, verdict.warnings) == (set(), {"header.mac"})


def test_headers_of_a_cooked_capture_are_known_by_the_address_in_them(judge, single):
    cooked = bytes.fromhex("0000 0001 0006 7eb911223344 0000 0800")
    datagrams = single.change(head={"ttl": 64}).datagrams()
    verdict = judge([replace(datagram, link=cooked + datagram.link[14:], is_ethernet=False) for datagram in datagrams])
    assert (verdict.errors, verdict.notes) == (set(), {"header.own"})


def test_loopback_headers_are_a_note(judge, single):
    datagrams = [
        type(d)(**{name: getattr(d, name) for name in d.__slots__} | {"link": bytes(12) + d.link[12:22] + b"\x40" + d.link[23:]})
        for d in single.datagrams()
    ]
    verdict = judge(datagrams)
    assert (verdict.errors, verdict.notes) == (set(), {"header.own"})


def test_another_source_port_on_the_loopback_interface_is_a_note(judge, single):
    datagrams = [
        type(d)(**{name: getattr(d, name) for name in d.__slots__} | {"source": "127.0.1.201", "source_port": 40_000, "link": None})
        for d in single.datagrams()
    ]
    verdict = judge(datagrams)
    assert (verdict.errors, verdict.notes) == (set(), {"header.source_port"})


def test_two_programs_sending_from_one_address_are_an_error(judge, single):
    datagrams = single.datagrams()
    row = next(row for row, datagram in enumerate(datagrams[300:], start=300) if datagram.destination_port == 2368)
    fields = {name: getattr(datagrams[row], name) for name in datagrams[row].__slots__}
    assert "header.one_sender" in judge([*datagrams[:row], type(datagrams[row])(**fields | {"source_port": 40_000}), *datagrams[row:]]).errors


def test_datagrams_of_a_socket_are_judged_without_headers(judge, single):
    verdict = judge(single.change(live=True))
    assert (verdict.findings, verdict.result.sensors[0].summary.headers) == ([], "none")


def arrive_at_ticks(stream, tick_ns):
    host = stream.data_host_ns
    return stream.change(data_host_ns=-(-host // tick_ns) * tick_ns + 123 + 3000 * (np.arange(len(host)) % 64), live=True)


def test_bursts_at_the_ticks_of_a_slow_timer_are_an_error(judge, single):
    assert "spacing.burst" in judge(arrive_at_ticks(single, 10_000_000)).errors


def hold_up(stream, every_ns, for_ns):
    """What is due in the first part of each period comes at its end, as from a program that waits for its turn."""
    host = stream.data_host_ns
    phase = (host - host[0] + every_ns // 2) % every_ns
    return stream.change(data_host_ns=np.where(phase < for_ns, host - phase + for_ns + phase // 10_000, host), live=True)


def test_bursts_that_a_busy_host_explains_are_a_warning_that_names_it(single):
    late = hold_up(single, 200_000_000, 12_000_000)
    checker = StreamChecker()
    checker.feed(late.datagrams())
    waited_ns = int(0.05 * (late.data_host_ns[-1] - late.data_host_ns[0]))
    (finding,) = (each for each in checker.result(host_waited_ns=waited_ns).sensors[0].findings if each.rule == "spacing.burst")
    assert finding.severity == "warning"
    assert f"this host is busy and kept a program waiting for {waited_ns / 1e9:.1f} s in all meanwhile" in finding.message


def test_bursts_on_an_idle_host_are_an_error(judge, single):
    assert "spacing.burst" in judge(hold_up(single, 200_000_000, 12_000_000)).errors


def test_more_bursts_than_a_busy_host_explains_are_an_error(single):
    ticking = arrive_at_ticks(single, 10_000_000)
    checker = StreamChecker()
    checker.feed(ticking.datagrams())
    result = checker.result(host_waited_ns=int(0.5 * (ticking.data_host_ns[-1] - ticking.data_host_ns[0])))
    assert [each.severity for each in result.sensors[0].findings if each.rule == "spacing.burst"] == ["error"]


def test_packets_at_millisecond_ticks_are_an_error(judge, single):
    assert "spacing.tick" in judge(arrive_at_ticks(single, 1_000_000)).errors


def test_capture_times_of_whole_milliseconds_are_a_note(judge, single):
    verdict = judge(single.change(data_host_ns=single.data_host_ns // 1_000_000 * 1_000_000))
    assert (verdict.errors, "spacing.rewritten" in verdict.notes) == (set(), True)


def test_a_replay_at_another_speed_is_an_error(judge, single):
    start = single.data_host_ns[0]
    empty = {"position": np.zeros((0, 512), np.uint8), "position_host_ns": np.zeros(0, np.int64)}
    verdict = judge(single.change(data_host_ns=start + (single.data_host_ns - start) * 11 // 10, **empty))
    assert "spacing.rate" in verdict.errors


def test_arrival_scattered_by_a_busy_host_is_a_warning(judge, single):
    noise = np.random.default_rng(4).normal(0, 180_000, len(single.data)).astype(np.int64)
    verdict = judge(single.change(data_host_ns=np.sort(single.data_host_ns + noise), live=True))
    assert (verdict.errors & {"spacing.burst", "spacing.tick"}, "spacing.jitter" in verdict.warnings) == (set(), True)


# factory bytes over time


def test_a_changing_product_is_an_error(judge, single, spoil):
    def change(data):
        data["product"][350:] = 0x24

    assert "factory.changed" in judge(spoil(single, change)).errors


def test_a_return_mode_set_once_is_a_warning(judge, single, spoil):
    def change(data):
        data["mode"][350:] = 0x38

    verdict = judge(spoil(single, change))
    assert (verdict.errors, verdict.warnings) == (set(), {"factory.changed"})


def test_a_flickering_return_mode_is_an_error(judge, single, spoil):
    def change(data):
        data["mode"][::50] = 0x38

    assert "factory.changed" in judge(spoil(single, change)).errors


def test_a_wrong_flag_is_an_error_at_its_block(judge, single, spoil):
    def change(data):
        data["blocks"]["flag"][3, 7] = 0

    verdict = judge(spoil(single, change))
    finding = verdict.first("data.flag")
    assert verdict.errors == {"data.flag"}
    assert (finding.place.packet_index, finding.place.byte_offset) == (3, 700)
    assert finding.message == "data block 7 must start with flag 0xeeff, got 0x0000 (1 of 12 blocks)"


def test_other_datagrams_of_a_sensor_are_a_note(judge, single):
    datagrams = single.datagrams()
    fields = {name: getattr(datagrams[0], name) for name in datagrams[0].__slots__}
    answer = type(datagrams[0])(**fields | {"source_port": 80, "destination_port": 50_000, "payload": b"answer"})
    assert judge([*datagrams, answer]).notes == {"stream.other"}


def test_another_destination_port_is_a_note(judge, single):
    datagrams = [
        type(d)(**{name: getattr(d, name) for name in d.__slots__} | {"destination_port": 2369 if d.source_port == 2368 else 8308, "link": None})
        for d in single.datagrams()
    ]
    verdict = judge(datagrams)
    assert (verdict.errors, verdict.notes) == (set(), {"header.destination_port"})


def test_temperatures_in_position_packets_are_a_note(judge, single):
    position = single.position.copy()
    position[:, 187] = 41
    assert judge(single.change(position=position)).notes == {"position.telemetry"}


def test_a_packet_sent_twice_is_a_warning(judge, single):
    datagrams = single.datagrams()
    row = next(row for row, datagram in enumerate(datagrams[100:], start=100) if datagram.destination_port == 2368)
    assert judge([*datagrams[:row], datagrams[row], *datagrams[row:]]).warnings == {"time.duplicate"}


def test_unequal_bytes_in_empty_pairs_are_a_warning(judge, dual, spoil):
    def change(data):
        odd = data["blocks"]["records"][:, 1::2].copy()
        odd["reflectivity"][odd["distance"] == 0] += 1
        data["blocks"]["records"][:, 1::2] = odd

    assert "dual.no_return" in judge(spoil(dual, change)).warnings
