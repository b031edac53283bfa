"""What a rig's ``[external]`` is for the rest of hilsim; a rig without it imports nothing of this folder."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from hilsim.config.part_kind import PartKind
from hilsim.config.rig import Rig, RigSpec
from hilsim.errors import ConfigError
from hilsim.parts.external.reading import ExternalReading
from hilsim.parts.external.specs import ExternalSpec

if TYPE_CHECKING:
    from hilsim.assembly.moved import MovedScene
    from hilsim.daemon.parts import RigContext
    from hilsim.offline.pose_keys import Record
    from hilsim.parts.external.part import ExternalPoses
    from hilsim.world.scene.world import SceneObject


class ExternalKind(PartKind[ExternalSpec]):
    """Another simulator that moves the platform and objects."""

    table: ClassVar[str] = "external"
    spec: ClassVar[type[ExternalSpec]] = ExternalSpec
    is_list: ClassVar[bool] = False
    moves: ClassVar[bool] = True
    faults: ClassVar[Mapping[str, str]] = {
        "poses_ended": "The thread that receives poses from another simulator has ended",
        "poses_silent": "Another simulator that moves the platform or objects is silent",
        "poses_unusable": "Poses of another simulator come too late or too early to be followed",
        "poses_unrecorded": "Poses of another simulator are missing from their recording",
    }
    reading: ClassVar[type[ExternalReading]] = ExternalReading

    def part(self, context: "RigContext") -> "ExternalPoses":
        """The receiver of poses of a running rig."""
        from hilsim.parts.external.part import ExternalPoses  # noqa: PLC0415 - a check of a file needs no receiver

        return ExternalPoses(context)

    def rules(self, rig: RigSpec) -> Iterator[tuple[bool, str]]:
        """Check that there is something to move."""
        [spec] = rig.part("external")
        yield (
            rig.platform.kind == "external" or bool(spec.object),
            'external must move the platform (platform.kind = "external") or have at least one object',
        )

    def real_time(self, spec: ExternalSpec) -> str:
        """Poses that are followed live are known only as they come."""
        if spec.time != "live":
            return ""
        return 'external.time must be "replay" or "lockstep" where nothing runs in real time, got "live"; external.record records what was live'

    def files(self, spec: ExternalSpec) -> Iterator[str]:
        """Meshes of its objects, and the recording that it replays."""
        yield from (each.mesh.file for each in spec.object if each.mesh is not None)
        if spec.file:
            yield spec.file

    def moved(self, rig: Rig, spec: ExternalSpec, others: "Sequence[SceneObject]") -> "MovedScene":
        """Objects, keys and states that it moves."""
        from hilsim.parts.external.scene import external_scene  # noqa: PLC0415 - loads kernels

        return external_scene(rig, spec, others)

    def step(self, rig: Rig, spec: ExternalSpec) -> "Callable[[], Record] | None":
        """What makes the recording.

        Raises:
            ConfigError: it replays poses.
        """
        from hilsim.parts.external.recording import KeyFile  # noqa: PLC0415 - loads kernels

        if spec.time == "replay":
            raise ConfigError(f'{rig.path}: external.time of a rig that is stepped must be "lockstep" or "live", got "replay"')
        return (lambda: KeyFile(rig.directory / spec.record).write) if spec.record else None

    def runner(self, rig: Rig, spec: ExternalSpec, unsupported: Sequence[str]) -> Callable[[float | None, Path | None], None] | None:
        """In lockstep the other side's messages run the rig."""
        if spec.time != "lockstep":
            return None
        if unsupported:
            raise ConfigError(f'{rig.path}: {", ".join(unsupported)} must not be given for external.time = "lockstep"')
        from hilsim.parts.external.lockstep.run import run_in_lockstep  # noqa: PLC0415 - loads kernels

        return partial(run_in_lockstep, rig, spec)

    def answer(self, readings: Sequence[ExternalReading]) -> dict[str, object]:
        """The reading itself."""
        return {"external": asdict(readings[0])}


KIND = ExternalKind()
