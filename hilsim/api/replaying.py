"""A capture to hardware: ``hilsim replay`` in a process of its own, whose clock neither Python's lock nor ours disturbs."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from hilsim.errors import CaptureError, HilsimError

_LEFT_OUT = 3  # exit code of a replay that was too late for some packets


@dataclass(frozen=True, kw_only=True)
class ReplayReport:
    """What a replay did.

    Attributes:
        sent_packets: Datagrams sent.
        sent_bytes: Of their payloads.
        late_packets: Sent more than the late limit after their times.
        dropped_packets: Not sent because they were too late.
        summary: All of what ``hilsim replay --json`` prints: lateness of each flow, passes of each capture.
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
    """Send what captures hold in real time, as the sensors did, with stamps that are now; returns when all is sent.

    This is ``hilsim replay``; its help explains each option.

    Args:
        captures: One capture or several, which then play on one clock.
        to: ``HOST`` or ``HOST:PORT``; ``"recorded"``: where they went.
        flows: Only flows that match one of these, each ``SOURCE>DESTINATION[=SEND]``; none: all.
        pace: Timed by the sensor's own stamps, by the capture's times, or at the model's constant rate.
        interval_scale: Stretches the time between packets; 0.5 is twice as fast.
        start_s: Where in the capture to begin.
        duration_s: How much of it; None: to its end.
        retime: Stamps, NMEA sentences and sequence numbers become now (``"utc"``), the time since the start (``"device"``), or stay (``"none"``).
        loop: How passes follow each other.
        loops: How many passes, where it loops.
        late_policy: What to do when this machine stands still.
        options: Further options of ``hilsim replay``, as on its command line.

    Raises:
        CaptureError: a capture is not there.
        HilsimError: the error that ``hilsim replay`` reports.
        ValueError: ``loops`` would not end.
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
    done = subprocess.run([*command, *options], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)  # noqa: S603 - ourselves
    if done.returncode not in {0, _LEFT_OUT}:
        raise HilsimError(_fault(done.stderr) or f"hilsim replay must end with 0, got {done.returncode}: {done.stderr[-2000:]}")
    return _report(json.loads(done.stdout.splitlines()[-1]))


def _fault(log: str) -> str:
    """The sentences for a person among the log's lines."""
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
