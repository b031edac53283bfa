"""Faults of the last seconds: pure functions of counters' growth, with every threshold of health in one place.

- Any lost packet (not rendered, dropped as late, refused) is *degraded*.
- More than ``UNHEALTHY_SHARE`` lost, and more than ``MIN_LOST`` packets, is *unhealthy*.
- Packets sent later than the late limit are *degraded*. Packets rendered after their deadline, but sent within the limit, are *degraded* above ``BEHIND_SHARE``. Neither is reported
  together with missing packets, which have the same cause.
- Drops of queues and of UDP count above ``MIN_LOST``, relative to all packets on the same path: they may be another program's.

So a fault of this kind ends ``WINDOW_S`` after its cause. Decision 23 gives the sources of the figures.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from hilsim.config.part_tables import found_kinds, part_kind
from hilsim.telemetry.faults import DAEMON, Fault, Level
from hilsim.telemetry.history import Count
from hilsim.telemetry.metrics import MIN_LOST, Losses
from hilsim.telemetry.readings import Reading

WINDOW_S = 10
UNHEALTHY_SHARE = 0.01
BEHIND_SHARE = 0.001

STEPPED_S = 0.001
"""adjtimex(2) slews UTC and the monotonic clock together, so their difference changes only by steps; it is read to some microseconds."""

JUDGED = frozenset(
    {
        "packets_missed",
        "packets_late",
        "send_refused",
        "udp_dropped",
        "queue_dropped",
        "recording_incomplete",
        "follower_slow",
        "clock_stepped",
    }
)
"""Keys of the core's faults that are detected here (``is_judged``); others come with the reading."""


def is_judged(key: str) -> bool:
    """Whether faults of a key are detected here, from counters."""
    return key in JUDGED or any(losses.fault == key for kind in found_kinds() for losses in kind.losses)


_HINTS = {
    "EAGAIN": "the link is slower than the stream",
    "ENOBUFS": "the interface's queue is full",
    "EMSGSIZE": "packets are larger than the interface's MTU",
    "ENETUNREACH": "there is no route",
    "EHOSTUNREACH": "there is no route",
    "ENETDOWN": "the interface is down",
}


def own_counters(reading: Reading) -> dict[Count, int]:
    """Counters of the daemon since its start, by sensor or replay."""
    counted: dict[Count, int] = defaultdict(int)
    for flow in reading.flows:
        counted[Count(flow.sensor, "sent")] += flow.sent_packets
        counted[Count(flow.sensor, "late")] += flow.late_packets
        counted[Count(flow.sensor, "dropped")] += flow.dropped_packets
        counted[Count(flow.sensor, "underrun")] += flow.underrun_packets
        for errno, refused in flow.send_errors.items():
            counted[Count(flow.sensor, f"refused {errno}")] += refused
    for sensor in reading.sensors:
        counted[Count(sensor.sensor, "rendered late")] = sensor.render_late_packets
        counted[Count(sensor.sensor, "skipped")] = sensor.render_skipped_packets
        counted[Count(sensor.sensor, "ring full")] = sensor.render_ring_full_packets
    for table, readings in reading.parts.items():
        if late := part_kind(table).late:
            counted |= {Count(each.name, "read late"): getattr(each, late) for each in readings}
    for losses, each in _losing_parts(reading):
        counted |= {_count(each.name, field): getattr(each, field) for field in (losses.made, *losses.lost) if field}
    if reading.recording is not None:
        counted[Count(DAEMON, "unrecorded")] = reading.recording.unrecorded_packets
    if reading.packet_streams is not None:
        counted[Count(DAEMON, "followed")] = reading.packet_streams.sent_packets
        counted[Count(DAEMON, "not followed")] = sum(reading.packet_streams.lost_packets.values())
    return dict(counted)


def kernel_counters(reading: Reading) -> dict[Count, int]:
    """Counters of the kernel since its start, for all programs; counters that it does not provide are omitted."""
    drops = reading.drops
    if drops is None:
        return {}
    counted = {Count(DAEMON, name): value for name, value in (("UDP sent", drops.udp_sent), ("UDP refused", drops.udp_refused)) if value is not None}
    for interface in drops.interfaces:
        counted[Count(interface.interface, "queue sent")] = interface.queue_packets
        counted[Count(interface.interface, "queue dropped")] = interface.queue_drops
        counted[Count(interface.interface, "driver dropped")] = interface.driver_drops
    return counted


def judge(grown: Mapping[Count, int], reading: Reading) -> tuple[Fault, ...]:
    """Faults of a window.

    Args:
        grown: Growth of each counter of ``own_counters`` and ``kernel_counters`` in the window.
        reading: Newest reading, for states.
    """
    by_subject: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for (subject, name), increase in grown.items():
        by_subject[subject][name] = increase
    found: list[Fault] = []
    for subject, growth in by_subject.items():
        found.extend(_of_stream(subject, growth))
        found.extend(_of_interface(subject, growth))
    for losses, each in _losing_parts(reading):
        found.extend(_of_part(losses, each.name, grown))
    found.extend(_of_udp(by_subject))
    if reading.recording is not None and reading.recording.running and (missing := by_subject[DAEMON]["unrecorded"]):
        found.append(_fault("recording_incomplete", DAEMON, f"{missing} packets are missing from the recording", Level.DEGRADED))
    if lost := by_subject[DAEMON]["not followed"]:
        text = (
            f"programs that follow the packets, such as a view, did not get {lost} of {lost + by_subject[DAEMON]['followed']}: they read too slowly"
        )
        found.append(_fault("follower_slow", DAEMON, text, Level.DEGRADED))
    if reading.utc_offset_s is not None and abs(reading.utc_offset_s) > STEPPED_S:
        text = f"the host's clock was stepped by {reading.utc_offset_s:+.3f} s, and packets have the UTC from before: restart to apply the new one"
        found.append(Fault(key="clock_stepped", text=text, level=Level.DEGRADED))
    return tuple(found)


def _of_stream(subject: str, growth: Mapping[str, int]) -> Iterator[Fault]:
    """Faults of a sensor or replay."""
    refused = {name.removeprefix("refused "): count for name, count in growth.items() if name.startswith("refused ") and count}
    missed = {
        "not rendered in time": growth["skipped"],
        "too late to be sent": growth["dropped"],
        "without room in the ring": growth["ring full"],
    }
    lost = sum(missed.values())
    due = growth["sent"] + lost + sum(refused.values())
    if lost:
        parts = ", ".join(f"{count} {why}" for why, count in missed.items() if count)
        yield _fault("packets_missed", subject, f"{lost} of {due} packets missing: {parts}", _level(lost, due))
    if refused:
        parts = ", ".join(f"{count} {errno}" + (f", {_HINTS[errno]}" if errno in _HINTS else "") for errno, count in refused.items())
        total = sum(refused.values())
        yield _fault("send_refused", subject, f"{total} of {due} packets refused by the kernel: {parts}", _level(total, due))
    if lost:
        return  # late packets have the same cause
    sent_late = growth["late"]
    behind = max(growth["underrun"], growth["rendered late"], growth["read late"])
    if sent_late > 0 or behind > max(MIN_LOST, BEHIND_SHARE * due):
        late = [f"{sent_late} sent after the late limit"] if sent_late > 0 else []
        late += [f"{behind} ready only after they were due"] if behind else []
        yield _fault("packets_late", subject, f"of {due} packets {', '.join(late)}", Level.DEGRADED)


def _losing_parts(reading: Reading) -> Iterator[tuple[Losses, Any]]:
    """Readings of parts that can lose something, with what that is."""
    for table, readings in reading.parts.items():
        for losses in part_kind(table).losses:
            yield from ((losses, each) for each in readings if not losses.while_true or getattr(each, losses.while_true))


def _count(subject: str, field: str) -> Count:
    return Count(subject, field.replace("_", " "))


def _of_part(losses: Losses, subject: str, grown: Mapping[Count, int]) -> Iterator[Fault]:
    """Faults of a part that plans what it makes."""
    lost = {why: grown.get(_count(subject, field), 0) for field, why in losses.lost.items()}
    total = sum(lost.values())
    made = grown.get(_count(subject, losses.made), 0)
    due = made + total
    if total > losses.above and (made or not losses.while_made):
        text = f"{total} of {due} {losses.made.replace('_', ' ')} missing: {', '.join(f'{count} {why}' for why, count in lost.items())}"
        text = losses.text.format(lost=total, due=due) or text
        yield _fault(losses.fault, subject, text, Level.DEGRADED if losses.is_minor else _level(total, due))


def _of_interface(subject: str, growth: Mapping[str, int]) -> Iterator[Fault]:
    """Faults of an interface."""
    queue, driver = growth["queue dropped"], growth["driver dropped"]
    taken = growth["queue sent"] + queue + driver
    if queue + driver > MIN_LOST:
        text = f"{queue + driver} of {taken} packets of all programs dropped: {queue} by the queue, {driver} by the driver"
        yield _fault("queue_dropped", subject, text, _level(queue + driver, taken))


def _of_udp(by_subject: Mapping[str, Mapping[str, int]]) -> Iterator[Fault]:
    """Faults of datagrams that UDP had no room for, if neither errors of the sockets nor the observed queues explain them.

    The counters are read one after the other, a replaced queue takes its counters with it, and after one EAGAIN the kernel counts every error of a socket here: so the unexplained
    part must exceed the explained one.
    """
    refused = by_subject[DAEMON]["UDP refused"]
    explained = sum(
        count for growth in tuple(by_subject.values()) for name, count in growth.items() if name == "queue dropped" or name.startswith("refused ")
    )
    dropped = refused - explained
    if dropped > max(MIN_LOST, explained):
        handed = by_subject[DAEMON]["UDP sent"] + refused
        yield _fault("udp_dropped", DAEMON, f"{dropped} of {handed} datagrams of all programs dropped by a full queue", _level(dropped, handed))


def _level(lost: int, of: int) -> Level:
    return Level.UNHEALTHY if lost > max(MIN_LOST, UNHEALTHY_SHARE * of) else Level.DEGRADED


def _fault(key: str, subject: str, text: str, level: Level) -> Fault:
    return Fault(key=key, subject=subject, text=f"{text} in the last {WINDOW_S} s", level=level)
