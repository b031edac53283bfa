"""Requests in JSON to a running daemon: one line for each request and each answer.

A request names its action, and may have an ``id``, which its answer repeats::

    {"id": 1, "do": "change", "change": {"kind": "move", "name": "walker", "position_m": [4, 1, 0.9]}}
    {"id": 1, "ok": true, "at_s": 12.480512, "sensors": {"roof": 12.480512}}

The answer to a refused request has ``"ok": false`` and ``error``. ``{"do": "help"}`` lists the requests; ``docs/reference/control.md`` describes them.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from hilsim.config.script import CHANGE_KINDS, change_table, parse_change
from hilsim.daemon.running_rig import RunningRig
from hilsim.errors import ConfigError, HilsimError
from hilsim.limits import EVENT_LONGEST_S, EVENT_SHORTEST_S
from hilsim.telemetry.answers import health_answer, histogram_answer, in_json, packet_streams_answer
from hilsim.telemetry.metrics import LATENCY_BOUNDS_S, TIMING_BOUNDS_S
from hilsim.vehicle.live import newest_state
from hilsim.version import __version__

if TYPE_CHECKING:
    from hilsim.telemetry.readings import Reading

NO_PACKETS = "packets must be asked for over the control socket, or as the WebSocket /v1/packets"

PROTOCOL = 1
"""Version of the requests and answers; a change that older clients can read keeps it."""


class Request(NamedTuple):
    """A kind of request.

    Attributes:
        keys: Keys beside ``do`` and ``id``, with a description of each.
        answer: Keys of the answer, with a description of each.
        text: Description of the request.
        run: Function that executes the request.
    """

    keys: Mapping[str, str]
    answer: Mapping[str, str]
    text: str
    run: Callable[[RunningRig, Mapping[str, Any]], Awaitable[dict[str, Any]]]


class Subscriber(Protocol):
    """A connection that can receive events."""

    def subscribe(self, every_s: float) -> None:
        """Start sending the state at an interval."""

    def unsubscribe(self) -> None:
        """Stop sending events."""

    def follow_packets(self) -> dict[str, Any]:
        """Make the connection carry sent packets after the answer; returns the keys of the answer.

        Raises:
            ConfigError: the connection cannot carry them.
        """


async def answer_parsed(running: RunningRig, request: Mapping[str, Any], subscriber: Subscriber | None = None) -> str:
    """Execute a request; returns the line of the answer.

    Args:
        running: Running rig.
        request: Result of ``parse_request``.
        subscriber: Connection of the request; None if it cannot receive events.
    """
    number = request.get("id")
    try:
        answer = {"ok": True, **await _run(running, request, subscriber)}
    except HilsimError as error:
        answer = {"ok": False, "error": str(error)}
    return json.dumps(answer if number is None else {"id": number, **answer})


def refusal(error: str) -> str:
    """Make the answer to an invalid request."""
    return json.dumps({"ok": False, "error": error})


def parse_request(line: str) -> dict[str, Any]:
    """Parse the request in a line.

    Raises:
        ConfigError: the line is not a request.
    """
    try:
        request = json.loads(line, parse_constant=_refused_constant)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"a request must be a JSON object, got {error}") from error
    if not isinstance(request, dict):
        raise ConfigError(f"a request must be a JSON object, got {type(request).__name__}")
    return request


def _refused_constant(text: str) -> None:
    raise ValueError(f"the number {text}, which JSON does not allow")


async def _run(running: RunningRig, request: Mapping[str, Any], subscriber: Subscriber | None) -> dict[str, Any]:
    name = request.get("do")
    kind = REQUESTS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise ConfigError(f"do must be one of {', '.join(REQUESTS)}, got {json.dumps(name)}")
    identity = request.get("id")
    if identity is not None and (isinstance(identity, bool) or not isinstance(identity, int | str)):
        raise ConfigError(f"id must be a number or a text, got {json.dumps(identity)[:60]}")
    unknown = sorted(request.keys() - kind.keys.keys() - {"do", "id"})
    if unknown:
        raise ConfigError(f"{unknown[0]}: unknown key (known here: {', '.join(kind.keys) or 'none'})")
    if name in _SUBSCRIPTION and subscriber is not None:
        return _SUBSCRIPTION[name](subscriber, request)
    return await kind.run(running, request)


async def _help(running: RunningRig, request: Mapping[str, Any]) -> dict[str, Any]:
    del running, request
    return {
        "protocol": PROTOCOL,
        "hilsim": __version__,
        "requests": {name: {"text": kind.text, "keys": dict(kind.keys), "answer": dict(kind.answer)} for name, kind in REQUESTS.items()},
        "changes": [kind.kind for kind in CHANGE_KINDS],
    }


async def _change(running: RunningRig, request: Mapping[str, Any]) -> dict[str, Any]:
    table = request.get("change")
    if not isinstance(table, dict):
        raise ConfigError(f"change must be an object with a kind, got {json.dumps(table)[:60]}")
    made = await running.changes.make(parse_change(table))
    return {"at_s": made.at_ns / 1e9, "sensors": {name: begun_ns / 1e9 for name, begun_ns in made.begun_ns.items()}}


async def _script(running: RunningRig, request: Mapping[str, Any]) -> dict[str, Any]:
    del request
    made = tuple(running.changer.made)
    return {"changes": [change_table(each.change) for each in made], "scripted": [number for number, each in enumerate(made) if each.is_scripted]}


async def _rig(running: RunningRig, request: Mapping[str, Any]) -> dict[str, Any]:
    del request
    rig = running.rig
    return {
        "name": rig.name,
        "path": str(rig.path.absolute()),
        "table": rig.table,
        "changes": [change_table(made.change) for made in running.changer.made],
        "epoch_ns": running.epoch_ns,
        "utc_epoch_ns": running.utc_epoch_ns,
        "flows": {} if running.live_packets is None else {name: key._asdict() for name, key in running.live_packets.addresses.items()},
    }


async def _state(running: RunningRig, request: Mapping[str, Any]) -> dict[str, Any]:
    del request
    return await asyncio.to_thread(state_answer, running)


async def _health(running: RunningRig, request: Mapping[str, Any]) -> dict[str, Any]:
    del request
    now_ns = time.monotonic_ns()
    reading = await asyncio.to_thread(running.reading)
    return {**health_answer(reading, now_ns), **running.health.report(now_ns)}


def _replay_name(request: Mapping[str, Any]) -> str:
    name = request.get("replay", "")
    if not isinstance(name, str):
        raise ConfigError(f"replay must be a name, got {json.dumps(name)[:60]}")
    return name


async def _pause(running: RunningRig, request: Mapping[str, Any]) -> dict[str, Any]:
    for replay_source in running.replays.choose(_replay_name(request)):
        replay_source.pause(paused=request["do"] == "pause")
    return {}


async def _seek(running: RunningRig, request: Mapping[str, Any]) -> dict[str, Any]:
    position_s = request.get("position_s")
    if isinstance(position_s, bool) or not isinstance(position_s, int | float) or not 0.0 <= position_s <= 1e8:
        raise ConfigError(f"position_s must be 0 to 1e8, got {json.dumps(position_s)[:60]}")
    for replay_source in running.replays.choose(_replay_name(request)):
        replay_source.seek(float(position_s))
    return {}


def _subscribe(subscriber: Subscriber, request: Mapping[str, Any]) -> dict[str, Any]:
    every_s = request.get("every_s", _EVERY_S)
    if isinstance(every_s, bool) or not isinstance(every_s, int | float):
        raise ConfigError(f"every_s must be a number, got {json.dumps(every_s)[:60]}")
    for limit in (EVENT_SHORTEST_S, EVENT_LONGEST_S):
        limit.enforce(every_s, "every_s", ConfigError)
    subscriber.subscribe(float(every_s))
    return {}


def _unsubscribe(subscriber: Subscriber, request: Mapping[str, Any]) -> dict[str, Any]:
    del request
    subscriber.unsubscribe()
    return {}


def _packets(subscriber: Subscriber, request: Mapping[str, Any]) -> dict[str, Any]:
    del request
    return subscriber.follow_packets()


async def _no_packets(running: RunningRig, request: Mapping[str, Any]) -> dict[str, Any]:
    del running, request
    raise ConfigError(NO_PACKETS)


async def _not_subscribed(running: RunningRig, request: Mapping[str, Any]) -> dict[str, Any]:
    del running
    raise ConfigError(f"{request['do']} must come over a WebSocket (/v1/stream) or the control socket, which can receive events")


def state_answer(running: RunningRig) -> dict[str, Any]:
    """State of the sensors, objects and replays, for JSON."""
    reading: Reading = running.reading()
    now_ns = time.monotonic_ns()
    flows: dict[str, dict[str, Any]] = {}
    for flow in reading.flows:
        flows.setdefault(flow.sensor, {})[flow.flow] = {
            "sent_packets": flow.sent_packets,
            "late_packets": flow.late_packets,
            "dropped_packets": flow.dropped_packets,
            "silenced_packets": flow.silenced_packets,
            "lateness_max_s": flow.lateness_max_s,
            "lateness": histogram_answer(flow.lateness, TIMING_BOUNDS_S),
            "pose_to_wire": histogram_answer(flow.pose_to_wire, LATENCY_BOUNDS_S),
        }
    answer = {
        "rig": running.rig.name,
        "rig_s": (now_ns - running.epoch_ns) / 1e9,
        "changes": len(running.changer.made),
        "utc_offset_s": reading.utc_offset_s,
        "sensors": {
            sensor.sensor: {
                "model": sensor.model,
                "return_mode": sensor.return_mode,
                "rotation_rate_hz": sensor.rotation_rate_hz,
                "rays_per_beam": sensor.rays_per_beam,
                "skipped_packets": sensor.render_skipped_packets,
                "lead_s": sensor.render_lead_s,
                "device_clock_offset_s": sensor.device_clock_offset_s,
                "render": histogram_answer(sensor.render, TIMING_BOUNDS_S),
                "flows": flows.get(sensor.sensor, {}),
            }
            for sensor in reading.sensors
        },
        "replays": [asdict(replay) for replay in reading.replays],
        "objects": running.changer.object_names(),
        "vehicle": None if reading.vehicle is None else asdict(reading.vehicle),
        **_platform(running),
        **({} if reading.external is None else {"external": asdict(reading.external)}),
        **({} if reading.packet_streams is None else {"packet_streams": packet_streams_answer(reading.packet_streams)}),
        **health_answer(reading, now_ns),
    }
    return dict(in_json(answer))


def _platform(running: RunningRig) -> dict[str, Any]:
    """Newest pose of a platform that a controller or another simulator moves."""
    newest = newest_state(running.live_pose) if running.live_pose is not None else None
    if newest is None:
        return {}
    time_ns, state = newest
    return {"platform": {"rig_s": time_ns / 1e9, "position_m": state[:3], "orientation": state[6:10]}}


_EVERY_S = 1.0
_SUBSCRIPTION: dict[str, Callable[[Subscriber, Mapping[str, Any]], dict[str, Any]]] = {
    "subscribe": _subscribe,
    "unsubscribe": _unsubscribe,
    "packets": _packets,
}
_NAME_KEY = {"replay": "name of a replay; all of them where it is missing"}
REQUESTS: dict[str, Request] = {
    "help": Request(
        {}, {"protocol": "version of the requests", "requests": "description of each", "changes": "kinds of changes"}, "List the requests.", _help
    ),
    "change": Request(
        {"change": "an object with the keys of a [[change]] of a script; at_s may be missing: as soon as possible"},
        {"at_s": "rig time at which it began", "sensors": "rig time at which it began for each affected sensor"},
        "Change the rig at a rig time; the answer is sent when the change has begun.",
        _change,
    ),
    "script": Request(
        {},
        {"changes": "changes in the form of a script", "scripted": "places in that list of the changes that the rig's script made"},
        "List the changes made so far.",
        _script,
    ),
    "rig": Request(
        {},
        {
            "name": "name of the rig",
            "path": "absolute path of its file; its own paths are relative to the directory",
            "table": "contents of the file, with the settings that the command line changed",
            "changes": "changes made so far, in the form of a script",
            "flows": "addresses of each flow of which a client has got packets, by name",
            "epoch_ns": "CLOCK_MONOTONIC time of rig time 0",
            "utc_epoch_ns": "UTC of rig time 0",
        },
        "Describe the rig, so that another process of this host can build the same.",
        _rig,
    ),
    "state": Request(
        {},
        {"rig_s": "rig time now", "sensors": "by name", "objects": "names", "replays": "positions"},
        "Describe the running sensors, objects and replays.",
        _state,
    ),
    "health": Request(
        {}, {"healthy": "whether there is no fault", "faults": "all faults"}, "Describe faults and the last minute of counters.", _health
    ),
    "pause": Request(_NAME_KEY, {}, "Pause replays.", _pause),
    "resume": Request(_NAME_KEY, {}, "Continue paused replays.", _pause),
    "seek": Request({**_NAME_KEY, "position_s": "capture time"}, {}, "Continue replays at a capture time.", _seek),
    "subscribe": Request(
        {"every_s": f"time between two events, {EVENT_SHORTEST_S.bound:g} to {EVENT_LONGEST_S.bound:g} s; {_EVERY_S:g} where it is missing"},
        {},
        'Send {"event": "state", …}, with the keys of the answer to state, at an interval over this connection.',
        _not_subscribed,
    ),
    "unsubscribe": Request({}, {}, "Stop sending events over this connection.", _not_subscribed),
    "packets": Request(
        {},
        {
            "client": "number of the client in state",
            "format": "pcap",
            "epoch_ns": "CLOCK_MONOTONIC time of rig time 0",
            "utc_epoch_ns": "UTC of rig time 0",
        },
        "Carry every packet that is sent from now on, as a capture, over this connection, until it is closed; it takes no further request.",
        _no_packets,
    ),
}
"""All requests, by the value of ``do``."""
