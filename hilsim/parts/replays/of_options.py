"""Rig that the options of ``hilsim replay`` describe, and the summary at its end."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hilsim.capture.pcap import CaptureFile
from hilsim.capture.sinks.pcap import RecordSpec
from hilsim.config.rig import ControlSpec, RigSpec
from hilsim.config.tables.metrics import MetricsServerSpec
from hilsim.errors import CaptureError, ConfigError
from hilsim.parts.replays.flows import FlowRule
from hilsim.parts.replays.part import Replays
from hilsim.parts.replays.specs import ReplaySpec
from hilsim.transmit.specs import TransmitSpec
from hilsim.transmit.statistics import Counter, quantile_ns

if TYPE_CHECKING:
    from hilsim.daemon.running_rig import RunningRig


def _check_captures(captures: tuple[Path, ...]) -> None:
    """Refuse arguments that are not files, at once. If there are any, the other files are opened too, to name every fault together.

    Raises:
        CaptureError: files are missing, directories or not captures; the message names each on its own line.
    """
    missing = [path for path in captures if path.is_dir() or not path.exists()]
    if missing:
        raise CaptureError("\n".join(filter(None, (_fault(path) for path in captures))))


def _fault(path: Path) -> str:
    if path.is_dir() or not path.exists():
        return f"{path}: must be a capture, got {'a directory' if path.is_dir() else 'no such file'}"
    try:
        next(iter(CaptureFile(path)), None)
    except CaptureError as error:
        return str(error)
    return ""


def rig_of_options(captures: tuple[Path, ...], options: dict[str, Any]) -> RigSpec:
    """Make the rig that the options describe.

    Raises:
        CaptureError: files are missing, directories or not captures; the message names each on its own line.
        ConfigError: the options are invalid.
    """
    _check_captures(captures)
    host, port = _to(options["to"])
    begin_s, end_s, duration_s = options["start_s"], options["end_s"], options["duration_s"]
    if end_s is not None and duration_s is not None:
        raise click.UsageError("give either --duration-s or --end-s")
    if end_s is not None and end_s <= begin_s:
        raise click.UsageError(f"--end-s must be after --start-s, got {end_s:g} and {begin_s:g}")
    offsets = options["offsets"] or (0.0,) * len(captures)
    if len(offsets) != len(captures):
        raise click.UsageError(f"--offset-s must be given once for each of the {len(captures)} captures, got {len(offsets)}")
    postpones = options["late_policy"] == "postpone"
    try:
        common = {
            "late_policy": "postpone" if postpones else "keep",
            "flow": tuple(_rule(text) for text in options["flows"]),
            "source": options["source"],
            "source_ports": options["source_ports"],
            "destination": host,
            "destination_port": port,
            "broadcast": options["broadcast"],
            "mode": "ethernet" if options["frames"] else "udp",
            "interface": options["interface"],
            "destination_mac": options["destination_mac"],
            "duration_s": duration_s if duration_s is not None else (end_s - begin_s if end_s is not None else 0.0),
        }
        common |= {
            key: options[key]
            for key in ("align", "pace", "rate_hz", "interval_scale", "start_s", "retime", "clock_offset_s", "loop", "loops", "loop_sensor")
        }
        replays = tuple(
            ReplaySpec(name=name, file=str(path.absolute()), offset_s=offset_s, **common)
            for name, path, offset_s in zip(_names(captures), captures, offsets, strict=True)
        )
        return RigSpec(
            name=f"replay of {captures[0].name}" + (f" and {len(captures) - 1} more" if len(captures) > 1 else ""),
            parts={"replay": replays},
            transmit=TransmitSpec(scheduling=options["scheduling"], late_policy="skip" if postpones else options["late_policy"]),
            metrics=_metrics(options["metrics"]),
            control=_control(options["control"]),
            record=RecordSpec(file=str(options["record"].absolute()) if options["record"] else ""),
        )
    except ValueError as error:
        raise ConfigError("\n".join(str(error).split("; "))) from error


def _to(text: str) -> tuple[str, int]:
    host, _, port = text.partition(":")
    if port and not port.isdigit():
        raise click.UsageError(f"--to must be HOST or HOST:PORT, got {text}")
    return host, int(port or 0)


def _control(address: str) -> ControlSpec:
    if address.startswith("udp:"):
        return ControlSpec(listen=address.removeprefix("udp:"))
    return ControlSpec(socket=str(Path(address).absolute()) if address else "")


def _metrics(text: str) -> MetricsServerSpec:
    if text == "none":
        return MetricsServerSpec(enabled=False)
    address, _, port = text.rpartition(":")
    if not port.isdigit():
        raise click.UsageError(f"--metrics must be ADDRESS:PORT, got {text}")
    return MetricsServerSpec(address=address or "127.0.0.1", port=int(port))


def _rule(text: str) -> FlowRule:
    match, _, send = text.partition("=")
    return FlowRule(match=match, send=send)


def _names(captures: tuple[Path, ...]) -> list[str]:
    """Make a name for each capture from its file's name, with a number if two are equal."""
    names: list[str] = []
    for path in captures:
        stem = path.name
        for suffix in (".gz", ".zst", ".pcapng", ".pcap", ".cap"):
            stem = stem.removesuffix(suffix)
        plain = "".join(character if character.isalnum() or character in "-_." else "-" for character in stem) or "capture"
        plain = plain if any(character.isalnum() for character in plain) else "capture"
        names.append(plain if plain not in names else f"{plain}-{len(names) + 1}")
    return names


def summarised(running: "RunningRig") -> dict[str, Any]:
    """Summary for JSON."""
    reading, transmitter = running.reading(), running.transmitter
    rows = {spec.name: row for row, spec in transmitter.flows.items()}
    flows = []
    for flow in reading.flows:
        row = rows[f"{flow.sensor}/{flow.flow}"]
        lateness = transmitter.statistics.lateness[row]
        flows.append(
            {
                "sensor": flow.sensor,
                "flow": flow.flow,
                "sent_packets": flow.sent_packets,
                "sent_bytes": flow.sent_bytes,
                "late_packets": flow.late_packets,
                "dropped_packets": flow.dropped_packets,
                "underrun_packets": flow.underrun_packets,
                "send_errors": dict(flow.send_errors),
                "lateness_p50_us": _us(quantile_ns(lateness, 0.5)),
                "lateness_p99_us": _us(quantile_ns(lateness, 0.99)),
                "lateness_max_us": _us(int(transmitter.statistics.counters[row, Counter.LATENESS_MAX_NS])),
            }
        )
    notes = running.played_notes
    replays = [
        {
            "replay": replay.replay,
            "position_s": replay.position_s,
            "passes": replay.passes + int(replay.has_ended),
            "played_packets": replay.played_packets,
            "underruns": replay.underruns,
            "late_packets": replay.late_packets,
            "has_ended": replay.has_ended,
            "postponed_s": replay.postponed_s,
            "notes": [note for name, note in notes if name == replay.replay],
        }
        for replay in reading.parts["replay"]
    ]
    return {
        "replays": replays,
        "flows": flows,
        "scheduling": dict(reading.scheduling),
        "faults": [fault.sentence for fault in running.part(Replays).faults(time.monotonic_ns())],
    }


def _us(duration_ns: int | None) -> float | None:
    return None if duration_ns is None else duration_ns / 1000
