"""Sentences that no receiver sends, and a time that is not the stamps', in real captures and in hilsim's own stream."""

import re
from datetime import date, timedelta

import numpy as np
import pytest

from hilsim.capture.pcap import CaptureFile

SPEAKING = ["vlp16_strongest_gps.pcap", "hdl32e_strongest.pcap", "own"]
AREA = slice(206, 334)


def rewrite(change):
    """Write to each sentence, with a checksum that is right again."""

    def apply(payloads):
        for payload in payloads:
            text = bytes(payload[AREA]).rstrip(b"\0")
            if not text:
                continue
            fields = text[: text.index(b"*")].split(b",")
            change(fields)
            body = b",".join(fields)
            text = body + b"*%02X\r\n" % int(np.bitwise_xor.reduce(np.frombuffer(body[1:], np.uint8)))
            payload[AREA] = 0
            payload[206 : 206 + len(text)] = np.frombuffer(text, np.uint8)

    return apply


def put(place, value):
    def change(fields):
        fields[place] = value

    return rewrite(change)


def add_time(seconds):
    def change(fields):
        hours, minutes, rest = int(fields[1][:2]), int(fields[1][2:4]), fields[1][4:]
        total = (3600 * hours + 60 * minutes + int(rest[:2]) + seconds) % 86_400
        fields[1] = b"%02d%02d%02d" % (total // 3600, total // 60 % 60, total % 60) + rest[2:]

    return rewrite(change)


@pytest.mark.parametrize("name", SPEAKING)
@pytest.mark.parametrize(
    ("place", "value"),
    [
        (3, b"9900.0000"),
        (3, b"9000.0001"),
        (3, b"3699.7478"),
        (5, b"20000.0000"),
        (5, b"00260.4542"),
        (7, b"99999.0"),
        (8, b"400.0"),
        (9, b"310226"),
        (9, b"310421"),
        (9, b"290223"),
    ],
    ids=[
        "latitude 99",
        "beyond the pole",
        "minutes 99",
        "longitude 200",
        "minutes 60",
        "99999 knots",
        "course 400",
        "31 February",
        "31 April",
        "29 February 2023",
    ],
)
def test_an_impossible_value_is_an_error(mutate, judge, name, place, value):
    verdict = judge(mutate(name, put(place, value), size=512))
    assert "nmea.values" in verdict.errors
    assert f"got {value.decode()}" in verdict.first("nmea.values").message


@pytest.mark.parametrize(("place", "value"), [(9, b"290224"), (3, b"9000.0000"), (5, b"18000.0000"), (7, b"999.0"), (8, b"360.0")])
def test_a_value_at_its_limit_is_none(mutate, judge, place, value):
    assert "nmea.values" not in judge(mutate("own", put(place, value), size=512)).errors


@pytest.mark.parametrize("name", ["vlp16_strongest_gps.pcap", "own"])
@pytest.mark.parametrize("seconds", [420, -420, 30, 5])
def test_a_sentence_of_another_minute_is_an_error_in_lock(mutate, judge, name, seconds):
    verdict = judge(mutate(name, add_time(seconds), size=512))
    assert "nmea.time" in verdict.errors


@pytest.mark.usefixtures("real_units")
def test_a_sentence_of_another_minute_is_nothing_where_no_lock_is_claimed(mutate, judge):
    assert judge(mutate("hdl32e_strongest.pcap", add_time(420), size=512)).errors == set()


@pytest.mark.usefixtures("real_units")
@pytest.mark.parametrize(("name", "hours"), [*((name, 1) for name in SPEAKING), ("own", 3), ("hdl32e_strongest.pcap", -7)])
def test_a_sentence_of_another_hour_than_the_captures_is_a_warning(mutate, judge, name, hours):
    verdict = judge(mutate(name, add_time(3600 * hours), size=512))
    assert (verdict.errors, "nmea.hour" in verdict.warnings) == (set(), True)
    assert f"got {hours:+d} h" in verdict.first("nmea.hour").message


@pytest.mark.parametrize(("days", "words"), [(-1, "got -24 h"), (-1024 * 7, "got -172032 h in all of"), (1, "got +24 h")])
def test_a_sentence_of_yesterday_or_of_another_count_of_weeks_is_a_warning(mutate, judge, days, words):
    def change(fields):
        day, month, year = (int(fields[9][at : at + 2]) for at in (0, 2, 4))
        fields[9] = (date(2000 + year, month, day) + timedelta(days=days)).strftime("%d%m%y").encode()

    verdict = judge(mutate("own", rewrite(change), size=512))
    assert (verdict.errors, "nmea.hour" in verdict.warnings) == (set(), True)
    message = verdict.first("nmea.hour").message
    assert words in message
    assert message.endswith("the receiver's week number began again") == (days == -1024 * 7)


def test_a_capture_made_at_another_time_says_nothing_of_the_hour(mutate, judge):
    assert "nmea.hour" not in judge(mutate("own", put(9, b"010120"), size=512)).warnings


def test_an_hour_that_does_not_follow_the_one_before_is_an_error(mutate, judge):
    """The stream begins a second before an hour's end; the stamps cannot show which hour begins."""

    def leap(fields):
        fields[1] = re.sub(rb"^..(?=0000)", b"07", fields[1])

    verdict = judge(mutate("own", rewrite(leap), size=512))
    assert verdict.errors == {"nmea.advance"}
    assert "sentences must advance with the stamps, got +" in verdict.first("nmea.advance").message


def test_a_day_that_does_not_end_with_its_last_hour_is_an_error(mutate, judge):
    def leap(fields):
        fields[1] = (b"23" if fields[1][2:4] == b"59" else b"00") + fields[1][2:]

    assert "nmea.advance" in judge(mutate("own", rewrite(leap), size=512)).errors


@pytest.mark.parametrize("name", SPEAKING)
def test_a_thermal_status_that_is_none_is_an_error(mutate, judge, name):
    def heat(payloads):
        payloads[:, 203] = 77

    verdict = judge(mutate(name, heat, size=512))
    assert ("position.thermal" in verdict.errors, verdict.first("position.thermal").place.byte_offset) == (True, 203)


def test_a_thermal_shutdown_is_a_warning(mutate, judge):
    def shut_down(payloads):
        payloads[:, 203] = 1

    verdict = judge(mutate("vlp16_strongest_gps.pcap", shut_down, size=512))
    assert (verdict.errors, verdict.warnings) == (set(), {"position.thermal"})


@pytest.mark.parametrize("name", ["vlp16_strongest_gps.pcap", "hdl32e_strongest.pcap"])
def test_real_sentences_have_no_findings(any_capture, judge, name):
    assert not [finding for finding in judge(CaptureFile(any_capture(name))).findings if finding.rule.startswith("nmea")]
