"""What a rig's ``[vehicle]`` is for the rest of hilsim; a rig without it imports nothing of this folder."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from hilsim.config.parse import parse_table
from hilsim.config.part_kind import PartKind
from hilsim.config.profiles import find_profile
from hilsim.config.rig import Rig, RigSpec
from hilsim.config.script import ChangeSpec, VehicleChange
from hilsim.config.toml_file import read_toml
from hilsim.errors import ConfigError
from hilsim.faults.catalogue import Place
from hilsim.faults.specs import FaultSpec
from hilsim.parts.vehicle.physics.specs import VehicleSpec
from hilsim.parts.vehicle.reading import VehicleReading
from hilsim.parts.vehicle.specs import VehicleRigSpec
from hilsim.telemetry.metrics import MIN_LOST, Losses

if TYPE_CHECKING:
    from hilsim.daemon.parts import RigContext
    from hilsim.parts.vehicle.part import VehiclePart
    from hilsim.world.geometry.tracks import PoseTrack
    from hilsim.world.platforms.live import LivePose
    from hilsim.world.scene.world import World

_KERNELS = 120


class VehicleKind(PartKind[VehicleRigSpec]):
    """Vehicle, flown by a flight controller or the position hold."""

    table: ClassVar[str] = "vehicle"
    spec: ClassVar[type[VehicleRigSpec]] = VehicleRigSpec
    is_list: ClassVar[bool] = False
    carries: ClassVar[bool] = True
    undivided: ClassVar[str] = "its flight is one daemon's"
    viewer: ClassVar[str] = "[vehicle]"
    faults: ClassVar[Mapping[str, str]] = {
        "sensor_frames_skipped": "Sensor frames for the flight controller were not made, because the machine stalled",
        "frames_unforwarded": "Frames of the flight controller did not reach the ground stations, because the daemon was too slow",
        "controller_silent": "The motor commands of the flight controller stopped for 0.2 s or longer, and the vehicle and its sensors with them",
        "flight_ended": "The thread that flies the vehicle has ended",
        "observer_ended": "The thread that sends obstacle data to the controller has ended",
    }
    reading: ClassVar[type[VehicleReading]] = VehicleReading
    losses: ClassVar[tuple[Losses, ...]] = (
        Losses(
            "sensor_frames_skipped",
            "sensor_frames",
            {"skipped_frames": "skipped"},
            while_true="state",
            above=MIN_LOST,  # a single late step of the vehicle skips a frame, too
            text="{lost} of {due} sensor frames skipped, because the machine stalled",
            is_minor=True,
        ),
        Losses(
            "frames_unforwarded",
            "",
            {"unforwarded_frames": "not forwarded"},
            while_true="state",
            text="{lost} frames of the flight controller not forwarded to ground stations",
            is_minor=True,
        ),
        Losses(
            "controller_silent",
            "",
            {"silences": "silent"},
            while_true="state",
            text="motor commands stopped for 0.2 s or longer, {lost} times",
            is_minor=True,
        ),
    )

    def part(self, context: "RigContext") -> "VehiclePart":
        """The vehicle of a running rig."""
        from hilsim.parts.vehicle.part import VehiclePart  # noqa: PLC0415 - loads kernels

        return VehiclePart(context)

    def rules(self, rig: RigSpec) -> Iterator[tuple[bool, str]]:
        """Check that the vehicle carries the sensors, and that the lidars for the controller's obstacle messages exist."""
        yield (
            rig.platform.kind == "vehicle" or not rig.sensor,
            f'platform.kind must be "vehicle" where a vehicle carries the sensors, got "{rig.platform.kind}"',
        )
        (spec,) = rig.part("vehicle")
        names = [sensor.name for sensor in rig.sensor]
        wanted = {"vehicle.obstacle": spec.obstacle.sensor} if spec.obstacle else {}
        wanted |= {f"vehicle.distance[{number}]": each.sensor for number, each in enumerate(spec.distance)}
        for where, name in wanted.items():
            yield name in names, f'{where}.sensor must name a sensor of the rig ({", ".join(names) or "none"}), got "{name}"'

    def setting(self, spec: VehicleRigSpec, number: int, rig: RigSpec, path: Path, faults: list[str]) -> VehicleSpec | None:
        """Profile of the vehicle."""
        try:
            profile = find_profile("vehicles", spec.profile, path.parent)
            return parse_table(VehicleSpec, read_toml(profile), str(profile))
        except ConfigError as error:
            faults.append(str(error))
        return None

    def serial_port(self, spec: VehicleRigSpec) -> str:
        """Port of a flight controller."""
        return spec.controller.port

    def sees(self, spec: VehicleRigSpec) -> bool:
        """The vehicle stands on the scene and may touch it."""
        return True

    def motion(self, rig: Rig, world: "World", until_ns: int | None, changes: Sequence[tuple[ChangeSpec, Any]]) -> "LivePose | PoseTrack":
        """Poses of the vehicle.

        Raises:
            ConfigError: it starts under the ground, or a controller steers it, which only ``hilsim run`` can have.
        """
        from hilsim.parts.vehicle.platform import motion_of  # noqa: PLC0415 - loads kernels

        return motion_of(rig, world, until_ns, changes)

    def befallen(self, specs: Sequence[VehicleRigSpec]) -> Iterator[tuple[Place, str]]:
        """Motors, the line of a serial port, and sensors where a flight controller reads them: the position hold knows the truth, and ArduPilot's simulation makes readings itself."""
        for spec in specs:
            yield Place.MOTOR, self.table
            if spec.controller.kind in ("serial", "tcp", "udp"):
                yield Place.VEHICLE, self.table
            if spec.controller.kind == "serial":
                yield Place.LINE, self.table

    def check_fault(self, rig: Rig, fault: FaultSpec) -> None:
        """Refuse motors that the vehicle does not have.

        Raises:
            ConfigError: it has fewer.
        """
        motors = len(rig.settings[self.table][0].rotors)
        if fault.row.place == Place.MOTOR and fault.befalls(self.table) and max(getattr(fault, "motors", (1,))) > motors:
            raise ConfigError(f"motors of {fault.label} must be 1 to {motors}, got {', '.join(map(str, getattr(fault, 'motors', ())))}")

    def check_change(self, specs: Sequence[VehicleRigSpec], world: "World | None", change: ChangeSpec) -> None:
        """Refuse a place under the ground.

        Raises:
            ConfigError: there is no vehicle, or the change puts it there.
        """
        super().check_change(specs, world, change)
        from hilsim.parts.vehicle.platform import require_place  # noqa: PLC0415 - loads kernels

        if isinstance(change, VehicleChange) and world is not None:
            require_place(world, change.position_m)

    def compiled_ahead(self, rig: Rig) -> tuple[str, Callable[[], None]] | None:
        """The flight loop, which ArduPilot's link does without."""
        (spec,), (profile,) = rig.spec.part("vehicle"), rig.settings["vehicle"]
        if spec.controller.kind == "ardupilot":
            return None

        def compile_ahead() -> None:
            from hilsim.parts.vehicle.kernels import compile_flight  # noqa: PLC0415 - loads kernels

            compile_flight(profile)

        return "hilsim.parts.vehicle.autopilot.loop", compile_ahead

    def kernels(self, rig: Rig) -> Iterator[tuple[str, int]]:
        """Kernels of the flight loop, and of obstacle maps."""
        (spec,) = rig.spec.part("vehicle")
        yield f"vehicle-{spec.controller.kind}", _KERNELS
        if spec.distance or spec.obstacle:
            yield "obstacles", 0

    def answer(self, readings: Sequence[VehicleReading]) -> dict[str, object]:
        """The reading itself."""
        return {"vehicle": asdict(readings[0])}

    def state(self, readings: Sequence[VehicleReading]) -> str:
        """State of the session with the controller, and height of the vehicle."""
        from hilsim.parts.vehicle.screen_text import vehicle_state  # noqa: PLC0415 - a daemon without a terminal needs none

        return " ".join(map(vehicle_state, readings))


KIND = VehicleKind()
