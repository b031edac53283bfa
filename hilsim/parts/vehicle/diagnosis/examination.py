"""Examination of a flight controller at its port: findings for people, and all that was seen for ``--json``."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from hilsim.parts.vehicle.diagnosis.autopilot import diagnose
from hilsim.parts.vehicle.diagnosis.link import examine_link
from hilsim.parts.vehicle.diagnosis.probe_result import Link, ProbeResult
from hilsim.protocols.mavlink.message_names import message_name
from hilsim.telemetry.findings import Finding
from hilsim.transmit.links.line import SerialSpec


def examined(end: SerialSpec | str, *, is_uart: bool | None, seconds: float) -> tuple[tuple[Finding, ...], dict[str, Any]]:
    """Findings, and the same with what was received for JSON; arguments and errors as in ``examine_link``."""
    where, result = examine_link(end, is_uart=is_uart, seconds=seconds)
    findings = diagnose(where, result)
    return findings, _as_json(where, result, findings)


def _as_json(link: Link, result: ProbeResult, findings: Sequence[Finding]) -> dict[str, Any]:
    return {
        "link": dataclasses.asdict(link) | {"line": link.line.kind, "baud": link.line.baud},
        "can_begin": all(finding.verdict != "bad" for finding in findings),
        "findings": [dataclasses.asdict(finding) for finding in findings],
        "controller": dataclasses.asdict(result.beat) | {"is_armed": result.beat.is_armed, "has_hil": result.beat.has_hil} if result.beat else None,
        "parameters": dict(result.parameters),
        "streams": [
            {"name": message_name(each.id), "id": each.id, "rate_hz": round(result.rate_hz(each.id), 2), "bytes": each.bytes}
            for each in result.streams
        ],
        "streamed_bytes_per_s": round(result.streamed_bytes_per_s),
        "texts": [dataclasses.asdict(text) for text in result.texts],
        "estimator_flags": result.estimator_flags,
        "received_bytes": result.received_bytes,
        "skipped_bytes": result.skipped_bytes,
    }
