"""A bridge and a controller in virtual time: what one writes the other reads in the same millisecond."""


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
