"""Decide which packets to render: a packet that would be late takes time from those that can be in time.

A render thread that is occasionally late (the machine was stalled) may send packets a little late, up to the sender's limit, while it catches up. One
that stays late is overloaded: it then renders only packets that will be in time, so that none is rendered in vain and those sent are punctual.
"""

from hilsim.compilation.jit import kernel

LONGEST_RUN_NS = 5_000_000
"""Longest span of deadlines rendered in a row."""
_RUN_OF_LEAD = 8
"""Lead divided by the longest run; the rest of the lead remains for stalls of the machine."""

PATIENCE_NS = 100_000_000
"""Time for which a render thread may be late before it counts as overloaded: enough to make up for 10 ms if rendering takes nine tenths of the time."""

SMOOTHING = 16
OUTLIER_RATIO = 4
"""Largest weight of a delayed packet (the machine was stalled) in ordinary ones."""


@kernel
def render_from_ns(due_ns: int, lead_ns: int, is_running: bool, is_live: bool) -> int:  # noqa: FBT001 - kernels take positional arguments
    """Time at which to render a packet: the lead before its deadline, or a little later together with those that follow.

    Args:
        due_ns: The packet's deadline.
        lead_ns: The lead in force.
        is_running: Whether the packet before it was rendered just now, without a sleep in between.
        is_live: Whether poses are those at the moment of rendering, so that rendering later changes the packet.
    """
    begin_ns = due_ns - lead_ns
    return begin_ns if is_running or is_live else begin_ns + min(lead_ns // _RUN_OF_LEAD, LONGEST_RUN_NS)


@kernel
def earliest_due_ns(now_ns: int, render_ns: int, late_limit_ns: int, late_since_ns: int) -> int:
    """Earliest deadline of packets that are worth rendering.

    Args:
        now_ns: Present time.
        render_ns: Expected time to render a packet.
        late_limit_ns: Largest lateness with which the sender still sends a packet.
        late_since_ns: Time since which the render thread has been late without a rest; 0: it is not late.
    """
    done_ns = now_ns + render_ns
    is_overloaded = late_since_ns != 0 and now_ns - late_since_ns > PATIENCE_NS
    return done_ns if is_overloaded else done_ns - max(late_limit_ns - render_ns, 0)


@kernel
def lead_in_force_ns(lead_ns: int, render_ns: int, period_ns: int) -> int:
    """Lead that a render thread keeps: the one set, unless rendering alone takes longer.

    A packet's period is added, so that a render thread that cannot keep up never waits for a packet it has skipped to, which would count as a rest.
    """
    return lead_ns if render_ns < lead_ns else render_ns + period_ns


@kernel
def next_estimate_ns(estimate_ns: int, taken_ns: int) -> int:
    """Running estimate after one more packet; a delayed packet (the machine was stalled) counts as four ordinary ones at most."""
    if estimate_ns <= 0:
        return taken_ns
    return estimate_ns + (min(taken_ns, OUTLIER_RATIO * estimate_ns) - estimate_ns) // SMOOTHING
