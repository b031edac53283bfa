"""Recorded NMEA sentences made to name another second."""

from datetime import UTC, datetime

import numpy as np
import pytest
from pynmeagps import NMEAReader

from hilsim.protocols.nmea_retiming import retime_sentence

RECORDED = b"$GPRMC,081802.00,A,3649.7478558,N,00224.4542928,W,0.034,212.5,210116,0.0,E,A*2E\r\n"
NEW_S = int(datetime(2031, 12, 31, 23, 59, 58, tzinfo=UTC).timestamp())


def retimed(sentence, utc_s=NEW_S, lead=0):
    text = np.frombuffer(bytes(lead) + sentence.ljust(128, b"\0"), np.uint8).copy()
    done = retime_sentence(text, lead, text.size, utc_s)
    return done, text[lead:].tobytes().rstrip(b"\0")


def with_checksum(body):
    checksum = 0
    for byte in body:
        checksum ^= byte
    return b"$" + body + b"*%02X\r\n" % checksum


def test_time_date_and_checksum_are_rewritten_and_nothing_else():
    done, text = retimed(RECORDED, lead=7)
    assert done
    assert text == with_checksum(b"GPRMC,235958.00,A,3649.7478558,N,00224.4542928,W,0.034,212.5,311231,0.0,E,A")


def test_an_independent_reader_finds_the_new_instant():
    _, text = retimed(RECORDED)
    message = NMEAReader.parse(text)
    assert (message.date.isoformat(), message.time.isoformat(), message.lat) == ("2031-12-31", "23:59:58", NMEAReader.parse(RECORDED).lat)


def test_a_fix_sentence_has_a_time_and_no_date():
    done, text = retimed(with_checksum(b"GPGGA,120000.250,4124.89,N,00210.34,E,1,08,0.9,545.4,M,46.9,M,,"))
    assert done
    assert text == with_checksum(b"GPGGA,235958.000,4124.89,N,00210.34,E,1,08,0.9,545.4,M,46.9,M,,")


def test_a_sentence_without_fraction_date_or_mode_keeps_its_shape():
    done, text = retimed(with_checksum(b"GNRMC,120000,V,,,,,,,010120,,"))
    assert done
    assert text == with_checksum(b"GNRMC,235958,V,,,,,,,311231,,")


@pytest.mark.parametrize(
    "sentence",
    [
        b"",
        b"$GPRMC,081802.00,A,3649.7478558,N*00\r\n",  # wrong checksum
        with_checksum(b"GPRMC,,V,,,,,,,,,,N"),  # a receiver that knows no time yet
        with_checksum(b"GPGSV,3,1,11,03,03,111,00"),
        RECORDED[:60],
        b"no sentence at all, but some other text of a length that would do",
    ],
)
def test_a_sentence_without_a_time_is_unchanged(sentence):
    done, text = retimed(sentence)
    assert not done
    assert text == sentence.rstrip(b"\0")


def test_lower_case_checksums_are_understood():
    sentence = RECORDED.replace(b"*2E", b"*2e")
    assert retimed(sentence) == retimed(RECORDED)


def test_every_second_of_a_leap_day_is_named_right():
    for second in range(0, 86400, 997):
        instant = datetime(2028, 2, 29, tzinfo=UTC).timestamp() + second
        _, text = retimed(RECORDED, int(instant))
        message = NMEAReader.parse(text)
        assert datetime.combine(message.date, message.time, UTC).timestamp() == instant
