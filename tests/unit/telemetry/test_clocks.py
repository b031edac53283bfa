"""The host's two clocks."""

import time

import pytest

from hilsim.telemetry.clocks import utc_ahead_ns


def test_it_is_the_same_whenever_it_is_read():
    assert utc_ahead_ns() == pytest.approx(utc_ahead_ns(), abs=1_000_000)


def test_a_step_of_utc_is_seen_to_the_microsecond(monkeypatch):
    mono_ns = iter(range(10**9, 2 * 10**9, 1000))
    monkeypatch.setattr(time, "monotonic_ns", lambda: next(mono_ns))
    monkeypatch.setattr(time, "time_ns", lambda: 1_800_000_000 * 10**9)
    first = utc_ahead_ns()
    monkeypatch.setattr(time, "time_ns", lambda: 1_800_000_003 * 10**9)
    assert utc_ahead_ns() - first == pytest.approx(3 * 10**9, abs=10_000)


def test_a_thread_that_is_held_up_between_two_looks_is_no_step(monkeypatch):
    looks = iter([0, 8_000_000, 8_001_000, 8_002_000, *[9_000_000] * 20])
    monkeypatch.setattr(time, "monotonic_ns", lambda: next(looks))
    monkeypatch.setattr(time, "time_ns", lambda: 100_000_000)
    assert utc_ahead_ns() == 100_000_000 - 8_001_500


def test_where_every_look_is_held_up_the_shortest_counts(monkeypatch):
    looks = iter([0, 900_000, 1_000_000, 1_030_000, 2_000_000, 2_500_000, 3_000_000, 3_400_000, 4_000_000, 4_800_000])
    monkeypatch.setattr(time, "monotonic_ns", lambda: next(looks))
    monkeypatch.setattr(time, "time_ns", lambda: 100_000_000)
    assert utc_ahead_ns() == 100_000_000 - 1_015_000
