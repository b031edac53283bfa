"""Changes that break a bridge, by name, and the rules that must find it."""

from dataclasses import dataclass, field

WRONGS = {}
FLIGHT_S = 25.0
"""The puppet's whole schedule: what only motion shows needs it."""


@dataclass(frozen=True, kw_only=True)
class Wrong:
    """``change`` changes a bridge; ``rules`` are all that it breaks; ``run_s`` is how long that takes; the others are arguments of bridge and controller."""

    rules: frozenset
    change: object
    run_s: float = 3.2
    period_us: int = 4000
    serial: bool = True
    lockstep: bool = False
    controller: dict = field(default_factory=dict)


def wrong(name, *rules, **more):
    """Register what it decorates."""

    def keep(change):
        WRONGS[name] = Wrong(rules=frozenset(rules), change=change, **more)
        return change

    return keep


def wrong_sensor(name, *rules, run_s=3.2, **changes):
    """HIL_SENSOR with other figures; each change is a function of all fields."""

    def change(bridge):
        bridge.on_sensor = lambda _now_us, fields: fields | {key: change(fields) for key, change in changes.items()}

    wrong(name, *rules, run_s=run_s)(change)


def wrong_gps(name, *rules, run_s=FLIGHT_S, **changes):
    """The same of HIL_GPS."""

    def change(bridge):
        bridge.on_gps = lambda _now_us, fields: fields | {key: change(fields) for key, change in changes.items()}

    wrong(name, *rules, run_s=run_s, period_us=10_000)(change)


def scaled(factor, *keys):
    """Changes that multiply."""
    return {key: (lambda fields, key=key: fields[key] * factor) for key in keys}


def scaled_whole(factor, *keys):
    """The same, of whole numbers."""
    return {key: (lambda fields, key=key: round(fields[key] * factor)) for key in keys}
