"""The machine's standstills are measured by a process of their own, and judgements of wall time ask for them."""

import os
import signal
import time

import pytest

from tests.runs.standstills import _GAP, _SEEN, GAP_NS, Machine, Watcher


@pytest.fixture
def stored(tmp_path):
    """A machine whose watcher stored the given standstills (ns) and has seen everything."""

    def make(*gaps):
        (tmp_path / "gaps").write_bytes(b"".join(_GAP.pack(*gap) for gap in gaps))
        (tmp_path / "gaps.seen").write_bytes(_SEEN.pack(2**62))
        return Machine(tmp_path / "gaps")

    return make


def test_the_longest_standstill_of_an_interval_is_found_where_they_overlap(stored):
    machine = stored((0, 100), (150, 180), (300, 1300))
    assert machine.longest_ns(100, 300) == 30
    assert machine.longest_ns(99, 301) == 1000
    assert machine.longest_ns(1300, 5000) == 0


def test_awake_time_leaves_out_each_standstill_once(stored):
    second = 1_000_000_000
    machine = stored((2 * second, 3 * second), (2 * second, 5 * second), (7 * second, 8 * second), (20 * second, 30 * second))
    assert machine.awake_s(0.0, 10.0) == pytest.approx(6.0)
    assert machine.awake_s(4.0, 7.5) == pytest.approx(2.0)
    assert machine.awake_s(21.0, 22.0) == 0.0
    assert machine.awake_s(9.0, 10.0) == pytest.approx(1.0)


def test_a_stopped_watcher_shows_its_gap_when_it_goes_on(tmp_path):
    watcher = Watcher(tmp_path / "gaps")
    try:
        began_ns = time.monotonic_ns()
        os.kill(watcher._process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, watcher._process.pid, os.WSTOPPED)
        time.sleep(0.1)
        os.kill(watcher._process.pid, signal.SIGCONT)
        longest_ns = Machine(watcher.path).longest_ns(began_ns, time.monotonic_ns())
    finally:
        watcher.end()
    assert longest_ns >= 100_000_000 - GAP_NS


def test_a_failed_judgement_is_repeated_if_the_machine_stood_still(stored):
    tries = []
    for interval in stored((0, 2**62)).intervals():
        with interval:
            tries.append(None)
            assert len(tries) == 3
    assert len(tries) == 3


def test_a_judgement_that_always_fails_has_four_attempts_at_most(stored):
    tries = []

    def judge(machine):
        for interval in machine.intervals():
            with interval:
                tries.append(None)
                assert not tries, "too slow"

    with pytest.raises(AssertionError, match="too slow"):
        judge(stored((0, 2**62)))
    assert len(tries) == 4
    tries.clear()
    with pytest.raises(AssertionError, match="too slow"):
        judge(stored())
    assert len(tries) == 1


@pytest.mark.parametrize("error", [OSError("gone"), pytest.fail.Exception("gone")], ids=["of the system", "of pytest"])
def test_another_error_than_a_judgement_is_raised_at_once(stored, error):
    tries = []

    def act(machine):
        for interval in machine.intervals():
            with interval:
                tries.append(None)
                raise error

    with pytest.raises(type(error), match="gone"):
        act(stored((0, 2**62)))
    assert len(tries) == 1


def test_a_machine_without_its_watcher_is_a_clear_error(tmp_path, monkeypatch):
    (tmp_path / "gaps").touch()
    (tmp_path / "gaps.seen").write_bytes(_SEEN.pack(5))
    monkeypatch.setattr("tests.runs.standstills._BEHIND_S", 0.05)
    with pytest.raises(RuntimeError, match=r"must have seen 6 ns within 0\.05 s"):
        Machine(tmp_path / "gaps").longest_ns(0, 6)
