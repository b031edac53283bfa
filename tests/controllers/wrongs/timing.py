"""Sensors at the wrong time."""

from tests.controllers.wrongs.registry import wrong

_STALL_US, _STALLED_US = 3_000_000, 200_000


@wrong("everything in each frame", "rate")
def _(bridge):
    bridge.baro_every = 1


@wrong("a slow IMU", "rate")
def _(bridge):
    bridge.period_us, bridge.baro_every = 20_000, 1


@wrong("a slow receiver", "rate", run_s=4.2)
def _(bridge):
    bridge.gps_period_us = 500_000


@wrong("a fast receiver", "rate")
def _(bridge):
    bridge.gps_period_us = 50_000


@wrong("no receiver", "rate", run_s=12.2)
def _(bridge):
    bridge.gps_period_us = 10**12
    bridge.gps_us = 10**12


@wrong("a stall of 400 ms", "gap")
def _(bridge):
    allowed = bridge.may_sense
    bridge.may_sense = lambda now_us: not 1_000_000 <= now_us < 1_400_000 and allowed(now_us)


@wrong("catching up", "burst", run_s=4.2)
def _(bridge):
    held = []
    write = bridge.write

    def late(raw):
        held.append(raw)
        if not _STALL_US <= bridge.body.now_us < _STALL_US + _STALLED_US:
            for one in held:
                write(one)
            held.clear()

    bridge.write = late


@wrong("no waiting in lockstep", "lockstep", serial=False, lockstep=True, run_s=1.2)
def _(bridge):
    bridge.may_sense = lambda now_us: bridge.heard_us is not None and now_us >= bridge.due_us
    send = bridge.send_sensor

    def twice(now_us, fields):
        send(now_us, fields)
        send(now_us, fields | {"time_usec": fields["time_usec"] + 1})

    bridge.send_sensor = twice
