"""What a sensor makes of pulses and sentences: it locks, counts on, and is not misled."""

import itertools

import pytest

from hilsim.sensor.specs import PulseState
from hilsim.sensor.time_input import Qualifiers, TimeInput

SECOND_NS = 10**9
DAY_S = 86_400
UTC_S = 20_000 * DAY_S + 86_390
"""UTC of rig time 0: ten seconds before midnight."""
ABSENT, WAITING = PulseState(pps="absent"), PulseState(pps="synchronizing")
PULSE_NS = 400_000_000
"""Rig time of the first pulse, at which a second begins: UTC_S + 1."""


def pulses(sensor, seconds, begin_ns=PULSE_NS, free_utc_ns=0):
    return [sensor.pulse(begin_ns + second * SECOND_NS, free_utc_ns + begin_ns + second * SECOND_NS) for second in range(seconds)]


def sentences(sensor, seconds, begin_ns=PULSE_NS, *, is_valid=True, ahead_s=0):
    """A pulse and the sentence that names it, each second."""
    found = []
    for second in range(seconds):
        at_ns = begin_ns + second * SECOND_NS
        sensor.pulse(at_ns, at_ns)
        of_day_s = (UTC_S + 1 + (at_ns - PULSE_NS) // SECOND_NS + ahead_s) % DAY_S
        found.append(sensor.sentence(at_ns + 70_000_000, of_day_s, is_valid=is_valid))
    return found


def test_without_a_pulse_nothing_is_locked_whatever_sentences_say():
    sensor = TimeInput(UTC_S * SECOND_NS)
    for second in range(20):
        assert sensor.sentence(second * SECOND_NS, second, is_valid=True) == ABSENT


def test_two_good_pulses_lock_it_and_its_seconds_count_on_without_sentences():
    states = pulses(TimeInput(UTC_S * SECOND_NS), 5, free_utc_ns=77 * SECOND_NS + 300_000_000)
    assert states[0] == WAITING
    # At the second pulse its stamps show 77.3 s + 1.4 s of rig time: the nearest second is 79.
    assert states[1:] == [PulseState(pps="locked", utc_epoch_ns=79 * SECOND_NS - PULSE_NS - SECOND_NS)] * 4


def test_sentences_name_the_second_also_over_midnight():
    sensor = TimeInput(UTC_S * SECOND_NS)
    sentences(sensor, 3)
    states = sentences(sensor, 20, PULSE_NS + 3 * SECOND_NS)
    assert states[-1] == PulseState(pps="locked", utc_epoch_ns=(UTC_S + 1) * SECOND_NS - PULSE_NS)
    assert len(set(states)) == 1


@pytest.mark.parametrize("ahead_s", [3600, -7, 43_000])
def test_one_sentence_that_deviates_does_not_move_the_clock_and_two_do(ahead_s):
    sensor = TimeInput(UTC_S * SECOND_NS)
    good = sentences(sensor, 4)[-1]
    sentences(sensor, 1, PULSE_NS + 4 * SECOND_NS, ahead_s=ahead_s)
    assert sentences(sensor, 3, PULSE_NS + 5 * SECOND_NS)[-1] == good
    sentences(sensor, 3, PULSE_NS + 8 * SECOND_NS, ahead_s=ahead_s)
    moved = sensor.pulse(PULSE_NS + 11 * SECOND_NS, 0)
    assert moved.utc_epoch_ns is not None
    assert (moved.utc_epoch_ns - good.utc_epoch_ns) // SECOND_NS % DAY_S == ahead_s % DAY_S


def test_sentences_without_a_time_and_those_that_are_not_valid_are_left_out():
    sensor = TimeInput(UTC_S * SECOND_NS, Qualifiers(nmea_needs_valid=True))
    states = sentences(sensor, 4, is_valid=False)
    assert states[-1].utc_epoch_ns == pytest.approx(-PULSE_NS + SECOND_NS * round(PULSE_NS / SECOND_NS), abs=SECOND_NS)
    assert sensor.sentence(PULSE_NS + 4 * SECOND_NS, None, is_valid=True).pps == "locked"


def test_a_missing_pulse_ends_the_lock():
    sensor = TimeInput(UTC_S * SECOND_NS)
    last = sentences(sensor, 4)[-1]
    last_ns = PULSE_NS + 3 * SECOND_NS
    assert sensor.look(last_ns + 1_200_000_000) == last
    assert sensor.look(last_ns + 1_300_000_000) == ABSENT
    assert pulses(sensor, 2, last_ns + 9 * SECOND_NS)[-1].pps == "locked"


@pytest.mark.parametrize("off_ns", [-5_000_000, 2_000_000, -400_000_000])
def test_a_pulse_at_a_wrong_time_is_an_error_at_once_until_pulses_are_good_again(off_ns):
    sensor = TimeInput(UTC_S * SECOND_NS)
    pulses(sensor, 4)
    bad_ns = PULSE_NS + 4 * SECOND_NS + off_ns
    assert sensor.pulse(bad_ns, 0).pps == "error"
    assert [state.pps for state in pulses(sensor, 3, bad_ns + SECOND_NS)] == ["synchronizing", "locked", "locked"]


def test_with_a_required_lock_pulses_must_be_good_for_the_delay():
    sensor = TimeInput(UTC_S * SECOND_NS, Qualifiers(pps_needs_lock=True, delay_s=7))
    assert [state.pps for state in pulses(sensor, 8)] == ["synchronizing"] * 6 + ["locked"] * 2


def test_with_a_required_receiver_pulses_count_only_while_sentences_are_valid():
    sensor = TimeInput(UTC_S * SECOND_NS, Qualifiers(pps_needs_valid=True))
    assert {state.pps for state in sentences(sensor, 5, is_valid=False)} == {"synchronizing"}
    assert sentences(sensor, 5, PULSE_NS + 5 * SECOND_NS)[-1].pps == "locked"


def test_a_clock_that_drifts_is_set_anew_and_small_differences_are_left_alone():
    sensor = TimeInput(UTC_S * SECOND_NS)
    epochs = [sensor.pulse(PULSE_NS + second * (SECOND_NS + 3000), 0).utc_epoch_ns for second in range(40)]
    steps = [round((after - before) / 1000) for before, after in itertools.pairwise(epochs[2:]) if after != before]
    assert set(steps) == {-21}
    assert len(steps) == 5


def test_a_delay_must_fit_its_form():
    with pytest.raises(ValueError, match="delay_s must be 0 to 65535, got 65536"):
        Qualifiers(delay_s=65_536)
