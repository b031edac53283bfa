"""Range sensors as serial devices: they cast their rays from the platform into the scene."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from hilsim.assembly.build import Scenery
from hilsim.config.rig import Rig
from hilsim.daemon.serial_devices.device import ConfiguredDevice
from hilsim.links.timed_bytes import TimedBytes
from hilsim.rangefinders.aim import platform_rays
from hilsim.rangefinders.registry import build_rangefinder, rangefinder_names
from hilsim.rangefinders.specs import RangefinderSpec
from hilsim.render.cpu import cast_rays

_NOISE_SIGMAS = 8.0


class RangefinderDevice:
    """A range sensor in a scene."""

    def __init__(self, spec: RangefinderSpec, *, seed: int, stream: int, scenery: Scenery) -> None:
        """A rangefinder by ``spec``; its noise is drawn from ``seed`` and ``stream``, its number in the rig."""
        self._spec = spec
        self._scenery = scenery
        self._sensor = build_rangefinder(spec, seed=seed, stream=stream)

    def see(self, scenery: Scenery) -> None:
        """Look into another scene from now on."""
        self._scenery = scenery

    def warm(self) -> None:
        """Load or compile what casts its rays."""
        self.sample(np.zeros(1, np.int64), np.zeros(1))

    def begin(self, utc_epoch_ns: int) -> None:
        """A range sensor knows no date."""

    def receive(self, data: bytes, time_ns: int) -> list[bytes]:
        """Take bytes of the driver; returns the answers."""
        return self._sensor.receive(data, time_ns)

    def next_ns(self, from_ns: int) -> int:
        """When the next frame at or after a time is due."""
        return self._sensor.next_ns(from_ns)

    def frames(self, from_ns: int, until_ns: int) -> list[TimedBytes]:
        """Every frame due in a stretch."""
        return self._sensor.frames(from_ns, until_ns, self.sample)

    def skip(self, from_ns: int, until_ns: int) -> int:
        """Leave out what is due in a stretch: nothing is looked at."""
        return len(self._sensor.frames(from_ns, until_ns, lambda time_ns, _: np.full(time_ns.size, np.inf)))

    def sample(self, time_ns: npt.NDArray[np.int64], azimuth_deg: npt.NDArray[np.float64]) -> npt.NDArray[np.floating]:
        """``float32[n]`` true ranges in metres, ``inf`` for nothing, at ``int64[n]`` rig times and ``float64[n]`` azimuths."""
        scenery = self._scenery
        rays = platform_rays(self._spec, scenery.platform, time_ns, azimuth_deg)
        range_m = np.empty(time_ns.size, np.float32)
        instance, triangle = np.empty(time_ns.size, np.int32), np.empty(time_ns.size, np.int32)
        reach_m = self._spec.range_max_m + _NOISE_SIGMAS * self._spec.range_noise_m
        cast_rays(scenery.world, rays.origin_m, rays.direction, time_ns, reach_m, range_m, instance, triangle)
        return range_m


def configured_rangefinders(rig: Rig, scenery: Callable[[], Scenery]) -> tuple[ConfiguredDevice, ...]:
    """Every ``[[rangefinder]]`` of a rig; ``scenery`` is called if there is one."""
    specs = rig.spec.rangefinder
    return tuple(
        ConfiguredDevice(
            name=name,
            serial=spec,
            identity=(spec, number, rig.spec.seed),
            device=RangefinderDevice(spec, seed=rig.spec.seed, stream=number, scenery=scenery()),
        )
        for number, (name, spec) in enumerate(zip(rangefinder_names(specs), specs, strict=True))
    )
