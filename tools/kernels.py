"""Compiles kernels into a directory that a wheel takes along: ``python -m tools.kernels DIRECTORY`` (``make wheel``, ``Containerfile``).

Each level of processors (``hilsim.compilation.cache.LEVELS``) has a cache of its own, filled by ``hilsim warm`` and ``hilsim record``. Only machine code is taken from it: code of kernels that are parts of
others is needed for compiling alone, and is two thirds of a cache.
"""

import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import click

from hilsim.compilation.cache import levels_here
from hilsim.compilation.function_cache import checked
from hilsim.config.places import rig_path, shipped_names
from hilsim.config.rig import load_rig

LEVELS = ("x86-64-v4", "x86-64-v3")
_MACHINE_CODE = b"\x7fELF"


def compile_level(directory: Path, level: str, rigs: tuple[str, ...]) -> int:
    """Compile the kernels of rigs for a level of processors; returns the number of kernels in the directory of that name.

    Raises:
        subprocess.CalledProcessError: the compilation failed.
    """
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"NUMBA_CACHE_DIR": cache, "NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": ""}
        recorded = [["record", rig, "--duration-s", "0.5", "-o", f"{cache}/{rig}.pcap"] for rig in rigs if _can_be_recorded(rig)]
        for words in (["warm", *rigs], *recorded):
            subprocess.run([sys.executable, "-m", "hilsim", *words], env=environment, check=True)  # noqa: S603 - this program
        found = Path(cache) / "kernels"
        kernels = {entry for entry in found.rglob("*.nbc") if _is_machine_code(entry)}
        indices = {entry.with_suffix("").with_suffix(".nbi") for entry in kernels}
        for file in kernels | indices | {*found.rglob("features-*")}:
            place = directory / level / file.relative_to(found)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, place)
    return len(kernels)


def _can_be_recorded(rig: str) -> bool:
    """Whether ``hilsim record`` takes a rig: a vehicle's controller runs in real time."""
    return all(vehicle.controller.kind == "hold" for vehicle in load_rig(rig_path(rig)).spec.part("vehicle"))


def _is_machine_code(entry: Path) -> bool:
    """Whether an entry's library, which Numba puts first, consists of machine code (``hilsim.compilation.linking``)."""
    _, _, (code, _) = pickle.loads(checked(entry))[0]  # noqa: S301 - written a moment ago
    return bool(code.startswith(_MACHINE_CODE))


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--level", "levels", multiple=True, help=f"Level of processors; default: each of {', '.join(LEVELS)} that this processor has.")
@click.option("--rig", "rigs", multiple=True, help="Shipped rig; default: each.")
def main(directory: Path, levels: tuple[str, ...], rigs: tuple[str, ...]) -> None:
    """Compile the kernels of RIGs for LEVELs into DIRECTORY, which is emptied first."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    for level in levels or [each for each in LEVELS if each in levels_here()]:
        click.echo(f"{level}: {compile_level(directory, level, rigs or tuple(shipped_names('rigs')))} kernels")


if __name__ == "__main__":
    main()
