"""Rig time 0 is soon after the start, or at the UTC instant that the rig gives to several daemons."""

import pytest

from hilsim.config.rig import load_rig
from hilsim.daemon.parts import RigClock
from hilsim.daemon.streaming import instant
from hilsim.daemon.streaming.instant import rig_clock, wait_s
from hilsim.errors import ConfigError
from tests.support import ROOM, write_rig

EPOCH = '\n[transmit]\nepoch_utc = "2026-01-01T12:00:00.25Z"\n'
EPOCH_NS = 1_767_268_800_250_000_000
ROVER = '\n[[rover]]\nnumber = 3\nfile = "a.scans"\n'


@pytest.fixture
def host(monkeypatch):
    """Set UTC minus CLOCK_MONOTONIC, and CLOCK_MONOTONIC."""

    def make(ahead_ns, now_ns=0):
        monkeypatch.setattr(instant, "utc_ahead_ns", lambda: ahead_ns)
        monkeypatch.setattr(instant.time, "monotonic_ns", lambda: now_ns)

    return make


def rig_of(tmp_path, text=ROOM + EPOCH):
    return load_rig(write_rig(tmp_path, text))


def test_without_an_instant_rig_time_begins_as_early_as_it_can(tmp_path, host):
    host(7_000)
    assert rig_clock(rig_of(tmp_path, ROOM), 500) == RigClock(500, 7_500, 500)
    assert wait_s(rig_of(tmp_path, ROOM)) == 0.0


def test_a_start_before_the_instant_sends_from_it_on(tmp_path, host):
    host(EPOCH_NS - 10_000_000_000, now_ns=2_000_000_000)
    assert rig_clock(rig_of(tmp_path), 3_000_000_000) == RigClock(10_000_000_000, EPOCH_NS, 10_000_000_000)
    assert wait_s(rig_of(tmp_path)) == 7.0


@pytest.mark.parametrize("uptime_ns", [3_700_000_000_000, 5_000_000_000], ids=["since boot", "before boot"])
def test_a_later_start_begins_in_the_middle_even_if_the_instant_is_before_the_boot(tmp_path, host, uptime_ns):
    host(EPOCH_NS + 3_600_000_000_000 - uptime_ns, now_ns=uptime_ns)
    clock = rig_clock(rig_of(tmp_path), uptime_ns)
    assert clock == RigClock(uptime_ns - 3_600_000_000_000, EPOCH_NS, uptime_ns)
    assert wait_s(rig_of(tmp_path)) == 0.0


def test_two_hosts_with_other_uptimes_have_one_instant(tmp_path, host):
    found = []
    for uptime_ns in (1_000_000_000, 900_000_000_000):
        host(EPOCH_NS + 60_000_000_000 - uptime_ns)
        clock = rig_clock(rig_of(tmp_path), uptime_ns)
        found.append((uptime_ns - clock.epoch_ns, clock.utc_epoch_ns))
    assert found == [(60_000_000_000, EPOCH_NS)] * 2


def test_what_has_a_past_cannot_begin_in_the_middle(tmp_path, host):
    host(EPOCH_NS, now_ns=2_500_000_000)
    with pytest.raises(ConfigError, match=r"epoch_utc must be later than the start for a rig with \[\[rover\]\], .*, 2\.5 s before"):
        rig_clock(rig_of(tmp_path, ROOM + EPOCH + ROVER), 2_500_000_000)
    host(EPOCH_NS - 9_000_000_000)
    assert rig_clock(rig_of(tmp_path, ROOM + EPOCH + ROVER), 2_500_000_000).begin_ns == 9_000_000_000


def test_an_instant_may_be_a_date_of_toml(tmp_path):
    assert rig_of(tmp_path, ROOM + EPOCH.replace('"', "")).spec.transmit == rig_of(tmp_path, ROOM + EPOCH.replace(".25", ".250000")).spec.transmit


@pytest.mark.parametrize("text", ["2026-01-01T12:00:00", "2026-01-01T12:00:00+01:00", "noon Z", "2026-13-01T00:00:00Z", "2300-01-01T00:00:00Z"])
def test_an_instant_must_be_utc(tmp_path, text):
    with pytest.raises(ConfigError, match=r"transmit\.epoch_utc must be a UTC instant from 1970 to 2199 like 2026-01-01T12:00:00Z, got"):
        rig_of(tmp_path, ROOM + f'\n[transmit]\nepoch_utc = "{text}"\n')
