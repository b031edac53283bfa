"""Angle is rate times time: heads that no motor can turn so, in real captures and in hilsim's own stream, and rotors that only look odd."""

import numpy as np
import pytest

from hilsim.families.velodyne.conformance.head_motion import Head

VLP16 = ["vlp16_strongest_gps.pcap", "vlp16_dual.pcap", "vlp16_strongest_1200rpm.pcap", "own"]
ALL = [*VLP16, "hdl32e_strongest.pcap", "vlp32c_strongest_fov.pcap"]


def blocks_of(payloads):
    """The blocks, ``uint8[n, 12, 100]``, as a view."""
    return payloads[:, :1200].reshape(-1, 12, 100)


def turn(payloads, rows, cdeg, columns=slice(None)):
    """Add an angle to azimuths of some packets."""
    azimuth = blocks_of(payloads)[rows, columns, 2:4]
    values = (azimuth.astype(np.int64) @ [1, 256] + cdeg) % 36_000
    blocks_of(payloads)[rows, columns, 2:4] = np.stack((values & 0xFF, values >> 8), axis=-1)


def repeat_five(payloads):
    blocks = blocks_of(payloads)
    blocks[101:106, :, 2:4] = blocks[100:101, :, 2:4]


def repeat_one(payloads):
    blocks = blocks_of(payloads)
    blocks[120, :, 2:4] = blocks[119, :, 2:4]


def swap_azimuths(payloads):
    blocks = blocks_of(payloads)
    blocks[[80, 90], :, 2:4] = blocks[[90, 80], :, 2:4]


def reverse_for_a_while(payloads):
    blocks = blocks_of(payloads)
    blocks[60:120, :, 2:4] = blocks[60:120, :, 2:4][::-1, ::-1]


def reverse_one(payloads):
    blocks = blocks_of(payloads)
    blocks[60, :, 2:4] = blocks[60, ::-1, 2:4]


def stand_for_a_while(payloads):
    blocks = blocks_of(payloads)
    blocks[60:200, :, 2:4] = blocks[60, 0, 2:4]


def scatter(payloads):
    """Each packet off by up to a tenth of a degree more than noise."""
    for row, cdeg in enumerate(np.random.default_rng(3).integers(-15, 16, len(payloads)).tolist()):
        turn(payloads, slice(row, row + 1), cdeg)


def lag_at_each_border(payloads):
    for row in range(len(payloads)):
        turn(payloads, slice(row, row + 1), 3 * row)


def leap_half_a_turn(payloads):
    turn(payloads, slice(100, None), 18_000)


def leap_a_degree(payloads):
    turn(payloads, slice(100, None), 100)


def leap_back_a_fifth_of_a_degree(payloads):
    turn(payloads, slice(100, None), -20)


def visit_elsewhere(payloads):
    turn(payloads, slice(100, 101), 9000)


def drop_without_time(payloads):
    """As if thirty packets were missing, but for the stamps."""
    blocks = blocks_of(payloads)
    blocks[100:-30] = blocks[130:].copy()


@pytest.mark.extended
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(
    "change",
    [
        repeat_five,
        repeat_one,
        swap_azimuths,
        reverse_for_a_while,
        reverse_one,
        stand_for_a_while,
        leap_half_a_turn,
        leap_a_degree,
        leap_back_a_fifth_of_a_degree,
        visit_elsewhere,
        drop_without_time,
        scatter,
        lag_at_each_border,
    ],
)
def test_a_head_that_leaps_repeats_itself_or_turns_back_is_an_error(mutate, judge, name, change):
    assert "azimuth.motion" in judge(mutate(name, change)).errors


def test_a_leap_is_reported_with_its_angle_time_and_place(mutate, judge):
    verdict = judge(mutate("own", leap_half_a_turn))
    finding = verdict.first("azimuth.motion")
    assert verdict.errors == {"azimuth.motion"}
    assert (finding.place.packet_index, finding.place.byte_offset) == (100, 2)
    assert "in the 1327 us since the packet before" in finding.message


def test_a_leap_inside_a_packet_is_reported_at_its_block(mutate, judge):
    def leap(payloads):
        turn(payloads, slice(101, None), 500)
        turn(payloads, slice(100, 101), 500, slice(7, None))

    finding = judge(mutate("own", leap)).first("azimuth.motion")
    assert (finding.place.packet_index, finding.place.byte_offset) == (100, 702)
    assert "got a leap of 4.98 degrees that the stamps, 1327 us apart, leave no time for" in finding.message


def keep(datagrams, is_kept):
    """Datagrams without those data packets (by their number) that are lost."""
    number, kept = -1, []
    for datagram in datagrams:
        number += len(datagram.payload) == 1206
        if len(datagram.payload) != 1206 or is_kept(number):
            kept.append(datagram)
    return kept


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(
    "is_kept",
    [lambda number: number % 10, lambda number: not 70 <= number < 130, lambda number: number % 4 != 1, lambda number: number % 97 > 11],
    ids=["each tenth", "sixty at once", "each fourth", "twelve now and then"],
)
def test_lost_packets_are_no_leap(datagrams_of, judge, name, is_kept):
    assert judge(keep(datagrams_of(name), is_kept)).errors == set()


@pytest.mark.parametrize("name", ALL)
def test_packets_that_overtake_each_other_are_no_leap(datagrams_of, judge, name):
    datagrams = datagrams_of(name)
    rows = [row for row, datagram in enumerate(datagrams) if len(datagram.payload) == 1206]
    for place in range(60, len(rows) - 1, 250):
        one, other = rows[place], rows[place + 1]
        datagrams[one], datagrams[other] = datagrams[other], datagrams[one]
    assert "azimuth.motion" not in judge(datagrams).errors


@pytest.mark.parametrize("name", ALL)
def test_packets_that_come_twice_are_no_leap(datagrams_of, judge, name):
    doubled = [
        datagram for number, datagram in enumerate(datagrams_of(name)) for _ in range(2 if number % 90 == 50 and len(datagram.payload) == 1206 else 1)
    ]
    assert judge(doubled).errors == set()


def wandering(seconds, rate_rpm, cycle_us=1327.104, groups=12):
    """Azimuths ``int64[n, groups]`` of a rotor whose rate is a function of time, read with noise, and the packets' steps."""
    count = int(seconds * 1e6 / cycle_us)
    time_us = np.arange(count * groups) * cycle_us / groups
    angle = np.cumsum(rate_rpm(time_us * 1e-6) / 60e6 * 36_000 * cycle_us / groups)
    read = np.rint(angle + np.random.default_rng(5).normal(0, 0.6, angle.size)).astype(np.int64) % 36_000
    stamps = np.floor(np.arange(count) * cycle_us).astype(np.int64)
    return read.reshape(count, groups), np.diff(stamps, prepend=stamps[0])


def swinging(time_s):
    return 298.0 + 17.0 * np.sin(2 * np.pi * time_s / 0.2) * np.minimum(1.0, time_s)


def starting(time_s):
    return 600.0 * np.minimum(1.0, time_s / 3.0)


def stopping(time_s):
    return 600.0 * np.maximum(0.0, 1.0 - time_s / 3.0)


@pytest.mark.parametrize("rate_rpm", [swinging, starting, stopping], ids=["281 to 315 rpm in each turn", "from rest", "to rest"])
@pytest.mark.parametrize("lost", [0, 1, 40])
def test_a_rotor_that_swings_starts_or_stops_is_no_leap(rate_rpm, lost):
    azimuths, step_us = wandering(3.5, rate_rpm)
    kept = np.ones(len(azimuths), dtype=bool)
    for start in range(200, len(azimuths) - lost, 500):
        kept[start : start + lost] = False
    stamps = np.cumsum(step_us)[kept]
    motion = Head().follow(azimuths[kept], np.diff(stamps, prepend=stamps[0]), cycle_us=1327.104, sequence_us=55.296)
    assert not (motion.is_wrong | motion.is_hasty | motion.is_backward).any()


def test_a_swinging_rotor_that_leaps_half_a_turn_behind_lost_packets_is_seen():
    azimuths, step_us = wandering(3.5, swinging)
    stamps = np.cumsum(step_us)
    kept = np.r_[0:1000, 1040 : len(azimuths)]
    azimuths[1040:] = (azimuths[1040:] + 18_000) % 36_000
    motion = Head().follow(azimuths[kept], np.diff(stamps[kept], prepend=0), cycle_us=1327.104, sequence_us=55.296)
    assert np.flatnonzero(motion.is_wrong).tolist() == [1000]


def test_packets_fed_in_pieces_are_judged_as_at_once():
    azimuths, step_us = wandering(3.0, swinging)
    azimuths[900:] = (azimuths[900:] + 700) % 36_000
    at_once = Head().follow(azimuths, step_us, cycle_us=1327.104, sequence_us=55.296).is_wrong
    head, pieces = Head(), []
    for start in range(0, len(azimuths), 100):
        piece = slice(start, start + 100)
        pieces.append(head.follow(azimuths[piece], step_us[piece], cycle_us=1327.104, sequence_us=55.296).is_wrong)
    assert np.flatnonzero(np.concatenate(pieces)).tolist() == np.flatnonzero(at_once).tolist() == [900]
