"""Recordings played in a loop: reported as such, and not judged by what cannot vary in them."""

import numpy as np
import pytest


def looped(streams, stream, start, stop, count):
    """The stream up to ``stop``, then its part from ``start`` again and again, with stamps and arrival that go on."""
    rows = np.arange(count)
    rows = np.where(rows < stop, rows, start + (rows - stop) % (stop - start))
    data = stream.data[rows]
    data["stamp"] = streams.stamps_us(count, 1_327_104, 1_082_000_000)
    host = 1_700_000_000_000_000_000 + np.arange(count) * 1_327_104 + np.random.default_rng(2).integers(0, 9000, count)
    return stream.change(data=data, data_host_ns=host, position=np.zeros((0, 512), np.uint8), position_host_ns=np.zeros(0, np.int64))


@pytest.mark.parametrize(("start", "stop"), [(0, 84), (9, 84), (20, 95)])
def test_a_loop_of_one_turn_is_a_warning_with_the_leap_of_its_seam(streams, judge, single, start, stop):
    verdict = judge(looped(streams, single, start, stop, 900))
    period = stop - start
    leap_deg = abs((period * 477.76 + 18_000) % 36_000 - 18_000) / 100
    message = verdict.first("stream.loop").message
    assert (verdict.errors, verdict.warnings) == (set(), {"stream.loop"})
    assert f"got the same {period} packets over and over" in message
    assert float(message.split()[-2]) == pytest.approx(leap_deg, abs=0.06)


def test_turns_of_a_loop_are_not_judged_and_that_is_reported(streams, judge, single):
    (sensor,) = judge(looped(streams, single, 9, 84, 900)).result.sensors
    lacking = {skipped.rule: (skipped.got, skipped.of) for skipped in sensor.not_applied}
    assert lacking["azimuth.turn"] == (1, "turns before the recording repeats")


def test_a_loop_with_lost_packets_is_one_still(streams, judge, single):
    keep = np.arange(900) % 200 != 150
    verdict = judge(looped(streams, single, 9, 84, 900).change(keep=keep))
    assert (verdict.errors, verdict.warnings) == (set(), {"stream.loop", "time.lost"})


@pytest.mark.parametrize("at", [40, 80])
def test_a_leap_inside_the_recording_is_an_error_though_it_is_looped(streams, judge, single, spoil, at):
    def leap(data):
        data["blocks"]["azimuth"][at:] = (data["blocks"]["azimuth"][at:] + 900) % 36_000

    verdict = judge(looped(streams, spoil(single, leap), 9, 84, 900))
    assert ("azimuth.motion" in verdict.errors, "stream.loop" in verdict.warnings) == (True, True)


def test_a_few_packets_that_come_again_are_no_loop_and_their_leaps_are_errors(judge, single, spoil):
    def copy(data):
        data["blocks"][300:310] = data["blocks"][100:110]

    verdict = judge(spoil(single, copy))
    assert (verdict.errors, "stream.loop" in verdict.warnings) == ({"azimuth.motion"}, False)


@pytest.mark.parametrize("name", ["vlp16_strongest_gps.pcap", "vlp16_dual.pcap", "vlp16_strongest_1200rpm.pcap", "hdl32e_strongest.pcap", "own"])
def test_no_real_packet_comes_again(datagrams_of, judge, name):
    assert "stream.loop" not in judge(datagrams_of(name)).warnings


@pytest.mark.usefixtures("real_units")
def test_a_loop_whose_seam_lies_in_a_packet_with_a_field_of_view_gap_has_no_errors(datagrams_of, judge):
    datagrams = datagrams_of("vlp32c_strongest_fov.pcap")
    stamps = np.array([int.from_bytes(one.payload[1200:1204], "little") for one in datagrams])
    period_us = int(stamps[-1] - stamps[0]) + 1190  # the last packet is one of those with a gap, which a loop's next pass does not wait for
    again = [
        type(one)(
            **{name: getattr(one, name) for name in one.__slots__}
            | {
                "payload": one.payload[:1200] + int(stamp + turn * period_us).to_bytes(4, "little") + one.payload[1204:],
                "host_stamp_ns": one.host_stamp_ns + 1000 * turn * period_us,
            }
        )
        for turn in range(3)
        for stamp, one in zip(stamps.tolist(), datagrams, strict=True)
    ]
    verdict = judge(again)
    assert (verdict.errors, "stream.loop" in verdict.warnings) == (set(), True)
