"""Replay captures to hardware: ``hilsim replay`` in a child process, so that the caller's GIL does not disturb its clock."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from hilsim.errors import CaptureError, HilsimError

_LEFT_OUT = 3  # exit code of a replay that skipped late packets


@dataclass(frozen=True, kw_only=True)
class ReplayReport:
    """Result of a replay.

    Attributes:
        sent_packets: Number of datagrams sent.
        sent_bytes: Bytes of their payloads.
        late_packets: Number of datagrams sent more than the late limit after their deadlines.
        dropped_packets: Number of datagrams not sent because they were too late.
        summary: Output of ``hilsim replay --json``: lateness of each flow, passes of each capture.
    """

    sent_packets: int
    sent_bytes: int
    late_packets: int
    dropped_packets: int
    summary: dict[str, Any] = field(repr=False)


def replay_capture(
    captures: str | Path | Sequence[str | Path],
    *,
    to: str = "127.0.0.1",
    flows: Sequence[str] = (),
    pace: Literal["device", "capture", "nominal"] = "device",
    interval_scale: float = 1.0,
    start_s: float = 0.0,
    duration_s: float | None = None,
    retime: Literal["utc", "device", "none"] = "utc",
    loop: Literal["none", "plain", "seamless"] = "none",
    loops: int = 1,
    late_policy: Literal["postpone", "skip", "send", "stop"] = "postpone",
    options: Sequence[str] = (),
) -> ReplayReport:
    """Send the packets of captures in real time, as the sensors did, with new stamps; returns when all are sent.

    This is ``hilsim replay``; its help explains each option.

    Args:
        captures: One capture or several, which are then replayed on one clock.
        to: Destination ``HOST`` or ``HOST:PORT``; ``"recorded"``: the recorded destinations.
        flows: Patterns of flows to replay, each ``SOURCE>DESTINATION[=SEND]``; none: all flows.
        pace: Source of the send times: the sensor's own stamps, the capture's times, or the model's constant rate.
        interval_scale: Factor on the time between packets; 0.5 is twice as fast.
        start_s: Capture time at which the replay begins.
        duration_s: Length of capture time to replay; None: to the capture's end.
        retime: New time of stamps, NMEA sentences and sequence numbers: the present UTC (``"utc"``), the time since the start
            (``"device"``), or the recorded time (``"none"``).
        loop: Repetition of the capture.
        loops: Number of passes of a loop.
        late_policy: Reaction to a stall of this machine.
        options: Further options of ``hilsim replay``, as on its command line.

    Raises:
        CaptureError: a capture does not exist.
        HilsimError: ``hilsim replay`` failed; the message is its error.
        ValueError: ``loops`` is below 1, so the replay would not end.
    """
    paths = [Path(captures)] if isinstance(captures, str | Path) else [Path(path) for path in captures]
    missing = [f"{path}: must be a capture, got no such file" for path in paths if not path.exists()]
    if missing:
        raise CaptureError("\n".join(missing))
    if loop != "none" and loops < 1:
        raise ValueError(f"loops must be 1 or more for a replay that returns, got {loops}")
    command = [sys.executable, "-m", "hilsim", "replay", *map(str, paths), "--to", to, "--pace", pace, "--retime", retime, "--loop", loop]
    command += ["--interval-scale", str(interval_scale), "--start-s", str(start_s), "--late-policy", late_policy, "--json"]
    command += [] if duration_s is None else ["--duration-s", str(duration_s)]
    command += [] if loop == "none" else ["--loops", str(loops)]
    command += [part for flow in flows for part in ("--flow", flow)]
    done = subprocess.run([*command, *options], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)  # noqa: S603 - hilsim itself
    if done.returncode not in {0, _LEFT_OUT}:
        raise HilsimError(_fault(done.stderr) or f"hilsim replay must end with 0, got {done.returncode}: {done.stderr[-2000:]}")
    return _report(json.loads(done.stdout.splitlines()[-1]))


def _fault(log: str) -> str:
    """Messages for the operator in a log."""
    return "\n".join(line.partition(": ")[2] for line in log.splitlines() if line.lower().startswith("error: "))


def _report(summary: dict[str, Any]) -> ReplayReport:
    def total(name: str) -> int:
        return sum(flow[name] for flow in summary.get("flows", []))

    return ReplayReport(
        sent_packets=total("sent_packets"),
        sent_bytes=total("sent_bytes"),
        late_packets=total("late_packets"),
        dropped_packets=total("dropped_packets"),
        summary=summary,
    )
