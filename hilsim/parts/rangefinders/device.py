"""Range sensors as serial devices, which cast rays from the platform into the scene."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.assembly.build import Scenery
from hilsim.config.rig import Rig
from hilsim.daemon.serial_devices.device import ConfiguredDevice
from hilsim.faults.catalogue import Effect, Place
from hilsim.faults.specs import FaultSpec, faults_on
from hilsim.faults.table import FaultTable, build_fault_table, strength
from hilsim.parts.rangefinders.aim import platform_rays
from hilsim.parts.rangefinders.base import break_ranges
from hilsim.parts.rangefinders.registry import build_rangefinder, rangefinder_names
from hilsim.parts.rangefinders.specs import RangefinderSpec
from hilsim.transmit.links.timed_bytes import TimedBytes
from hilsim.world.platforms.platform import Platform
from hilsim.world.render.cpu import cast_rays
from hilsim.world.scene.successive import SuccessiveWorlds
from hilsim.world.scene.world import World

_NOISE_SIGMAS = 8.0


class _Seen(NamedTuple):
    platform: Platform
    worlds: SuccessiveWorlds


class RangefinderDevice:
    """A range sensor in a scene."""

    def __init__(self, spec: RangefinderSpec, *, seed: int, stream: int, scenery: Scenery, name: str = "") -> None:
        """Create a rangefinder from ``spec``, with noise drawn from ``seed`` and ``stream``, its number in the rig; faults befall its ``name``."""
        self._spec = spec
        self._seen = _Seen(scenery.platform, SuccessiveWorlds(scenery.world))
        self._sensor = build_rangefinder(spec, seed=seed, stream=stream)
        self._name, self._seed = name, seed
        self._faults = [(0, build_fault_table((), 1, seed))]
        self._last_m = np.full(1, np.inf)

    def see(self, scenery: Scenery) -> None:
        """Set the scene and platform of the sensor."""
        self._seen = _Seen(scenery.platform, SuccessiveWorlds(scenery.world))

    def see_later(self, from_ns: int, world: World) -> None:
        """Set the world that the sensor sees from a rig time on."""
        self._seen.worlds.add(from_ns, world)

    def break_later(self, from_ns: int, faults: tuple[FaultSpec, ...]) -> None:
        """Let the sensor have those of a rig's faults that befall it, from a rig time on; any thread may call it."""
        table = build_fault_table(faults_on(faults, self._name, Place.RANGE), 1, self._seed)
        self._faults = [*self._faults[-8:], (from_ns, table)]

    def _table(self, time_ns: int) -> FaultTable:
        return next((table for from_ns, table in reversed(self._faults) if from_ns <= time_ns), self._faults[0][1])

    def _is_mute(self, time_ns: int) -> bool:
        table = self._table(time_ns)
        return any(table.effect[row] == Effect.MUTE and strength(table, row, time_ns) > 0.0 for row in range(table.effect.size))

    def warm(self) -> None:
        """Load or compile the kernels that cast rays."""
        range_m = self.sample(np.zeros(1, np.int64), np.zeros(1))
        break_ranges(self._table(0), np.zeros(1, np.int64), range_m, np.zeros(1))

    def begin(self, utc_epoch_ns: int) -> None:
        """Do nothing: a range sensor has no date."""

    def receive(self, data: bytes, time_ns: int) -> list[bytes]:
        """Process bytes from the driver; returns the answers."""
        answers = self._sensor.receive(data, time_ns)
        return [] if self._is_mute(time_ns) else answers

    def next_ns(self, from_ns: int) -> int:
        """Time of the next frame at or after a time."""
        return self._sensor.next_ns(from_ns)

    def frames(self, from_ns: int, until_ns: int) -> list[TimedBytes]:
        """Make the frames due in a stretch of time."""
        return [frame for frame in self._sensor.frames(from_ns, until_ns, self.sample) if not self._is_mute(frame.time_ns)]

    def skip(self, from_ns: int, until_ns: int) -> int:
        """Skip the frames due in a stretch of time, without casting rays."""
        return len(self._sensor.frames(from_ns, until_ns, lambda time_ns, _: np.full(time_ns.size, np.inf)))

    def sample(self, time_ns: npt.NDArray[np.int64], azimuth_deg: npt.NDArray[np.float64]) -> npt.NDArray[np.floating]:
        """Measure true ranges in metres ``float32[n]``, ``inf`` for a miss, at rig times ``int64[n]`` and azimuths ``float64[n]``."""
        seen = self._seen
        rays = platform_rays(self._spec, seen.platform, time_ns, azimuth_deg)
        range_m = np.empty(time_ns.size, np.float32)
        reach_m = self._spec.range_max_m + _NOISE_SIGMAS * self._spec.range_noise_m
        for world, at in seen.worlds.parts(time_ns):
            met_m = np.empty(at.size, np.float32)
            instance, triangle = np.empty(at.size, np.int32), np.empty(at.size, np.int32)
            cast_rays(world, rays.origin_m[at], rays.direction[at], time_ns[at], reach_m, met_m, instance, triangle)
            range_m[at] = met_m
        table = self._table(int(time_ns[0])) if time_ns.size else self._faults[0][1]
        if table.effect.size > 0:
            break_ranges(table, time_ns, range_m, self._last_m)
        return range_m


def configured_rangefinders(rig: Rig, scenery: Callable[[], Scenery]) -> tuple[ConfiguredDevice, ...]:
    """Make the devices of every ``[[rangefinder]]`` of a rig; ``scenery`` is called if there is one."""
    specs = rig.spec.part("rangefinder")
    found = []
    for number, (name, spec) in enumerate(zip(rangefinder_names(specs), specs, strict=True)):
        device = RangefinderDevice(spec, seed=rig.spec.seed, stream=number, scenery=scenery(), name=name)
        found.append(ConfiguredDevice(name=name, serial=spec, identity=(spec, number, rig.spec.seed), device=device, break_later=device.break_later))
    return tuple(found)
