"""``hilsim record``: write a rig's packets to a capture file, offline."""

import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from hilsim.cli.rigs import RigArgument, UtcInstant, changes, changing, choosing, loaded
from hilsim.errors import DeviceError
from hilsim.offline.epoch import START_UTC, rig_utc_ns

if TYPE_CHECKING:
    from hilsim.config.part_kind import PartKind
    from hilsim.config.rig import Rig
    from hilsim.config.script import Script
    from hilsim.world.render.renderer import Renderer


@click.command()
@click.argument("rig", type=RigArgument())
@changing
@choosing
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    help="Capture to write (PCAP); for a Gazebo world, the folder of its messages.",
)
@click.option("--truth", type=click.Path(dir_okay=False, path_type=Path), help="Also write the ground truth of every return (.parquet).")
@click.option("--duration-s", type=click.FloatRange(0.001, 1e6), default=10.0, show_default=True, help="Length of rig time to record.")
@click.option("--start-utc", type=UtcInstant(), help=f"UTC of rig time 0. Default: the rig's transmit.epoch_utc, else {START_UTC}.")
@click.option(
    "--threads",
    type=click.IntRange(1, 256),
    default=os.cpu_count() or 1,
    show_default="all cores",
    help="Number of rendering threads; does not affect the bytes.",
)
@click.option(
    "--batch-ms", type=click.IntRange(1, 10_000), default=100, show_default=True, help="Length of one rendering step; does not affect the bytes."
)
@click.option(
    "--backend",
    type=click.Choice(["cpu", "cuda"]),
    default="cpu",
    show_default=True,
    help="Device that casts the rays: this machine's cores, or an NVIDIA GPU (the extra `cuda`; without --truth).",
)
@click.option(
    "--stamps",
    type=click.Choice(["ns", "us"]),
    help="Resolution of the capture's stamps. Default: the rig's [record]; else us if it has only Cepton-style sensors (their SDKs read us only), or ns.",
)
@click.option("--script", type=click.Path(dir_okay=False, exists=True, path_type=Path), help="Timed changes (.toml or .jsonl).")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def record(
    *,
    rig: Path,
    to: str,
    settings: tuple[str, ...],
    only: tuple[str, ...],
    output: Path,
    truth: Path | None,
    duration_s: float,
    start_utc: int | None,
    threads: int,
    batch_ms: int,
    backend: Literal["cpu", "cuda"],
    stamps: Literal["ns", "us"] | None,
    script: Path | None,
    as_json: bool,
) -> None:
    """Write what RIG would send to a capture, as fast as the machine renders and always with the same bytes.

    The capture gets its name when it is complete; an interrupted one stays in OUTPUT.part.
    """
    _check_truth(truth, output, backend)
    from hilsim.config.chosen import chosen  # noqa: PLC0415 - imports kernels
    from hilsim.config.script import load_script  # noqa: PLC0415 - imports kernels
    from hilsim.offline import record as recorder  # noqa: PLC0415 - compiles kernels

    renderer = _renderer(backend)

    if script is not None and renderer is not None:
        raise click.BadParameter("must be cpu with --script, got cuda", param_hint="--backend")
    timed = load_script(script) if script is not None else None
    checked = chosen(replace(loaded(rig, changes(settings, to)), script=timed), only)
    timed = checked.script
    duration_ns = round(duration_s * 1e9)
    started_s = time.monotonic()
    if not _records_packets(checked, output, duration_ns, timed, as_json=as_json):
        return
    with click.progressbar(length=duration_ns // 1_000_000, label="recording", file=sys.stderr) as bar:

        def progress(done_ns: int) -> None:
            bar.update(done_ns // 1_000_000 - bar.pos)

        try:
            result = recorder.record(
                checked,
                output,
                duration_ns=duration_ns,
                utc_epoch_ns=rig_utc_ns(checked) if start_utc is None else start_utc,
                batch_ms=batch_ms,
                threads=threads if renderer is None else 1,
                renderer=renderer,
                progress=progress,
                truth=truth,
                stamps=stamps,
                script=timed,
            )
        except KeyboardInterrupt:
            _say_broken_off(bar.pos / 1000, duration_s, [output, *([truth] if truth else [])])
            raise
    took_s = time.monotonic() - started_s
    if as_json:
        summary = {"file": str(output), "packets": result.packets, "bytes": result.bytes_, "duration_s": duration_s, "took_s": took_s}
        click.echo(json.dumps(summary | ({"truth": str(truth), "returns": result.returns} if truth else {})))
        return
    for note in result.notes:
        click.secho(f"note: {note}", fg="yellow", err=True)
    click.echo(
        f"{output}: {result.packets:,} packets, {result.bytes_:,} bytes, {duration_s:g} s in {took_s:.1f} s ({_speed(duration_s / took_s)} real time)"
    )
    if truth is not None:
        click.echo(f"{truth}: ground truth of {result.returns:,} returns")


def _check_truth(truth: Path | None, output: Path, backend: Literal["cpu", "cuda"]) -> None:
    """Refuse options that exclude ground truth."""
    if truth is None:
        return
    if truth.suffix != ".parquet":
        raise click.BadParameter(f"must end in .parquet, got {truth}", param_hint="--truth")
    if truth.resolve() == output.resolve():
        raise click.BadParameter(f"must be another file than the capture, got {truth} for both", param_hint="--truth")
    if backend != "cpu":
        raise click.BadParameter(f"must be cpu with --truth, got {backend}", param_hint="--backend")


def _records_packets(rig: "Rig", output: Path, duration_ns: int, script: "Script | None", *, as_json: bool) -> bool:
    """Whether the rig has packets to record; messages of its parts are recorded to a folder here."""
    from hilsim.config.part_kind import parts_of  # noqa: PLC0415 - slow, and not needed for completion

    kinds = [kind for kind, _ in parts_of(rig.spec)]
    sends = bool(rig.spec.sensor) or any(kind.destination for kind in kinds) or not any(kind.writes_messages for kind in kinds)
    if sends and output.is_dir():
        raise click.BadParameter(f"must be a file, got the folder {output}", param_hint="--output")
    for kind in (kind for kind in kinds if kind.writes_messages):
        _record_messages(kind, rig, output.with_suffix(".messages") if sends else output, duration_ns, script, as_json=as_json and not sends)
    return sends


def _record_messages(kind: "PartKind[Any]", rig: "Rig", folder: Path, duration_ns: int, script: "Script | None", *, as_json: bool) -> None:
    """Record messages of a part, one file for each topic."""
    started_s = time.monotonic()
    with click.progressbar(length=duration_ns // 1_000_000, label="recording messages", file=sys.stderr) as bar:
        topics = kind.write_messages(
            rig, folder, duration_ns=duration_ns, progress=lambda done_ns: bar.update(done_ns // 1_000_000 - bar.pos), script=script
        )
        bar.update(duration_ns // 1_000_000 - bar.pos)
    took_s = time.monotonic() - started_s
    if as_json:
        files = [{"file": str(topic.path), "topic": topic.topic, "messages": topic.messages} for topic in topics]
        click.echo(json.dumps({"files": files, "duration_s": duration_ns / 1e9, "took_s": took_s}))
        return
    for topic in topics:
        click.echo(f"{topic.path}: {topic.messages:,} messages of {topic.topic}")


def _renderer(backend: Literal["cpu", "cuda"]) -> "Renderer | None":
    """Renderer that casts the rays instead of the CPU kernels; None for these."""
    if backend == "cpu":
        return None
    from hilsim.world.render.cuda import CudaRenderer  # noqa: PLC0415 - imports CUDA

    try:
        return CudaRenderer()
    except DeviceError as error:
        raise click.BadParameter(str(error), param_hint="--backend") from error


def _speed(ratio: float) -> str:
    """Ratio to real time with at least two digits: ``0.0093x``, ``12.4x``."""
    return f"{ratio:.1f}x" if ratio >= 1.0 else f"{ratio:.2g}x"


def _say_broken_off(done_s: float, duration_s: float, files: list[Path]) -> None:
    """Report on stderr what remains of an interrupted recording."""
    from hilsim.offline.part_file import part_path  # noqa: PLC0415 - of a package that compiles kernels

    click.echo(err=True)  # ends the progress bar's line
    for path in files:
        part = part_path(path)
        kept = f"the written part is in {part}, and {path} is unchanged" if part != path else f"{path} is incomplete"
        text = (
            f"interrupted after {done_s:g} s of {duration_s:g} s: {kept}"
            if done_s > 0
            else f"interrupted before anything was recorded: {path} is unchanged"
        )
        click.secho(text, fg="yellow", err=True)
