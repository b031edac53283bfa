"""Traffic on the link, and whether there is room for hardware in the loop."""

from collections.abc import Mapping
from dataclasses import dataclass

from hilsim.errors import LinkError
from hilsim.parts.vehicle.diagnosis.probe_result import Link, ProbeResult
from hilsim.protocols.mavlink.message_names import message_name
from hilsim.protocols.mavlink.messages import HIL_ACTUATOR_CONTROLS
from hilsim.telemetry.findings import Finding, bad, fair, good
from hilsim.transmit.links.addresses import RATES_HZ
from hilsim.transmit.links.budget import LinkRates, plan_link
from hilsim.transmit.links.line import BITS_PER_BYTE, LineKind

_TELEMETRY = {101: "TEL1", 102: "TEL2", 103: "TEL3", 104: "TEL4"}
"""Port name in SER_…_BAUD by the value of MAV_n_CONFIG (PX4: Tools/serial/generate_config.py)."""
_HIL_NEEDS_BYTES_PER_S = 5000
_WHOLE_BYTES_PER_S = 20_000
_MAX_STREAMS = 8
_FULL = 0.9


@dataclass(frozen=True, kw_only=True)
class Instance:
    """A MAVLink instance of PX4 at a telemetry port.

    Attributes:
        number: n of MAV_n_CONFIG.
        port: Name of its port, such as ``TEL2``.
        baud: Baud rate of the port; None if not answered.
        bytes_per_s: Value of MAV_n_RATE; 0: half of the port's capacity.
    """

    number: int
    port: str
    baud: int | None
    bytes_per_s: int


def instances(values: Mapping[str, float]) -> tuple[Instance, ...]:
    """MAVLink instances on telemetry ports, from PX4's parameters."""
    found = []
    for number in range(3):
        port = _TELEMETRY.get(int(values.get(f"MAV_{number}_CONFIG", 0)))
        if port is not None:
            baud = values.get(f"SER_{port}_BAUD")
            rate = int(values.get(f"MAV_{number}_RATE", 0))
            found.append(Instance(number=number, port=port, baud=None if baud is None else int(baud), bytes_per_s=rate))
    return tuple(found)


def traffic_findings(link: Link, result: ProbeResult) -> tuple[Finding, ...]:
    """Findings on the budget, motors and streams."""
    matching = tuple(each for each in instances(result.parameters) if each.baud == link.line.baud) if link.line.kind is LineKind.UART else ()
    return (*_ports(link, matching), *_budget(link, matching), *_motors(link, result), *_streams(link, result))


def _ports(link: Link, matching: tuple[Instance, ...]) -> tuple[Finding, ...]:
    """Findings on a UART: instances that may be at its other end."""
    findings = []
    for each in matching:
        has_room = each.bytes_per_s == 0 or each.bytes_per_s > _HIL_NEEDS_BYTES_PER_S
        share = "half of the line" if each.bytes_per_s == 0 else f"at most {each.bytes_per_s} bytes/s"
        fact = f"MAV_{each.number} is at {each.port} with {each.baud} baud and sends {share}"
        advice = "" if has_room else f"if this is the port: set MAV_{each.number}_RATE = {_rate_for(link.line.baud)}; restart the controller"
        findings.append(Finding(subject="PX4's port", verdict="good" if has_room else "fair", fact=fact, advice=advice))
    return tuple(findings)


def _rate_for(baud: int) -> int:
    """MAV_n_RATE for all streams: PX4's default, half of the line, if that is enough, else all of it."""
    return 0 if baud / (2 * BITS_PER_BYTE) >= _WHOLE_BYTES_PER_S else baud // BITS_PER_BYTE


def _budget(link: Link, matching: tuple[Instance, ...]) -> tuple[Finding, ...]:
    """Finding on the sensor rate that the link supports, computed as when hilsim opens it."""
    limit = matching[0].bytes_per_s if len(matching) == 1 and matching[0].bytes_per_s else None
    rates = LinkRates()
    try:
        budget = plan_link(rates, line=link.line, controller_bytes_per_s=limit)
    except LinkError as error:
        advice = f"set MAV_{matching[0].number}_RATE = {_rate_for(link.line.baud)}; restart the controller" if limit else ""
        return (bad("budget", str(error), advice),)
    needs = f"{rates.sensor_hz:g} Hz of sensors with all else take {budget.uplink_bytes_per_s:.0f} bytes/s up"
    if link.line.kind is not LineKind.UART:
        return (good("budget", f"{needs}: there is room"),)
    down = f"down come about {budget.downlink_bytes_per_s:.0f} bytes/s with {budget.actuator_hz:.0f} Hz of motor commands"
    if not budget.is_lowered:
        return (good("budget", f"{needs} of {budget.line_bytes_per_s:.0f}; {down}"),)
    rate_hz = max(rate for rate in RATES_HZ if rate <= budget.sensor_hz)
    try:
        plan_link(rates, line=link.line, controller_bytes_per_s=limit, may_lower=False)
        refusal = ""
    except LinkError as error:
        refusal = f" ({error})"
    fact = f"at most {budget.sensor_hz:g} Hz of sensors fit into {link.line.baud} baud{refusal}; {down}"
    advice = f"rate_hz = {rate_hz} in [vehicle.controller], to which hilsim lowers it by itself, or a higher baud rate at both ends"
    return (fair("budget", fact, advice),)


def _motors(link: Link, result: ProbeResult) -> tuple[Finding, ...]:
    if result.beat is None or not (result.beat.has_hil or link.line.kind is LineKind.NETWORK):
        return ()
    rate_hz = result.rate_hz(HIL_ACTUATOR_CONTROLS.id)
    if rate_hz > 0.0:
        return (good("motors", f"HIL_ACTUATOR_CONTROLS {rate_hz:.1f} Hz; more with sensor frames"),)
    if link.line.kind is LineKind.NETWORK:
        return (good("motors", "no HIL_ACTUATOR_CONTROLS yet: they answer sensors"),)
    fact = "no HIL_ACTUATOR_CONTROLS without sensor frames; if none arrives under hilsim run either, this firmware lacks pwm_out_sim"
    if link.line.kind is LineKind.UART:
        fact += (
            f", or the port sends too little for them (MAV_n_RATE = {_rate_for(link.line.baud)} of its instance; PX4 wants more than 5000 bytes/s)"
        )
    return (good("motors", fact),)


def _streams(link: Link, result: ProbeResult) -> tuple[Finding, ...]:
    if not result.streams or not result.listened_s:
        return ()
    most = sorted(result.streams, key=lambda stream: -stream.bytes)
    shown = ", ".join(f"{message_name(stream.id)} {stream.frames / result.listened_s:.1f} Hz" for stream in most[:_MAX_STREAMS])
    rest = f" and {len(most) - _MAX_STREAMS} more" if len(most) > _MAX_STREAMS else ""
    took = result.streamed_bytes_per_s
    fact = f"{took:.0f} bytes/s: {shown}{rest}"
    if link.line.kind is not LineKind.UART:
        return (good("streams", fact),)
    carries = link.line.baud / BITS_PER_BYTE
    share = f"{took / carries:.0%} of the line; {fact}"
    if took <= _FULL * carries:
        return (good("streams", share),)
    return (fair("streams", share, "the line is full: a higher baud rate at both ends, or a lower MAV_n_RATE"),)
