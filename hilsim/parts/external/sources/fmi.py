"""Poses from an FMU (FMI 2 or 3, co-simulation) that hilsim steps: its variables are those of the platform and of objects."""

import math
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from hilsim.errors import AssetError, ConfigError, require
from hilsim.offline.snapshot import Motion, Snapshot, TrackedObject
from hilsim.world.geometry.frames import Quaternion, Vector
from hilsim.world.geometry.rotations import from_roll_pitch_yaw

Names = tuple[str, str, str]
_UNIT_TOLERANCE = 1e-3
_REALS = {"Real", "Float64", "Float32"}


@dataclass(frozen=True, kw_only=True)
class FmuVariables:
    """Names of the variables of a body's motion; those of the world are in the world's axes (z up), those of rates in the body's (x forward, y left).

    Attributes:
        position: Position (m).
        angles: Roll, pitch and yaw, applied yaw first (z-y'-x''); empty: ``quaternion``, or always level.
        quaternion: Orientation ``(w, x, y, z)``, world from body, in place of ``angles``.
        velocity: Velocity (m/s); empty: not known.
        rates: Rotation rates (rad/s); empty: not known.
        degrees: Whether ``angles`` are degrees, not radians.
    """

    position: Names
    angles: Names | None = None
    quaternion: tuple[str, str, str, str] | None = None
    velocity: Names | None = None
    rates: Names | None = None
    degrees: bool = False

    def __post_init__(self) -> None:
        require((self.angles is None or self.quaternion is None, "angles or quaternion must be given, got both"))

    def names(self) -> tuple[str, ...]:
        """All names, in a fixed order."""
        return (*self.position, *(self.angles or ()), *(self.quaternion or ()), *(self.velocity or ()), *(self.rates or ()))

    def motion(self, value: Mapping[str, float]) -> Motion:
        """Motion by the values of the variables.

        Raises:
            ValueError: a value is out of bounds.
        """
        return Motion(
            position_m=_vector(value, self.position),
            orientation=self._orientation(value),
            velocity_mps=_vector(value, self.velocity) if self.velocity else None,
            rates_radps=_vector(value, self.rates) if self.rates else None,
        )

    def _orientation(self, value: Mapping[str, float]) -> Quaternion:
        if self.quaternion is not None:
            w, x, y, z = (value[name] for name in self.quaternion)
            length = math.hypot(w, x, y, z)
            require((abs(length - 1.0) <= _UNIT_TOLERANCE, f"{', '.join(self.quaternion)} must be a unit quaternion, got length {length:.6g}"))
            return w / length, x / length, y / length, z / length
        if self.angles is None:
            return 1.0, 0.0, 0.0, 0.0
        roll, pitch, yaw = _vector(value, self.angles)
        if not self.degrees:
            roll, pitch, yaw = math.degrees(roll), math.degrees(pitch), math.degrees(yaw)
        return from_roll_pitch_yaw(roll, pitch, yaw)


def _vector(value: Mapping[str, float], names: Names) -> Vector:
    x, y, z = names
    return value[x], value[y], value[z]


@dataclass(frozen=True, kw_only=True)
class FmuSpec:
    """An FMU and its variables.

    Attributes:
        file: FMU file.
        step_s: Length of a step.
        platform: Variables of the platform; None: the FMU moves objects alone.
        objects: Variables of objects, by the objects' names in the rig's scene.
        start: Values of parameters and inputs, set before the FMU is initialised.
    """

    file: Path
    step_s: float = 0.01
    platform: FmuVariables | None = None
    objects: Mapping[str, FmuVariables] = field(default_factory=dict)
    start: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require(
            (1e-6 <= self.step_s <= 1.0, f"step_s must be 1e-6 to 1, got {self.step_s}"),
            (self.platform is not None or bool(self.objects), "platform or objects must be given"),
        )


class Fmu:
    """An FMU that runs.

    Args:
        spec: File and variables.
    """

    def __init__(self, spec: FmuSpec) -> None:
        self.spec = spec
        self.step_ns = round(spec.step_s * 1e9)
        self._steps = 0
        self._folder = ""
        self._model: Any = None
        self._references: dict[str, int] = {}
        self._is_version_3 = False
        self._float32: set[str] = set()

    def __enter__(self) -> Self:
        """Load and initialise the FMU.

        Raises:
            AssetError: the file is no FMU for co-simulation, lacks a variable, or fails.
            ConfigError: the package ``fmpy`` is missing.
        """
        try:
            import fmpy  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise ConfigError(f"{self.spec.file}: stepping an FMU requires the package fmpy (pip install 'hilsim-lidar[fmi]')") from error
        self._folder = tempfile.mkdtemp(prefix="hilsim-fmu-")
        try:
            with zipfile.ZipFile(self.spec.file) as archive:
                archive.extractall(self._folder)
            description = fmpy.read_model_description(self._folder)
            self._check(description)
            self._start(description)
        except AssetError:
            self._remove()
            raise
        except Exception as error:
            self._remove()
            raise AssetError(f"{self.spec.file}: must be an FMU that can be started, got {error}") from error
        return self

    def _check(self, description: Any) -> None:
        self._is_version_3 = description.fmiVersion.startswith("3")
        if description.coSimulation is None or not description.fmiVersion.startswith(("2", "3")):
            raise AssetError(f"{self.spec.file}: must be an FMU for co-simulation of FMI 2 or 3, got FMI {description.fmiVersion}")
        self._find({variable.name: variable for variable in description.modelVariables})

    def _find(self, variables: Mapping[str, Any]) -> None:
        names = [name for moving in self._moving() for name in moving.names()]
        faults = []
        for name in dict.fromkeys((*names, *self.spec.start)):
            variable = variables.get(name)
            if variable is None:
                faults.append(f"{self.spec.file}: variable must be one of the FMU's, got {name!r}")
            elif variable.type not in _REALS or getattr(variable, "dimensions", None):
                faults.append(f"{self.spec.file}: variable {name!r} must be one real number, got {variable.type}{'[]' * bool(variable.dimensions)}")
            else:
                self._references[name] = variable.valueReference
                if variable.type == "Float32":
                    self._float32.add(name)
        if faults:
            raise AssetError("\n".join(faults))

    def _moving(self) -> Iterable[FmuVariables]:
        return (*((self.spec.platform,) if self.spec.platform else ()), *self.spec.objects.values())

    def _start(self, description: Any) -> None:
        from fmpy.fmi2 import FMU2Slave  # noqa: PLC0415
        from fmpy.fmi3 import FMU3Slave  # noqa: PLC0415

        made = {
            "guid": description.guid,
            "unzipDirectory": self._folder,
            "modelIdentifier": description.coSimulation.modelIdentifier,
            "instanceName": "hilsim",
        }
        self._model = FMU3Slave(**made) if self._is_version_3 else FMU2Slave(**made)
        self._model.instantiate()
        for name, value in self.spec.start.items():
            self._set(name, value)
        if self._is_version_3:
            self._model.enterInitializationMode(startTime=0.0)
        else:
            self._model.setupExperiment(startTime=0.0)
            self._model.enterInitializationMode()
        self._model.exitInitializationMode()

    def _set(self, name: str, value: float) -> None:
        reference = [self._references[name]]
        if not self._is_version_3:
            self._model.setReal(reference, [value])
        elif name in self._float32:
            self._model.setFloat32(reference, [value])
        else:
            self._model.setFloat64(reference, [value])

    def set(self, name: str, value: float) -> None:
        """Set an input; it counts from the next step on.

        Raises:
            AssetError: the FMU has no such variable, or refuses the value.
        """
        if name not in self.spec.start:
            raise AssetError(f"{self.spec.file}: input must be listed in start, got {name!r}")
        try:
            self._set(name, value)
        except Exception as error:
            raise AssetError(f"{self.spec.file}: {name!r} cannot be set: {error}") from error

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """End the FMU and remove its files."""
        if self._model is not None:
            self._model.terminate()
            self._model.freeInstance()
            self._model = None
        self._remove()

    def _remove(self) -> None:
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = ""

    def snapshot(self) -> Snapshot:
        """Poses at the FMU's time.

        Raises:
            AssetError: a value is out of bounds.
        """
        value = self._values()
        try:
            objects = tuple(
                TrackedObject(id=number, name=name, motion=moving.motion(value)) for number, (name, moving) in enumerate(self.spec.objects.items(), 1)
            )
            platform = self.spec.platform.motion(value) if self.spec.platform else None
        except ValueError as error:
            raise AssetError(f"{self.spec.file}: at {self.time_ns / 1e9:g} s: {error}") from error
        return Snapshot(time_ns=self.time_ns, platform=platform, objects=objects)

    @property
    def time_ns(self) -> int:
        """The FMU's time."""
        return self._steps * self.step_ns

    def _values(self) -> dict[str, float]:
        names = list(dict.fromkeys(name for moving in self._moving() for name in moving.names()))
        if not self._is_version_3:
            return dict(zip(names, map(float, self._model.getReal([self._references[name] for name in names])), strict=True))
        found: dict[str, float] = {}
        for chosen, get in (
            ([name for name in names if name not in self._float32], self._model.getFloat64),
            ([name for name in names if name in self._float32], self._model.getFloat32),
        ):
            if chosen:
                found.update(zip(chosen, map(float, get([self._references[name] for name in chosen])), strict=True))
        return found

    def step(self) -> Snapshot:
        """Advance the FMU by a step; returns its poses then.

        Raises:
            AssetError: the FMU fails, ends the simulation, or gives a value out of bounds.
        """
        try:
            answer = self._model.doStep(self.time_ns / 1e9, self.step_ns / 1e9)
        except Exception as error:
            raise AssetError(f"{self.spec.file}: step at {self.time_ns / 1e9:g} s failed: {error}") from error
        if self._is_version_3 and answer[1]:
            raise AssetError(f"{self.spec.file}: step at {self.time_ns / 1e9:g} s: the FMU ended the simulation")
        self._steps += 1
        return self.snapshot()

    def snapshots(self, stop_s: float | None = None) -> Iterator[Snapshot]:
        """Yield the poses at time 0 and after each step, up to ``stop_s``."""
        yield self.snapshot()
        while stop_s is None or self.time_ns < round(stop_s * 1e9):
            yield self.step()
