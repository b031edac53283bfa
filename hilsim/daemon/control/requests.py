"""Requests to a running daemon, in one table: the listeners, ``help``, the OpenAPI document and the reference read it.

A request names its action, and may have an ``id``, which its answer repeats::

    {"id": 1, "do": "change", "change": {"kind": "move", "name": "walker", "position_m": [4, 1, 0.9]}}
    {"id": 1, "ok": true, "at_s": 12.480512, "sensors": {"roof": 12.480512}}

The answer to a refused request has ``"ok": false`` and ``error``. A further request is a function and a row of ``REQUESTS``.
"""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from functools import partial
from inspect import isawaitable
from operator import methodcaller
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from hilsim.config.part_tables import part_kind
from hilsim.config.script import CHANGE_KINDS, change_table, fault_table, parse_change
from hilsim.daemon.control.grammar import LONGEST_POSITION_S, POSITION_RULE
from hilsim.daemon.running_rig import RunningRig
from hilsim.errors import ConfigError, HilsimError
from hilsim.limits import EVENT_LONGEST_S, EVENT_SHORTEST_S, Limit
from hilsim.registry import OWN_PARTS
from hilsim.telemetry.answers import health_answer, histogram_answer, in_json, packet_streams_answer
from hilsim.telemetry.metrics import LATENCY_BOUNDS_S, TIMING_BOUNDS_S
from hilsim.version import __version__
from hilsim.world.platforms.live import newest_state

if TYPE_CHECKING:
    from hilsim.telemetry.readings import Reading

PROTOCOL = 1
"""Version of the requests and answers; a change that older clients can read keeps it."""


NO_PACKETS = "packets must be asked for over the control socket, or as the WebSocket /v1/packets"


class Connection(Protocol):
    """Connection that can receive more than an answer."""

    def subscribe(self, every_s: float) -> None:
        """Start sending the state at an interval."""

    def unsubscribe(self) -> None:
        """Stop sending events."""

    def follow_packets(self) -> dict[str, Any]:
        """Make the connection carry sent packets after the answer; returns the keys of the answer.

        Raises:
            ConfigError: the connection cannot carry them.
        """


class Key(NamedTuple):
    """A key of a request.

    Attributes:
        type: JSON type: ``number``, ``string`` or ``object``.
        rule: Rule in messages.
        text: Description.
        default: Value of a missing key; None: it must be given.
        limits: Bounds of a number; one without a subject is a part of the rule.
    """

    type: str
    rule: str
    text: str
    default: Any = None
    limits: tuple[Limit[float], ...] = ()

    def checked(self, name: str, value: Any) -> Any:
        """Return a value.

        Raises:
            ConfigError: it breaks the rule.
        """
        is_of_type = isinstance(value, _TYPES[self.type]) and not isinstance(value, bool)
        if not is_of_type or not all(limit.holds(value) for limit in self.limits if not limit.subject):
            raise ConfigError(f"{self.rule}, got {json.dumps(value)[:60]}")
        for limit in self.limits:
            limit.enforce(value, name, ConfigError)
        return value

    @property
    def schema(self) -> dict[str, Any]:
        """JSON schema."""
        bounds = {"minimum" if limit.is_lower else "maximum": limit.bound for limit in self.limits}
        return {"type": self.type, **bounds, **({} if self.default is None else {"default": self.default}), "description": self.text}


_TYPES: Mapping[str, type | tuple[type, ...]] = {"number": (int, float), "string": str, "object": dict}


class Request(NamedTuple):
    """A kind of request.

    Attributes:
        text: Description.
        run: Function of the running rig and the keys, which executes the request; returns the keys of the answer, None for none, or a coroutine of them.
        keys: Keys beside ``do`` and ``id``.
        answer: Keys of the answer beside ``ok`` and ``id``, with a description of each.
        in_thread: Whether the function takes long enough to be run in a thread.
        elsewhere: Refusal to a connection that receives a single answer; if there is one, ``run`` takes the connection in place of the rig.
    """

    text: str
    run: Callable[..., Any]
    keys: Mapping[str, Key] = {}
    answer: Mapping[str, str] = {}
    in_thread: bool = False
    elsewhere: str = ""


async def answer(running: RunningRig, request: Mapping[str, Any], connection: Connection | None = None) -> dict[str, Any]:
    """Execute a request; returns its answer.

    Args:
        running: Running rig.
        request: Request.
        connection: Connection of the request; None if it receives a single answer.
    """
    try:
        kind, run = _prepared(running, request, connection)
        result = await asyncio.to_thread(run) if kind.in_thread else run()
        result = await result if isawaitable(result) else result
    except HilsimError as error:
        return _answer(request, refusal(str(error)))
    return _answer(request, {"ok": True, **(result or {})})


def answer_at_once(running: RunningRig, request: Mapping[str, Any]) -> dict[str, Any]:
    """Execute one of ``grammar.COMMANDS`` without a pause; returns its answer.

    Raises:
        ConfigError: the request is refused.
    """
    return _answer(request, {"ok": True, **(_prepared(running, request, None)[1]() or {})})


def refusal(error: str) -> dict[str, Any]:
    """Make the answer to a refused request."""
    return {"ok": False, "error": error}


def _answer(request: Mapping[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    return found if request.get("id") is None else {"id": request["id"], **found}


def _prepared(running: RunningRig, request: Mapping[str, Any], connection: Connection | None) -> tuple[Request, Callable[[], Any]]:
    """Find the kind of a request, and the function that executes it.

    Raises:
        ConfigError: the request is unknown, a key breaks its rule, or the connection cannot receive what it asks for.
    """
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
    if kind.elsewhere and connection is None:
        raise ConfigError(kind.elsewhere)
    keys = {key: rule.checked(key, request.get(key, rule.default)) for key, rule in kind.keys.items()}
    return kind, partial(kind.run, connection if kind.elsewhere else running, **keys)


# -- functions of the table ------------------------------------------------------------------------------------------------------------------


def _help(_running: RunningRig) -> dict[str, Any]:
    requests = {
        name: {"text": kind.text, "keys": {key: rule.text for key, rule in kind.keys.items()}, "answer": dict(kind.answer)}
        for name, kind in REQUESTS.items()
    }
    return {"protocol": PROTOCOL, "hilsim": __version__, "requests": requests, "changes": [kind.kind for kind in CHANGE_KINDS]}


async def _change(running: RunningRig, change: Mapping[str, Any]) -> dict[str, Any]:
    made = await running.changes.make(parse_change(change))
    return {"at_s": made.at_ns / 1e9, "sensors": {name: begun_ns / 1e9 for name, begun_ns in made.begun_ns.items()}}


def _script(running: RunningRig) -> dict[str, Any]:
    made = tuple(running.changer.made)
    return {"changes": [change_table(each.change) for each in made], "scripted": [number for number, each in enumerate(made) if each.is_scripted]}


def _faults(running: RunningRig) -> dict[str, Any]:
    rig_ns = time.monotonic_ns() - running.clock.epoch_ns
    return {"faults": [{"name": each.label, **fault_table(each), "acts": each.begin_ns <= rig_ns} for each in running.injected(rig_ns)]}


def _rig(running: RunningRig) -> dict[str, Any]:
    return {
        "name": running.rig.name,
        "path": str(running.rig.path.absolute()),
        "table": running.rig.table,
        "changes": [change_table(made.change) for made in running.changer.made],
        "epoch_ns": running.clock.epoch_ns,
        "utc_epoch_ns": running.clock.utc_epoch_ns,
        "flows": {} if running.live_packets is None else {name: key._asdict() for name, key in running.live_packets.addresses.items()},
    }


def _status(running: RunningRig) -> dict[str, Any]:
    return {"replays": _parts(running.reading())["replays"]}


def _health(running: RunningRig) -> dict[str, Any]:
    now_ns = time.monotonic_ns()
    return {**health_answer(running.reading(), now_ns), **running.health.report(now_ns)}


def _pause(running: RunningRig, replay: str, *, paused: bool) -> None:
    for played in running.played(replay).values():
        played.pause(paused=paused)


def _seek(running: RunningRig, position_s: float, replay: str) -> None:
    for played in running.played(replay).values():
        played.seek(float(position_s))


def state_answer(running: RunningRig) -> dict[str, Any]:
    """State of the sensors, objects and parts, for JSON."""
    reading: Reading = running.reading()
    now_ns = time.monotonic_ns()
    flows: dict[str, dict[str, Any]] = {}
    for flow in reading.flows:
        flows.setdefault(flow.sensor, {})[flow.flow] = {
            "sent_packets": flow.sent_packets,
            "late_packets": flow.late_packets,
            "dropped_packets": flow.dropped_packets,
            "silenced_packets": flow.silenced_packets,
            "network_faults": dict(flow.network_faults),
            "lateness_max_s": flow.lateness_max_s,
            "lateness": histogram_answer(flow.lateness, TIMING_BOUNDS_S),
            "pose_to_wire": histogram_answer(flow.pose_to_wire, LATENCY_BOUNDS_S),
        }
    answer = {
        "rig": running.rig.name,
        "rig_s": (now_ns - running.clock.epoch_ns) / 1e9,
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
        "objects": running.changer.object_names(),
        "injected": _faults(running)["faults"],
        **_parts(reading),
        **_platform(running),
        **({} if reading.packet_streams is None else {"packet_streams": packet_streams_answer(reading.packet_streams)}),
        **health_answer(reading, now_ns),
    }
    return dict(in_json(answer))


def _parts(reading: "Reading") -> dict[str, Any]:
    """Entries of parts."""
    own = {key: value for part in OWN_PARTS.values() for key, value in part.state.items()}
    return own | {key: value for table, found in reading.parts.items() for key, value in part_kind(table).answer(found).items()}


def _platform(running: RunningRig) -> dict[str, Any]:
    """Newest pose of a platform that a controller or a part moves."""
    newest = newest_state(running.live_pose) if running.live_pose is not None else None
    if newest is None:
        return {}
    time_ns, state = newest
    return {"platform": {"rig_s": time_ns / 1e9, "position_m": state[:3], "orientation": state[6:10]}}


# -- the table -------------------------------------------------------------------------------------------------------------------------------

_EPOCHS = {"epoch_ns": "CLOCK_MONOTONIC time of rig time 0", "utc_epoch_ns": "UTC of rig time 0"}
_REPLAY = Key("string", "replay must be a name", "name of a replay; all of them where it is missing", "")
_POSITION = Key(
    "number",
    f"position_s: {POSITION_RULE}",
    "capture time in seconds, 0 to 1e8",
    limits=(Limit(subject="", bound=0.0, is_lower=True), Limit(subject="", bound=LONGEST_POSITION_S)),
)
_EVERY = Key(
    "number",
    "every_s must be a number",
    f"time between two events, {EVENT_SHORTEST_S.bound:g} to {EVENT_LONGEST_S.bound:g} s; 1 where it is missing",
    1.0,
    (EVENT_SHORTEST_S, EVENT_LONGEST_S),
)
_CHANGE = Key(
    "object",
    "change must be an object with a kind",
    "an object with the keys of a [[change]] of a script; at_s may be missing: as soon as possible",
)
_SINGLE = "{} must come over a WebSocket (/v1/stream) or the control socket, which can receive events"

REQUESTS: dict[str, Request] = {
    "help": Request(
        "List the requests.",
        _help,
        answer={
            "protocol": "version of the requests",
            "hilsim": "version of hilsim",
            "requests": "description of each",
            "changes": "kinds of changes",
        },
    ),
    "change": Request(
        "Change the rig at a rig time; the answer is sent when the change has begun.",
        _change,
        {"change": _CHANGE},
        {"at_s": "rig time at which it began", "sensors": "rig time at which it began for each affected sensor"},
    ),
    "script": Request(
        "List the changes made so far.",
        _script,
        answer={
            "changes": "changes in the form of a script",
            "scripted": "places in that list of the changes that the rig's script made",
        },
    ),
    "faults": Request(
        "List the faults on command that act or will; the changes fault and clear add and end some.",
        _faults,
        answer={"faults": "each with its keys, and whether it acts now"},
    ),
    "rig": Request(
        "Describe the rig, so that another process of this host can build the same.",
        _rig,
        answer={
            "name": "name of the rig",
            "path": "absolute path of its file; its own paths are relative to the directory",
            "table": "contents of the file, with the settings that the command line changed",
            "changes": "changes made so far, in the form of a script",
            "flows": "addresses of each flow of which a client has got packets, by name",
            **_EPOCHS,
        },
    ),
    "state": Request(
        "Describe the running sensors, objects and replays.",
        state_answer,
        answer={"rig_s": "rig time now", "sensors": "by name", "objects": "names", "replays": "positions", "injected": "faults on command"},
        in_thread=True,
    ),
    "status": Request("Describe the replays.", _status, answer={"replays": "position and state of each"}),
    "health": Request(
        "Describe faults and the last minute of counters.",
        _health,
        answer={"healthy": "whether there is no fault", "faults": "all faults"},
        in_thread=True,
    ),
    "pause": Request("Pause replays at once; a change of kind replay does it at a rig time.", partial(_pause, paused=True), {"replay": _REPLAY}),
    "resume": Request("Continue paused replays at once.", partial(_pause, paused=False), {"replay": _REPLAY}),
    "seek": Request(
        "Continue replays at a capture time, at once.",
        _seek,
        {"position_s": _POSITION, "replay": _REPLAY},
    ),
    "subscribe": Request(
        'Send {"event": "state", …}, with the keys of the answer to state, at an interval over this connection.',
        lambda connection, every_s: connection.subscribe(float(every_s)),
        {"every_s": _EVERY},
        elsewhere=_SINGLE.format("subscribe"),
    ),
    "unsubscribe": Request("Stop sending events over this connection.", methodcaller("unsubscribe"), elsewhere=_SINGLE.format("unsubscribe")),
    "packets": Request(
        "Carry every packet that is sent from now on, as a capture, over this connection, until it is closed; it takes no further request.",
        methodcaller("follow_packets"),
        answer={"client": "number of the client in state", "format": "pcap", **_EPOCHS},
        elsewhere=NO_PACKETS,
    ),
}
"""All requests, by the value of ``do``."""
