"""Which packets a render thread renders when it is late, on a clock of the test's own."""

import numpy as np
import pytest

from hilsim.streaming.punctuality import LONGEST_RUN_NS, PATIENCE_NS, earliest_due_ns, lead_in_force_ns, next_estimate_ns, render_from_ns

MS = 1_000_000
US = 1_000
PERIOD_NS = 1_327_104
LATE_LIMIT_NS = 10 * MS


class Run:
    """A render thread's decisions over many packets, each of which takes so long to render."""

    def __init__(self, render_ns, *, packets=5_000, lead_ns=4 * MS, stall_at=(), stall_ns=0, is_live=False):
        self.lateness_ns, self.ahead_ns, self.skipped, self.in_vain, self.rendered, self.sleeps = [], [], [], 0, 0, 0
        now_ns, estimate_ns, late_since_ns, packet = -lead_ns, render_ns, 0, 0
        while packet < packets:
            due_ns = packet * PERIOD_NS
            in_force_ns = lead_in_force_ns(lead_ns, estimate_ns, PERIOD_NS)
            begin_ns, run_from_ns = (render_from_ns(due_ns, in_force_ns, is_running, is_live) for is_running in (True, False))
            if now_ns < begin_ns:
                now_ns, late_since_ns = run_from_ns, 0
                self.sleeps += 1
            if packet in stall_at:
                now_ns += stall_ns
            from_ns = earliest_due_ns(now_ns, estimate_ns, LATE_LIMIT_NS, late_since_ns)
            if due_ns < from_ns:
                following = -(-from_ns // PERIOD_NS)
                self.skipped.extend(range(packet, following))
                packet = following
                continue
            self.ahead_ns.append(due_ns - now_ns)
            now_ns += render_ns
            estimate_ns = next_estimate_ns(estimate_ns, render_ns)
            lateness_ns = max(now_ns - due_ns, 0)
            self.rendered += 1
            self.in_vain += lateness_ns > LATE_LIMIT_NS
            self.lateness_ns.append(lateness_ns)
            late_since_ns = late_since_ns or (now_ns if lateness_ns else 0)
            packet += 1


@pytest.mark.parametrize("stall_ms", [1, 5, 10, 11])
@pytest.mark.parametrize("load", [0.25, 0.5, 0.9])
def test_one_standstill_of_the_machine_costs_no_packet(stall_ms, load):
    run = Run(round(load * PERIOD_NS), stall_at={500}, stall_ns=stall_ms * MS)

    assert run.skipped == []


def test_a_standstill_beyond_the_late_limit_costs_only_what_cannot_be_sent_any_more():
    run = Run(PERIOD_NS // 4, stall_at={500}, stall_ns=50 * MS)

    assert run.skipped == list(range(500, 500 + len(run.skipped)))
    assert len(run.skipped) == pytest.approx((50 - 4 - 10) * MS / PERIOD_NS, abs=2)
    assert run.in_vain == 0


@pytest.mark.parametrize("load", [1.1, 1.5, 2.0, 3.7])
def test_an_overloaded_render_thread_renders_nothing_in_vain_and_what_it_sends_is_punctual(load):
    run = Run(round(load * PERIOD_NS))

    assert run.in_vain == 0
    assert run.rendered / 5_000 > 0.98 / load, "all of its time goes into packets that are sent"
    assert np.median(run.lateness_ns) < 100 * US


def test_a_render_thread_that_has_been_late_for_long_renders_only_what_will_be_in_time():
    now_ns, render_ns = 5_000 * MS, 300 * US
    just_in_time_ns = now_ns + render_ns
    as_late_as_may_be_ns = just_in_time_ns + render_ns - LATE_LIMIT_NS

    assert earliest_due_ns(now_ns, render_ns, LATE_LIMIT_NS, 0) == as_late_as_may_be_ns
    assert earliest_due_ns(now_ns, render_ns, LATE_LIMIT_NS, now_ns - PATIENCE_NS) == as_late_as_may_be_ns
    assert earliest_due_ns(now_ns, render_ns, LATE_LIMIT_NS, now_ns - PATIENCE_NS - 1) == just_in_time_ns


def test_rendering_that_takes_longer_than_packets_may_be_late_leaves_no_allowance():
    assert earliest_due_ns(0, 15 * MS, LATE_LIMIT_NS, 0) == 15 * MS


def test_one_packet_that_was_held_up_hardly_moves_the_estimate():
    assert next_estimate_ns(300 * US, 20 * MS) < 360 * US
    assert next_estimate_ns(0, 250 * US) == 250 * US


@pytest.mark.parametrize(("lead_ms", "run_ns"), [(4, MS // 2), (16, 2 * MS), (40, 5 * MS), (1000, LONGEST_RUN_NS)])
def test_packets_whose_poses_are_known_are_rendered_in_runs_that_end_the_lead_before_the_deadline(lead_ms, run_ns):
    run = Run(100 * US, lead_ns=lead_ms * MS)

    assert lead_ms * MS - run_ns <= min(run.ahead_ns)
    assert max(run.ahead_ns) <= lead_ms * MS
    assert run.sleeps == pytest.approx(5_000 / (run_ns // PERIOD_NS + 1), rel=0.2)
    assert not run.skipped


def test_each_packet_of_a_vehicle_that_is_flown_is_rendered_the_lead_before_its_deadline():
    run = Run(100 * US, lead_ns=40 * MS, is_live=True)

    assert set(run.ahead_ns) == {40 * MS}
    assert run.sleeps == 5_000 - 1  # the clock begins with the first
