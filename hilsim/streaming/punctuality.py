"""Which packets are worth rendering: what cannot be in time takes the time of what can.

A render thread that is late now and then (the machine stood still) may send packets a little late, up to the sender's limit, while it catches up. One
that stays late is overloaded: it then renders only what will be in time, so that nothing is rendered in vain and what is sent is punctual.
"""

from hilsim.compilation.jit import kernel

LONGEST_RUN_NS = 5_000_000
"""What is due within this is rendered in a row."""
_RUN_OF_LEAD = 8
"""A run is no longer than this part of the lead, which keeps the rest for standstills of the machine."""

PATIENCE_NS = 100_000_000
"""How long a render thread may be late before it is taken for overloaded: it makes up for 10 ms where rendering takes nine tenths of the time."""

SMOOTHING = 16
OUTLIER_RATIO = 4
"""A packet that was held up (the machine stood still) counts as so many ordinary ones at most."""


@kernel
def render_from_ns(due_ns: int, lead_ns: int, is_running: bool, is_live: bool) -> int:  # noqa: FBT001 - kernels take their arguments by place
    """When a packet is to be rendered: the lead before its deadline, or a little after that, with those that follow.

    Args:
        due_ns: The packet's deadline.
        lead_ns: The lead in force.
        is_running: The packet before it was rendered just now, without a sleep between them.
        is_live: Poses are those of the very moment of rendering, so that later is another packet.
    """
    begin_ns = due_ns - lead_ns
    return begin_ns if is_running or is_live else begin_ns + min(lead_ns // _RUN_OF_LEAD, LONGEST_RUN_NS)


@kernel
def earliest_due_ns(now_ns: int, render_ns: int, late_limit_ns: int, late_since_ns: int) -> int:
    """What is due before this is not worth rendering.

    Args:
        now_ns: The time.
        render_ns: How long rendering a packet is expected to take.
        late_limit_ns: How late the sender still sends it.
        late_since_ns: Since when the render thread has been late without a rest; 0: it is not.
    """
    done_ns = now_ns + render_ns
    is_overloaded = late_since_ns != 0 and now_ns - late_since_ns > PATIENCE_NS
    return done_ns if is_overloaded else done_ns - max(late_limit_ns - render_ns, 0)


@kernel
def lead_in_force_ns(lead_ns: int, render_ns: int, period_ns: int) -> int:
    """The lead a render thread keeps: the one set, unless rendering alone takes longer.

    With a packet's period more, a render thread that cannot keep up never waits for a packet it has skipped to, which would look like a rest.
    """
    return lead_ns if render_ns < lead_ns else render_ns + period_ns


@kernel
def next_estimate_ns(estimate_ns: int, taken_ns: int) -> int:
    """The running estimate after one more packet; one that was held up (the machine stood still) counts as four ordinary ones at most."""
    if estimate_ns <= 0:
        return taken_ns
    return estimate_ns + (min(taken_ns, OUTLIER_RATIO * estimate_ns) - estimate_ns) // SMOOTHING
