"""A bridge and a controller in virtual time: what one writes the other reads in the same millisecond."""

from hilsim_flight_controller.controller import Px4, Px4Spec
from hilsim_flight_controller.wire import Writer
from tests.controllers.bridge import Bridge
from tests.controllers.puppet import Puppet
from tests.controllers.station import odd_frames

UTC_AT_ZERO_US = 1_780_000_000_000_000
_ODD_US, _FIRST_ODD_US = 20_000, 500_000


def run(bridge, controller, until_s, *, begin_s=0.0, each=None, step_us=1000, stop=None):
    """Both from ``begin_s`` to ``until_s``; ``each(now_us)`` before every step, ``stop()`` ends it early. Returns the time (s) at the end."""
    now_us, end_us = round(begin_s * 1e6), round(until_s * 1e6)
    while now_us < end_us and not (stop is not None and stop()):
        if each is not None:
            each(now_us)
        controller.receive(now_us, bridge.advance(now_us))
        bridge.receive(now_us, controller.advance(now_us))
        now_us += step_us
    return now_us * 1e-6


def judged(wrong=None, *, run_s=None, body=None):
    """The report on a bridge with a puppet, spoiled by a ``Wrong`` if one is given; on a serial line a ground station's frames pass too."""
    serial, lockstep = (wrong.serial, wrong.lockstep) if wrong else (True, False)
    period_us = wrong.period_us if wrong else 4000
    bridge = Bridge(body or Puppet(), serial=serial, lockstep=lockstep, period_us=period_us, utc_at_zero_us=UTC_AT_ZERO_US)
    more = wrong.controller if wrong else {}
    controller = Px4(Px4Spec(serial=serial, lockstep=lockstep, utc_at_zero_us=UTC_AT_ZERO_US, **more))
    if wrong:
        wrong.change(bridge)
    frames = odd_frames(Writer(255, 190))
    if serial:
        controller.judge.forwarded.expect([])

    def station(now_us):
        if serial and controller.speaking and now_us >= _FIRST_ODD_US and now_us % _ODD_US == 0:
            raw = next(frames, None)
            if raw is not None:
                controller.judge.forwarded.expect([raw])
                bridge.from_ground(raw)

    run(bridge, controller, run_s or wrong.run_s, each=station, step_us=period_us // 4)
    return controller.close()
