"""``hilsim warm``: compile kernels before the first start."""

import asyncio
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hilsim.cli.rigs import RigArgument, loaded
from hilsim.errors import CommandFaultError, ConfigError

if TYPE_CHECKING:
    from hilsim.config.rig import Rig


@click.command()
@click.argument("rigs", metavar="RIG...", nargs=-1, required=True, type=RigArgument())
def warm(rigs: tuple[Path, ...]) -> None:
    """Compile the kernels that each RIG needs into the cache, so that its first start takes seconds: for images, services and tests."""
    from hilsim.compilation.cache import cache_directory, is_writable, refusals  # noqa: PLC0415 - imports Numba
    from hilsim.daemon.precompile import discard_damaged, is_kept  # noqa: PLC0415 - likewise

    if cache_directory() is None:
        raise ConfigError("\n".join(("kernels must have a cache directory to be compiled ahead, got none", *refusals)))
    if not is_writable() and not all(is_kept(loaded(path)) for path in rigs):
        raise ConfigError(f"{cache_directory()} must be writable for kernels to be compiled ahead")
    if damaged := discard_damaged():
        click.echo(f"{cache_directory()}: {damaged} damaged kernels removed")
    failed = False
    for path in rigs:
        failed |= not asyncio.run(_warm(path))
    if failed:
        raise CommandFaultError


async def _warm(path: Path) -> bool:
    """Compile the kernels of one rig and report the result; returns whether it succeeded."""
    began_s = time.monotonic()
    failed = await warmed(loaded(path))
    if failed is None:
        click.echo(f"{path}: its kernels are already compiled")
    elif failed:
        click.echo(f"{path}: a compiling process ended with exit code {failed[0]}; `hilsim check {path}` may show why", err=True)
    else:
        click.echo(f"{path}: kernels compiled in {time.monotonic() - began_s:.0f} s")
    return not failed


async def warmed(rig: "Rig") -> tuple[int, ...] | None:
    """Compile the kernels of a rig with a progress bar; returns exit codes of children that failed, None if all were compiled before."""
    from hilsim.daemon.precompile import about, compile_kernels, is_compiled  # noqa: PLC0415 - imports Numba

    if is_compiled(rig):
        return None
    with click.progressbar(length=about(rig), label=f"compiling kernels for {rig.path.name}", file=sys.stderr) as bar:
        return await compile_kernels(rig, lambda count: bar.update(count - bar.pos))
