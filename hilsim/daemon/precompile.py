"""Compile a rig's kernels in child processes, before the daemon loads them.

Compiling takes a minute of CPU time and hundreds of megabytes, and it cannot be interrupted. The daemon waits for the child processes, so that it answers
signals meanwhile, reports progress, and does not use that memory itself. One child does everything that the daemon will do before it opens a port
(``RunningRig.rehearse``); others compile parts at the same time, because Numba compiles one kernel at a time in a process, and kernels that another process
has put into the cache on disk are only loaded. Children end with their parent, however it ends.
"""

import asyncio
import hashlib
import os
import pickle
import subprocess
import sys
import threading
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
from numba.core import event

from hilsim.compilation.cache import is_writable, kernel_directories, module_directory, module_is_compiled
from hilsim.compilation.internals import unknown_internals
from hilsim.config.part_kind import parts_of
from hilsim.config.rig import Rig, takes_timed_changes
from hilsim.emulator.planning import build_lidar_plan, has_rare
from hilsim.emulator.setting import LidarSetting
from hilsim.processes import end_with_parent
from hilsim.protocols.ethernet import PAYLOAD_ONLY
from hilsim.registry import OWN

if TYPE_CHECKING:
    from hilsim.emulator.plan import LidarPlan
    from hilsim.emulator.workspace import Workspace
    from hilsim.world.platforms.platform import Platform
    from hilsim.world.scene.world import World

_CHILD = "import importlib, sys; importlib.import_module(sys.argv[1]).main(sys.argv[2], int(sys.argv[3]))"
"""Command of a child."""
_TOLD = b"."
"""Byte that a child writes for each compiled kernel."""
_MARKED, _MARK = "hilsim.daemon.running_rig", "features-"
_NOT_WITHOUT = frozenset({"background", "moved", "obstacles"})
"""Features that change the kernels of other features: a rig without one of them needs some that a rig with it does not."""
LIDAR_KERNELS = 340
"""Approximate number of kernels, only for the progress display."""


def kernel_needs(rig: Rig) -> tuple[str, ...]:
    """Features of a rig that decide which kernels it needs; rigs with equal features share kernels. Kernels take any number of rays."""
    spec = rig.spec
    needs = {lidar_kernels(lidar, is_rare=_has_rare(rig, number)) for number, lidar in enumerate(rig.lidars)}
    needs |= (
        {f"platform-{spec.platform.kind}", "disturbance" if spec.platform.disturbance else "steady"} if rig.lidars or spec.serial_devices else set()
    )
    needs |= {"background"} if spec.scene.background else set()
    needs |= {"moved"} if any(kind.moves for kind, _ in parts_of(spec)) else set()
    needs |= {"changes"} if rig.lidars and takes_timed_changes(rig) else set()
    needs |= {name for kind, _ in parts_of(spec) for name, _ in kind.kernels(rig)}
    needs |= {"record"} if spec.record.file or spec.sink else set()
    return tuple(sorted(needs))


def _has_rare(rig: Rig, number: int) -> bool:
    """Whether a sensor has, or may come to have, physics that most have none of (``emulator.plan.Rare``)."""
    others = (*rig.lidars[:number], *rig.lidars[number + 1 :])
    return takes_timed_changes(rig) or bool(rig.spec.scene.background) or has_rare(rig.lidars[number], others)


def lidar_kernels(lidar: LidarSetting, *, is_rare: bool) -> str:
    """Name of the kernels that a lidar needs: of the family that has them, which a plug-in's extends, with or without rare physics."""
    family = lidar.family
    return next((own for kind in type(family).__mro__ if (own := getattr(kind, "name", "")) in OWN), family.name) + ("-rare" if is_rare else "")


def about(rig: Rig) -> int:
    """Approximate number of kernels that a rig needs."""
    of_parts = {name: count for kind, _ in parts_of(rig.spec) for name, count in kind.kernels(rig)}
    return LIDAR_KERNELS * bool(rig.lidars) + sum(of_parts.values())


def is_compiled(rig: Rig) -> bool:
    """Whether the kernels for a rig's features have been compiled before, for this rig or one with more features; also True where they cannot be kept."""
    return not is_writable() or is_kept(rig)


def is_kept(rig: Rig) -> bool:
    """Whether the cache or the package has the kernels for a rig's features."""
    needs = frozenset(kernel_needs(rig))
    marks = (mark for place in kernel_directories(_MARKED) for mark in place.glob(f"{_MARK}*"))
    return any(_includes(frozenset(mark.read_text(encoding="utf-8").splitlines()), needs) for mark in marks)


def discard_damaged() -> int:
    """Remove damaged kernels from the cache, so that no rig's count as compiled; returns their number."""
    place = _marks()
    if place is None or unknown_internals():
        return 0
    from hilsim.compilation.function_cache import remove_damaged  # noqa: PLC0415 - imports names that an unknown Numba may lack

    damaged = remove_damaged()
    for mark in place.glob(f"{_MARK}*") if damaged else ():
        mark.unlink(missing_ok=True)
    return damaged


def _includes(compiled: frozenset[str], needs: frozenset[str]) -> bool:
    """Whether a rig with the features ``compiled`` has all kernels of one with the features ``needs``."""
    return needs <= compiled and not (compiled - needs) & _NOT_WITHOUT


def _marks() -> Path | None:
    """Directory with a file for each set of features whose kernels have been compiled; None without a cache."""
    return module_directory(_MARKED)


async def compile_kernels(rig: Rig, report: Callable[[int], None]) -> tuple[int, ...]:
    """Compile the kernels of a rig; cancelling ends the children.

    Args:
        rig: The rig.
        report: Callback for each new number of compiled kernels.

    Returns:
        Exit codes of the children that failed; the daemon then compiles missing kernels itself.
    """
    parts = _parts(rig)
    children: list[asyncio.subprocess.Process] = []
    compiled = 0

    async def listen(child: asyncio.subprocess.Process) -> None:
        nonlocal compiled
        while child.stdout is not None and (chunk := await child.stdout.read(4096)):
            compiled += chunk.count(_TOLD)
            report(compiled)

    async def run(tasks: Sequence[str]) -> None:
        begun = len(children)
        for task in tasks:
            # From the main thread: Linux ends a child with the thread that made it.
            child = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", _CHILD, __name__, task, str(os.getpid())), stdin=PIPE, stdout=PIPE, stderr=DEVNULL
            )
            children.append(child)
            if child.stdin is not None:
                child.stdin.write(pickle.dumps(rig))
                child.stdin.close()
        await asyncio.gather(*(listen(child) for child in children[begun:]))

    try:
        await run(parts)
        codes = [await child.wait() for child in children]
    except BaseException:
        for child in children:
            with suppress(ProcessLookupError):
                child.kill()
        for child in children:
            await child.wait()
        raise
    return tuple(code for code in codes if code)


def compile_beside(rig: Rig) -> None:
    """Let a child compile the stages of a lidar's packets, while this process, which renders without a daemon, compiles what calls them.

    Nothing waits for the child: a kernel that it compiles at that moment is loaded when it is there.
    """
    if unknown_internals() or not is_writable() or not rig.lidars or module_is_compiled("hilsim.emulator.fused"):
        return
    words = [sys.executable, "-c", _CHILD, __name__, "stages", str(os.getpid())]
    child = subprocess.Popen(words, stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL)  # noqa: S603 - this program
    threading.Thread(target=child.communicate, args=(pickle.dumps(rig),), name="compile-beside", daemon=True).start()


def _parts(rig: Rig) -> list[str]:
    """Tasks for the children, at most one for each core. Children skip or wait for kernels that another one compiles.

    With plain Numba one process compiles at a time, and no kernel is skipped.
    """
    parts = ["rig"]
    if unknown_internals():
        return parts
    if rig.lidars and not module_is_compiled("hilsim.streaming.render_loop"):
        parts.append("stages")
    for table, (module, _) in _compiled_ahead(rig):
        if not module_is_compiled(module) and (len(parts) == 1 or len(os.sched_getaffinity(0)) > len(parts)):
            parts.append(table)
    return parts


def _compile_rig(rig: Rig) -> None:
    """Do everything that the daemon does with kernels before it opens a port, and record that it was done."""
    from hilsim.daemon.running_rig import RunningRig  # noqa: PLC0415 - needed by the child only

    running = RunningRig(rig=rig)
    running.rehearse()
    place = _marks()
    if place is not None:
        place.mkdir(mode=0o700, exist_ok=True)
        text = "\n".join(kernel_needs(rig))
        (place / f"{_MARK}{hashlib.sha256(text.encode()).hexdigest()[:16]}").write_text(text, encoding="utf-8")


def _compiled_ahead(rig: Rig) -> Iterator[tuple[str, tuple[str, Callable[[], None]]]]:
    """Tables of the parts with kernels that take long to compile, and those kernels (``PartKind.compiled_ahead``)."""
    for kind, _ in parts_of(rig.spec):
        if (ahead := kind.compiled_ahead(rig)) is not None:
            yield kind.table, ahead


def _compile_stages(rig: Rig) -> None:
    """Compile the stages of a lidar's packets, the longest first, then what parts compile ahead, while the rig's own child compiles the callers of both."""
    from hilsim.compilation.jit import compile_for  # noqa: PLC0415 - only the child needs these
    from hilsim.emulator.fused import render_info_packet, trace  # noqa: PLC0415
    from hilsim.emulator.reception.detection import respond  # noqa: PLC0415

    some = _some_lidar(rig)
    compile_for(trace, some.plan, some.world, some.workspace)
    compile_for(respond, some.plan, some.workspace)
    compile_for(render_info_packet, some.plan, some.platform, PAYLOAD_ONLY, 0, 0, some.datagram)
    for _, (_, compile_part) in _compiled_ahead(rig):
        compile_part()


class _SomeLidar(NamedTuple):
    """Arguments for the kernels of a lidar."""

    plan: "LidarPlan"
    platform: "Platform"
    world: "World"
    workspace: "Workspace"
    datagram: npt.NDArray[np.uint8]


def _some_lidar(rig: Rig) -> _SomeLidar:
    """The rig's first lidar on a platform that stands still."""
    from hilsim.emulator.workspace import allocate_workspace  # noqa: PLC0415
    from hilsim.world.geometry.poses import Pose  # noqa: PLC0415
    from hilsim.world.geometry.tracks import fixed_track  # noqa: PLC0415
    from hilsim.world.platforms.platform import build_platform  # noqa: PLC0415
    from hilsim.world.scene.world import build_world  # noqa: PLC0415

    plan = build_lidar_plan(rig.lidars[0], seed=0, utc_epoch_ns=0, may_change=_has_rare(rig, 0))
    return _SomeLidar(
        plan=plan,
        platform=build_platform(fixed_track(Pose())),
        world=build_world([]),
        workspace=allocate_workspace(plan, plan.sequences_per_packet, is_opaque=True, keeps_hits=False),
        datagram=np.zeros(plan.data_size, np.uint8),
    )


_TASKS = {"rig": _compile_rig, "stages": _compile_stages}


class _Teller(event.Listener):  # type: ignore[misc]
    """Listener that writes to standard output when a kernel has been compiled."""

    def on_start(self, event: object) -> None:
        """Do nothing."""

    def on_end(self, event: object) -> None:  # noqa: ARG002 - Numba's signature
        """Report one more kernel."""
        with suppress(OSError):
            os.write(1, _TOLD)


def main(task: str, parent: int) -> None:
    """Main function of a child: end with the parent, read the rig, compile."""
    end_with_parent(parent)
    rig = pickle.loads(sys.stdin.buffer.read())  # noqa: S301 - from the parent process
    event.register("numba:compile", _Teller())
    if task in _TASKS:
        _TASKS[task](rig)
    else:
        dict(_compiled_ahead(rig))[task][1]()
