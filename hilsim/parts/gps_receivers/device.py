"""GPS receivers as serial devices: the platform's position, and the time, once a second."""

from collections.abc import Callable

import numpy as np

from hilsim.assembly.build import Scenery
from hilsim.config.rig import Rig
from hilsim.daemon.serial_devices.device import ConfiguredDevice
from hilsim.emulator.planning import build_gps
from hilsim.emulator.position import write_sentence
from hilsim.parts.gps_receivers.specs import GpsReceiverSpec, receiver_names
from hilsim.protocols.nmea import GPRMC_CAPACITY
from hilsim.sensor.clock import build_device_clock
from hilsim.sensor.specs import ClockSetting
from hilsim.transmit.links.timed_bytes import TimedBytes
from hilsim.units import NS_PER_S
from hilsim.world.platforms.platform import Platform
from hilsim.world.scene.world import World


class ReceiverDevice:
    """A receiver on the platform; its sentences are due as UTC seconds begin."""

    def __init__(self, spec: GpsReceiverSpec, platform: Platform) -> None:
        """Create a receiver that is carried by a platform."""
        self._gps = build_gps(spec.setting)
        self._platform = platform
        self._utc_epoch_ns = 0

    def see(self, scenery: Scenery) -> None:
        """Set the platform of the receiver."""
        self._platform = scenery.platform

    def see_later(self, from_ns: int, world: World) -> None:
        """Ignore a changed world: a receiver looks at nothing."""

    def warm(self) -> None:
        """Load or compile the kernels that write sentences."""
        self._sentence(0)

    def begin(self, utc_epoch_ns: int) -> None:
        """Set the UTC of rig time 0."""
        self._utc_epoch_ns = utc_epoch_ns

    def receive(self, data: bytes, time_ns: int) -> list[bytes]:
        """Ignore what is sent to the receiver: software that configures receivers goes on without an answer."""
        del data, time_ns
        return []

    def next_ns(self, from_ns: int) -> int:
        """Rig time of the next whole UTC second."""
        return -(-(self._utc_epoch_ns + from_ns) // NS_PER_S) * NS_PER_S - self._utc_epoch_ns

    def frames(self, from_ns: int, until_ns: int) -> list[TimedBytes]:
        """Make the sentences of a stretch of time."""
        return [TimedBytes(at_ns, self._sentence(at_ns)) for at_ns in range(self.next_ns(from_ns), until_ns, NS_PER_S)]

    def skip(self, from_ns: int, until_ns: int) -> int:
        """Count the sentences of a stretch of time."""
        return len(range(self.next_ns(from_ns), until_ns, NS_PER_S))

    def _sentence(self, rig_ns: int) -> bytes:
        clock = build_device_clock(ClockSetting(), follows_pulse=True, start_ns=0, utc_epoch_ns=self._utc_epoch_ns)
        sentence = np.zeros(GPRMC_CAPACITY, np.uint8)
        size = write_sentence(clock, self._gps, self._platform, rig_ns, sentence, 0)
        return sentence[:size].tobytes()


def configured_receivers(rig: Rig, scenery: Callable[[], Scenery]) -> tuple[ConfiguredDevice, ...]:
    """Make the devices of every ``[[gps_receiver]]`` of a rig; ``scenery`` is called if there is one."""
    specs = rig.spec.part("gps_receiver")
    return tuple(
        ConfiguredDevice(name=name, serial=spec, identity=(spec, number), device=ReceiverDevice(spec, scenery().platform))
        for number, (name, spec) in enumerate(zip(receiver_names(specs), specs, strict=True))
    )
