"""Sentences as a sensor reads them: the time of sound ones, and nothing of any other."""

import functools

import numpy as np
import pytest

from hilsim.protocols.nmea import GPRMC_CAPACITY, write_gprmc
from hilsim.protocols.nmea_reading import read_sentence


def sentence(text):
    checksum = functools.reduce(lambda one, other: one ^ other, text.encode())
    return f"${text}*{checksum:02X}\r\n".encode()


RMC = "GPRMC,235959.00,A,4807.038,N,01131.000,E,022.4,084.4,230394,003.1,W"


@pytest.mark.parametrize(
    ("text", "of_day_s", "is_valid", "position"),
    [
        (RMC, 86_399, True, "48 07.04N 011 31.00E"),
        (RMC + ",A", 86_399, True, "48 07.04N 011 31.00E"),
        (RMC.replace("235959.00", "000000"), 0, True, "48 07.04N 011 31.00E"),
        (RMC.replace("235959.00", "120001.123"), 43_201, True, "48 07.04N 011 31.00E"),
        (RMC.replace(",A,", ",V,"), 86_399, False, "48 07.04N 011 31.00E"),
        ("GPRMC,120000,V,,,,,,,230394,,", 43_200, False, ""),
        ("GPRMC,,V,,,,,,,,,", None, False, ""),
        ("GPGGA,120000,4807.038,S,01131.000,W,1,08,0.9,545.4,M,46.9,M,,", 43_200, True, "48 07.04S 011 31.00W"),
        ("GPGGA,120000,4807.038,N,01131.000,E,0,08,0.9,545.4,M,46.9,M,,", 43_200, False, "48 07.04N 011 31.00E"),
        (RMC.replace("235959.00", "235960.00"), None, True, "48 07.04N 011 31.00E"),  # a leap second
        (RMC.replace("235959.00", "240000.00"), None, True, "48 07.04N 011 31.00E"),
    ],
)
def test_time_validity_and_position_are_read(text, of_day_s, is_valid, position):
    found = read_sentence(sentence(text))
    assert (found.of_day_s, found.is_valid, found.position) == (of_day_s, is_valid, position)
    sides = {"48 07.04N 011 31.00E": 1.0, "48 07.04S 011 31.00W": -1.0}
    if position:
        assert found.degrees == pytest.approx([sides[position] * (48 + 7.038 / 60), sides[position] * (11 + 31.0 / 60)])
    else:
        assert found.degrees is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"$\r\n",
        sentence(RMC)[:-8] + b"\r\n",
        sentence(RMC).replace(b"A,48", b"V,48"),
        sentence(RMC)[1:],
        sentence(RMC.replace("GPRMC", "GPZDA")),
        sentence(RMC.replace("GPRMC", "GNRMC")),
        sentence("GPRMC,120000"),
        b"\xff" * 300,
        sentence(RMC) + sentence(RMC),
    ],
)
def test_what_is_no_sound_sentence_is_none(data):
    assert read_sentence(data) is None


def test_the_sentences_that_hilsim_writes_are_read():
    out = np.zeros(GPRMC_CAPACITY, np.uint8)
    size = write_gprmc(1_767_225_600 + 3_723, True, 36.8, -2.4, 1.0, 90.0, out)  # noqa: FBT003 - a kernel
    found = read_sentence(out[:size].tobytes())
    assert (found.of_day_s, found.is_valid, found.position) == (3_723, True, "36 48.00N 002 24.00W")
    assert found.degrees == pytest.approx((36.8, -2.4))


def test_a_sentence_with_one_wrong_byte_or_cut_off_is_never_read_as_another():
    sound = sentence(RMC)
    for place in range(len(sound) - 2):
        for byte in range(256):
            damaged = sound[:place] + bytes([byte]) + sound[place + 1 :]
            found = read_sentence(damaged)
            assert found is None or found == read_sentence(sound)
        assert read_sentence(sound[:place]) is None
