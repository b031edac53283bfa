"""Data sets: many recordings of rigs, each with its labels, by several processes or a Dask cluster, with the same bytes whatever renders them."""

import fcntl
import itertools
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Literal

from hilsim.config.changes import Changes
from hilsim.config.places import rig_path
from hilsim.config.rig import load_rig
from hilsim.config.tables.classes import ClassSpec, class_rules
from hilsim.errors import ConfigError, HilsimError, require, within
from hilsim.processes import process_pool
from hilsim.read.background.pool import dask_client
from hilsim.show.outputs.events import completed
from hilsim.show.outputs.formats import SHAPES
from hilsim.show.outputs.making import make_output
from hilsim.show.outputs.sources import rig_events

_STARTS = 3
"""Times that processes are started anew when one of them was killed."""
_RETRIES = 3
_PART, _LOCK = ".part", "lock"


@dataclass(frozen=True, kw_only=True)
class VariantSpec:
    """One value of an axis.

    Attributes:
        name: Part of the recordings' names.
        set: Changes of the rig, ``KEY=VALUE`` as for ``--set``.
    """

    name: str
    set: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        plain = self.name.replace("-", "").replace("_", "").isalnum()
        require((plain, f'name must be letters, digits, "-" and "_", got "{self.name[:80]}"'))


@dataclass(frozen=True, kw_only=True)
class AxisSpec:
    """Something that varies: the weather, the sensor, the scene.

    Attributes:
        variant: Its values.
    """

    variant: tuple[VariantSpec, ...]

    def __post_init__(self) -> None:
        names = [variant.name for variant in self.variant]
        require(
            (bool(names), "variant must have at least one value"), (len(set(names)) == len(names), f"variants must have different names, got {names}")
        )


@dataclass(frozen=True, kw_only=True)
class DatasetSpec:
    """Recordings to render: each rig with each seed and each combination of the axes' values.

    Attributes:
        rig: Rigs: files relative to the specification, or names of shipped ones.
        seeds: Random seeds.
        duration_s: Length of each recording.
        format: Format of each recording, as for ``hilsim export``.
        axis: Axes.
        classes: Classes by label, as in a rig, whose own they replace label by label.
    """

    rig: tuple[str, ...]
    seeds: tuple[int, ...] = (1,)
    duration_s: float = 2.0
    format: Literal["pcd", "ply", "npz", "csv", "las", "laz", "mcap", "ros2", "kitti", "nuscenes"] = "kitti"
    axis: tuple[AxisSpec, ...] = field(default=())
    classes: dict[str, ClassSpec] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require(
            (bool(self.rig), "rig must name at least one rig"),
            (bool(self.seeds), "seeds must have at least one seed"),
            (len(set(self.seeds)) == len(self.seeds), "seeds must differ"),
            *within(self, duration_s=(0.01, 1_000_000)),
            *class_rules(self.classes),
        )


@dataclass(frozen=True, kw_only=True)
class Recording:
    """One recording of a data set.

    Attributes:
        name: Name of its file or folder, without a suffix.
        rig: Path of the rig.
        settings: Changes of the rig.
        duration_s: Length.
        format: Format.
        classes: Classes by label, which replace the rig's.
    """

    name: str
    rig: Path
    settings: tuple[str, ...]
    duration_s: float
    format: str
    classes: Mapping[str, ClassSpec] = field(default_factory=dict)

    def target(self, directory: Path) -> Path:
        """File or folder that it becomes."""
        return directory / (f"{self.name}.mcap" if self.format == "mcap" else self.name)


def recordings_of(spec: DatasetSpec, directory: Path) -> list[Recording]:
    """Recordings of a specification, in a fixed order.

    Args:
        spec: The specification.
        directory: Directory that its rigs are relative to.

    Raises:
        ConfigError: a rig does not exist, or two recordings would have one name.
    """
    found = []
    for rig, seed in itertools.product(spec.rig, spec.seeds):
        near = directory / rig
        path = near if near.is_file() else rig_path(rig)
        for variants in itertools.product(*(axis.variant for axis in spec.axis)):
            name = "-".join([path.stem, *(variant.name for variant in variants), f"seed{seed}"])
            settings = (f"seed={seed}", *(change for variant in variants for change in variant.set))
            found.append(
                Recording(name=name, rig=path.absolute(), settings=settings, duration_s=spec.duration_s, format=spec.format, classes=spec.classes)
            )
    names = [each.name for each in found]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ConfigError(
            f"recordings must have different names, got several of {', '.join(repeated[:10])}: give rigs and variants names that differ"
        )
    return found


def render(recording: Recording, directory: Path) -> str:
    """Render a recording into a directory, where it gets its name when it is complete; returns that name.

    While another process renders it, this one waits, and renders it only if the other one did not complete it.

    Raises:
        HilsimError: it cannot be rendered or written.
        OSError: it cannot be written.
    """
    target = recording.target(directory)
    with _reserved(target) as part:
        if not target.exists():
            rig = load_rig(recording.rig, Changes(settings=recording.settings))
            with_packets = recording.format in {"mcap", "ros2"}
            shapes = SHAPES["nuscenes"] if recording.format == "nuscenes" else "none"
            info, events = rig_events(rig, recording.duration_s, with_packets=with_packets, shapes=shapes, threads=1, classes=recording.classes)
            with completed(make_output(recording.format, part, info), part) as output:
                for event in events:
                    output.write(event)
            part.rename(target)
    return recording.name


@contextmanager
def _reserved(target: Path) -> Iterator[Path]:
    """Path at which this process alone writes what becomes ``target``, with nothing at it: in a folder with a lock, which is removed at the end."""
    folder = target.with_name(f".{target.name}{_PART}")
    lock = _lock_in(folder)
    try:
        for former in folder.iterdir():
            if former.is_dir():
                shutil.rmtree(former)
            elif former.name != _LOCK:
                former.unlink()
        yield folder / target.name
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        lock.close()


def _lock_in(folder: Path) -> IO[bytes]:
    """The locked file in a folder that is made; one that another process removes with its folder is not used."""
    while True:
        folder.mkdir(exist_ok=True)
        with suppress(FileNotFoundError):
            lock = (folder / _LOCK).open("wb")
            fcntl.flock(lock, fcntl.LOCK_EX)
            with suppress(FileNotFoundError):
                if (folder / _LOCK).stat().st_ino == os.fstat(lock.fileno()).st_ino:
                    return lock
            lock.close()


def render_all(recordings: Sequence[Recording], directory: Path, *, workers: int, cluster: str = "") -> Iterator[str]:
    """Render recordings, and yield the name of each as it is complete; those that are complete already are left out.

    Args:
        recordings: Recordings.
        directory: Directory of the data set.
        workers: Number of processes.
        cluster: Address of a Dask scheduler, whose workers see the directory and the rigs; empty: processes of this machine.

    Raises:
        ConfigError: there is no scheduler, or processes were killed again and again.
        HilsimError: a recording cannot be rendered.
    """
    waiting = [each for each in recordings if not each.target(directory).exists()]
    if not waiting:
        return
    if cluster:
        with dask_client(cluster, workers) as client:
            from distributed import as_completed as as_finished  # noqa: PLC0415 - an extra

            futures = [client.submit(render, each, directory.absolute(), key=f"hilsim-{each.name}", pure=False, retries=_RETRIES) for each in waiting]
            for future in as_finished(futures):
                yield future.result()
        return
    for _ in range(_STARTS):
        yield from _in_processes(waiting, directory, workers)
        waiting = [each for each in waiting if not each.target(directory).exists()]
        if not waiting:
            return
    raise ConfigError(
        f"{len(waiting)} recordings could not be rendered: their processes were killed {_STARTS} times (memory?), the first is {waiting[0].name}"
    )


def _in_processes(waiting: Sequence[Recording], directory: Path, workers: int) -> Iterator[str]:
    """Render in processes, until all are complete or one process is killed."""
    with process_pool(min(workers, len(waiting))) as pool:
        futures = [pool.submit(_rendered, each, directory.absolute()) for each in waiting]
        try:
            for future in as_completed(futures):
                found = future.result()
                if isinstance(found, HilsimError):
                    pool.shutdown(cancel_futures=True)
                    raise found
                yield found
        except BrokenProcessPool:
            return


def _rendered(recording: Recording, directory: Path) -> str | HilsimError:
    """``render`` with an error as a result, which another process can read."""
    try:
        return render(recording, directory)
    except HilsimError as error:
        return error
