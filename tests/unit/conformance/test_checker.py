import json
import math
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from hilsim.read.analysis.conformance.checker import StreamChecker, check
from hilsim.read.analysis.conformance.report import render_text, to_json


def test_feeding_in_pieces_gives_the_result_of_feeding_at_once(dual):
    datagrams = dual.datagrams()
    checker = StreamChecker()
    for start in range(0, len(datagrams), 37):
        checker.feed(datagrams[start : start + 37])
    assert to_json(checker.result()) == to_json(check(datagrams))


def test_the_result_may_be_asked_for_between_feedings(single):
    datagrams = single.datagrams()
    checker = StreamChecker()
    checker.feed(datagrams[:300])
    first = checker.result().sensors[0].summary.data_packets
    checker.feed(datagrams[300:])
    result = checker.result()
    assert (0 < first < 300, result.sensors[0].summary.data_packets, result.passed) == (True, 700, True)


def test_findings_about_single_packets_are_handed_out_once_while_feeding(streams, spoil):
    def unflag(data):
        data["blocks"]["flag"][3] = 0

    nothing = {"position": np.zeros((0, 512), np.uint8), "position_host_ns": np.zeros(0, np.int64)}
    datagrams = spoil(streams.vlp16(2500), unflag).change(**nothing).datagrams()
    checker = StreamChecker()
    told = [finding.rule for start in range(0, len(datagrams), 500) for _, finding in checker.feed(datagrams[start : start + 500])]
    assert told == ["data.flag"]


def test_many_findings_of_a_rule_are_counted_but_few_are_kept(judge, single, spoil):
    def unflag(data):
        data["blocks"]["flag"] = 0xDDFF

    (sensor,) = judge(spoil(single, unflag)).result.sensors
    assert (sensor.counts["data.flag"], sum(finding.rule == "data.flag" for finding in sensor.findings)) == (700, 5)


def test_sensors_are_distinguished_by_their_address(judge, single, spoil):
    def unflag(data):
        data["blocks"]["flag"][0] = 0

    other = [type(d)(**{name: getattr(d, name) for name in d.__slots__} | {"source": "192.168.1.202"}) for d in spoil(single, unflag).datagrams()]
    mixed = sorted([*single.datagrams(), *other], key=lambda datagram: datagram.host_stamp_ns)
    results = {sensor.source: sensor.counts for sensor in judge(mixed).result.sensors}
    assert results == {"192.168.1.201": {}, "192.168.1.202": {"data.flag": 1}}


def test_datagrams_of_other_programs_are_counted_and_passed_over(judge, single):
    datagrams = single.datagrams()
    fields = {name: getattr(datagrams[0], name) for name in datagrams[0].__slots__}
    stranger = type(datagrams[0])(**fields | {"source": "10.0.0.9", "destination_port": 53, "payload": b"query"})
    result = judge([stranger, *datagrams]).result
    assert (result.strangers, len(result.sensors), result.passed) == (1, 1, True)


def test_an_empty_stream_is_an_error():
    result = check([])
    assert (result.passed, render_text(result)) == (
        False,
        [
            "error   stream.none: no data packets of Velodyne, Cepton, Ouster, Livox or Hesai sensors among 0 datagrams",
            "FAILED: 1 error, 0 warnings, 0 notes",
        ],
    )


def test_a_stream_of_position_packets_alone_is_an_error_that_counts_them(judge, single):
    verdict = judge(single.change(keep=np.zeros(len(single.data), dtype=bool)))
    assert f"({len(single.position)} position packets)" in verdict.first("stream.none").message


@pytest.mark.parametrize("count", [1, 2, 3, 15, 16, 17, 40])
def test_short_streams_are_judged_by_what_they_can_tell(streams, judge, count):
    assert judge(streams.vlp16(count)).errors == set()


@pytest.mark.extended
def test_noise_of_the_right_size_gives_findings_and_no_exception(streams, judge):
    generator = np.random.default_rng(9)
    data = generator.integers(0, 256, (1500, 1206), dtype=np.uint8).view(streams.PACKET)[:, 0]
    position = generator.integers(0, 256, (100, 512), dtype=np.uint8)
    host = np.arange(1500) * 1_000_000
    stream = streams.Stream(data, host, position, np.arange(100) * 7_000_000, 1327.104)
    assert {"data.flag", "factory.mode", "position.zero", "nmea.sentence"} <= judge(stream).errors


def test_rules_that_a_short_stream_cannot_show_are_reported_in_both_forms(streams, judge):
    result = judge(streams.vlp16(84)).result
    lines = render_text(result)
    assert "  not applied: time.rounding, time.residual, time.drift (too short: 84 of 200 packets of unbroken time)" in lines
    assert "  not applied: azimuth.turn (too short: 1 of 8 turns)" in lines
    assert lines[-1] == "passed: 0 errors, 0 warnings, 0 notes"
    skipped = to_json(result)["sensors"][0]["not_applied"]
    assert {"rule": "spacing.rate", "got": 83, "needs": 500, "of": "gaps between packets"} in skipped


def test_nothing_is_left_unapplied_in_a_long_stream(streams, judge):
    (sensor,) = judge(streams.vlp16(1200)).result.sensors
    assert sensor.not_applied == ()


@pytest.mark.parametrize("count", [1, 20, 84, 300])
def test_a_rule_that_is_not_applied_lacks_samples(streams, judge, count):
    (sensor,) = judge(streams.vlp16(count)).result.sensors
    assert sensor.not_applied
    assert all(skipped.got < skipped.needs for skipped in sensor.not_applied)


def test_the_report_shows_a_finding_with_its_place(judge, single, spoil):
    def unflag(data):
        data["blocks"]["flag"][3, 7] = 0

    lines = render_text(judge(spoil(single, unflag)).result)
    assert any(
        line.startswith("  error   data.flag: data block 7 must start") and "(packet 3, frame " in line and line.endswith("byte 700)")
        for line in lines
    )
    assert lines[-1] == "FAILED: 1 error, 0 warnings, 0 notes"


def test_the_report_counts_what_it_does_not_list(judge, single, spoil):
    def unflag(data):
        data["blocks"]["flag"] = 0xDDFF

    assert "  error   data.flag: and 695 more" in render_text(judge(spoil(single, unflag)).result)


def test_the_json_form_is_json_with_null_for_the_unknown(streams, judge):
    form = json.loads(json.dumps(to_json(judge(streams.vlp16(1)).result), allow_nan=False))
    summary = form["sensors"][0]["summary"]
    assert (summary["cycle_us"], summary["model"], summary["data_packets"]) == (None, "VLP-16", 1)


def test_figures_of_a_stream_are_those_it_was_made_with(judge, single):
    (sensor,) = judge(single).result.sensors
    summary = sensor.summary
    np.testing.assert_allclose(summary.rate_rpm, 600.0, atol=0.2)
    np.testing.assert_allclose(summary.cycle_us, 1327.104, rtol=1e-7)
    np.testing.assert_allclose(summary.gap_sd_us, math.sqrt(2) * 5.0, rtol=0.1)
    assert (summary.headers, summary.pps_states, summary.nmea_sentences) == ("sensor", (2,), 1)


@pytest.mark.extended
def test_memory_does_not_grow_with_the_stream(streams):
    def datagrams(repeats):
        block = streams.vlp16(1024, seed=3).datagrams()
        for _ in range(repeats):
            yield from block

    def peak(repeats):
        checker = StreamChecker()
        source = datagrams(repeats)
        tracemalloc.start()
        checker.feed(source)
        checker.result()
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    assert peak(12) < 1.3 * peak(3)


def numbered(datagrams, sensors):
    """Datagrams as if each were of the next of so many sensors."""
    return [
        replace(datagram, source=f"10.{number // 65536 % 256}.{number // 256 % 256}.{number % 256}", frame=place + 1)
        for place, datagram in enumerate(datagrams)
        for number in (place % sensors,)
    ]


def test_of_sensors_without_end_the_first_are_checked_and_the_rest_is_counted(single):
    datagrams = single.datagrams()
    many = numbered([datagrams[number % 700] for number in range(2000)], 1000)
    result = check(many)
    assert len(result.sensors) == 128
    (finding,) = [finding for finding in result.findings if finding.rule == "stream.many"]
    assert finding.message == "only the first 128 Velodyne sensors were checked: 1,744 packets of others were counted only"
    assert result.datagrams == 2000


def test_memory_does_not_grow_with_the_number_of_addresses(single):
    template = single.datagrams()[0]
    check(numbered([template] * 300, 300))
    tracemalloc.start()
    checker = StreamChecker()
    checker.feed(numbered([template] * 200, 200))
    before = tracemalloc.get_traced_memory()[0]
    checker.feed(replace(template, source=f"11.0.{number // 256}.{number % 256}") for number in range(20_000))
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 5_000_000


@pytest.mark.extended
def test_waiting_packets_are_bounded_for_any_number_of_sensors(single):
    checker = StreamChecker()
    most = 0
    for datagram in numbered([datagram for _ in range(40) for datagram in single.datagrams()], 100):
        checker.feed([datagram])
        most = max(most, sum(sensor.waiting for sensor in checker._all()))
    assert 16_000 < most <= 16_384
    assert sum(sensor.summary.data_packets + sensor.summary.position_packets for sensor in checker.result().sensors) == 40 * len(single.datagrams())
