"""The last minute of counters."""

import pytest

from hilsim.telemetry.history import Count, CounterHistory
from hilsim.units import NS_PER_S

SENT = Count("front", "sent")
LOST = Count("front", "dropped")
QUEUE = Count("eth0", "queue dropped")
HALF_NS = NS_PER_S // 2


@pytest.fixture
def history():
    return CounterHistory()


def test_results_are_unknown_before_the_first_reading(history):
    assert history.grown(NS_PER_S) == {}
    assert history.series(NS_PER_S) == {}


def test_counts_before_the_first_reading_count(history):
    history.note(0, {SENT: 750, LOST: 3})
    assert history.grown(10 * NS_PER_S) == {SENT: 750, LOST: 3}


def test_counts_of_the_kernel_before_the_first_reading_are_ignored(history):
    history.note(0, {}, {QUEUE: 10**9})
    history.note(HALF_NS, {}, {QUEUE: 10**9 + 4})
    assert history.grown(10 * NS_PER_S) == {QUEUE: 4}


def test_only_the_window_counts(history):
    for step in range(41):
        history.note(step * HALF_NS, {SENT: 100 * step, LOST: min(step, 5)})
    assert history.grown(10 * NS_PER_S) == {SENT: 2000, LOST: 0}
    assert history.grown(18 * NS_PER_S) == {SENT: 3600, LOST: 1}


def test_a_counter_that_falls_has_begun_anew(history):
    history.note(0, {SENT: 700})
    history.note(HALF_NS, {SENT: 40})
    history.note(2 * HALF_NS, {SENT: 90})
    assert history.grown(NS_PER_S) == {SENT: 90}


def test_a_counter_that_comes_later_and_one_that_goes_are_both_known(history):
    history.note(0, {SENT: 10})
    history.note(HALF_NS, {LOST: 2})
    history.note(2 * HALF_NS, {LOST: 2, SENT: 15})
    assert history.grown(NS_PER_S) == {SENT: 5, LOST: 2}


def test_the_minute_is_reported_in_steps_and_only_of_what_grew(history):
    for step in range(7):
        history.note(step * 5 * NS_PER_S, {SENT: 3760 * step, LOST: 8 if step >= 4 else 0, QUEUE: 0})
    assert history.series(5 * NS_PER_S) == {SENT: [3760] * 6, LOST: [0, 0, 0, 8, 0, 0]}


def test_no_more_than_a_minute_is_kept(history):
    for step in range(1000):
        history.note(step * HALF_NS, {SENT: step})
    assert history.series(5 * NS_PER_S) == {SENT: [10] * 12}
    assert len(history._snapshots) <= 122
